package openai

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// summary writes what an outcome says, in a fixed order, leaving out what is zero.
func summary(o Outcome, instants bool) string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	at := func(name string, d time.Duration) {
		switch {
		case d == NoInstant:
		case instants:
			add("%s@%d", name, d.Milliseconds())
		default:
			add("%s", name)
		}
	}
	at("event", o.FirstEvent)
	at("token", o.FirstToken)
	if o.FirstContent != o.FirstToken || !instants {
		at("content", o.FirstContent)
	}
	at("last", o.LastToken)
	at("finished", o.Finished)
	at("done", o.Done)
	if instants && len(o.Gaps) > 0 {
		add("gaps")
		for _, g := range o.Gaps {
			add("%d", g.Milliseconds())
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"tokens", o.TokenEvents}, {"events", o.Events}, {"comments", o.Comments}, {"malformed", o.Malformed}, {"marks", o.DoneMarkers}, {"choices", o.Choices}} {
		if n.n != 0 {
			add("%s=%d", n.name, n.n)
		}
	}
	if len(o.EventTokens) > 0 {
		add("each=%v", o.EventTokens)
	}
	if o.Reasoning {
		add("reasoning")
	}
	if u := o.Usage; u != nil {
		add("usage=%d/%d/%d", u.PromptTokens, u.CompletionTokens, u.TotalTokens)
		if u.PromptTokensDetails != nil {
			add("cached=%d", u.PromptTokensDetails.CachedTokens)
		}
	}
	if o.FinishReason != "" {
		add("%s", o.FinishReason)
	}
	if o.Err != nil {
		add("ERR %v", o.Err)
	}
	return strings.TrimSpace(b.String())
}

