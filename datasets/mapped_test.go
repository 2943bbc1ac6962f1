package datasets

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/trace"
)

func TestParseMapping(t *testing.T) {
	m, err := ParseMapping([]string{"input_tokens=usage.prompt_tokens|n", "time=a=b", "ttft_ms=x"})
	if err != nil || len(m) != 3 || len(m["input_tokens"]) != 2 || m["time"][0] != "a=b" {
		t.Errorf("%v, %v", m, err)
	}
	// Several pairs in one specification; a comma may be part of a path too.
	m, err = ParseMapping([]string{"time=a, input_tokens=b|c,user=d", "prompt=Text, long"})
	if err != nil || !reflect.DeepEqual(m, Mapping{"time": {"a"}, "input_tokens": {"b", "c"}, "user": {"d"}, "prompt": {"Text, long"}}) {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := ParseMapping(nil); m != nil || err != nil {
		t.Errorf("%v, %v", m, err)
	}
	for spec, want := range map[string]string{
		"input_tokens":    "want target=path",
		"input_tokens=":   "want target=path",
		"input_tokens=a|": "want target=path",
		"tokens=a":        "unknown target; did you mean input_tokens? want one of time, input_tokens, output_tokens,",
		"ttft_min=a":      "unknown target",
		"e2e=a":           "mapped twice",
		"user=b":          "mapped twice",
	} {
		if _, err := ParseMapping([]string{"e2e_ms=x", "user=a", spec}); !errors.Is(err, fault.ErrUsage) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// Each target, from JSON and from CSV, as a number and as a string.
func TestTargets(t *testing.T) {
	if len(Targets()) != len(targets) || Targets()[0][0] != "time" {
		t.Errorf("%v", Targets())
	}
	for _, c := range []struct{ target, json, want string }{
		{"input_tokens", `12`, "in=12"}, {"input_tokens", `"12"`, "in=12"}, {"input_tokens", `12.0`, "in=12"},
		{"input_tokens", `1.5`, "bad"}, {"input_tokens", `true`, "bad"}, {"input_tokens", `[1]`, "bad"},
		{"output_tokens", `0`, "out=0"}, {"cached_tokens", `1`, "cached=1"}, {"reasoning_tokens", `5`, "reasoning=5"},
		{"user", `"u"`, "user=u"}, {"user", `17`, "user=17"}, {"user", `""`, ""}, {"user", `{}`, "bad"}, {"user", `null`, ""},
		{"session", `5`, "session=5 turn=0 after=[]"}, {"model", `"m"`, "model=m"}, {"adapter", `"a"`, "adapter=a"}, {"salt", `"s"`, "salt=s"}, {"prefix_key", `"p"`, "prefix=p"},
		{"kind", `"embedding"`, "embedding"}, {"kind", `"secret"`, "other"}, {"class", `1`, "class=1"}, {"replica", `"r"`, "replica=r"},
		{"max_tokens", `100`, "max=100"}, {"temperature", `0.5`, "temperature=0.5"}, {"temperature", `-1`, "bad"}, {"temperature", `"Inf"`, "bad"},
		{"stream", `true`, "stream=true"}, {"stream", `"False"`, "stream=false"}, {"stream", `"maybe"`, "bad"},
		{"status", `200`, "ok"}, {"status", `"204"`, "ok"}, {"status", `499`, "cancelled"}, {"status", `503`, "failed"}, {"status", `7`, "bad"},
		{"status", `"Success"`, "ok"}, {"status", `"error"`, "failed"}, {"status", `"aborted"`, "cancelled"}, {"status", `"secret"`, "other"}, {"status", `{}`, "bad"},
		{"error", `{"code":1}`, "failed"}, {"error", `"x"`, "failed"}, {"error", `""`, ""}, {"error", `false`, ""}, {"error", `null`, ""},
		{"finish_reason", `"length"`, "length"}, {"finish_reason", `"secret"`, "other"},
		{"ttft", `"350ms"`, "ttft=350ms"}, {"ttft", `350`, "bad"}, {"ttft_s", `0.35`, "ttft=350ms"}, {"ttft_ms", `"350"`, "ttft=350ms"},
		{"ttft_us", `1`, "ttft=1µs"}, {"ttft_ns", `1`, "ttft=1ns"}, {"e2e", `"1m"`, "e2e=1m0s"}, {"e2e_s", `2`, "e2e=2s"}, {"e2e_ms", `-1`, "bad"},
		{"e2e_us", `5.5`, "e2e=5.5µs"}, {"e2e_ns", `1e300`, "bad"}, {"e2e_s", `9223372036`, "bad"},
		{"prompt", `"p"`, `user:"p" completion`}, {"prompt", `["p"]`, `user:"p" completion`}, {"prompt", `[5,6,7]`, "in=3 blocks=[8596174616810283792] completion"},
		{"prompt", `[[5,6]]`, "in=2 blocks=[1153753988271926976] completion"}, {"prompt", `["p","q"]`, "bad"}, {"prompt", `7`, "bad"},
		{"output", `"o"`, `reply="o"`}, {"output", `{"content":"o"}`, `reply="o"`}, {"output", `{"content":null}`, ""},
		{"output", `["a",{"text":"b"}]`, `reply="a\nb"`}, {"output", `5`, "bad"}, {"output", `["a",{"type":"output_image"}]`, `reply="a"`},
		{"messages", `[{"role":"Developer","content":"d"},{"role":"function","content":null}]`, `system:"d" tool:"" chat`},
		{"messages", `"[{\"role\":\"user\",\"content\":\"x\"}]"`, `user:"x" chat`},
		{"messages", `{"system":"s","messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}],"model":"m"}`, `tools=[{"type":"function","function":{"name":"f"}}] system:"s" user:"x" chat`},
		{"messages", `{"instructions":"s","input":"x"}`, `system:"s" user:"x" chat`}, {"messages", `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"systemInstruction":{"parts":[{"text":"s"}]}}`, `system:"s" user:"x" chat`},
		{"messages", `{"a":1}`, "bad"}, {"messages", `{"messages":[],"n":1}`, "bad"},
		{"messages", `[]`, "bad"}, {"messages", `"[}"`, "bad"}, {"messages", `[{"content":"x"}]`, "bad"}, {"messages", `[{"role":"alien","content":"x"}]`, "bad"},
		{"messages", `[{"role":"user","content":5}]`, "bad"}, {"messages", `["x"]`, "bad"},
		{"messages", `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}},{"type":"input_text","text":"b"}]}]`, `user:"a\nb" images=1 chat`},
		{"messages", `[{"role":"assistant","content":"c","tool_calls":[{"id":"1","n":"<"}]}]`, `assistant:"c" calls=[{"id":"1","n":"<"}] chat`},
	} {
		in := `{"n":1,"v":` + c.json + "}"
		m := Mapping{c.target: {"v"}}
		if m["messages"] == nil && m["prompt"] == nil && m["input_tokens"] == nil {
			m["input_tokens"] = []string{"n"}
			if c.want != "bad" {
				c.want = "in=1 " + c.want
			}
		}
		all, info, err := read(strings.NewReader(in), Options{MaxBad: 1, Map: m})
		got := "bad"
		if err == nil && len(all) == 1 {
			got = summary(&all[0])
		} else if err != nil || info.Bad != 1 {
			t.Errorf("%s=%s: %v, %+v", c.target, c.json, err, info)
		}
		if !sameWords(got, c.want) {
			t.Errorf("%s=%s: %s, want %s", c.target, c.json, got, c.want)
		}
	}
}

// sameWords compares summaries whatever the order of their parts.
func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	for _, w := range x {
		if !strings.Contains(" "+b+" ", " "+w+" ") {
			return false
		}
	}
	return len(x) == len(y)
}

func TestPaths(t *testing.T) {
	const in = `{"a":{"b.c":[{"d":7}],"b":{"c":"no"}},"gen_ai.usage.input_tokens":8,"gen_ai":{"usage":{}},"x":[[1,9]],"":{"":5}}`
	for path, want := range map[string]string{
		"a.b.c[0].d": "in=7", "a.b.c.0.d": "in=7", "gen_ai.usage.input_tokens": "in=8", "x[0][1]": "in=9",
		"a.b.c[1].d": "", "a.b.c[-1].d": "", "a.b.c.d": "", "gen_ai.usage": "", "missing|x[0][0]": "in=1", "a.b.c.0": "",
	} {
		all, _, err := read(strings.NewReader(in), Options{MaxBad: 1, Map: Mapping{"input_tokens": strings.Split(path, "|"), "user": {"u"}}})
		got := ""
		if err == nil && len(all) == 1 {
			got = summary(&all[0])
		}
		if got != want {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
}

// Places of values are those of their first byte.
func TestOffsetOf(t *testing.T) {
	const in = ` { "a" : {"b.c": [ {"d":7} , {"d": "x"}]}, "e":5, "e" : 6 }`
	for path, want := range map[string]string{
		"": "{ \"a", "a": `{"b.c`, "a.b.c": `[ {`, "a.b.c.0": `{"d":7`, "a.b.c.1.d": `"x"`, "e": "6 }", "missing": "{ \"a", "a.x": `{"b.c`, "a.b.c.7": "[ {",
	} {
		if at := row.OffsetOf([]byte(in), path); !strings.HasPrefix(in[at:], want) {
			t.Errorf("%s leads to %.10s, want %s", path, in[at:], want)
		}
	}
}

func TestMappedBlocks(t *testing.T) {
	m := Mapping{"input_tokens": {"n"}, "blocks": {"ids"}}
	all, info, err := read(strings.NewReader(`{"n":17,"ids":[4,5]}`+"\n"+`{"n":17,"ids":"[4,5]"}`+"\n"+`{"n":17,"ids":[4]}`+"\n"+`{"n":17}`+"\n"), Options{MaxBad: 1, Map: m, BlockSize: 16})
	if err != nil || len(all) != 3 || info.Bad != 1 || info.BlockSize != 16 || !info.BlocksHashed {
		t.Fatalf("%d entries, %v, %+v", len(all), err, info)
	}
	if got := summary(&all[1]); got != "in=17 blocks=[4 5]" {
		t.Error(got)
	}
	if all[2].SourceBlocks != nil {
		t.Error("blocks were made up")
	}
	csv := "n,ids\n17,\"[4, 5]\"\n"
	if all, _ := mustRead(t, csv, Options{Map: m, BlockSize: 16}); summary(&all[0]) != "in=17 blocks=[4 5]" {
		t.Error(summary(&all[0]))
	}
}

// Without times the order of the source chains the turns of a session; with
// times it does not.
func TestSessionsWithoutTimes(t *testing.T) {
	in := `{"prompt":"a","session":"s"}
[]
{"prompt":"b","session":"t"}
{"prompt":"c","session":"s"}
{"prompt":"d"}
{"prompt":"e","session":"s"}
`
	all, info := mustRead(t, in, Options{MaxBad: 1})
	var got []string
	for i := range all {
		got = append(got, summary(&all[i]))
	}
	want := `session=s turn=0 after=[] user:"a" completion|session=t turn=0 after=[] user:"b" completion|` +
		`session=s turn=1 after=[0] user:"c" completion|user:"d" completion|session=s turn=2 after=[2] user:"e" completion`
	if strings.Join(got, "|") != want || info.HasTimes || !info.HasSessions {
		t.Errorf("%s\n%+v", strings.Join(got, "|"), info)
	}
	timed := strings.ReplaceAll(in, `"session"`, `"ts":1700000000,"session"`)
	timed = strings.ReplaceAll(timed, `"d"}`, `"d","ts":1700000000}`)
	all, _ = mustRead(t, timed, Options{MaxBad: 1})
	for i := range all {
		if all[i].Turn != nil || all[i].Parents != nil {
			t.Errorf("entry %d has a turn", i)
		}
	}
}

// A gateway's log in the shape of OpenAI's API, in several spellings.
func TestOpenAILog(t *testing.T) {
	for in, want := range map[string]string{
		`{"timestamp":"2026-01-02T03:04:05Z","user":"u","session_id":"s","model":"m","messages":[{"role":"user","content":"q"}],"max_tokens":9,` +
			`"temperature":0.7,"stream":true,"response":{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":8,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}},"status":200}`: `user=u session=s model=m user:"q" reply="a" in=8 out=2 cached=4 reasoning=1 max=9 temperature=0.7 stream=true chat ok stop`,
		`{"created":1767323045,"conversation_id":7,"prompt":"p","choices":[{"text":"a","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1},"latency_ms":250,"ttft_ms":40.5}`: `session=7 user:"p" reply="a" in=1 out=1 completion length ttft=40.5ms e2e=250ms`,
		`{"ts":1767323045123,"session":"s","messages":[{"role":"user","content":"q"}],"output":"a","max_completion_tokens":5}`:                                                                        `session=s user:"q" reply="a" max=5 chat`,
		`{"time":"2026-01-02 03:04:05","messages":[{"role":"user","content":"q"}],"response":"a","cache_salt":"x"}`:                                                                                   `salt=x user:"q" reply="a" chat`,
		`{"created_at":"2026-01-02T03:04:05+00:00","messages":[{"role":"user","content":"q"}],"response":null,"error":{"code":"rate_limit"},"status":200}`:                                            `user:"q" chat failed`,
		`{"ts":1767323045.0,"messages":[{"role":"user","content":"q"}],"response":{"error":{"type":"x"}}}`:                                                                                            `user:"q" chat failed`,
		`{"ts":1767323045,"messages":[{"role":"user","content":"q"}],"error":"client closed","status":499}`:                                                                                           `user:"q" chat cancelled`,
		`{"ts":1767323045,"messages":[{"role":"user","content":"q"}],"prompt":"not this","response":{"choices":[{"message":{"content":null,"tool_calls":[{"f":1}]}}]}}`:                               `user:"q" reply="" replycalls=[{"f":1}] chat`,
		`{"ts":1767323045,"messages":[{"role":"user","content":"\ud800 \u0000 ` + "\xff" + `"}]}`:                                                                                                     "user:\"\uFFFD \\x00 \uFFFD\" chat",
	} {
		all, info := mustRead(t, in, Options{})
		at := all[0].Time.Unix()
		all[0].Time = time.Time{}
		if got := summary(&all[0]); !sameWords(got, want) || at != 1767323045 || info.Format != "openai-log" {
			t.Errorf("%s\n  %s\n  %s at %d", in, got, want, at)
		}
	}
	for _, in := range []string{`{"messages":[],"prompt":null}`, `{"prompt":null,"messages":null}`} {
		if all, info, err := read(strings.NewReader(in), Options{MaxBad: 1}); len(all) != 0 || info.Bad != 1 || err != nil {
			t.Errorf("%s: %d, %v", in, len(all), err)
		}
	}
}

// A --map with this format overrides a target and keeps the others.
func TestOpenAILogWithMap(t *testing.T) {
	in := `{"ts":5,"at":1767323045,"user":"u","team":"t","prompt":"p","latency_ms":1,"took":2}`
	all, _ := mustRead(t, in, Options{Format: "openai-log", Map: Mapping{"time": {"at"}, "user": {"team"}, "e2e_s": {"took"}}})
	if got := summary(&all[0]); !strings.HasSuffix(got, `user=t user:"p" completion e2e=2s`) || all[0].Time.Unix() != 1767323045 {
		t.Error(got)
	}
	for _, f := range openAILogFields {
		if _, err := ParseMapping([]string{f}); err != nil {
			t.Error(err)
		}
	}
}

// Times are looked for in the first records: one that lacks them, or that has
// them when the first ones do not, is bad.
func TestSomeRecordsHaveTimes(t *testing.T) {
	without, with := `{"prompt":"p"}`+"\n", `{"prompt":"p","ts":1767323045}`+"\n"
	_, info := mustRead(t, without+with, Options{MaxBad: 1})
	if info.Bad != 1 || !strings.Contains(info.FirstBad[0].Error(), "log:1:1: it has no time") {
		t.Errorf("%+v", info)
	}
	_, info = mustRead(t, strings.Repeat(without, 5000)+with, Options{MaxBad: 1})
	if info.Bad != 1 || info.HasTimes || !strings.Contains(info.FirstBad[0].Error(), "log:5001:20: it has a time, unlike") {
		t.Errorf("%+v", info)
	}
}

// Info tells of times, text and blocks as soon as the source is open, even
// when its first record is longer than what the format is told from.
func TestInfoAtOpen(t *testing.T) {
	long := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 2*record.HeadBytes) + `"}],"ts":1767323045}`
	s, err := Open(strings.NewReader(long), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if info := s.Info(); !info.HasTimes || !info.HasText || info.TimeUnit != "s" {
		t.Errorf("%+v", info)
	}
	if n, err := s.Read(make([]trace.Entry, 5)); n != 1 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
