package datasets

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestShareGPTRejoins(t *testing.T) {
	part := func(id string, turns ...string) string {
		var b []string
		for i, text := range turns {
			from := "human"
			if strings.ToLower(text) != text {
				from = "gpt"
			}
			b = append(b, fmt.Sprintf(`{"from":%q,"value":%q}`, from, turns[i]))
		}
		return fmt.Sprintf(`{"id":%q,"conversations":[%s]}`, id, strings.Join(b, ","))
	}
	whole := `session=0/x_0 turn=0 after=[] user:"a" reply="B" chat|session=0/x_0 turn=1 after=[0] user:"a" assistant:"B" user:"c" reply="D" chat`
	alone := func(second string) string {
		return `session=0/x_0 turn=0 after=[] user:"a" reply="B" chat|session=1/` + second + ` turn=0 after=[] user:"c" reply="D" chat`
	}
	for name, c := range map[string]struct{ in, want, notes string }{
		"numbered by turns": {part("x_0", "a", "B") + "," + part("x_2", "c", "D"), whole, rejoined + ": 1"},
		"numbered chats":    {part("x_0", "a", "B") + "," + part("x_1", "c", "D"), alone("x_1"), ""},
		"cut inside a turn": {part("x_0", "a", "B", "c") + "," + part("x_3", "D"), whole, rejoined + ": 1"},
		"a reply in halves": {part("x_0", "a", "B") + "," + part("x_2", "C"), `session=0/x_0 turn=0 after=[] user:"a" reply="BC" chat`, rejoined + ": 1"},
		"three parts":       {part("x_0", "a", "B") + "," + part("x_2", "c") + "," + part("x_3", "D"), whole, rejoined + ": 2"},
		"html is text": {part("x_0", "<div>a</div>", "<b>B&amp;</b>"),
			`session=0/x_0 turn=0 after=[] assistant:"<div>`, ""}, // replaced below
		"a part is missing":    {part("x_0", "a", "B") + "," + part("x_5", "c", "D"), alone("x_5"), apart + ": 1"},
		"backwards":            {part("x_0", "a", "B") + "," + part("y_0", "c", "D"), alone("y_0"), ""},
		"the same again":       {part("x_0", "a", "B") + "," + part("x_0", "c", "D"), alone("x_0"), ""},
		"another chat between": {part("x_0", "a", "B") + "," + part("y_0") + "," + part("x_2", "c", "D"), strings.Replace(alone("x_2"), "1/", "2/", 1), withoutReply + ": 1|" + apart + ": 1"},
		"no number":            {part("x_0", "a", "B") + "," + part("x_z", "c", "D"), alone("x_z"), ""},
		"an empty part":        {part("x_0") + "," + part("x_0", "a", "B"), `session=1/x_0 turn=0 after=[] user:"a" reply="B" chat`, withoutReply + ": 1"},
	} {
		if name == "html is text" {
			c.in = `{"id":"x_0","conversations":[{"from":"human","value":"<div>a</div>"},{"from":"gpt","value":"<b>B&amp;</b>"}]}`
			c.want = `session=0/x_0 turn=0 after=[] user:"<div>a</div>" reply="<b>B&amp;</b>" chat`
		}
		got, info := summaries(t, "["+c.in+"]", Options{})
		notes := strings.Split(strings.Join(info.Notes, "|"), "|")
		if got != c.want || !sameSet(notes, strings.Split(c.notes, "|")) || info.Records != int64(strings.Count(c.in, `"id"`)) {
			t.Errorf("%s:\n  %s\n  %s\n  %q %d", name, got, c.want, info.Notes, info.Records)
		}
	}
}

func sameSet(a, b []string) bool {
	seen := map[string]int{}
	for _, s := range a {
		seen[s]++
	}
	for _, s := range b {
		seen[s]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

// However a chat is split, it reads as when it is whole.
func TestShareGPTSplitsDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	type turn struct {
		From  string `json:"from"`
		Value string `json:"value"`
	}
	type element struct {
		ID    string `json:"id"`
		Turns []turn `json:"conversations"`
	}
	entries := func(elements []element) string {
		in, err := json.Marshal(elements)
		if err != nil {
			t.Fatal(err)
		}
		all, info := mustRead(t, string(in), Options{Format: "sharegpt"})
		var b strings.Builder
		for i := range all {
			s := summary(&all[i])
			if at := strings.Index(s, " turn="); at >= 0 {
				s = s[at:] // the position in a session's name is that of the element
			}
			b.WriteString(s + "\n")
		}
		if info.Records != int64(len(elements)) {
			t.Fatalf("%d records of %d", info.Records, len(elements))
		}
		return b.String()
	}
	for range 200 {
		var whole, split []element
		chats := 1 + r.IntN(4)
		long := strings.Repeat("x", splitBytes)
		for c := range chats {
			id := fmt.Sprintf("chat%d", c)
			turns := []turn{}
			for i := range r.IntN(9) {
				turns = append(turns, turn{[]string{"human", "gpt", "gpt", "system"}[r.IntN(4)], fmt.Sprint(long, i)})
			}
			whole = append(whole, element{id, turns})
			// Chats that are counted look like the parts of one that are counted, unless there are others.
			from, byTurn, parts := 0, chats == 1 || r.IntN(2) == 0, 0
			for from < len(turns) || parts == 0 {
				size := min(1+r.IntN(4), len(turns)-from)
				number := parts
				if byTurn {
					number = from
				}
				split = append(split, element{fmt.Sprintf("%s_%d", id, number), turns[from : from+size]})
				from, parts = from+size, parts+1
			}
		}
		if a, b := entries(whole), entries(split); a != b {
			t.Fatalf("%s\n%s\n%v", a, b, split)
		}
	}
}

// Chats that are numbered are no parts of one, whether the file has one series or several.
func TestNumberedChatsAreNoParts(t *testing.T) {
	for name, text := range map[string]string{"short": "a", "long": strings.Repeat("a", splitBytes)} {
		var in []string
		for i := range 20 {
			series := "chat"
			if name == "short" && i > 9 {
				series = "talk"
			}
			in = append(in, fmt.Sprintf(`{"id":"%s_%d","conversations":[{"from":"human","value":"%s"},{"from":"gpt","value":"b"}]}`, series, i, text))
		}
		all, info := mustRead(t, "["+strings.Join(in, ",\n")+"]", Options{})
		if len(all) != 20 || *all[19].Turn != 0 || len(info.Notes) > 0 {
			t.Errorf("%s: %d requests, %q", name, len(all), info.Notes)
		}
	}
}

// Faults between parts: what stands before them is read, and they keep parts apart.
func TestShareGPTRejoinsAroundFaults(t *testing.T) {
	one := func(id string) string {
		return `{"id":"` + id + `","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}`
	}
	all, info, err := read(strings.NewReader("["+one("x_0")+",\n7,\n"+one("x_2")+","+one("x_4")+"]"), Options{MaxBad: 1, Format: "sharegpt"})
	if err != nil || len(all) != 3 || info.Records != 3 || info.Bad != 1 || info.FirstBad[0].Line != 2 || all[0].Session.Reveal() != "0/x_0" || all[2].Session.Reveal() != "2/x_2" {
		t.Errorf("%d entries, %+v, %v", len(all), info, err)
	}
}
