package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"reprise/replay/openai"
)

// Every byte of streamed answers, and the millisecond at which it is written: w0, w1 … are
// the words of a completion, v0, v1 … those of a chat, and § stands for what all chunks
// have alike. The last line are the counts that /metrics tells.
func TestStreamsToTheByte(t *testing.T) {
	name := wordNames(t)
	for _, c := range []struct {
		path, quirks string
		tokens       int
		usage        bool
		hijack       bool
		want         string
	}{
		{"text", "", 2, true, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: {"id":"cmpl-1",§"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cached":0}}⏎⏎data: [DONE]⏎⏎^
3 2 0 1 0`},
		{"text", "", 2, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 2 0 1 0`},
		{"chat", "", 2, true, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":"v0"},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":" v1"},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":2,"total_tokens":27,"cached":0}}⏎⏎data: [DONE]⏎⏎^
25 2 0 1 0`},
		{"chat", "comments,progress-events,empty-deltas", 2, true, false, `
0 status 200
0 :⏎⏎: ping⏎⏎data: : keepalive⏎⏎data: ⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":""},"finish":null}],"prompt_progress":{"total":25,"cache":0,"processed":0,"time_ms":0}}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":""},"finish":null}]}⏎⏎^
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎:⏎⏎: ping⏎⏎data: : keepalive⏎⏎data: ⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":"v0"},"finish":null}]}⏎⏎^
30 :⏎⏎: ping⏎⏎data: : keepalive⏎⏎data: ⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":" v1"},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":2,"total_tokens":27,"cached":0}}⏎⏎data: [DONE]⏎⏎^
25 2 0 1 0`},
		{"text", "early-headers", 1, false, false, `
0 status 200^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "usage-null,progress-events", 1, true, false, `
0 status 200
0 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":null}],"prompt_progress":{"total":3,"cache":0,"processed":0,"time_ms":0},"usage":null}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}],"usage":null}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}],"usage":null}⏎⏎data: {"id":"cmpl-1",§"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"cached":0}}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "usage-null,timings", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}],"usage":null}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}],"timings":{"cache_n":0,"prompt_n":3,"prompt_ms":20.000,"predicted_n":1,"predicted_ms":0.000},"usage":null}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "timings", 3, true, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
40 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w2","finish":null}]}⏎⏎^
40 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: {"id":"cmpl-1",§"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6,"cached":0},"timings":{"cache_n":0,"prompt_n":3,"prompt_ms":20.000,"predicted_n":3,"predicted_ms":20.000}}⏎⏎data: [DONE]⏎⏎^
3 3 0 1 0`},
		{"chat", "tool-calls", 3, true, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-1-tool-0","type":"function","function":{"name":"look_up","arguments":"{\"words\":\"v0"}}]},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":null,"arguments":" v1"}}]},"finish":null}]}⏎⏎^
40 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":null,"arguments":" v2\"}"}}]},"finish":"tool_calls"}]}⏎⏎^
40 data: {"id":"chatcmpl-1",§"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":3,"total_tokens":28,"cached":0}}⏎⏎data: [DONE]⏎⏎^
25 3 1 0 0`},
		{"chat", "tool-calls,multi-token-events=2,role-every-delta", 3, false, false, `
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"chatcmpl-1-tool-0","type":"function","function":{"name":"look_up","arguments":"{\"words\":\"v0 v1"}}]},"finish":null}]}⏎⏎^
40 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"function":{"name":null,"arguments":" v2\"}"}}]},"finish":"tool_calls"}]}⏎⏎^
40 data: [DONE]⏎⏎^
25 3 1 0 0`},
		{"chat", "tool-calls,no-finish-reason", 2, false, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-1-tool-0","type":"function","function":{"name":"look_up","arguments":"{\"words\":\"v0"}}]},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":null,"arguments":" v1"}}]},"finish":null}]}⏎⏎^
30 data: [DONE]⏎⏎^
25 2 1 0 0`},
		{"text", "tool-calls", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"chat", "reasoning-only=1", 2, false, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"reasoning_content":"v0"},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":" v1"},"finish":null}]}⏎⏎^
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
25 2 0 1 0`},
		{"chat", "reasoning-only=2,reasoning-field-name,multi-token-events=2", 4, false, false, `
