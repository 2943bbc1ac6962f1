package engine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

var numbers = regexp.MustCompile(`"embedding":\[[^]]*\]`)

// What the endpoints answer one after the other, to the byte, and the milliseconds that it
// took. A block of the prefix cache has 2 tokens; a request waits for 5 ms, and a step takes
// 10 ms, or 4 ms for each token of a prompt.
func TestAnswersToTheByte(t *testing.T) {
	name := wordNames(t)
	config := slow()
	config.MaxModelLen, config.Engine.BlockSize, config.Engine.KVTokens = 40, 2, 40
	config.Engine.Costs = engine.Costs{Step: 10e9, PrefillToken: 4e9, Request: 5e9}
	const want = `
map[Content-Type:[application/json]]
27 {"id":"cmpl-1",§"choices":[{"index":0,"text":" w0 w1","finish":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"cached":0}}
map[Cache-Control:[no-cache] Content-Type:[text/event-stream]]
15 data: {"id":"cmpl-2",§"choices":[{"index":0,"text":" w0","finish":null}]}⏎⏎^
25 data: {"id":"cmpl-2",§"choices":[{"index":0,"text":" w1","finish":null}]}⏎⏎^
25 data: {"id":"cmpl-2",§"choices":[{"index":0,"text":"","finish":"length"}],"timings":{"cache_n":2,"prompt_n":1,"prompt_ms":15.000,"predicted_n":2,"predicted_ms":10.000}}⏎⏎data: [DONE]⏎⏎^
map[Content-Type:[application/json]]
25 {"id":"chatcmpl-3",§"choices":[{"index":0,"text":" w0 w1","finish":"done"}]}
map[Content-Type:[application/json]]
105 {"id":"chatcmpl-4","object":"chat.completion","created":946684800,"model":"sim","choices":[{"index":0,"message":{"role":"assistant","content":"v0"},"finish":"length"}],"usage":{"prompt_tokens":25,"completion_tokens":1,"total_tokens":26}}
map[Cache-Control:[no-cache] Content-Type:[text/event-stream]]
15 event: response.created⏎data: {"type":"response.created","sequence_number":0,"response":{"id":"resp-chatcmpl-5","object":"response","created_at":946684800,"status":"in_progress","model":"sim","output":[],"incomplete_details":null}}⏎⏎event: response.output_text.delta⏎data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"msg-chatcmpl-5","output_index":0,"content_index":0,"delta":"v0"}⏎⏎^
25 event: response.output_text.delta⏎data: {"type":"response.output_text.delta","sequence_number":2,"item_id":"msg-chatcmpl-5","output_index":0,"content_index":0,"delta":" v1"}⏎⏎^
25 event: response.incomplete⏎data: {"type":"response.incomplete","sequence_number":3,"response":{"id":"resp-chatcmpl-5","object":"response","created_at":946684800,"status":"incomplete","model":"sim","output":[{"id":"msg-chatcmpl-5","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"v0 v1"}]}],"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":25,"input_tokens_details":{"cached_tokens":24},"output_tokens":2,"total_tokens":27}}}⏎⏎^
map[Cache-Control:[no-cache] Content-Type:[text/event-stream]]
15 event: response.created⏎data: {"type":"response.created","sequence_number":0,"response":{"id":"resp-chatcmpl-6","object":"response","created_at":946684800,"status":"in_progress","model":"sim","output":[],"incomplete_details":null}}⏎⏎event: response.output_text.delta⏎data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"msg-chatcmpl-6","output_index":0,"content_index":0,"delta":"v0"}⏎⏎^
15 event: response.completed⏎data: {"type":"response.completed","sequence_number":2,"response":{"id":"resp-chatcmpl-6","object":"response","created_at":946684800,"status":"completed","model":"sim","output":[{"id":"msg-chatcmpl-6","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"v0"}]}],"incomplete_details":null,"usage":{"input_tokens":25,"input_tokens_details":{"cached_tokens":24},"output_tokens":1,"total_tokens":26}}}⏎⏎^
map[Content-Type:[application/json]]
25 {"id":"resp-chatcmpl-7","object":"response","created_at":946684800,"status":"incomplete","model":"sim","output":[{"id":"msg-chatcmpl-7","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"v0 v1"}]}],"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":25,"input_tokens_details":{"cached_tokens":24},"output_tokens":2,"total_tokens":27}}
map[Content-Type:[application/json]]
25 {"id":"resp-chatcmpl-8","object":"response","created_at":946684800,"status":"completed","model":"sim","output":[{"id":"msg-chatcmpl-8","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"v0 v1"}]}],"incomplete_details":null,"usage":{"input_tokens":25,"input_tokens_details":{"cached_tokens":24},"output_tokens":2,"total_tokens":27}}
map[Content-Type:[application/json]]
0 status 400
0 {"error":{"message":"the model's maximum context length is 40 tokens, and 124 were requested (25 in the prompt, 99 for the completion)","type":"BadRequestError","param":null,"code":400}}
map[Content-Type:[application/json]]
0 status 400
0 {"error":{"message":"request body: byte 26: must have an input","type":"BadRequestError","param":null,"code":400}}
map[Content-Type:[application/json]]
17 {"object":"list","data":[{"object":"embedding","index":0,"embedding":[…]}],"model":"sim","usage":{"prompt_tokens":3,"total_tokens":3}}
map[Content-Type:[application/json]]
0 status 500
0 {"error":{"message":"request body: byte 1: not valid JSON","type":"InternalServerError","param":null,"code":500}}
137 14 3 6 0`
	bubble(t, func(t *testing.T) {
		h := faultServer(t, config)
		var all []string
		ask := func(path, body, quirks string) {
			w := newWire()
			playWire(t, h, w, t.Context(), path, body, quirks)
			all = append(append(all, fmt.Sprint(w.header)), w.lines...)
		}
		ask(openai.CompletionsPath, `{"prompt":"one two three","max_tokens":2,"ignore_eos":true}`, "")
		ask(openai.CompletionsPath, `{"prompt":"one two three","max_tokens":2,"ignore_eos":true,"stream":true}`, "timings")
		ask(openai.CompletionsPath, `{"prompt":"one two three","max_tokens":2,"ignore_eos":true}`,
			"usage-missing,chat-ids,finish-reason=done")
		ask(openai.ChatPath, `{"messages":[{"role":"user","content":"one two three"}],"max_tokens":1,"ignore_eos":true}`, "no-cached-tokens")
		ask(openai.ResponsesPath, `{"input":"one two three","max_output_tokens":2,"ignore_eos":true,"stream":true}`, "")
		ask(openai.ResponsesPath, `{"input":"one two three","max_output_tokens":1,"ignore_eos":true,"stream":true}`,
			"finish-reason=stop")
		ask(openai.ResponsesPath, `{"input":"one two three","max_output_tokens":2,"ignore_eos":true}`, "")
		ask(openai.ResponsesPath, `{"input":"one two three","max_output_tokens":2,"ignore_eos":true}`, "finish-reason=stop")
		ask(openai.ResponsesPath, `{"input":"one two three","max_output_tokens":99}`, "")
		ask(openai.ResponsesPath, `{"prompt":"one two three"}`, "")
		ask(openai.EmbeddingsPath, `{"input":[1,2,3],"max_tokens":99}`, "same-id")
		ask(openai.EmbeddingsPath, `{`, "bad-json-500")
		all = append(all, counts(h))
		got := "\n" + numbers.ReplaceAllString(name(strings.Join(all, "\n")), `"embedding":[…]`)
		if got != want {
			t.Errorf("got%s\nwant%s", got, want)
		}
	})
}

