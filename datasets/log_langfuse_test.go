package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// observation is a generation with the given fields.
func observation(more string) string {
	return `{"id":"o","trace_id":"t","type":"GENERATION","start_time":"2026-01-02 03:04:05.500000","end_time":"2026-01-02 03:04:07.000000","usage_details":{"input":10,"output":3}` + more + "}"
}

func TestLangfuseUsage(t *testing.T) {
	const when = "490923h4m5.5s session=t e2e=1.5s "
	for usage, want := range map[string]string{
		`{"input":10,"output":3}`:            "in=10 out=3",
		`{"input":10,"output":3,"total":13}`: "in=10 out=3",
		// As Langfuse stores a usage of OpenAI's: the details are taken out.
		`{"input":10,"input_cached_tokens":6,"output":3,"output_reasoning_tokens":2,"total":21}`: "in=16 out=5 cached=6 reasoning=2",
		`{"input":10,"input_cached_tokens":6,"output":3}`:                                        "in=16 out=3 cached=6",
		// As Anthropic counts: written to the cache is not read from it.
		`{"input":10,"cache_read_input_tokens":6,"cache_creation_input_tokens":4,"output":3}`: "in=20 out=3 cached=6",
		// As logged by hand: the total tells that input holds the details.
		`{"input":10,"input_cached_tokens":6,"output":3,"total":13}`: "in=10 out=3 cached=6",
		`{"input":10,"input_cached_tokens":0,"output":3,"total":13}`: "in=10 out=3 cached=0",
		`{"input_tokens":10,"output_tokens":3}`:                      "in=10 out=3",
		`{"input":10,"input_audio":null,"output":3,"other":7}`:       "in=10 out=3",
		// Of older versions, whose details are within input and output.
		`{"input":10,"prompt_details.cache_read":6,"output":5,"completion_details.reasoning":4,"total":15}`: "in=10 out=5 cached=6 reasoning=4",
		`{"input":10,"prompt_details.cache_read":6,"output":5,"completion_details.reasoning":4}`:            "in=10 out=5 cached=6 reasoning=4",
		`{"input":10,"output":3,"total":13,"unit":"TOKENS"}`:                                                "in=10 out=3",
		`"{\"input\":10,\"output\":3}"`:                                                                     "in=10 out=3",
	} {
		in := strings.Replace(observation(""), `{"input":10,"output":3}`, usage, 1)
		wantEntries(t, in, Options{}, when+want)
	}
}

func TestLangfuseFields(t *testing.T) {
	const when = "490923h4m5.5s in=10 out=3 e2e=1.5s "
	for more, want := range map[string]string{
		`,"session_id":"s","user_id":"u","provided_model_name":"m"`:                            "session=s user=u model=m",
		`,"completion_start_time":"2026-01-02 03:04:05.750000"`:                                "session=t ttft=250ms",
		`,"completion_start_time":"2026-01-02 03:04:07"`:                                       "session=t",
		`,"level":"ERROR","status_message":"x"`:                                                "session=t failed",
		`,"model_parameters":{"max_tokens":"100","temperature":0.5}`:                           "session=t max=100 temperature=0.5",
		`,"model_parameters":"{\"max_tokens\":\"inf\",\"temperature\":\"None\"}"`:              "session=t",
		`,"input":[{"role":"user","content":"q"}],"output":{"role":"assistant","content":"a"}`: `session=t user:"q" reply="a" chat`,
		`,"input":{"messages":[{"role":"user","content":"q"}],"tools":[]},"output":"a"`:        `session=t user:"q" reply="a" chat`,
		`,"input":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","output":"\"a\""`:   `session=t user:"q" reply="a" chat`,
		`,"input":"plain","output":[{"role":"assistant","content":"a"}]`:                       `session=t user:"plain" reply="a" completion`,
		`,"input":{"question":"q"},"output":7`:                                                 "session=t",
		`,"input":[{"role":"alien"}],"output":["x"]`:                                           "session=t",
	} {
		wantEntries(t, observation(more), Options{}, when+want)
	}
	wantNote(t, wantEntries(t, observation(`,"input":{"question":"q"}`), Options{}, when+"session=t"), noteNoMessages+": 1")
}

