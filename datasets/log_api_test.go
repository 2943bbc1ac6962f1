package datasets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/trace"
)

const (
	anthropicAsked  = `"request":{"model":"m","max_tokens":100,"stream":true,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"f","input_schema":{}}],"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":"user_1_account_2_session_9-8"}}`
	anthropicAnswer = `"response":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"yo"}],"stop_reason":"end_turn","usage":{"input_tokens":20,"cache_read_input_tokens":100,"cache_creation_input_tokens":3,"output_tokens":5}}`
	responsesAsked  = `"request":{"model":"m","instructions":"s","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}`
	responsesAnswer = `"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"reasoning"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yo"}]}],"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":129}}`
)

func TestAPILog(t *testing.T) {
	const (
		head = `{"timestamp":"2026-01-02T03:04:05Z","latency_ms":1900,"status":200,`
		at   = "490923h4m5s e2e=1.9s ok "
		said = at + `session=9-8 user=user_1_account_2 model=m in=123 out=5 cached=100 max=100 stream=true stop chat system:"s" user:"hi" tools=[{"type":"function","function":{"name":"f","input_schema":{}}}] `
	)
	info := wantEntries(t, head+anthropicAsked+","+anthropicAnswer+"}", Options{}, said+`reply="yo"`)
	if info.Format != "api-log" {
		t.Errorf("read as %s", info.Format)
	}
	stream := "event: message_start\ndata: " + `{"type":"message_start","message":{"type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":20,"cache_read_input_tokens":100,"cache_creation_input_tokens":3,"output_tokens":1}}}` +
		"\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"y"}}` + "\n\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"o"}}` +
		"\n\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}` + "\n\ndata: " + `{"type":"message_delta","usage":{"output_tokens":5}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n"
	wantEntries(t, head+anthropicAsked+`,"response":`+quotedJSON(stream)+"}", Options{}, said+`reply="yo"`)
	// The bodies as strings of JSON, and under other names.
	wantEntries(t, `{"ts":1767323045,"request_body":`+quotedJSON(anthropicAsked[len(`"request":`):])+`,"response_body":`+quotedJSON(anthropicAnswer[len(`"response":`):])+"}", Options{},
		strings.Replace(said, "e2e=1.9s ok", "", 1)+`reply="yo"`)

	const more = at + `response=resp_1 model=m in=120 out=9 cached=100 reasoning=4 responses stop `
	const text = `system:"s" user:"hi" assistant:"" assistant:"" calls=[{"function":{"arguments":"{}","name":"f"},"id":"c","type":"function"}] tool:"r" call=c `
	wantEntries(t, head+responsesAsked+","+responsesAnswer+"}", Options{}, more+text+`reply="yo"`)
	wantEntries(t, head+responsesAsked+`,"response":[{"type":"response.created"},{"type":"response.output_text.delta","delta":"y"},{"type":"response.completed",`+responsesAnswer+"}]}", Options{}, more+text+`reply="yo"`)

	chat := `"request":{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	const chatted = at + `model=m in=8 out=2 chat stop user:"hi" reply="yo"`
	wantEntries(t, head+chat+`,"response":{"object":"chat.completion","model":"m","choices":[{"message":{"role":"assistant","content":"yo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2}}}`, Options{}, chatted)
	chunks := "data: " + `{"object":"chat.completion.chunk","model":"m","choices":[{"delta":{"content":"y"}}]}` + "\n\ndata: " + `{"object":"chat.completion.chunk","model":"m","choices":[{"delta":{"content":"o"},"finish_reason":"stop"}]}` +
		"\n\ndata: " + `{"object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	wantEntries(t, head+chat+`,"response":`+quotedJSON(chunks)+"}", Options{}, chatted)
	// A call that failed.
	wantEntries(t, strings.Replace(head, "200", "529", 1)+anthropicAsked+`,"response":{"type":"error","error":{"type":"overloaded_error"}}}`, Options{},
		strings.NewReplacer("ok ", "failed ", "in=123 out=5 cached=100 ", "", "stop ", "").Replace(said))

	// A request that is longer than what is looked at.
	long := head + strings.Replace(anthropicAsked, `"hi"`, `"`+strings.Repeat("x", 2*record.HeadBytes)+`"`, 1) + "," +
		anthropicAnswer + "}"
	if _, info := mustRead(t, long, Options{}); info.Format != "api-log" {
		t.Errorf("a long one is read as %s", info.Format)
	}
	for _, in := range []string{`{"request":{"id":"k"},"response":{"status":200}}`, `{"response":{"type":"message"}}`, `{"body":"text","ts":1}`} {
		if f, err := detectFormat([]byte(in)); err == nil {
			t.Errorf("%s is taken for %s", in, f.Name)
		}
	}
}

// A request of the Responses API that goes on from an earlier answer holds only what is new.
// Its prompt is put together of the records before it, without their instructions.
func TestAPILogChains(t *testing.T) {
	call := func(second, previous, more, input, id, output string) string {
		if previous != "" {
			previous = `"previous_response_id":"` + previous + `",`
		}
		return `{"timestamp":"2026-01-02T03:04:` + second + `Z","latency_ms":1500,"request":{"model":"m",` + previous + more + `"input":` + input + `},"response":{"id":"` + id +
			`","object":"response","model":"m","output":[` + output + `],"usage":{"input_tokens":100,"output_tokens":7}}}` + "\n"
	}
	said := func(text string) string {
		return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	const tool = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`
	const counts = "e2e=1.5s model=m in=100 out=7 responses "
	const called = `calls=[{"function":{"arguments":"{}","name":"f"},"id":"c","type":"function"}]`
	in := call("05", "", `"instructions":"s1",`, `"q1"`, "r1", said("a1")) +
		call("10", "r1", `"instructions":"s2",`, `"q2"`, "r2", tool) +
		call("15", "r2", "", `[{"type":"function_call_output","call_id":"c","output":"t"}]`, "r3", said("a3")) +
		call("20", "r1", "", `"fork"`, "r4", said("a4")) +
		call("25", "r0", "", `"before the log"`, "r5", said("a5")) +
		call("30", "r5", "", `"after that"`, "r6", said("a6")) +
		strings.Replace(call("35", "gone", "", `"no usage"`, "r7", ""), `,"usage":{"input_tokens":100,"output_tokens":7}`, "", 1)
	info := wantEntries(t, in, Options{},
		counts+`490923h4m5s response=r1 system:"s1" user:"q1" reply="a1"`,
		counts+`490923h4m10s response=r2 previous=r1 system:"s2" user:"q1" assistant:"a1" user:"q2" reply="" reply`+called,
		counts+`490923h4m15s response=r3 previous=r2 user:"q1" assistant:"a1" user:"q2" assistant:"" `+called+` tool:"t" call=c reply="a3"`,
		counts+`490923h4m20s response=r4 previous=r1 user:"q1" assistant:"a1" user:"fork" reply="a4"`,
		counts+`490923h4m25s response=r5 previous=r0 reply="a5"`,
		counts+`490923h4m30s response=r6 previous=r5 reply="a6"`)
	all, _ := mustRead(t, in, Options{})
	var waits []string
	for i := range all {
		waits = append(waits, fmt.Sprint(all[i].Parents, " "))
		for name, gap := range map[string]*time.Duration{"think ": all[i].Think, "tool ": all[i].Tool} {
			if gap != nil {
				waits[i] += name + gap.String()
			}
		}
	}
	if want := "[] , [0] think 3.5s, [1] tool 3.5s, [0] think 13.5s, [] , [4] think 3.5s"; strings.Join(waits, ", ") != want {
		t.Errorf("entries wait for %s, want %s", strings.Join(waits, ", "), want)
	}
	wantNote(t, info, noteChained+": 3")
	wantNote(t, info, noteUnchained+": 2")
	wantNote(t, info, noteNoChain+": 1")
	if !info.HasSessions {
		t.Error("the log has no sessions")
	}
}

// Texts of chains are held up to a limit. What a later answer of a chain holds counts once.
func TestResponseChainsForget(t *testing.T) {
	c := responseChains{limit: 5400, of: map[string]*chainedResponse{}}
	turn := func(previous, id string, length int) string {
		b := &builder{previous: previous, response: id}
		b.Entry.InputTokens, b.Entry.Reply = trace.Ptr(int32(9)), trace.Ptr(trace.NewText("a"))
		b.Entry.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(strings.Repeat("x", length))}}
		c.goesOn(b, new(fault.Notes))
		c.remember(b, 0)
		return fmt.Sprint(len(b.Entry.Messages), " ", c.bytes)
	}
	for i, step := range []struct {
		previous, id string
		length       int
		want         string // messages of the prompt, and bytes that are held
	}{
		{"", "a1", 1000, "1 1337"},   // 256, the text, and 40 for each of two messages
		{"a1", "a2", 1000, "3 2754"}, // the text of a1 once
		{"a2", "a3", 1000, "5 4251"},
		{"", "b1", 1000, "1 5252"}, // 5588 without the oldest, a1, whose 336 bytes are left
		{"a1", "c1", 10, "0 5092"}, // so that a1 is not known
	} {
		if got := turn(step.previous, step.id, step.length); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}
