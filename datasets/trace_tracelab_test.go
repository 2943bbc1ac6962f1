package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// round writes a TraceLab round with events of the form type@seconds.
func round(session string, index int, events ...string) string {
	var list []string
	for _, e := range events {
		kind, at, _ := strings.Cut(e, "@")
		list = append(list, fmt.Sprintf(`{"event_type":%q,"timestamp":"2026-06-01T00:00:%sZ"}`, kind, at))
	}
	return fmt.Sprintf(`{"provider":"claude","session_id":%q,"round_index":%d,"model":"m","input_tokens_total":100,"prefix_tokens":60,"newly_append_tokens":40,"output_tokens":9,"reasoning_output_tokens":null,"timing_events":[%s],"tools":[]}`+"\n",
		session, index, strings.Join(list, ","))
}

func pauses(e *trace.Entry) string {
	var b strings.Builder
	if e.Think != nil {
		fmt.Fprintf(&b, " think=%v", *e.Think)
	}
	if e.Tool != nil {
		fmt.Fprintf(&b, " tool=%v", *e.Tool)
	}
	return b.String()
}

func TestTraceLab(t *testing.T) {
	const day = 494520 * time.Hour // to 2026-06-01
	for name, c := range map[string]struct{ in, want, notes string }{
		"tools, then a message": {
			round("s", 0, "user_message@01.5", "reasoning@03", "text@04", "tool_call@05", "usage_report@06") +
				round("s", 1, "tool_result@07", "tool_result@09", "text@10") +
				round("s", 2, "user_message@30", "text@31"),
			"1.5s turn=0 e2e=3.5s|9s turn=1 after 0 tool=4s e2e=1s|30s turn=2 after 1 think=20s e2e=1s", ""},
		"a stale message, and one that came later": {
			round("s", 0, "user_message@01", "user_message@03", "text@04", "user_message@05", "text@06"),
			"3s turn=0 e2e=3s", ""},
		"a tool that was done before the output ended": {
			round("s", 0, "user_message@01", "tool_call@02", "tool_call@09") + round("s", 1, "tool_result@03", "tool_result@12", "text@13"),
			"1s turn=0 e2e=8s|12s turn=1 after 0 tool=3s e2e=1s", ""},
		"sessions between each other": {
			round("a", 0, "user_message@01", "text@02") + round("b", 0, "user_message@01", "text@03") + round("a", 1, "user_message@04", "text@05"),
			"1s turn=0 e2e=1s|1s turn=0 e2e=2s|4s turn=1 after 0 think=2s e2e=1s", ""},
		"rounds that overlap": {
			round("s", 0, "user_message@01", "text@08") + round("s", 0, "user_message@05", "text@06"),
			"1s turn=0 e2e=7s|5s turn=0 e2e=1s", "rounds that arrived before the one before them in their session had ended, which they do not wait for: 1"},
		"no input": {
			round("s", 0, "text@02", "text@03") + round("s", 1, "text@04"),
			"2s turn=0|4s turn=1 after 0", "rounds without the event that they answer, taken to arrive at their first event: 2"},
		"no output": {
			round("s", 0, "user_message@02") + round("s", 1, "user_message@04", "text@05"),
			"2s turn=0|4s turn=1 after 0 e2e=1s", ""},
	} {
		all, info := mustRead(t, c.in, Options{})
		var got []string
		for i := range all {
			e := &all[i]
			s := fmt.Sprintf("%v turn=%d", e.Time.Sub(Epoch)-day, *e.Turn)
			for _, p := range e.Parents {
				s += fmt.Sprintf(" after %d", p)
			}
			s += pauses(e)
			if e.E2E != nil {
				s += fmt.Sprintf(" e2e=%v", *e.E2E)
			}
			got = append(got, s)
			if *e.InputTokens != 100 || *e.Cached != 60 || *e.OutputTokens != 9 || e.Reasoning != nil || e.TTFT != nil || e.Kind != "chat" {
				t.Errorf("%s: %s", name, summary(e))
			}
		}
		if s := strings.Join(got, "|"); s != c.want || strings.Join(info.Notes, "|") != c.notes || info.Format != "tracelab" || !info.HasSessions || info.TimeUnit != "date" {
			t.Errorf("%s:\n  %s\n  %s\n  %+v", name, s, c.want, info)
		}
	}
}

func TestTraceLabFaults(t *testing.T) {
	ok := round("s", 0, "user_message@01", "text@02")
	for bad, want := range map[string]string{
		round("s", 1):             "it has no time",
		round("s", 1, "text@99"):  wantEvents,
		round("s", -1, "text@02"): "want a whole number",
		strings.Replace(ok, `"timing_events":[`, `"timing_events":[7,`, 1): wantEvents,
		strings.Replace(ok, `"output_tokens"`, `"x"`, 1):                   "output_tokens is missing",
		strings.Replace(ok, `"session_id":"s"`, `"session_id":null`, 1):    "session is missing",
	} {
		all, info, err := read(strings.NewReader(ok+bad+ok), Options{MaxBad: 1})
		if err != nil || len(all) != 2 || info.Bad != 1 || info.FirstBad[0].Line != 2 || !strings.Contains(info.FirstBad[0].Reason, want) {
			t.Errorf("%s: %d entries, %v %v", want, len(all), info.FirstBad, err)
		}
	}
}

