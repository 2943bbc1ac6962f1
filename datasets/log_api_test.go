package datasets

import (
	"strings"
	"testing"
)

const (
	anthropicAsked  = `"request":{"model":"m","max_tokens":100,"stream":true,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"f","input_schema":{}}],"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":"user_1_account_2_session_9-8"}}`
	anthropicAnswer = `"response":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"yo"}],"stop_reason":"end_turn","usage":{"input_tokens":20,"cache_read_input_tokens":100,"cache_creation_input_tokens":3,"output_tokens":5}}`
	responsesAsked  = `"request":{"model":"m","instructions":"s","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}`
	responsesAnswer = `"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"reasoning"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yo"}]}],"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":129}}`
)

// asText writes JSON as a string of JSON.
func asText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

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
	wantEntries(t, head+anthropicAsked+`,"response":`+asText(stream)+"}", Options{}, said+`reply="yo"`)
	// The bodies as strings of JSON, and under other names.
	wantEntries(t, `{"ts":1767323045,"request_body":`+asText(anthropicAsked[len(`"request":`):])+`,"response_body":`+asText(anthropicAnswer[len(`"response":`):])+"}", Options{},
		strings.Replace(said, "e2e=1.9s ok", "", 1)+`reply="yo"`)

	const more = at + `model=m in=120 out=9 cached=100 reasoning=4 responses `
	const text = `system:"s" user:"hi" assistant:"" assistant:"" calls=[{"function":{"arguments":"{}","name":"f"},"id":"c","type":"function"}] tool:"r" call=c `
	wantEntries(t, head+responsesAsked+","+responsesAnswer+"}", Options{}, more+text+`reply="yo"`)
	wantEntries(t, head+responsesAsked+`,"response":[{"type":"response.created"},{"type":"response.output_text.delta","delta":"y"},{"type":"response.completed",`+responsesAnswer+"}]}", Options{}, more+text+`reply="yo"`)
	// What goes on with an earlier response holds only what is new.
	wantEntries(t, head+strings.Replace(responsesAsked, `"instructions":"s"`, `"previous_response_id":"resp_0"`, 1)+","+responsesAnswer+"}", Options{}, more+`reply="yo"`)

	chat := `"request":{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	const chatted = at + `model=m in=8 out=2 chat stop user:"hi" reply="yo"`
	wantEntries(t, head+chat+`,"response":{"object":"chat.completion","model":"m","choices":[{"message":{"role":"assistant","content":"yo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2}}}`, Options{}, chatted)
	chunks := "data: " + `{"object":"chat.completion.chunk","model":"m","choices":[{"delta":{"content":"y"}}]}` + "\n\ndata: " + `{"object":"chat.completion.chunk","model":"m","choices":[{"delta":{"content":"o"},"finish_reason":"stop"}]}` +
		"\n\ndata: " + `{"object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n"
	wantEntries(t, head+chat+`,"response":`+asText(chunks)+"}", Options{}, chatted)
	// A call that failed.
	wantEntries(t, strings.Replace(head, "200", "529", 1)+anthropicAsked+`,"response":{"type":"error","error":{"type":"overloaded_error"}}}`, Options{},
		strings.NewReplacer("ok ", "failed ", "in=123 out=5 cached=100 ", "", "stop ", "").Replace(said))

	// A request that is longer than what is looked at.
	long := head + strings.Replace(anthropicAsked, `"hi"`, `"`+strings.Repeat("x", 2*detectBytes)+`"`, 1) + "," + anthropicAnswer + "}"
	if _, info := mustRead(t, long, Options{}); info.Format != "api-log" {
		t.Errorf("a long one is read as %s", info.Format)
	}
	for _, in := range []string{`{"request":{"id":"k"},"response":{"status":200}}`, `{"response":{"type":"message"}}`, `{"body":"text","ts":1}`} {
		if f, err := detectFormat([]byte(in)); err == nil {
			t.Errorf("%s is taken for %s", in, f.Name)
		}
	}
}

func FuzzAPILog(f *testing.F) {
	f.Add([]byte(`{"timestamp":1767323045,` + anthropicAsked + "," + anthropicAnswer + "}"))
	f.Add([]byte(`{"timestamp":"2026-01-02",` + responsesAsked + "," + responsesAnswer + "}"))
	f.Add([]byte(`{"timestamp":1767323045,"request":{"messages":[{"role":"user","content":"MARK"}]},"response":"data: {\"type\":\"message_start\",\"message\":{\"MARK\":1}}\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":\"MARK\"}}"}`))
	f.Fuzz(func(t *testing.T, in []byte) { fuzz(t, in, Options{Format: "api-log"}) })
}
