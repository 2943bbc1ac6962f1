package datasets

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func summaries(t *testing.T, in string, o Options) (string, Info) {
	t.Helper()
	all, info := mustRead(t, in, o)
	var b []string
	for i := range all {
		b = append(b, summary(&all[i]))
	}
	return strings.Join(b, "|"), info
}

// The file of Arrow's has the columns of WildChat.
func TestWildChatParquet(t *testing.T) {
	for _, o := range []Options{{}, {Format: "wildchat"}, {Format: "parquet"}} {
		got, info := summaries(t, foreign(t), o)
		want := `session=0/c0 model=gpt-4 turn=0 after=[] user:"Hello" reply="Hi!" chat|` +
			`session=0/c0 model=gpt-4 turn=1 after=[0] user:"Hello" assistant:"Hi!" user:"More" reply="Sure" chat|` +
			`session=2/c0 turn=0 after=[] user:"Q" reply="A1A2" chat`
		var times []string
		var rest []string
		for s := range strings.SplitSeq(got, "|") {
			first, others, _ := strings.Cut(s, " ")
			times, rest = append(times, first), append(rest, others)
		}
		if strings.Join(rest, "|") != want {
			t.Errorf("%s\n%s", strings.Join(rest, "|"), want)
		}
		// From 2023-04-09 on. The last reply of the third has no time: that of the conversation stands in.
		if !reflect.DeepEqual(times, []string{"466944h1m0.5s", "466944h2m53s", "466944h6m0s"}) {
			t.Error(times)
		}
		if info.Format != "wildchat" || !info.HasTimes || !info.HasSessions || info.HasUsers || info.TimeUnit != "date" ||
			!reflect.DeepEqual(info.Notes, []string{"arrivals are the times at which the answers were complete, " +
				"where the times of the questions are not recorded", withoutReply + ": 1"}) {
			t.Errorf("%+v", info)
		}
	}
}

// Addresses and headers are not even decoded.
func TestWildChatLeavesPeopleAlone(t *testing.T) {
	for _, row := range readParquetRows(t, foreign(t), wildChat.wanted) {
		if s := fmt.Sprint(row); strings.Contains(s, "SECRET") || strings.Contains(s, "hashed_ip") || strings.Contains(s, "turn_identifier") {
			t.Error(s)
		}
	}
}

func TestDialogueLines(t *testing.T) {
	for name, c := range map[string]struct{ format, in, want, notes string }{
		"wildchat": {"wildchat", `{"conversation_hash":"h","model":"m","timestamp":1681000000000,"conversation":[{"role":"user","content":"a","timestamp":1680999990000,"hashed_ip":"x"},{"role":"assistant","content":"b","timestamp":1681000000000}]}`,
			`466944h26m30s session=0/h model=m turn=0 after=[] user:"a" reply="b" chat`, ""},
		"lmsys": {"lmsys", `{"conversation_id":"i","model":"v","conversation":[{"content":"a","role":"user"},{"content":"b","role":"assistant"},{"content":"c","role":"user"}],"turn":1,"redacted":false,"language":"en"}` + "\n" +
			`{"conversation_id":"j","model":"v","conversation":[{"content":null,"role":"user"},{"content":"","role":"assistant"},{"content":"d","role":"user"},{"content":"e","role":"assistant"}]}`,
			`session=0/i model=v turn=0 after=[] user:"a" reply="b" chat|session=1/j model=v turn=0 after=[] user:"" reply="" chat|session=1/j model=v turn=1 after=[1] user:"" assistant:"" user:"d" reply="e" chat`, ""},
		"as a string": {"lmsys", `{"conversation_id":"i","model":null,"conversation":"[{\"content\":\"a\",\"role\":\"user\"},{\"content\":\"b\",\"role\":\"assistant\"}]"}`,
			`session=0/i turn=0 after=[] user:"a" reply="b" chat`, ""},
		"nobody answered": {"lmsys", `{"conversation_id":"i","model":"v","conversation":[]}`, "", withoutReply + ": 1"},
	} {
		got, info := summaries(t, c.in, Options{})
		if got != c.want || info.Format != c.format || strings.Join(info.Notes, "|") != c.notes {
			t.Errorf("%s: %s\n%s\n%s %v", name, got, c.want, info.Format, info.Notes)
		}
	}
}

func TestDialogueFaults(t *testing.T) {
	const ok = `{"conversation_hash":"h","timestamp":"2023-04-09T00:02:53Z","conversation":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}` + "\n"
	for conversation, want := range map[string]string{
		`7`:                             "log:2:33: it has no list of conversations",
		`[7]`:                           "log:2:33: want a list of objects with role",
		`[{"role":"user","content":1}]`: "log:2:33: want a list of objects with role",
		`[{"role":"x","content":""}]`:   "log:2:33: a role is not one of",
		`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"}]`: "log:2:33: a message has no time",
		`[{"role":"user","content":"a"},{"role":"assistant","content":"b","timestamp":"noon"}]`:                                               "log:2:33: the time of a message is neither",
	} {
		two := strings.Replace(ok, `]}`, `,{"role":"user","content":"c"},{"role":"assistant","content":"d"}]}`, 1)
		two = strings.Replace(two, `"content":"b"`, `"content":"b","timestamp":"2023-04-09T00:02:50Z"`, 1)
		all, info, err := read(strings.NewReader(ok+`{"conversation_hash":"c","conversation":`+conversation+"}\n"+two), Options{MaxBad: 1})
		if err != nil || len(all) != 3 || len(info.FirstBad) != 1 || !strings.HasPrefix(info.FirstBad[0].Error(), strings.Replace(want, "33", "41", 1)) {
			t.Errorf("%s: %d entries, %v %v", conversation, len(all), info.FirstBad, err)
		}
		if len(all) == 3 && (len(all[2].Parents) != 1 || all[2].Parents[0] != 1) {
			t.Errorf("%s: a record at fault moved the parents: %v", conversation, all[2].Parents)
		}
	}
}