// An embedding has 16 numbers from -1 to below 1 that spread over that range and depend on
// the prompt.
func TestEmbeddingSpreads(t *testing.T) {
	h := faultServer(t, fast())
	seen := map[float32]bool{}
	least, most, sum := float32(1), float32(-1), float32(0)
	for i := range 50 {
		for _, v := range embeddingOf(t, h, fmt.Sprintf(`{"input":[%d]}`, i)) {
			seen[v] = true
			least, most, sum = min(least, v), max(most, v), sum+v
		}
	}
	if len(seen) < 790 || least < -1 || least > -0.98 || most >= 1 || most < 0.98 || sum/800 < -0.1 || sum/800 > 0.1 {
		t.Errorf("%d values from %g to %g, %g on average", len(seen), least, most, sum/800)
	}
}

// What a request is refused with, to the byte.
func TestRefusalsToTheByte(t *testing.T) {
	c := slow()
	c.MaxModelLen = 20
	model := engine.DefaultConfig()
	model.BlockSize, model.KVTokens = 2, 4
	words := func(n int) string { return `{"prompt":"` + strings.TrimSpace(strings.Repeat("one ", n)) + `"` }
	const long = "the model's maximum context length is 20 tokens, and "
	for _, row := range []struct {
		path, body, quirks string
		status             int
		kind, message      string
	}{
		{openai.CompletionsPath, words(20) + "}", "", 400, "BadRequestError",
			long + "36 were requested (20 in the prompt, 16 for the completion)"},
		{openai.CompletionsPath, words(21) + "}", "", 400, "BadRequestError",
			long + "37 were requested (21 in the prompt, 16 for the completion)"},
		{openai.CompletionsPath, words(3) + `,"max_tokens":18}`, "", 400, "BadRequestError",
			long + "21 were requested (3 in the prompt, 18 for the completion)"},
		{openai.CompletionsPath, words(30) + `,"max_tokens":25}`, "prompt-cut", 400, "BadRequestError",
			long + "26 were requested (1 in the prompt, 25 for the completion)"},
		{openai.CompletionsPath, `{"messages":[{"role":"user","content":"x"}]}`, "", 400, "BadRequestError",
			"want messages for a chat, or a prompt for a completion"},
		{openai.ChatPath, `{"prompt":"x"}`, "", 400, "BadRequestError",
			"want messages for a chat, or a prompt for a completion"},
		{openai.CompletionsPath, `{"prompt":""}`, "", 400, "BadRequestError", "the prompt has no tokens"},
		{openai.EmbeddingsPath, `{"input":""}`, "", 400, "BadRequestError", "the prompt has no tokens"},
		{openai.CompletionsPath, `{"prompt":"x","cache_salt":""}`, "", 400, "BadRequestError",
			"cache_salt must be a string that is not empty"},
		{openai.CompletionsPath, `{"prompt":"x","cache_salt":7}`, "", 400, "BadRequestError",
			"cache_salt must be a string that is not empty"},
		{openai.CompletionsPath, `{"model":"other","prompt":"x"}`, "model-404", 404, "NotFoundError",
			"the model does not exist"},
		{openai.EmbeddingsPath, `{"model":"other","input":"x"}`, "model-404", 404, "NotFoundError",
			"the model does not exist"},
		{openai.ResponsesPath, `{"model":"other","input":"x"}`, "model-404", 404, "NotFoundError",
			"the model does not exist"},
		{openai.CompletionsPath, `{"prompt":"x"}`, "error=599", 599, "InternalServerError", "the request was chosen to fail"},
		{openai.CompletionsPath, `{"prompt":"x"}`, "error=499", 499, "BadRequestError", "the request was chosen to fail"},
		{openai.CompletionsPath, `{"prompt":"x"}`, "refuse=1s", 501, "InternalServerError",
			"the quirk refuse needs a server that has its own port"},
		{openai.CompletionsPath, `{"prompt":"x"}`, "stall", 400, "BadRequestError",
			"X-Reprise-Fault: quirk stall: its value is a duration of at most an hour, such as 5s"},
		{"engine" + openai.CompletionsPath, `{"prompt":"one two three","max_tokens":3,"ignore_eos":true}`, "", 400,
			"BadRequestError", "the request is longer than the KV memory"},
		{"/tokenize", `{"prompt":1}`, "", 400, "BadRequestError", `the body is not {"prompt": text}`},
	} {
		config, path := c, row.path
		if rest, ok := strings.CutPrefix(path, "engine"); ok {
			config.Engine, path = model, rest
		}
		w := faultAsk(t, faultServer(t, config), t.Context(), path, row.body, row.quirks)
		want := fmt.Sprintf(`{"error":{"message":%s,"type":"%s","param":null,"code":%d}}`, quoteJSON(row.message),
			row.kind, row.status)
		if got := strings.TrimSpace(w.Body.String()); w.Code != row.status || got != want ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s %s; want %s", row.path, row.body, w.Code, w.Header().Get("Content-Type"), got, want)
		}
	}
}

