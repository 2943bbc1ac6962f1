package openai

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// event writes an event as OpenAI and vLLM do.
func event(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\",\"sequence_number\":1" + members + "}\n\n"
}

var (
	evCreated = event("response.created", `,"response":{"id":"resp_1","object":"response","model":"m","status":"in_progress","usage":null,"error":null,"output":[]}`)
	evItem    = event("response.output_item.added", `,"item":{"type":"message","content":[]},"output_index":0`)
	evText    = event("response.output_text.delta", `,"item_id":"i","delta":"A b"`)
	evThought = event("response.reasoning_text.delta", `,"delta":"hm"`)
	evSummary = event("response.reasoning_summary_text.delta", `,"delta":"hm"`)
	evCall    = event("response.function_call_arguments.delta", `,"delta":"{\"a\":"`)
	evTextEnd = event("response.output_text.done", `,"text":"A b"`)
	evUsage   = `"usage":{"input_tokens":11,"input_tokens_details":{"cached_tokens":8},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":14}`
	evDone    = event("response.completed", `,"response":{"id":"resp_1","status":"completed","incomplete_details":null,"output":[{"type":"message","content":[{"type":"output_text","text":"A b"}]}],`+evUsage+`}`)
	evLength  = event("response.incomplete", `,"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},`+evUsage+`}`)
)

// message writes an event as Anthropic does.
func message(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + members + "}\n\n"
}

var (
	msgStart = message("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":9,"output_tokens":0}}`)
	msgText  = message("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"a"}`)
	msgEnd   = message("message_delta", `,"delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"input_tokens":17,"output_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":896}`)
	msgStop  = message("message_stop", "")
	ping     = message("ping", "")
)

