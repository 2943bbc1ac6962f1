package datasets

import (
	"strings"
	"testing"
)

// Files of prompts as benchmarks take them: each request with its lengths as far as they are told,
// and none that is not.
func TestFilesOfPrompts(t *testing.T) {
	for name, c := range map[string]struct{ format, in, want string }{
		"vLLM custom":            {"openai-log", `{"prompt":"a","output_tokens":21}`, `user:"a" out=21 completion`},
		"vLLM custom, no length": {"openai-log", `{"prompt":"a"}`, `user:"a" completion`},
		"GuideLLM":               {"openai-log", `{"prompt":"a","prompt_tokens_count":8,"output_tokens_count":21}`, `user:"a" in=8 out=21 completion`},
		"completion pairs":       {"openai-log", `{"prompt":"a","completion":"b"}`, `user:"a" reply="b" completion`},
		"bodies":                 {"openai-log", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":64}`, `model=m user:"a" max=64 chat`},
		"bodies that end with an answer's beginning": {"openai-log", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"max_tokens":64}`,
			`model=m user:"a" assistant:"b" max=64 chat`},
		"AIPerf inputs.json": {"openai-log", `{"data":[{"session_id":"s","payloads":[{"messages":[{"role":"user","content":"a"}],"max_tokens":9},{"messages":[{"role":"user","content":"b"}]}]},{"session_id":"t","payloads":[{"messages":[{"role":"user","content":"c"}]}]}]}`,
			`session=s turn=0 after=[] user:"a" max=9 chat|session=s turn=1 after=[0] user:"b" chat|session=t turn=0 after=[] user:"c" chat`},
		"AIPerf single_turn": {"aiperf", `{"text":"a","output_length":50}` + "\n" + `{"texts":["a","b"],"role":"user"}`, `user:"a" out=50 completion|user:"a\nb" completion`},
		"AIPerf multi_turn": {"aiperf", `{"session_id":"s","turns":[{"role":"system","text":"i"},{"text":"a","output_length":4},{"text":"b","delay":500}]}`,
			`session=s turn=0 after=[] system:"i" user:"a" out=4 chat|session=s turn=1 after=[0] system:"i" user:"a" user:"b" completion think=500ms`},
		"AIPerf multi_turn at times": {"aiperf", `{"turns":[{"text":"a","timestamp":1500},{"text":"b","timestamp":2500}]}` + "\n" + `{"turns":[{"text":"c","timestamp":2000}]}`,
			`1.5s session=record 1 turn=0 after=[] user:"a" completion|2.5s session=record 1 turn=1 after=[0] user:"a" user:"b" completion|2s session=record 2 turn=0 after=[] user:"c" completion`},
		"AgentPerf": {"openai-log", `{"version":1,"conversation_id":"x","conversation_idx":0,"messages":[{"role":"user","content":"a"}],"target_output_tokens":256,"simulated_tool_delay_ms_after":50}` + "\n" +
			`{"version":1,"conversation_id":"x","conversation_idx":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","content":"r"}],"target_output_tokens":9}`,
			`session=x turn=0 after=[] user:"a" out=256 chat|session=x turn=1 after=[0] user:"a" assistant:"" calls=[{"id":"1"}] tool:"r" out=9 chat tool=50ms`},
		"a log whose messages end with the answer": {"openai-log", `{"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`,
			`490923h4m5s user:"a" reply="b" in=9 out=2 chat`},
		"a system prompt beside": {"openai-log", `{"timestamp":"2026-01-02T03:04:05Z","system":"be brief","messages":[{"role":"user","content":"a"}],"response":"b"}`,
			`490923h4m5s system:"be brief" user:"a" reply="b" chat`},
		"a system prompt beside a prompt": {"openai-log", `{"system":"be brief","prompt":"a"}` + "\n" + `{"system_prompt":"sys","prompt":"b"}` + "\n" + `{"system_prompt":"","prompt":"c"}`,
			`system:"be brief" user:"a" chat|system:"sys" user:"b" chat|user:"c" completion`},
		"a prompt of messages":     {"openai-log", `{"prompt":[{"role":"system","content":"s"},{"role":"user","content":"a"}],"output_tokens":3}`, `system:"s" user:"a" out=3 chat`},
		"questions":                {"openai-log", `{"question":"a","answer":"#### 1"}` + "\n" + `{"query":"b"}`, `user:"a" completion|user:"b" completion`},
		"AIPerf, texts with names": {"aiperf", `{"texts":[{"name":"text","contents":["a","b"]}]}`, `user:"a\nb" completion`},
		"MT-Bench": {"aiperf", `{"question_id":81,"category":"writing","turns":["a","b"],"reference":[]}`,
			`session=record 1 turn=0 after=[] user:"a" completion|session=record 1 turn=1 after=[0] user:"a" user:"b" completion`},
		"the name of a system beside": {"openai-log", `{"timestamp":"2026-01-02T03:04:05Z","system":"checkout","messages":[{"role":"user","content":"a"}],"response":"b"}`,
			`490923h4m5s user:"a" reply="b" chat`},
	} {
		all, info, err := read(strings.NewReader(c.in), Options{})
		var got []string
		for i := range all {
			got = append(got, spell(&all[i]))
		}
		if s := strings.Join(got, "|"); err != nil || s != c.want || info.Format != c.format {
			t.Errorf("%s: %s, %v\n  %s\n  want %s", name, info.Format, err, s, c.want)
		}
	}
}

// A prompt does not hide times or counts beside it whose names are others than a gateway's: they are
// proposed. What is not of use does not keep a log from being read.
func TestFieldsBesideAPrompt(t *testing.T) {
	for in, want := range map[string]string{
		`{"prompt":"a","createdAt":"2026-01-02T03:04:05Z","promptTokens":12,"completionTokens":4}`:       "--map time=createdAt --map prompt=prompt --map input_tokens=promptTokens --map output_tokens=completionTokens",
		`{"messages":[{"role":"user","content":"a"}],"requestTime":"2026-01-02T03:04:05Z"}`:              "--map time=requestTime --map messages=messages",
		`{"prompt":"a","timestamp":"2026-01-02T03:04:05Z","metrics":{"tokens_in":7}}`:                    "--map time=timestamp --map prompt=prompt --map input_tokens=metrics.tokens_in",
		`{"prompt":"a","timestamp":"2026-01-02T03:04:05Z","usage":{"prompt_tokens":7},"tokens_input":7}`: "",
		`{"prompt":"a","expires":"2026-01-02T03:04:05Z","due":"2026-01-02"}`:                             "",
		`{"messages":[{"role":"user","content":"a","created":"2026-01-02T03:04:05Z"}]}`:                  "",
	} {
		found, err := Inspect([]File{{Name: "log", Open: textFiles(in)[0].Open}}, Options{})
		if err != nil || (found.Format == "openai-log") != (want == "") || strings.Join(found.Flags, " ") != want {
			t.Errorf("%s: %v, %+v", in, err, found)
		}
	}
}
