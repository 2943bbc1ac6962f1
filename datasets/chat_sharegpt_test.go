package datasets

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"reprise/trace"
)

func TestShareGPT(t *testing.T) {
	for name, c := range map[string]struct{ in, want, notes string }{
		"two turns": {`[{"id":"x_0","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}]`,
			`session=0/x_0 turn=0 after=[] user:"a" reply="b" chat|session=0/x_0 turn=1 after=[0] user:"a" assistant:"b" user:"c" reply="d" chat`, ""},
		"spellings": {`[{"conversation":[{"role":"System","content":"s"},{"from":"USER","value":"a"},{"from":"chatgpt","value":"b"},{"from":"tool","value":"c"},{"from":"bing","value":"d"},{"from":"user","value":"e"},{"from":"bard","value":"f"}]}]`,
			`session=0/ turn=0 after=[] system:"s" user:"a" reply="b" chat|session=0/ turn=1 after=[0] system:"s" user:"a" assistant:"b" tool:"c" reply="d" chat|` +
				`session=0/ turn=2 after=[1] system:"s" user:"a" assistant:"b" tool:"c" assistant:"d" user:"e" reply="f" chat`, ""},
		"turns as strings": {`[{"id":7,"conversations":["{\"from\":\"human\",\"value\":\"a\"}",{"from":"gpt","value":"b"}]}]`,
			`session=0/7 turn=0 after=[] user:"a" reply="b" chat`, ""},
		"a leading reply is context": {`[{"id":"","conversations":[{"from":"gpt","value":"x"},{"from":"gpt","value":"y"},{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}]`,
			`session=0/ turn=0 after=[] assistant:"xy" user:"a" reply="b" chat`, ""},
		"consecutive replies are one": {`[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"gpt","value":"c"},{"from":"human","value":"d"},{"from":"human","value":"e"},{"from":"gpt","value":""},{"from":"gpt","value":"f"}]}]`,
			`session=0/ turn=0 after=[] user:"a" reply="bc" chat|session=0/ turn=1 after=[0] user:"a" assistant:"bc" user:"d" user:"e" reply="f" chat`, ""},
		"a trailing question": {`[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"}]}]`,
			`session=0/ turn=0 after=[] user:"a" reply="b" chat`, ""},
		"no user":    {`[{"conversations":[{"from":"system","value":"s"},{"from":"gpt","value":"b"}]},{"conversations":[]}]`, "", "conversations without a reply to a user: 2"},
		"no replies": {`[{"conversations":[{"from":"human","value":"s"}]}]`, "", "conversations without a reply to a user: 1"},
		"equal ids are sessions of their own": {`[{"id":"x","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]},` + "\n" +
			`{"id":"x","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}]`,
			`session=0/x turn=0 after=[] user:"a" reply="b" chat|session=1/x turn=0 after=[] user:"a" reply="b" chat|session=1/x turn=1 after=[1] user:"a" assistant:"b" user:"c" reply="d" chat`, ""},
		"empty": {" [ ] ", "", ""},
		"duplicate keys": {`[{"id":"a","id":"b","conversations":[{"from":"gpt","value":"x"},{"from":"gpt","value":"y"}],"conversations":[{"from":"human","value":"q","value":"a"},{"from":"gpt","value":"b"}]}]`,
			`session=0/b turn=0 after=[] user:"a" reply="b" chat`, ""},
		"invalid UTF-8": {"[{\"conversations\":[{\"from\":\"human\",\"value\":\"\xff\\ud800\"},{\"from\":\"gpt\",\"value\":\"\\ud83d\\ude00\"}]}]",
			"session=0/ turn=0 after=[] user:\"\uFFFD\uFFFD\" reply=\"\U0001F600\" chat", ""},
	} {
		all, info := mustRead(t, c.in, Options{Format: "sharegpt"})
		var got []string
		for i := range all {
			got = append(got, summary(&all[i]))
		}
		if s := strings.Join(got, "|"); s != c.want || strings.Join(info.Notes, "|") != c.notes || info.HasTimes {
			t.Errorf("%s:\n  %s\n  %s\n  %q", name, s, c.want, info.Notes)
		}
	}
}