// eventStreams are answers of the Responses and the Messages API, and embeddings, each read coming a
// millisecond after the last.
var eventStreams = []struct {
	name  string
	reads []string
	want  string
}{
	{"text", []string{evCreated, evItem, evText, evText, evTextEnd, evDone},
		"event@1 token@3 last@4 finished@6 done@6 gaps 1 tokens=2 events=6 marks=1 choices=1 usage=11/3/14 cached=8 stop"},
	{"at its length", []string{evCreated, evText, evLength}, "event@1 token@2 last@2 finished@3 done@3 tokens=1 events=3 marks=1 choices=1 usage=11/3/14 cached=8 length"},
	{"vLLM completes what is incomplete", []string{evText, strings.ReplaceAll(evLength, "response.incomplete", "response.completed")},
		"event@1 token@1 last@1 finished@2 done@2 tokens=1 events=2 marks=1 choices=1 usage=11/3/14 cached=8 length"},
	{"filtered", []string{evText, strings.Replace(evLength, "max_output_tokens", "content_filter", 1)},
		"event@1 token@1 last@1 finished@2 done@2 tokens=1 events=2 marks=1 choices=1 usage=11/3/14 cached=8 content_filter"},
	{"reasoning first", []string{evThought, evSummary, evText, evDone},
		"event@1 token@1 content@3 last@3 finished@4 done@4 gaps 1 1 tokens=3 events=4 marks=1 choices=1 reasoning usage=11/3/14 cached=8 stop"},
	{"a tool", []string{evCall, evCall, evDone}, "event@1 token@1 last@2 finished@3 done@3 gaps 1 tokens=2 events=3 marks=1 choices=1 usage=11/3/14 cached=8 tool_calls"},
	{"empty delta", []string{event("response.output_text.delta", `,"delta":""`), evText, evDone},
		"event@1 token@2 last@2 finished@3 done@3 tokens=1 events=3 marks=1 choices=1 usage=11/3/14 cached=8 stop"},
	{"a delta before its type", []string{`data: {"delta":"x","type":"response.output_text.delta"}` + "\n\n", evDone},
		"event@1 token@1 last@1 finished@2 done@2 tokens=1 events=2 marks=1 choices=1 usage=11/3/14 cached=8 stop"},
	{"[DONE] all the same", []string{evText, evDone, done}, "event@1 token@1 last@1 finished@2 done@2 tokens=1 events=2 marks=1 choices=1 usage=11/3/14 cached=8 stop"},
	{"cut off", []string{evCreated, evText}, "event@1 token@2 last@2 done@3 tokens=1 events=2 choices=1 ERR incomplete"},
	{"failed", []string{evText, event("response.failed", `,"response":{"status":"failed","error":{"code":"server_error","message":"SECRET"}}`)},
		"event@1 token@1 last@1 done@2 tokens=1 events=2 marks=1 choices=1 ERR stream_error code server_error"},
	{"failed without a word", []string{event("response.failed", ``)}, "event@1 done@1 events=1 marks=1 ERR stream_error type response.failed"},
	{"error event", []string{evText, event("error", `,"code":"rate_limit","message":"SECRET","param":null`)},
		"event@1 token@1 last@1 done@3 tokens=1 events=2 choices=1 ERR stream_error type error code rate_limit"},
	{"whole", []string{`data: {"id":"r","object":"response","status":"completed","output":[{"type":"message"}],` + evUsage + "}\n\n"},
		"event@1 token@1 last@1 finished@1 done@1 tokens=1 events=1 marks=1 choices=1 each=[3] usage=11/3/14 cached=8 stop"},
	{"Anthropic's: its cache beside the prompt, a ping, and [DONE] never", []string{msgStart, ping, msgText, msgText, msgEnd, msgStop},
		"event@1 token@3 last@4 finished@5 done@6 gaps 1 tokens=2 events=5 comments=1 marks=1 choices=1 usage=913/2/915 cached=896 max_tokens"},
	{"vLLM counts the whole prompt first", []string{strings.Replace(msgStart, `"input_tokens":9`, `"input_tokens":896`, 1), msgText,
		message("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":1,"cache_creation_input_tokens":896,"cache_read_input_tokens":0}`), msgStop},
		"event@1 token@2 last@2 finished@3 done@4 tokens=1 events=4 marks=1 choices=1 usage=896/1/897 cached=0 end_turn"},
	{"llama-server counts the cache first alone", []string{strings.Replace(msgStart, `"input_tokens":9`, `"cache_read_input_tokens":912,"input_tokens":1`, 1), msgText,
		message("message_delta", `,"delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":2}`), msgStop},
		"event@1 token@2 last@2 finished@3 done@4 tokens=1 events=4 marks=1 choices=1 usage=913/2/915 cached=912 max_tokens"},
	{"thoughts", []string{msgStart, message("content_block_delta", `,"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}`), msgText, msgEnd, msgStop},
		"event@1 token@2 content@3 last@3 finished@4 done@5 gaps 1 tokens=2 events=5 marks=1 choices=1 reasoning usage=913/2/915 cached=896 max_tokens"},
	{"a tool of Anthropic's", []string{msgStart, message("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}`),
		message("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}`), strings.Replace(msgEnd, "max_tokens", "tool_use", 1), msgStop},
		"event@1 token@2 last@3 finished@4 done@5 gaps 1 tokens=2 events=5 marks=1 choices=1 usage=913/2/915 cached=896 tool_use"},
	{"a message that fails", []string{msgStart, msgText, message("error", `,"error":{"type":"overloaded_error","message":"SECRET"}`)},
		"event@1 token@2 last@2 done@4 tokens=1 events=3 choices=1 usage=9/0/9 ERR stream_error type overloaded_error"},
	{"a message without its stop", []string{msgStart, msgText, msgEnd}, "event@1 token@2 last@2 finished@3 done@4 tokens=1 events=3 choices=1 usage=913/2/915 cached=896 max_tokens"},
	{"a message that is cut off", []string{msgStart, msgText}, "event@1 token@2 last@2 done@3 tokens=1 events=2 choices=1 usage=9/0/9 ERR incomplete"},
	{"embedding", []string{`data: {"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-5]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}` + "\n\n"},
		"event@1 finished@1 done@2 events=1 usage=8/0/8"},
	{"no embedding", []string{`data: {"object":"list","data":[]}` + "\n\n"}, "event@1 done@2 events=1 ERR incomplete"},
}

func TestEvents(t *testing.T) {
	for _, row := range eventStreams {
		w := &wire{reads: row.reads}
		c := NewCollector(100)
		o := collect(NewScanner(w, w.clock, 0), c)
		if got := summary(o, true); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// What comes as a body, where a stream was asked for, has counts and no instants.
func TestAddBody(t *testing.T) {
	const whole = `{"id":"r","object":"response","status":"completed","output":[{"type":"message"}],`
	for _, row := range []struct{ name, body, want string }{
		{"chat", `{"choices":[{"index":0,"message":{"content":"a b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13}}`,
			"finished@5 done@5 marks=1 choices=1 usage=11/2/13 stop ERR not_streamed"},
		{"message", `{"id":"m","type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":8,"output_tokens":2}}`,
			"finished@5 done@5 marks=1 choices=1 usage=11/2/13 cached=8 end_turn ERR not_streamed"},
		{"response", whole + evUsage + "}", "finished@5 done@5 marks=1 choices=1 usage=11/3/14 cached=8 stop ERR not_streamed"},
		{"embedding", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`,
			"finished@5 done@5 marks=1 usage=8/0/8"},
		{"error", `{"error":{"message":"SECRET","code":500}}`, "done@5 marks=1 ERR stream_error code 500"},
		{"no JSON", "<html>", "done@5 marks=1 ERR not_streamed"},
		{"nothing", "", "done@5 marks=1 ERR not_streamed"},
	} {
		c := NewCollector(100)
		c.AddBody([]byte(row.body), 5*time.Millisecond)
		if got := summary(c.Finish(5*time.Millisecond, nil), true); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	c := NewCollector(0)
	c.AddBody([]byte(`{"choices":[`), 0)
	if o := c.Finish(0, io.ErrUnexpectedEOF); o.Err == nil || o.Err.Kind != KindReset {
		t.Errorf("a body that was cut off: %v", o.Err)
	}
}

// An event of type ping is no event of the answer.
func TestPings(t *testing.T) {
	for _, ping := range []string{"event: ping\ndata: {\"type\": \"ping\"}\n\n", "data: {\"type\":\"ping\"}\n\n", "event: ping\ndata: 2026-01-01\n\n"} {
		w := &wire{reads: []string{ping, tokA, ping, finish, done}}
		want := "event@2 token@2 last@2 finished@4 done@5 tokens=1 events=2 comments=2 marks=1 choices=1 length"
		if got := summary(collect(NewScanner(w, w.clock, 0), NewCollector(0)), true); got != want {
			t.Errorf("%q:\n got %s\nwant %s", ping, got, want)
		}
	}
}

// The last event of a stream says that nothing follows, as [DONE] does.
func TestLastEvent(t *testing.T) {
	for name, want := range map[string]bool{"response.completed": true, "response.incomplete": true, "response.failed": true, "message_stop": true, "message_delta": false, "response.created": false, "": false} {
		if got := NewCollector(0).Add(Event{Name: []byte(name), Data: []byte("{}")}); got != want {
			t.Errorf("%q: done is %v", name, got)
		}
	}
}

func TestBegun(t *testing.T) {
	c := NewCollector(0)
	for i, data := range []string{`{"type":"response.created"}`, `{"type":"response.output_text.delta","delta":"a"}`, `{"choices":[]}`} {
		c.Add(Event{Data: []byte(data)})
		if got := c.Begun(); got != (i > 0) {
			t.Errorf("after event %d: begun is %v", i, got)
		}
	}
}

func TestTextOfEvents(t *testing.T) {
	c := NewCollector(100)
	w := &wire{reads: []string{evText, evThought, evCall, evCall, evDone}}
	if o := collect(NewScanner(w, w.clock, 0), c); string(o.Text.Content) != "A b" || string(o.Text.Reasoning) != "hm" || string(o.Text.Tools) != `{"a":{"a":` {
		t.Errorf("%+v", o.Text)
	}
}

// FuzzEvents: what a stream of events is read as does not depend on how it is cut, and
// instants and counts agree.
func FuzzEvents(f *testing.F) {
	for _, row := range eventStreams {
		f.Add([]byte(strings.Join(row.reads, "")))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		w := &wire{reads: []string{string(stream)}}
		out := collect(NewScanner(w, w.clock, 0), NewCollector(100))
		bytewise := collect(NewScanner(iotest.OneByteReader(bytes.NewReader(stream)), noClock, 0), NewCollector(100))
		if a, b := summary(out, false), summary(bytewise, false); a != b {
			t.Fatalf("one read: %s\nbyte by byte: %s", a, b)
		}
		if tokens := out.TokenEvents > 0; tokens != (out.FirstToken != NoInstant) || len(out.Gaps) != max(out.TokenEvents-1, 0) || out.Done == NoInstant {
			t.Fatalf("tokens and instants disagree: %+v", out)
		}
	})
}

func TestOtherRequests(t *testing.T) {
	n, min, temp := 5, 5, 0.5
	extra, err := ParseExtra([]byte(`{"store":true,"priority":3}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]Request{
		`{"model":"m","input":"p","store":false,"stream":true,"max_output_tokens":5,"ignore_eos":true,"temperature":0.5}`: {
			Kind: Response, Model: "m", Prompt: []byte("p"), Stream: true, IncludeUsage: true, MaxTokens: &n, MinTokens: &min, IgnoreEOS: true, Temperature: &temp},
		`{"model":"m","input":[{"role":"user","content":"p"}],"priority":3,"store":true}`: {
			Kind: Response, Model: "m", Messages: []Message{{Role: "user", Content: []byte("p")}}, Extra: extra},
		`{"model":"m","messages":[{"role":"user","content":"p"}],"stream":true,"max_tokens":5,"ignore_eos":true,"temperature":0.5}`: {
			Kind: MessageKind, Model: "m", Messages: []Message{{Role: "user", Content: []byte("p")}}, Stream: true, IncludeUsage: true, MaxTokens: &n, MinTokens: &min, IgnoreEOS: true, Temperature: &temp, Seed: new(int64)},
		`{"model":"m","input":"p"}`:     {Kind: Embedding, Model: "m", Prompt: []byte("p"), Stream: true, MaxTokens: &n, Temperature: &temp},
		`{"model":"m","input":[1,2,3]}`: {Kind: Embedding, Model: "m", PromptIDs: []uint32{1, 2, 3}},
	} {
		if got := string(AppendRequest(nil, &r)); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

func TestDecodeOtherRequests(t *testing.T) {
	for body, want := range map[string]string{
		`{"input":"p"}`: `{"model":"","input":[{"role":"user","content":"p"}],"store":false}`,
		`{"instructions":"be kind","input":[{"role":"user","content":[{"type":"input_text","text":"p"}]}],"max_output_tokens":2}`: `{"model":"","input":[{"role":"system","content":"be kind"},{"role":"user","content":"p"}],"store":false,"max_output_tokens":2}`,
		`{"instructions":"x"}`: "request body: byte 20: must have an input",
		`{"input":[]}`:         "request body: byte 11: input: must not be empty",
		`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"SECRET"}]}]}`: "request body: byte 79: input[0].content[0].type: only parts of type text are supported",
	} {
		check(t, body, want, DecodeResponse)
	}
	for body, want := range map[string]string{
		`{"input":"p"}`:              `{"model":"","input":"p"}`,
		`{"input":["p"]}`:            `{"model":"","input":"p"}`,
		`{"input":[1,2]}`:            `{"model":"","input":[1,2]}`,
		`{"input":[[1,2]]}`:          `{"model":"","input":[1,2]}`,
		`{"input":[[1],[2]]}`:        "request body: byte 17: input[1]: must be a token id",
		`{"input":[[[1]]]}`:          "request body: byte 14: input[0][0]: must be a token id",
		`{"prompt":"p"}`:             "request body: byte 14: must have an input",
		`{"input":["a","b"]}`:        "request body: byte 14: input: only one prompt in a request is supported",
		`{"input":{"a":"SECRET"}}`:   "request body: byte 9: input: must be a string, a list of one string, or a list of token ids",
		`{"model":"m","input":null}`: "request body: byte 26: must have an input",
	} {
		check(t, body, want, DecodeEmbedding)
	}
	for body, want := range map[string]string{
		`{"max_tokens":2,"messages":[{"role":"user","content":"p"}]}`:                                                 `{"model":"","messages":[{"role":"user","content":"p"}],"max_tokens":2}`,
		`{"max_tokens":2,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"p"}]}]}`:           `{"model":"","messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}],"max_tokens":2}`,
		`{"max_tokens":2,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"p"}],"top_k":1}`: `{"model":"","messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}],"max_tokens":2,"top_k":1}`,
		`{"max_tokens":2}`: "request body: byte 16: must have messages",
		`{"messages":[{"role":"user","content":"p"}]}`: "request body: byte 44: must have max_tokens",
	} {
		check(t, body, want, DecodeMessage)
	}
}

// check decodes a body, and writes it again.
func check(t *testing.T, body, want string, decode func(r io.Reader, limit int64) (*Request, error)) {
	t.Helper()
	req, err := decode(strings.NewReader(body), 1<<20)
	got := ""
	if _, ok := errors.AsType[*badRequest](err); ok {
		got = err.Error()
	} else if err == nil {
		got = string(AppendRequest(nil, req))
	}
	if got != want {
		t.Errorf("%s:\n got %s, %v\nwant %s", body, got, err, want)
	}
}

// FuzzDecodeInput: what is taken is valid JSON, and is written as it was read.
func FuzzDecodeInput(f *testing.F) {
	for _, s := range []string{`{"input":"p","max_output_tokens":3}`, `{"input":[{"role":"user","content":"p"}],"instructions":"x"}`, `{"input":[[1,2]]}`, `{"input":["p"]}`, `{"messages":[{"role":"user","content":"p"}],"system":"s","max_tokens":1}`} {
		for api := range uint8(3) {
			f.Add([]byte(s), api)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, api uint8) {
		decode := []func(io.Reader, int64) (*Request, error){DecodeEmbedding, DecodeResponse, DecodeMessage}[api%3]
		req, err := decode(bytes.NewReader(body), 1<<16)
		if (req == nil) == (err == nil) {
			t.Fatalf("%v, %v", req, err)
		}
		if err != nil {
			return
		}
		text := AppendRequest(nil, req)
		again, err := decode(bytes.NewReader(text), 1<<20)
		if err != nil {
			t.Fatalf("%q\nwritten as %q: %v", body, text, err)
		}
		twice := AppendRequest(nil, again) // store comes last from now on
		if again, err = decode(bytes.NewReader(twice), 1<<20); err != nil || !bytes.Equal(twice, AppendRequest(nil, again)) {
			t.Fatalf("%q\nthen %v", twice, err)
		}
	})
}