const (
	role   = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}` + "\n\n"
	tokA   = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]}` + "\n\n"
	tokB   = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"B"},"finish_reason":null}]}` + "\n\n"
	finish = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	counts = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n"
	done   = "data: [DONE]\n\n"
)

// quirks are streams as servers write them; each read comes a millisecond after the
// last, from 1, and the end of the stream after that.
var quirks = []struct {
	name  string
	reads []string
	err   error // the stream's end, io.EOF when nil
	want  string
}{
	{
		name:  "plain chat: role, tokens, finish, usage, done",
		reads: []string{role, tokA, tokB, finish, counts, done},
		want:  "event@1 token@2 last@3 finished@4 done@6 gaps 1 tokens=2 events=5 marks=1 choices=1 usage=11/2/13 cached=0 length",
	},
	{
		name: "llama-server: role with null content and first token in one read, finish, usage with timings",
		reads: []string{
			`data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"chatcmpl-8H9","model":"rnd","object":"chat.completion.chunk"}` + "\n\n" +
				`data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Windows"}}],"id":"chatcmpl-8H9"}` + "\n\n",
			`data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}` + "\n\n" +
				`data: {"choices":[],"usage":{"completion_tokens":1,"prompt_tokens":34,"total_tokens":35,"prompt_tokens_details":{"cached_tokens":33}},"timings":{"cache_n":33,"prompt_ms":100.2}}` + "\n\n" + done,
		},
		want: "event@1 token@1 last@1 finished@2 done@2 tokens=1 events=4 marks=1 choices=1 usage=34/1/35 cached=33 stop",
	},
	{
		name: "progress chunks with empty text long before the first token, usage on the finish chunk",
		reads: []string{
			`data: {"choices":[{"text":"","index":0,"finish_reason":null}],"prompt_progress":{"total":100,"processed":50}}` + "\n\n",
			`data: {"choices":[{"text":"","index":0,"finish_reason":null}],"prompt_progress":{"total":100,"processed":100}}` + "\n\n",
			`data: {"choices":[{"text":"a","index":0,"finish_reason":null}]}` + "\n\n",
			`data: {"choices":[{"text":"","index":0,"finish_reason":"length"}],"usage":{"completion_tokens":1,"prompt_tokens":100,"total_tokens":101}}` + "\n\n",
			done,
		},
		want: "event@1 token@3 last@3 finished@4 done@5 tokens=1 events=4 marks=1 choices=1 usage=100/1/101 length",
	},
	{
		name: "ollama: role in every delta, zero usage in every chunk, the true one last, empty content with the finish",
		reads: []string{
			`data: {"id":"chatcmpl-379","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n",
			`data: {"id":"chatcmpl-379","choices":[{"index":0,"delta":{"role":"assistant","content":"b"},"finish_reason":null}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n",
			`data: {"id":"chatcmpl-379","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}` + "\n\n",
			`data: {"id":"chatcmpl-379","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\n",
			done,
		},
		want: "event@1 token@1 last@2 finished@3 done@5 gaps 1 tokens=2 events=4 marks=1 choices=1 usage=7/3/10 stop",
	},
	{
		name:  "zero usage after the true one",
		reads: []string{tokA, finish, counts, `data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\n", done},
		want:  "event@1 token@1 last@1 finished@2 done@5 tokens=1 events=4 marks=1 choices=1 usage=11/2/13 cached=0 length",
	},
	{
		name: "running usage: three tokens in one event",
		reads: []string{
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":9,"completion_tokens":0,"total_tokens":9}}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"bcd"}}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}` + "\n\n",
			done,
		},
		want: "event@1 token@2 last@3 finished@4 done@5 gaps 1 tokens=2 events=4 marks=1 choices=1 each=[1 3] usage=9/5/14 stop",
	},
	{
		name:  "running usage that misses a token event counts nothing",
		reads: []string{tokA, `data: {"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}` + "\n\n", finish, done},
		want:  "event@1 token@1 last@2 finished@3 done@4 gaps 1 tokens=2 events=3 marks=1 choices=1 usage=9/2/11 length",
	},
	{
		name: "running usage that goes back counts nothing",
		reads: []string{
			`data: {"choices":[{"index":0,"text":"a"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}` + "\n\n",
			`data: {"choices":[{"index":0,"text":"b","finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}` + "\n\n",
		},
		want: "event@1 token@1 last@2 finished@2 done@3 gaps 1 tokens=2 events=2 choices=1 usage=9/1/10 stop",
	},
	{
		name: "stop string: an empty piece, then the finish; usage counts what was swallowed",
		reads: []string{
			`data: {"choices":[{"text":"a","index":0,"finish_reason":null}]}` + "\n\n",
			`data: {"choices":[{"text":"","index":0,"finish_reason":null}]}` + "\n\n",
			`data: {"choices":[{"text":"","index":0,"finish_reason":"stop"}],"usage":{"completion_tokens":3,"prompt_tokens":5,"total_tokens":8}}` + "\n\n",
			done,
		},
		want: "event@1 token@1 last@1 finished@3 done@4 tokens=1 events=3 marks=1 choices=1 usage=5/3/8 stop",
	},
	{
		name: "reasoning only, as reasoning_content",
		reads: []string{
			role,
			`data: {"choices":[{"index":0,"delta":{"reasoning_content":"\n Miguel"}}]}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{"reasoning_content":" de"}}]}` + "\n\n",
			finish, done,
		},
		want: "event@1 token@2 last@3 finished@4 done@5 gaps 1 tokens=2 events=4 marks=1 choices=1 reasoning length",
	},
	{
		name: "reasoning under its other name, then content",
		reads: []string{
			`data: {"choices":[{"index":0,"delta":{"content":"","reasoning":"hm"}}]}` + "\n\n",
			tokA, finish, done,
		},
		want: "event@1 token@1 content@2 last@2 finished@3 done@4 gaps 1 tokens=2 events=3 marks=1 choices=1 reasoning length",
	},
	{
		name:  "reasoning under one name, empty under the other, content null",
		reads: []string{`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"","content":null},"finish_reason":"stop"}]}` + "\n\n", done},
		want:  "event@1 token@1 last@1 finished@1 done@2 tokens=1 events=1 marks=1 choices=1 reasoning stop",
	},
	{
		name: "tool calls: name null in later pieces, finish on the last piece, an empty list is none",
		reads: []string{
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[ ]}}]}` + "\n\n",
			`data: {"choices":[{"index":0,"finish_reason":null,"delta":{"tool_calls":[{"function":{"name":"get_weather","arguments":"{"},"id":"chatcmpl-tool-1","type":"function","index":0}]}}]}` + "\n\n",
			`data: {"choices":[{"index":0,"finish_reason":"tool_calls","delta":{"tool_calls":[{"function":{"name":null,"arguments":"}"},"index":0}]}}]}` + "\n\n",
			done,
		},
		want: "event@1 token@2 last@3 finished@3 done@4 gaps 1 tokens=2 events=3 marks=1 choices=1 tool_calls",
	},
	{
		name:  "keep-alives of every kind, before and between tokens",
		reads: []string{":\n\n", ": OPENROUTER PROCESSING\n\n", "data: : keepalive\n\n", "data:\n\n", role + tokA, ": ping\n\n", tokB, finish, done},
		want:  "event@5 token@5 last@7 finished@8 done@9 gaps 2 tokens=2 events=4 comments=5 marks=1 choices=1 length",
	},
	{
		name:  "crlf, no space, a chunk over two data lines",
		reads: []string{"data:{\"choices\":[{\"index\":0,\r\ndata:\"delta\":{\"content\":\"a\"}}]}\r\n\r\n", strings.ReplaceAll(finish, "\n", "\r\n"), "data:[DONE]\r\n\r\n"},
		want:  "event@1 token@1 last@1 finished@2 done@3 tokens=1 events=2 marks=1 choices=1 length",
	},
	{
		name:  "one event over several reads is stamped by the last",
		reads: []string{tokA[:20], tokA[20:40], tokA[40:], tokB[:len(tokB)-1], tokB[len(tokB)-1:], finish, done},
		want:  "event@3 token@3 last@5 finished@6 done@7 gaps 2 tokens=2 events=3 marks=1 choices=1 length",
	},
	{
		name:  "error object after tokens, then done (vLLM)",
		reads: []string{role, tokA, `data: {"error":{"message":"secret sentence","type":"InternalServerError","param":null,"code":500}}` + "\n\n", done},
		want:  "event@1 token@2 last@2 done@4 tokens=1 events=3 marks=1 choices=1 ERR stream_error type InternalServerError code 500",
	},
	{
		name:  "error object after tokens, then nothing (llama-server)",
		reads: []string{tokA, `data: {"error":{"code":400,"message":"secret sentence","type":"exceed_context_size_error","n_ctx":512}}` + "\n\n"},
		want:  "event@1 token@1 last@1 done@3 tokens=1 events=2 choices=1 ERR too_long type exceed_context_size_error code 400",
	},
	{
		name:  "error as a field of its own (llama-server until September 2025)",
		reads: []string{tokA, "error: {\"code\":400,\"message\":\"secret sentence\",\"type\":\"invalid_request_error\"}\n\n", done},
		want:  "event@1 token@1 last@1 done@3 tokens=1 events=2 marks=1 choices=1 ERR stream_error type invalid_request_error code 400",
	},
	{
		name:  "error as an event name, a text as its data",
		reads: []string{tokA, "event: error\ndata: secret sentence\n\n"},
		want:  "event@1 token@1 last@1 done@3 tokens=1 events=2 choices=1 ERR stream_error",
	},
	{
		name:  "error at top level (old vLLM), error as a string, a later error",
		reads: []string{`data: {"object":"error","message":"secret sentence","type":"BadRequestError","code":"a b"}` + "\n\n", `data: {"error":"secret sentence"}` + "\n\n"},
		want:  "event@1 done@3 events=2 ERR stream_error type BadRequestError",
	},
	{
		name:  "error with a finish in one chunk (OpenRouter)",
		reads: []string{tokA, `data: {"id":"g","error":{"code":"server_error","message":"secret sentence"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n"},
		want:  "event@1 token@1 last@1 finished@2 done@3 tokens=1 events=2 choices=1 error ERR stream_error code server_error",
	},
	{
		name:  "error null in every chunk is none",
		reads: []string{`data: {"error":null,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n", done},
		want:  "event@1 token@1 last@1 finished@1 done@2 tokens=1 events=1 marks=1 choices=1 stop",
	},
	{
		name:  "stream ends after tokens",
		reads: []string{role, tokA, tokB},
		want:  "event@1 token@2 last@3 done@4 gaps 1 tokens=2 events=3 choices=1 ERR incomplete",
	},
	{
		name: "empty stream",
		want: "done@1 ERR incomplete",
	},
	{
		name:  "nothing but done",
		reads: []string{done},
		want:  "done@1 marks=1 ERR incomplete",
	},
	{
		name:  "done twice",
		reads: []string{tokA, finish, done, done},
		want:  "event@1 token@1 last@1 finished@2 done@3 tokens=1 events=2 marks=2 choices=1 length",
	},
	{
		name:  "finish reason, no done",
		reads: []string{tokA, finish},
		want:  "event@1 token@1 last@1 finished@2 done@3 tokens=1 events=2 choices=1 length",
	},
	{
		name:  "done, no finish reason, no blank line at the end",
		reads: []string{tokA, "data: [DONE]"},
		want:  "event@1 token@1 last@1 done@2 tokens=1 events=1 marks=1 choices=1",
	},
	{
		name:  "end token at once: an answer without a token",
		reads: []string{role, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n", done},
		want:  "event@1 finished@2 done@3 events=2 marks=1 choices=1 stop ERR empty",
	},
	{
		name: "two choices interleaved, usage for each (llama-server)",
		reads: []string{
			`data: {"choices":[{"index":1,"delta":{"content":"x"}}]}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"y"}}]}` + "\n\n",
			`data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}` + "\n\n",
			done,
		},
		want: "event@1 token@1 last@2 finished@3 done@5 gaps 1 tokens=2 events=4 marks=1 choices=2 usage=5/7/12 stop",
	},
	{
		name: "two choices, running usage for each, the total at the end (vLLM)",
		reads: []string{
			`data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}` + "\n\n",
			`data: {"choices":[{"index":1,"delta":{"content":"y"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}` + "\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"z"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}` + "\n\n",
			`data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}` + "\n\n", done,
		},
		want: "event@1 token@1 last@3 finished@2 done@5 gaps 1 1 tokens=3 events=4 marks=1 choices=2 usage=5/3/8 stop",
	},
	{
		name:  "one of two choices unfinished, no done",
		reads: []string{tokA, `data: {"choices":[{"index":1,"delta":{"content":"x"}}]}` + "\n\n", finish},
		want:  "event@1 token@1 last@2 finished@3 done@4 gaps 1 tokens=2 events=3 choices=2 length ERR incomplete",
	},
	{
		name:  "both choices in one chunk",
		reads: []string{`data: {"choices":[{"index":0,"text":"a","finish_reason":"stop"},{"index":1,"text":"","finish_reason":"length"}]}` + "\n\n", done},
		want:  "event@1 token@1 last@1 finished@1 done@2 tokens=1 events=1 marks=1 choices=2 stop",
	},
	{
		name:  "an index that no server should use is a token all the same",
		reads: []string{tokA, `data: {"choices":[{"index":1000000000000,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}}` + "\n\n", done},
		want:  "event@1 token@1 last@2 finished@2 done@3 gaps 1 tokens=2 events=2 marks=1 choices=1 usage=2/1/3 stop",
	},
	{
		name:  "finish reason of the server's own, and one that is a sentence",
		reads: []string{`data: {"choices":[{"index":1,"delta":{"content":"a"},"finish_reason":"secret sentence"},{"index":0,"delta":{},"finish_reason":"cache_threshold"}]}` + "\n\n", done},
		want:  "event@1 token@1 last@1 finished@1 done@2 tokens=1 events=1 marks=1 choices=2 cache_threshold",
	},
	{
		name:  "a chunk cut off by the end",
		reads: []string{tokA, `data: {"choices":[{"index":0,"delta":{"content":"b`},
		want:  "event@1 token@1 last@1 done@3 tokens=1 events=2 malformed=1 choices=1 ERR incomplete",
	},
	{
		name:  "garbage between chunks",
		reads: []string{"data: ping\n\n", "data: 7\n\n", "data: {}\n\n", tokA, "data: {} {}\n\n", finish, done},
		want:  "event@1 token@4 last@4 finished@6 done@7 tokens=1 events=6 malformed=3 marks=1 choices=1 length",
	},
	{
		name:  "nulls everywhere, content as a list of parts, counts as floats",
		reads: []string{`data: {"id":null,"model":null,"choices":null,"usage":null}` + "\n\n", `data: {"choices":[{"index":null,"delta":null,"finish_reason":null}]}` + "\n\n", `data: {"choices":[{"delta":{"content":[{"type":"text","text":"a"}],"tool_calls":null}}]}` + "\n\n", `data: {"choices":[],"usage":{"prompt_tokens":5.0,"completion_tokens":null,"total_tokens":-1}}` + "\n\n", done},
		want:  "event@1 token@3 last@3 done@5 tokens=1 events=4 marks=1 choices=1 usage=5/0/0",
	},
	{
		name:  "the prompt's count first, the output's on the last choice",
		reads: []string{`data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0,"total_tokens":5}}` + "\n\n", tokA, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}` + "\n\n", done},
		want:  "event@1 token@2 last@2 finished@3 done@4 tokens=1 events=3 marks=1 choices=1 usage=5/1/6 stop",
	},
	{
		name:  "a last chunk that has the whole message again (MiniMax)",
		reads: []string{tokA, tokB, `data: {"choices":[{"index":0,"message":{"role":"assistant","content":"a b"},"finish_reason":"stop"}]}` + "\n\n", done},
		want:  "event@1 token@1 last@2 finished@3 done@4 gaps 1 tokens=2 events=3 marks=1 choices=1 stop",
	},
	{
		name:  "names with escapes",
		reads: []string{`data: {"ch\u006fices":[{"delta":{"c\u006fntent":"a"},"finish_r\u0065ason":"stop"}]}` + "\n\n", done},
		want:  "event@1 token@1 last@1 finished@1 done@2 tokens=1 events=1 marks=1 choices=1 stop",
	},
	{
		name:  "connection reset after tokens",
		reads: []string{tokA}, err: syscall.ECONNRESET,
		want: "event@1 token@1 last@1 done@2 tokens=1 events=1 choices=1 ERR reset",
	},
	{
		name:  "chunked body cut off",
		reads: []string{tokA}, err: io.ErrUnexpectedEOF,
		want: "event@1 token@1 last@1 done@2 tokens=1 events=1 choices=1 ERR reset",
	},
	{
		name:  "cancelled after tokens",
		reads: []string{tokA}, err: context.Canceled,
		want: "event@1 token@1 last@1 done@2 tokens=1 events=1 choices=1 ERR cancelled",
	},
	{
		name:  "connection reset after the finish reason loses nothing",
		reads: []string{tokA, finish}, err: syscall.ECONNRESET,
		want: "event@1 token@1 last@1 finished@2 done@3 tokens=1 events=2 choices=1 length",
	},
}

func TestQuirks(t *testing.T) {
	for _, row := range quirks {
		t.Run(row.name, func(t *testing.T) {
			w := &wire{reads: append([]string(nil), row.reads...), err: row.err}
			out := collect(NewScanner(w, w.clock, 0), NewCollector(0))
			if got := summary(out, true); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if out.Err != nil && strings.Contains(out.Err.Error(), "secret") {
				t.Errorf("the error quotes the server: %v", out.Err)
			}
			whole := summary(out, false)
			for how, wrap := range map[string]func(io.Reader) io.Reader{
				"one read":     func(r io.Reader) io.Reader { return r },
				"byte by byte": iotest.OneByteReader,
			} {
				w := &wire{reads: []string{strings.Join(row.reads, "")}, err: row.err}
				if w.reads[0] == "" {
					w.reads = nil
				}
				out := collect(NewScanner(wrap(w), w.clock, 0), NewCollector(0))
				if got := summary(out, false); got != whole {
					t.Errorf("%s: got  %s\nwant %s", how, got, whole)
				}
			}
		})
	}
}