// The imitated ollama answers this machine alone.
func TestLocalHostOnly(t *testing.T) {
	h := faultServer(t, fast())
	c := fast()
	c.Quirks = "local-host-only"
	local := faultServer(t, c)
	for host, want := range map[string]int{"localhost": 200, "localhost:80": 200, "127.0.0.1": 200,
		"127.9.9.9:11434": 200, "[::1]:80": 200, "[::1]": 200,
		"example.com": 403, "example.com:80": 403, "10.0.0.1:80": 403, "[fe80::1]:80": 403, "": 403} {
		if got := statusFrom(local, host); got != want {
			t.Errorf("host %q: status %d, want %d", host, got, want)
		}
		if got := statusFrom(h, host); got != 200 {
			t.Errorf("host %q of a server for all: status %d", host, got)
		}
	}
}

// How long an answer is: as long as asked for with ignore_eos; otherwise it stops by itself
// at any length below, about as often as not, and not before min_tokens.
func TestLengthOfAnswers(t *testing.T) {
	c := fast()
	c.MaxModelLen, c.FaultHeader = 1000, true
	h := faultServer(t, c)
	chat := `"messages":[{"role":"user","content":"x"}]`
	for _, row := range []struct {
		path, body, quirks string
		want               int
	}{
		{openai.CompletionsPath, `"prompt":"x"`, "", 16},
		{openai.ChatPath, chat, "", 256},
		{openai.CompletionsPath, `"prompt":"x","max_tokens":0`, "", 1},
		{openai.CompletionsPath, `"prompt":"x","max_tokens":7`, "", 7},
		{openai.CompletionsPath, `"prompt":"x","max_tokens":7,"min_tokens":3`, "", 7},
		{openai.CompletionsPath, `"prompt":"x","max_tokens":7`, "more-output", 8},
		{openai.CompletionsPath, `"prompt":"x","max_tokens":7`, "more-output=5", 12},
		{openai.CompletionsPath, `"prompt":"` + strings.Repeat("x ", 899) + `x","max_tokens":100`, "", 100},
		{openai.CompletionsPath, `"prompt":"` + strings.Repeat("one ", 989) + `one"`, "", 10},
		{openai.CompletionsPath, `"prompt":"` + strings.Repeat("one ", 998) + `one"`, "", 1},
	} {
		if got, finish := lengthOf(t, h, row.path, "{"+row.body+`,"ignore_eos":true}`,
			row.quirks); got != row.want || finish != "length" {
			t.Errorf("%.60s, %s: %d tokens, %s; want %d", row.body, row.quirks, got, finish, row.want)
		}
	}
	const limit, prompts = 8, 400
	lengths, stopped := map[int]int{}, 0
	for i := range prompts {
		prompt := fmt.Sprintf(`{"prompt":[%d],"max_tokens":%d`, i, limit)
		n, finish := lengthOf(t, h, openai.CompletionsPath, prompt+"}", "")
		if (finish == "stop") != (n < limit) || n < 1 || n > limit {
			t.Fatalf("prompt %d: %d tokens, %s", i, n, finish)
		}
		lengths[n]++
		if n < limit {
			stopped++
		}
		if m, finish := lengthOf(t, h, openai.CompletionsPath, prompt+`,"min_tokens":5}`, ""); m != max(n, 5) ||
			(finish == "stop") != (m < limit) {
			t.Fatalf("prompt %d: %d tokens without a least number, %d with 5, %s", i, n, m, finish)
		}
		if m, _ := lengthOf(t, h, openai.CompletionsPath, prompt+`,"min_tokens":5,"ignore_eos":true}`,
			"no-ignore-eos"); m != n {
			t.Fatalf("prompt %d: %d tokens, and %d where ignore_eos means nothing", i, n, m)
		}
		if m, finish := lengthOf(t, h, openai.CompletionsPath, prompt+fmt.Sprintf(`,"min_tokens":%d}`, limit),
			""); m != limit || finish != "length" {
			t.Fatalf("prompt %d: %d tokens, %s, with at least %d", i, m, finish, limit)
		}
	}
	// Each of the 7 lengths has a chance of 1/16: 25 ± 5 of 400, and 175 ± 10 together.
	if len(lengths) != limit || stopped < 135 || stopped > 215 {
		t.Errorf("%d of %d stopped, with lengths %v", stopped, prompts, lengths)
	}
	for n := 1; n < limit; n++ {
		if lengths[n] < 5 || lengths[n] > 45 {
			t.Errorf("%d answers have %d tokens; 25 were to be expected", lengths[n], n)
		}
	}
}