func TestShareGPTFaults(t *testing.T) {
	const ok = `{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}`
	for in, want := range map[string]string{
		"[" + ok + ",\n {\"id\":\"x\"}]":                                           "bad log:2:2: it has no list of conversations",
		"[" + ok + ",\n {\"conversations\":null}]":                                 "bad log:2:2: it has no list",
		"[" + ok + ",\n {\"conversations\":7}]":                                    "bad log:2:2: it is not an object with a list",
		"[" + ok + ",\n 7, null,\"x\"]":                                            "bad log:2:2: it is not an object",
		"[" + ok + ",\n{\"conversations\":[{\"from\":\"alien\",\"value\":\"\"}]}]": "bad log:2:1: a role is not one of",
		"[" + ok + ",\n{\"conversations\":[{\"from\":\"gpt\",\"value\":null}]}]":   "bad log:2:1: a turn is not an object",
		"[" + ok + ",\n{\"conversations\":[null]}]":                                "bad log:2:1: a turn is not an object",
		"[" + ok + ",\n{\"conversations\":[\"{\"]}]":                               "bad log:2:1: a turn is not an object",
		"[" + ok + ",\n{\"conversations\":\n[+]}]":                                 "bad log:3:2: it is not valid JSON",
		"[" + ok:                         "stop log:1:77: unexpected end of file: the JSON array is not closed",
		"[" + ok + ",\n":                 "stop log:2:1: unexpected end of file",
		"[" + ok + ",\n{\"a\":\"":        "stop log:2:7: unexpected end of file",
		"[" + ok + "\n " + ok + "]":      "stop log:2:2: want an element, a comma or the end",
		"[" + ok + ",]":                  "stop log:1:78: want an element",
		"[," + ok + "]":                  "stop log:1:2: want an element",
		"[" + ok + "]\n]":                "stop log:2:1: something follows",
		ok + "\n{\"conversations\":":     "stop log:2:17: unexpected end of file: the last record is not whole",
		ok + "\n{\"conversations\":+}\n": "bad log:2:18: it is not valid JSON",
		ok + "\n{}\n":                    "bad log:2:1: it has no list of conversations",
		ok + "\n7\n":                     "bad log:2:1: it is not an object",
		"[" + ok + "}":                   "stop log:1:77: want an element",
		"[" + ok + ",}]":                 "stop log:1:78: want an element",
	} {
		all, info, err := read(strings.NewReader(in), Options{Format: "sharegpt", MaxBad: 1})
		got := fmt.Sprint("stop ", err)
		if err == nil && len(info.FirstBad) > 0 {
			got = "bad " + info.FirstBad[0].Error()
			if len(all) != 1 {
				t.Errorf("%s: %d entries", in, len(all))
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  %s\n  want %s", in, got, want)
		}
	}
}

// The turns of a conversation share their texts, and growing one's messages
// does not touch another's.
func TestShareGPTSharesTexts(t *testing.T) {
	in := `[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}]`
	all, _ := mustRead(t, in, Options{})
	first, second := all[0], all[1]
	if &first.Messages[0] != &second.Messages[0] || *first.Reply != second.Messages[1].Content {
		t.Error("the texts were copied")
	}
	_ = append(first.Messages, trace.Message{Role: trace.Tool})
	if second.Messages[1].Role != trace.Assistant {
		t.Error("the turns share room to grow")
	}
}

// A conversations repeats one conversation without end.
type conversations struct {
	one  string
	left int
	rest string
}

func (c *conversations) Read(p []byte) (int, error) {
	if c.rest == "" {
		if c.left--; c.left < 0 {
			return 0, io.EOF
		}
		c.rest = c.one + ","
		if c.left == 0 {
			c.rest = c.one + "]"
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Memory is that of the largest element, not of the array.
func TestShareGPTStreams(t *testing.T) {
	const total, element, limit = 100 << 20, 1 << 20, 24 << 20
	half := strings.Repeat("lorem \\u00efpsum ", element/32)
	one := `{"id":"x","conversations":[{"from":"human","value":"` + half + `"},{"from":"gpt","value":"` + half + `"}]}`
	in := &conversations{one: one, left: total / len(one), rest: "["}
	want := in.left
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what is in use is what is held, and little garbage
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := Open(in, Options{Format: "sharegpt"})
	if err != nil {
		t.Fatal(err)
	}
	var peak uint64
	n, batch := 0, make([]trace.Entry, 1)
	for err == nil {
		var m int
		m, err = s.Read(batch)
		n += m
		runtime.ReadMemStats(&now)
		peak = max(peak, now.HeapAlloc)
	}
	if err != io.EOF || n != want {
		t.Fatalf("%d of %d entries, %v", n, want, err)
	}
	if peak > before.HeapAlloc+limit {
		t.Errorf("%d MiB in use while reading elements of 1 MiB", (peak-before.HeapAlloc)>>20)
	}
}

// A conversation a line is the same as in an array, and chats of other formats stay theirs.
func TestShareGPTLines(t *testing.T) {
	const one, two = `{"id":"a_0","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}`,
		`{"id":"a_2","conversations":[{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}`
	want := `session=0/a_0 turn=0 after=[] user:"a" reply="b" chat|session=0/a_0 turn=1 after=[0] user:"a" assistant:"b" user:"c" reply="d" chat`
	for _, in := range []string{"[" + one + "," + two + "]", one + "\n" + two, "\n" + one + "\r\n\n" + two + "\n"} {
		all, info := mustRead(t, in, Options{})
		var got []string
		for i := range all {
			got = append(got, summary(&all[i]))
		}
		if s := strings.Join(got, "|"); s != want || info.Format != "sharegpt" {
			t.Errorf("%s\n  %s: %s", in, info.Format, s)
		}
	}
	for in, want := range map[string]string{
		`[` + wildChatFormat().Example + `]`: "wildchat",
		`[` + lmsysFormat().Example + `]`:    "lmsys",
	} {
		if f, err := detectFormat([]byte(in)); err != nil || f.Name != want {
			t.Errorf("%s is recognised as %q, %v", in, f.Name, err)
		}
	}
}

// The published sample, against counts that were made independently.
func TestShareGPTPublished(t *testing.T) {
	all, info, err := read(published(t, "sharegpt_sample.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	sessions, bytes := map[string]int{}, 0
	for i := range all {
		sessions[all[i].Session.Reveal()]++
		bytes += all[i].Reply.Len()
	}
	if got := fmt.Sprintf("%d %d %d %d %d", info.Records, info.Bad, len(all), len(sessions), bytes); got != "500 0 1767 495 2245045" {
		t.Error(got)
	}
}
