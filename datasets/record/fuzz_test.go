package record

import (
	"testing"
	"time"
)

// Whatever clients and servers send, an exchange ends as an entry or as none, without a
// fault, and gives back all memory that it took.
func FuzzExchange(f *testing.F) {
	f.Add(0, `{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"tools":[{"name":"f"}],"metadata":{"user_id":"a_session_b"}}`, `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1}}`, false, 9)
	f.Add(0, `{"messages":[{"role":"user","content":"Hi"}]}`, `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":-1,"completion_tokens":-2}}`, false, 9)
	f.Add(1, `{"prompt":[[1,2],[3]]}`, "data: {\"choices\":[{\"text\":\"x\"}]}\r\n\r\ndata: [DONE]\n\n", true, 7)
	f.Add(2, `{"input":[{"type":"function_call","arguments":"{}"},{"role":"user","content":"x"}]}`, `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}`, false, 3)
	f.Add(3, `{"input":["a","b"]}`, `{"data":[],"usage":{"prompt_tokens":2}}`, false, 1)
	f.Add(4, `{"system":[{"text":"x"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}`,
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"{\"}}\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":3}}\n\n", true, 20)
	f.Fuzz(func(t *testing.T, is int, request, answer string, stream bool, piece int) {
		w := &workers{o: &Options{Memory: 1 << 24, Share: 1, Begin: time.Now()}}
		x := &exchange{w: w, api: api(uint(is)%5) + chatAPI, begin: time.Now(), status: 200, ended: true}
		x.keep([]byte(request), true)
		kind := "application/json"
		if stream {
			kind = "text/event-stream"
		}
		x.answer.begin(x.api, kind, "")
		for rest := []byte(answer); len(rest) > 0; {
			n := min(len(rest), int(uint(piece)%64)+1)
			x.answer.write(rest[:n], x.since())
			rest = rest[n:]
		}
		if e, _, ok := x.entry(); ok && (e == nil || e.E2E == nil || e.InputTokens != nil && *e.InputTokens < 0 || e.OutputTokens != nil && *e.OutputTokens < 0) {
			t.Errorf("%+v", x.answer)
		}
		w.free(x)
		if w.held.Load() != 0 {
			t.Errorf("%d bytes are held", w.held.Load())
		}
	})
}