30 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"reasoning":"v0 v1"},"finish":null}]}⏎⏎^
50 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":" v2 v3"},"finish":null}]}⏎⏎^
50 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
25 4 0 1 0`},
		{"text", "choices,per-choice-ids", 2, true, false, `
20 data: {"id":"cmpl-1-1",§"choices":[{"index":1,"text":" w2","finish":null}]}⏎⏎data: {"id":"cmpl-1-0",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1-1",§"choices":[{"index":1,"text":" w3","finish":null}]}⏎⏎data: {"id":"cmpl-1-0",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1-1",§"choices":[{"index":1,"text":"","finish":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cached":0}}⏎⏎data: {"id":"cmpl-1-0",§"choices":[{"index":0,"text":"","finish":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cached":0}}⏎⏎data: [DONE]⏎⏎^
3 4 0 1 0`},
		{"chat", "choices,usage-missing", 1, true, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":1,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":1,"delta":{"content":" v1"},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":"v0"},"finish":null}]}⏎⏎^
20 data: {"id":"chatcmpl-1",§"choices":[{"index":1,"delta":{},"finish":"length"}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
25 2 0 1 0`},
		{"text", "choices,usage-on-finish,timings", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":1,"text":" w1","finish":null}]}⏎⏎data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":1,"text":"","finish":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"cached":0},"timings":{"cache_n":0,"prompt_n":3,"prompt_ms":20.000,"predicted_n":1,"predicted_ms":0.000}}⏎⏎data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"cached":0},"timings":{"cache_n":0,"prompt_n":3,"prompt_ms":20.000,"predicted_n":1,"predicted_ms":0.000}}⏎⏎data: [DONE]⏎⏎^
3 2 0 1 0`},
		{"text", "usage-zeros", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "usage-every-chunk", 2, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,"cached":0}}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cached":0}}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cached":0}}⏎⏎data: [DONE]⏎⏎^
3 2 0 1 0`},
		{"chat", "usage-on-finish=completions", 1, true, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"content":"v0"},"finish":null}]}⏎⏎^
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":1,"total_tokens":26,"cached":0}}⏎⏎data: [DONE]⏎⏎^
25 1 0 1 0`},
		{"chat", "role-every-delta", 1, true, false, `
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":"v0"},"finish":null}]}⏎⏎^
20 data: {"id":"chatcmpl-1",§"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish":"length"}]}⏎⏎data: {"id":"chatcmpl-1",§"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":1,"total_tokens":26,"cached":0}}⏎⏎data: [DONE]⏎⏎^
25 1 0 1 0`},
		{"text", "role-every-delta,no-finish-reason,no-done", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 ^
3 1 0 1 0`},
		{"text", "several-events-per-write=2", 3, false, false, `
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
40 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w2","finish":null}]}⏎⏎data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 3 0 1 0`},
		{"text", "split-writes=90,done-twice", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices^
20 ":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices^
20 ":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "tokens-without-event=2", 3, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":null}]}⏎⏎^
40 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":null}]}⏎⏎^
40 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"stop"}]}⏎⏎data: [DONE]⏎⏎^
3 3 1 0 0`},
		{"text", "tokens-without-event", 2, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"stop"}]}⏎⏎data: [DONE]⏎⏎^
3 2 1 0 0`},
		{"text", "tokens-without-event=9", 2, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"stop"}]}⏎⏎data: [DONE]⏎⏎^
3 2 1 0 0`},
		{"text", "multi-token-events=3", 4, false, false, `
40 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0 w1 w2","finish":null}]}⏎⏎^
50 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w3","finish":null}]}⏎⏎^
50 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 4 0 1 0`},
		{"chat", "multi-line-data,null-content", 1, false, false, `