// The forms of an export: CSV, an array, lines, files, and the API's spelling.
func TestLangfuseForms(t *testing.T) {
	const want = "490923h4m5.5s session=t in=10 out=3 e2e=1.5s"
	one := observation("")
	other := strings.Replace(one, `"id":"o"`, `"id":"p"`, 1)
	wantEntries(t, one+"\n"+other+"\n", Options{}, want, want)
	wantEntries(t, "["+one+",\n"+other+"]", Options{}, want, want)
	api := `{"id":"o","traceId":"t","type":"GENERATION","startTime":"2026-01-02T03:04:05.500Z","endTime":"2026-01-02T03:04:07Z","completionStartTime":"2026-01-02T03:04:05.600Z","usageDetails":{"input":10,"output":3},"modelParameters":{"max_tokens":5},"sessionId":null,"userId":"u","model":"m"}`
	wantEntries(t, api, Options{}, want+" ttft=100ms max=5 user=u model=m")
	header := "id,trace_id,type,start_time,end_time,usage_details,input,session_id\n"
	csv := header + `o,t,GENERATION,2026-01-02 03:04:05.500000,2026-01-02 03:04:07.000000,"{""input"":10,""output"":3}","[{""role"":""user"",""content"":""q""}]",` + "\n" +
		"o,t,SPAN,2026-01-02 03:04:05.500000,,,,\n"
	info := wantEntries(t, csv, Options{}, want+` user:"q" chat`)
	wantNote(t, info, noteOtherObservations+": 1")
	all, _, err := readTogether(textFiles(one, "["+other+"]", strings.Replace(csv, "\no,t,GEN", "\nq,t,GEN", 1)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, all, []string{want, want, want + ` user:"q" chat`})
	for _, kind := range []string{"SPAN", "EVENT", "AGENT", "TOOL", ""} {
		wantEntries(t, strings.Replace(one, "GENERATION", kind, 1), Options{})
	}
	wantEntries(t, strings.Replace(one, "GENERATION", "EMBEDDING", 1), Options{}, want+" embedding")
}

// A trace as the page of a trace saves it and as the API returns it, and pages of
// observations.
func TestLangfuseTraces(t *testing.T) {
	generation := func(id, parent, kind, at string, more string) string {
		return fmt.Sprintf(`{"id":%q,"traceId":"t","parentObservationId":%q,"type":%q,"startTime":"2026-01-02T03:04:%s.500Z","endTime":"2026-01-02T03:04:%s.700Z"%s}`, id, parent, kind, at, at, more)
	}
	usage := `,"usageDetails":{"input":10,"output":3}`
	all := `[` + generation("c2", "w", "GENERATION", "06", usage) + ",\n" + generation("w", "a", "GENERATION", "05", `,"usageDetails":{"input":99,"output":9}`) + "," +
		generation("a", "", "AGENT", "05", `,"usageDetails":{"input":109,"output":12}`) + "," + generation("c1", "a", "GENERATION", "05", usage) + "," +
		generation("loop", "loop", "GENERATION", "05", usage) + "]"
	want := []string{"490923h4m5.5s session=s user=u in=10 out=3 e2e=200ms", "490923h4m6.5s session=s user=u in=10 out=3 e2e=200ms"} // by their starts
	for _, in := range []string{
		`{"trace":{"id":"t","sessionId":"s","userId":"u","input":"x"},"observations":` + all + "}",
		"{\n  \"id\": \"t\", \"sessionId\":\"s\",\"userId\":\"u\", \"observations\":" + all + "\n}",
		`{"data":[{"id":"t","sessionId":"s","userId":"u","observations":` + all + `}],"meta":{"page":1}}`,
	} {
		info := wantEntries(t, in, Options{}, want...)
		if info.Format != "langfuse" {
			t.Errorf("read as %s", info.Format)
		}
		wantNote(t, info, noteOuterCalls+": 2")
		wantNote(t, info, noteOtherObservations+": 1")
	}
	page := `{"data":[` + generation("c1", "", "GENERATION", "05", usage+`,"latency":0.2,"timeToFirstToken":0.05`) + `,` +
		generation("c2", "", "GENERATION", "06", usage+`,"latency":200,"timeToFirstToken":50`) + `],"meta":{"page":1,"limit":2}}`
	first := "490923h4m5.5s session=t in=10 out=3 ttft=50ms e2e=200ms"
	second := "490923h4m6.5s session=t in=10 out=3 ttft=50ms e2e=200ms"
	wantEntries(t, page+"\n"+page, Options{}, first, second) // pages that overlap
	wantEntries(t, page+"\n"+strings.NewReplacer(`"c1"`, `"c3"`, `"c2"`, `"c4"`).Replace(page), Options{}, first, second, first, second)
	wantNote(t, wantEntries(t, strings.Replace(observation(""), `"output":3`, `"output":3,"total":90`, 1), Options{},
		"490923h4m5.5s session=t e2e=1.5s in=10 out=3"), tokenusage.TotalOff.String()+": 1")
}

// The calls of a downloaded trace wait for those before them of their agent and for the agents
// below, in whatever order its observations stand.
func TestLangfuseLinks(t *testing.T) {
	usage := `,"usageDetails":{"input":10,"output":3}`
	observed := func(id, parent, kind, name string, from, to float64) string {
		at := func(s float64) string {
			return time.Unix(1767323045, int64(s*1e9)).UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return fmt.Sprintf(`{"id":%q,"traceId":"t","parentObservationId":%q,"type":%q,"name":%q,"startTime":%q,"endTime":%q%s}`, id, parent, kind, name, at(from), at(to), usage)
	}
	for name, c := range map[string]struct {
		observations []string
		want         string // of each call, by its start: what it waits for, tool time, think time
	}{
		"tools": {[]string{
			observed("root", "", "SPAN", "task", 0, 9), observed("a", "root", "GENERATION", "", 0, 1),
			observed("x", "root", "TOOL", "", 1.25, 2), observed("y", "s", "SPAN", "execute_tool f", 1.5, 2.5), observed("s", "root", "SPAN", "", 1, 3), observed("other", "root", "SPAN", "tools", 0, 9),
			observed("b", "root", "GENERATION", "", 3, 4), observed("c", "root", "GENERATION", "", 4.5, 5),
		}, "[] - -; [0] 1.25s 750ms; [1] - 500ms"},
		"agents": {[]string{
			observed("root", "", "AGENT", "", 0, 20), observed("a", "root", "GENERATION", "", 0, 1), observed("call", "root", "TOOL", "search", 1, 9),
			observed("sub", "call", "CHAIN", "", 1, 6), observed("s1", "sub", "GENERATION", "", 2, 3), observed("st", "sub", "TOOL", "", 3, 4), observed("s2", "sub", "GENERATION", "", 4.5, 6),
			observed("par", "root", "AGENT", "", 1, 8), observed("p1", "par", "GENERATION", "", 2.5, 8),
			observed("b", "root", "GENERATION", "", 9.5, 10), observed("c", "root", "GENERATION", "", 11, 12),
		}, "[] - -; [0] - 1s; [0] - 1.5s; [1] 1s 500ms; [0 2 3] 1s 500ms; [4] - 1s"}, // tools of an agent are its own
		"one agent after the other": {[]string{
			observed("root", "", "CHAIN", "", 0, 20), observed("one", "root", "AGENT", "", 0, 3), observed("a", "one", "GENERATION", "", 0, 3),
			observed("two", "root", "AGENT", "", 4, 8), observed("in", "two", "AGENT", "", 4, 8), observed("b", "in", "GENERATION", "", 4, 8),
		}, "[] - -; [0] - 1s"},
		"at once": {[]string{
			observed("a", "", "GENERATION", "", 0, 1), observed("b", "", "GENERATION", "", 2, 9), observed("c", "", "GENERATION", "", 3, 4), observed("d", "", "GENERATION", "", 5, 6),
		}, "[] - -; [0] - 1s; [0] - 2s; [2] - 1s"},
		"circles": {[]string{observed("x", "y", "AGENT", "", 0, 1), observed("y", "x", "AGENT", "", 0, 1), observed("a", "x", "GENERATION", "", 0, 1), observed("b", "y", "GENERATION", "", 2, 3)},
			""},
	} {
		for range 2 {
			slices.Reverse(c.observations)
			in := `{"trace":{"id":"t"},"observations":[` + strings.Join(c.observations, ",") + "]}"
			all, _ := mustRead(t, in, Options{})
			var got []string
			for i := range all {
				words := []string{fmt.Sprint(all[i].Parents), "-", "-"}
				for k, gap := range []*time.Duration{all[i].Tool, all[i].Think} {
					if gap != nil {
						words[k+1] = gap.String()
					}
				}
				got = append(got, strings.Join(words, " "))
			}
			if c.want != "" && strings.Join(got, "; ") != c.want {
				t.Errorf("%s: %s, want %s", name, strings.Join(got, "; "), c.want)
			}
		}
	}
	// The positions are those of the source, over traces and files.
	one := `{"trace":{"id":"t"},"observations":[` + observed("a", "", "GENERATION", "", 0, 1) + "," + observed("b", "", "GENERATION", "", 2, 3) + "]}"
	of := func(trace string) string { return strings.ReplaceAll(one, `"t"`, `"`+trace+`"`) }
	all, _, err := readTogether(textFiles(of("t1")+"\n"+of("t2"), of("t3")), Options{})
	var parents []string
	for i := range all {
		parents = append(parents, fmt.Sprint(all[i].Parents))
	}
	if got := strings.Join(parents, " "); err != nil || got != "[] [0] [] [2] [] [4]" {
		t.Errorf("parents %s, %v", got, err)
	}
}

// In an export of observations a call that was recorded twice counts once, whichever of the
// two comes first, and whatever stands between them.
func TestLangfuseTwice(t *testing.T) {
	const one = "490923h4m5.5s session=t in=10 out=3 e2e=1.5s"
	call := func(id, parent string) string {
		return strings.Replace(observation(`,"parent_observation_id":"`+parent+`"`), `"id":"o"`, `"id":"`+id+`"`, 1) + "\n"
	}
	span := strings.Replace(call("s", "outer"), "GENERATION", "SPAN", 1)
	other := strings.Replace(call("other", "outer"), `"output":3`, `"output":4`, 1)
	for _, in := range []string{
		call("outer", "") + call("inner", "outer"),
		call("inner", "outer") + call("outer", ""),
		call("outer", "") + span + call("inner", "s"),
		span + call("inner", "s") + call("outer", ""),
		call("inner", "s") + span + call("outer", ""),
	} {
		info := wantEntries(t, in, Options{}, one)
		wantNote(t, info, noteOuterCalls+": 1")
	}
	wantEntries(t, call("outer", "")+other, Options{}, one, strings.Replace(one, "out=3", "out=4", 1))
	wantEntries(t, call("a", "s")+call("b", "s"), Options{}, one, one)
}

// A Parquet file as Langfuse's storage export writes it: snake_case, maps.
func TestLangfuseParquet(t *testing.T) {
	type exported struct {
		ID     string            `parquet:"id"`
		Trace  string            `parquet:"trace_id"`
		Type   string            `parquet:"type"`
		Start  time.Time         `parquet:"start_time,timestamp(microsecond)"`
		End    *time.Time        `parquet:"end_time,optional,timestamp(microsecond)"`
		Input  *string           `parquet:"input,optional"`
		Model  string            `parquet:"provided_model_name"`
		Usage  map[string]uint64 `parquet:"usage_details"`
		Cost   map[string]string `parquet:"cost_details"`
		Parent *string           `parquet:"parent_observation_id,optional"`
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	end := at.Add(1500 * time.Millisecond)
	in := toParquet(t, exported{ID: "o1", Trace: "t", Type: "GENERATION", Start: at, End: &end, Model: "m", Input: trace.Ptr(`[{"role":"user","content":"q"}]`),
		Usage: map[string]uint64{"input": 4, "input_cached_tokens": 6, "output": 3, "total": 13}}, exported{ID: "o2", Trace: "t", Type: "SPAN", Start: at})
	info := wantEntries(t, in, Options{}, `490923h4m5.678901s session=t model=m user:"q" in=10 out=3 cached=6 e2e=1.5s chat`)
	if info.Format != "langfuse" || info.Fields.Dropped == 0 {
		t.Errorf("%+v", info)
	}
	wantNote(t, info, noteOtherObservations+": 1")
}

func TestLangfuseFaults(t *testing.T) {
	wantBad(t, strings.Replace(observation(""), "2026-01-02 03:04:05.500000", "zqx", 1), Options{}, "log:1:59: time: want a number")
	wantBad(t, strings.Replace(observation(""), `{"input":10,"output":3}`, `"zqx"`, 1), Options{}, "log:1:144: usage_details: want JSON")
	wantBad(t, strings.Replace(observation(""), `,"usage_details":{"input":10,"output":3}`, ``, 1), Options{}, "log:1:1: "+wantLangfuseFields)
	wantNote(t, wantEntries(t, strings.Replace(observation(""), `{"input":10,"output":3}`, `{}`, 1), Options{}), noteEmptyCalls+": 1")
	wantNote(t, wantEntries(t, strings.Replace(observation(`,"level":"ERROR"`), `{"input":10,"output":3}`, `{}`, 1), Options{}), noteFailedSpans+": 1")
	wantBad(t, "["+observation("")+",", Options{}, "log:1:170: unexpected end of file")
}