// The published rounds: 19 of two sessions, one each of Claude Code and Codex.
func TestTraceLabPublished(t *testing.T) {
	all, info, err := read(published(t, "tracelab_example.jsonl"), Options{AllowLongSpan: true})
	if err != nil || len(all) != 19 || info.Bad != 0 || info.Format != "tracelab" {
		t.Fatalf("%d entries, %+v, %v", len(all), info, err)
	}
	if _, _, err := read(published(t, "tracelab_example.jsonl"), Options{}); err == nil {
		t.Error("two sessions that are 72 days apart were not questioned")
	}
	var got []string
	for _, i := range []int{0, 1, 5, 10, 13, 15} {
		e := &all[i]
		got = append(got, fmt.Sprintf("%s %d/%d/%d%s %v after=%v", e.Time.Format("15:04:05.000"), *e.InputTokens, *e.Cached, *e.OutputTokens, pauses(e), *e.E2E, e.Parents))
	}
	want := []string{
		"05:40:20.151 32272/27217/931 11.496s after=[]",
		"05:40:50.938 35740/29380/1016 tool=19.291s 13.924s after=[0]", // two tools at once: the longer one counts
		"05:42:43.333 42876/41587/273 think=19.913s 3.489s after=[4]",
		"10:05:59.328 9324/6912/444 6.2s after=[]",
		"10:06:14.634 10152/3456/233 tool=8ms 3.852s after=[12]",
		"10:06:29.707 10436/9216/262 think=6.342s 3.841s after=[14]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\n%q", got, want)
	}
}

func TestTraceLabSessions(t *testing.T) {
	const header = "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n"
	in := header + "a,100.5,0,0,1000,50,300.25\n" + "b,200,0,0,600,5,0\n" + "a,100.5,1,1050,500,60,0\n" + "a,100.5,2,400,900,60,7\n" + "a,100.5,4,1300,1,1,0\n"
	all, info := mustRead(t, in, Options{})
	var got []string
	for i := range all {
		got = append(got, summary(&all[i])+pauses(&all[i]))
	}
	want := []string{
		"100.5ms session=a turn=0 after=[] in=1000 out=50 blocks=[0 1] chat",
		"200ms session=b turn=0 after=[] in=600 out=5 blocks=[2 3] chat",
		"400.75ms session=a turn=1 after=[0] in=1550 out=60 blocks=[0 4 5 6] chat tool=300.25ms", // the partial block is complete now, and another
		"400.75ms session=a turn=2 after=[2] in=1300 out=60 blocks=[7 8 9] chat tool=0s",         // the context was cut below a block
		"407.75ms session=a turn=4 after=[3] in=1301 out=1 blocks=[7 8 10] chat tool=7ms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if info.Format != "tracelab-sessions" || info.BlockSize != 512 || !info.HasTimes || !info.HasSessions || info.TimeUnit != "ms" || len(info.Notes) != 1 {
		t.Errorf("%+v", info)
	}
	// The exporter itself names the session id, and puts the columns in another order.
	other := "id,input_len,output_len,arrival_time,round_idx,tool_wait_after_ms,prefix_len\n7,10,3,0.000000,0,12.500000,0\n7,11,3,0.000000,1,0.000000,13\n"
	if all, _ := mustRead(t, other, Options{}); len(all) != 2 || *all[1].InputTokens != 24 || *all[1].Tool != 12500*time.Microsecond {
		t.Errorf("%d entries", len(all))
	}
	for row, want := range map[string]string{
		"a,x,0,0,1,1,0":          "log:2:1: want arrival_time",
		"a,1,0,0,1,1,-1":         "log:2:1: want arrival_time",
		"a,1,0,0,1.5,1,0":        "log:2:1: input_len: want",
		",1,0,0,1,1,0":           "log:2:1: want a session",
		"a,1,0,2147483647,1,1,0": "log:2:1: want a session, and no more",
		"a,1,0,0,1,1":            "log:2:1: the row has fewer",
	} {
		_, info, err := read(strings.NewReader(header+row+"\nz,1,1,0,1,1,0\nz,1,1,0,1,1,0\n"), Options{MaxBad: 1})
		if err != nil || info.Bad != 2 || !strings.HasPrefix(info.FirstBad[0].Error(), want) || info.FirstBad[1].Reason != "the rounds of its session are not in order" {
			t.Errorf("%s: %v %v", row, info.FirstBad, err)
		}
	}
}

// The published workload: every round begins with all of the one before it.
func TestTraceLabSessionsPublished(t *testing.T) {
	all, info, err := read(published(t, "tracelab_sessions.csv"), Options{})
	if err != nil || len(all) != 303 || info.Bad != 0 || info.Format != "tracelab-sessions" {
		t.Fatalf("%d entries, %+v, %v", len(all), info, err)
	}
	sessions, waits := map[string]int{}, 0
	for i := range all {
		e := &all[i]
		sessions[e.Session.Reveal()]++
		if len(e.Parents) == 0 {
			continue
		}
		waits++
		before := all[e.Parents[0]]
		full := int(*before.InputTokens) / 512
		if !slices.Equal(e.SourceBlocks[:full], before.SourceBlocks[:full]) || slices.Contains(e.SourceBlocks, before.SourceBlocks[full]) || e.Tool == nil {
			t.Fatalf("round %d does not share just the full blocks of the one before it", i)
		}
	}
	if len(sessions) != 48 || waits != 255 || *all[302].InputTokens != 5376+721 {
		t.Errorf("%d sessions, %d later rounds, %d", len(sessions), waits, *all[302].InputTokens)
	}
}