20 data: {"id":"chatcmpl-1",§⏎data: "choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish":null}]}⏎⏎data: {"id":"chatcmpl-1",§⏎data: "choices":[{"index":0,"delta":{"content":"v0"},"finish":null}]}⏎⏎^
20 data: {"id":"chatcmpl-1",§⏎data: "choices":[{"index":0,"delta":{},"finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
25 1 0 1 0`},
		{"text", "stall=1s", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
1020 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "stall=1s", 5, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
1030 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w2","finish":null}]}⏎⏎^
1030 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w3","finish":null}]}⏎⏎^
1030 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w4","finish":null}]}⏎⏎^
1030 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 5 0 1 0`},
		{"text", "error-mid-stream", 4, true, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
30 data: {"error":{"message":"the engine failed","type":"InternalServerError","param":null,"code":500}}⏎⏎data: [DONE]⏎⏎^
3 2 0 0 1`},
		{"text", "error-mid-stream=close,several-events-per-write=9,error-code=null", 3, true, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎data: {"error":{"message":"the engine failed","type":"InternalServerError","param":null,"code":null}}⏎⏎^
3 1 0 0 1`},
		{"text", "reset", 4, true, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
30 ^
30 reset
3 2 0 0 1`},
		{"text", "cut,several-events-per-write=9", 4, true, true, `
30 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
30 hijacked
30 closed
3 2 0 0 1`},
		{"text", "cut,stall=1s", 2, true, true, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
1020 ^
1020 hijacked
1020 closed
3 1 0 0 1`},
		{"text", "close-keep-alive", 1, false, true, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
20 hijacked
20 0␍⏎␍⏎
20 closed
3 1 0 1 0`},
		{"text", "close-keep-alive", 1, false, false, `
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
20 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "slow-headers=71ms", 1, false, false, `
71 status 200^
71 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
71 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":"","finish":"length"}]}⏎⏎data: [DONE]⏎⏎^
3 1 0 1 0`},
		{"text", "slow-headers=71ms,cut", 2, false, true, `
0 hijacked
1 to 71 HTTP/1.1 200 OK␍⏎Connection: close␍⏎Content-Type: text/event-stream␍⏎␍⏎
71 data: {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎
71 closed
71 closed
3 1 0 0 1`},
	} {
		t.Run(fmt.Sprintf("%s %s %d", c.path, c.quirks, c.tokens), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := faultServer(t, slow())
				path, body := openai.CompletionsPath, `"prompt":"one two three"`
				if c.path == "chat" {
					path, body = openai.ChatPath, `"messages":[{"role":"user","content":"one two three"}]`
				}
				if c.usage {
					body += `,"stream_options":{"include_usage":true}`
				}
				w := newWire()
				reset := false
				ask := fmt.Sprintf(`{%s,"stream":true,"ignore_eos":true,"max_tokens":%d}`, body, c.tokens)
				if c.hijack {
					reset = playWire(t, h, hijackable{w}, t.Context(), path, ask, c.quirks)
				} else {
					reset = playWire(t, h, w, t.Context(), path, ask, c.quirks)
				}
				if reset {
					w.log("reset")
				}
				got := "\n" + name(strings.Join(append(w.lines, counts(h)), "\n"))
				if strings.Contains(c.quirks, "slow-headers") && c.hijack {
					got = foldBytes(got)
				}
				if got != c.want {
					t.Errorf("got%s\nwant%s", got, c.want)
				}
			})
		})
	}
}

// A stream that is split into single bytes has the bytes of one that is not.
func TestStreamByteByByte(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var texts []string
		for _, quirks := range []string{"", "split-writes"} {
			w := newWire()
			playWire(t, faultServer(t, slow()), w, t.Context(), openai.CompletionsPath,
				fourTokens(openai.CompletionsPath, true), quirks)
			var text strings.Builder
			for _, line := range w.lines {
				_, line, _ = strings.Cut(line, " ")
				line = strings.TrimSuffix(line, "^")
				if quirks != "" && len([]rune(line)) != 1 {
					t.Fatalf("a write has %q", line)
				}
				text.WriteString(line)
			}
			texts = append(texts, text.String())
		}
		if texts[0] != texts[1] || len(texts[0]) < 600 {
			t.Errorf("together the writes are\n%s\nand\n%s", texts[1], texts[0])
		}
	})
}

// foldBytes joins lines of one byte each, a millisecond apart, into one line that tells the
// first and the last millisecond.
func foldBytes(log string) string {
	var out []string
	text, first, last := "", 0, 0
	for line := range strings.SplitSeq(log, "\n") {
		at, what := 0, ""
		fmt.Sscanf(line, "%d", &at)
		_, what, _ = strings.Cut(line, " ")
		if len([]rune(what)) == 1 && (text == "" || at == last+1) {
			if text == "" {
				first = at
			}
			text, last = text+what, at
			continue
		}
		if text != "" {
			out, text = append(out, fmt.Sprintf("%d to %d %s", first, last, text)), ""
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