// A prefix is shared by requests of the same cache_salt alone.
func TestCacheSalt(t *testing.T) {
	c := fast()
	c.Engine.BlockSize = 2
	h := faultServer(t, c)
	for i, row := range []struct {
		salt string
		want int
	}{{"", 0}, {"", 2}, {`,"cache_salt":null`, 2}, {`,"cache_salt":"a"`, 0}, {`,"cache_salt":"b"`, 0},
		{`,"cache_salt":"a"`, 2}, {"", 2}} {
		w := faultAsk(t, h, t.Context(), openai.CompletionsPath, `{"prompt":"one two three","max_tokens":1`+row.salt+`}`, "")
		if want := fmt.Sprintf(`"cached_tokens":%d}`, row.want); !strings.Contains(w.Body.String(), want) {
			t.Errorf("request %d, %s: no %s in %s", i, row.salt, want, w.Body)
		}
	}
}

// The words of an answer depend on the prompt and on the request's seed, which is 0 where
// none is given.
func TestSeed(t *testing.T) {
	h := faultServer(t, fast())
	answer := func(members string) string {
		w := faultAsk(t, h, t.Context(), openai.CompletionsPath,
			`{"prompt":"one two three","max_tokens":8,"ignore_eos":true`+members+`}`, "")
		_, text, _ := strings.Cut(w.Body.String(), `"text":`)
		text, _, _ = strings.Cut(text, `,"finish`)
		return text
	}
	none, zero, seven, again, eight := answer(""), answer(`,"seed":0`), answer(`,"seed":7`), answer(`,"seed":7`),
		answer(`,"seed":8`)
	if none != zero || seven != again || none == seven || seven == eight || len(none) < 20 {
		t.Errorf("without a seed %s, with 0 %s, with 7 %s and %s, with 8 %s", none, zero, seven, again, eight)
	}
}

// A request that finds no place is told so, once as many wait as may.
func TestQueueOfTheServer(t *testing.T) {
	c := slow()
	c.Engine.MaxSeqs, c.Engine.MaxWaiting, c.Engine.Costs = 1, 2, engine.Costs{Step: 1e12}
	bubble(t, func(t *testing.T) {
		h := faultServer(t, c)
		for range 3 {
			go playWire(t, h, newWire(), t.Context(), openai.CompletionsPath, fourTokens(openai.CompletionsPath, true), "")
			synctest.Wait()
		}
		time.Sleep(time.Millisecond)
		w := newWire()
		playWire(t, h, w, t.Context(), openai.CompletionsPath, fourTokens(openai.CompletionsPath, true), "")
		want := `[0 status 429 0 {"error":{"message":"the waiting queue is full","type":"RateLimitError","param":null,"code":429}}]`
		if got := fmt.Sprint(w.lines); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if text := metricsOf(h); !strings.Contains(text, `num_requests_running{model_name="sim"} 1`) ||
			!strings.Contains(text, `num_requests_waiting{model_name="sim"} 2`) {
			t.Errorf("not 1 runs and 2 wait:\n%s", text)
		}
		time.Sleep(time.Minute) // until all have been answered
	})
}
