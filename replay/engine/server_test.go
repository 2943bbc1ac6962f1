package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reprise/replay/engine"
	"reprise/replay/openai"
	"reprise/trace/token"
)

// fast is a server whose engine does not slow the tests.
func fast() engine.ServerConfig {
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{}
	return c
}

func start(t testing.TB, c engine.ServerConfig) *httptest.Server {
	t.Helper()
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return srv
}

func post(t testing.TB, srv *httptest.Server, path, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(srv.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// chunks decodes a streamed answer.
func chunks(t testing.TB, body string) (out []openai.Chunk) {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	if events[len(events)-1] != "data: [DONE]" {
		t.Fatalf("the stream ends with %q", events[len(events)-1])
	}
	for _, e := range events[:len(events)-1] {
		var c openai.Chunk
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestStreamedChat(t *testing.T) {
	srv := start(t, fast())
	status, body := post(t, srv, openai.ChatPath, `{"messages":[{"role":"user","content":"hello there"}],"stream":true,
		"stream_options":{"include_usage":true},"max_tokens":7,"ignore_eos":true}`)
	if status != 200 {
		t.Fatalf("status %d: %s", status, body)
	}
	cs := chunks(t, body)
	if len(cs) != 1+7+1+1 {
		t.Fatalf("%d chunks: want role, 7 tokens, finish and usage", len(cs))
	}
	if d := cs[0].Choices[0].Delta; d.Role != "assistant" || *d.Content != "" {
		t.Error("the first chunk is not the role alone")
	}
	var text string
	for _, c := range cs[1:8] {
		text += *c.Choices[0].Delta.Content
	}
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tok.Append(nil, text)); n != 7 {
		t.Errorf("the answer has %d tokens when read back, want 7", n)
	}
	if f := cs[8].Choices[0].FinishReason; f == nil || *f != "length" {
		t.Error("the finish chunk does not say length")
	}
	u := cs[9].Usage
	want := len(tok.Append(nil, "<|im_start|>user\n")) + len(tok.Append(nil, "hello there")) +
		len(tok.Append(nil, "<|im_end|>\n")) + len(tok.Append(nil, "<|im_start|>assistant\n"))
	if len(cs[9].Choices) != 0 || u.CompletionTokens != 7 || u.PromptTokens != want {
		t.Errorf("usage is %+v, want %d prompt tokens", u, want)
	}
}

// Text and token ids of one prompt are the same to the cache.
func TestPrefixIsCachedAcrossForms(t *testing.T) {
	srv := start(t, fast())
	tok, _ := token.Open("o200k_base")
	words := tok.Words()
	var text strings.Builder
	var prompt []uint32
	for i := range 100 {
		text.WriteString(" " + words.Text[i*7])
		prompt = append(prompt, words.Spaced[i*7])
	}
	ask := func(prompt any) *openai.Usage {
		b, _ := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": 1})
		status, body := post(t, srv, openai.CompletionsPath, string(b))
		var c openai.Chunk
		if err := json.Unmarshal([]byte(body), &c); err != nil || status != 200 {
			t.Fatalf("status %d: %v", status, err)
		}
		return c.Usage
	}
	for i, c := range []struct {
		prompt any
		want   int
	}{{text.String(), 0}, {prompt, 96}, {prompt[:96], 80}, {prompt[:50], 48}, {prompt[1:], 0}} {
		if u := ask(c.prompt); u.PromptTokensDetails.CachedTokens != c.want {
			t.Errorf("request %d: %d cached of %d, want %d", i, u.PromptTokensDetails.CachedTokens, u.PromptTokens, c.want)
		}
	}
	if status, _ := post(t, srv, "/reset_prefix_cache", ""); status != 200 {
		t.Errorf("reset answered %d", status)
	}
	if u := ask(prompt); u.PromptTokensDetails.CachedTokens != 0 {
		t.Error("the cache survived its reset")
	}
}

// A next turn that repeats the answer reuses its generated blocks, but for the
// last token of the answer.
func TestGeneratedBlocksAreKnown(t *testing.T) {
	srv := start(t, fast())
	answer := func(body string) (string, *openai.Usage) {
		status, reply := post(t, srv, openai.CompletionsPath, body)
		var c openai.Chunk
		if err := json.Unmarshal([]byte(reply), &c); err != nil || status != 200 {
			t.Fatalf("status %d: %v", status, err)
		}
		return *c.Choices[0].Text, c.Usage
	}
	for _, c := range []struct {
		prompt       string
		output, want int
	}{{"one two three", 61, 48}, {"four five six", 62, 64}} {
		text, _ := answer(fmt.Sprintf(`{"prompt":"%s","max_tokens":%d,"ignore_eos":true}`, c.prompt, c.output))
		next, _ := json.Marshal(map[string]any{"prompt": c.prompt + text + " and more", "max_tokens": 1})
		if _, u := answer(string(next)); u.PromptTokensDetails.CachedTokens != c.want {
			t.Errorf("%d of %d tokens cached, want %d", u.PromptTokensDetails.CachedTokens, u.PromptTokens, c.want)
		}
	}
}

// The same prompt gets the same answer: temperature 0.
func Example() {
	s, err := engine.NewServer(engine.DefaultServerConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	resp, err := http.Post(srv.URL+openai.CompletionsPath, "application/json",
		strings.NewReader(`{"prompt":"one two three","max_tokens":4,"ignore_eos":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var c openai.Chunk
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Usage.PromptTokens, c.Usage.CompletionTokens, *c.Choices[0].FinishReason)
	// Output: 3 4 length
}

func BenchmarkStream(b *testing.B) {
	srv := start(b, fast())
	const tokens = 100
	body := fmt.Sprintf(`{"prompt":"one two three","max_tokens":%d,"ignore_eos":true,"stream":true}`, tokens)
	for b.Loop() {
		if status, _ := post(b, srv, openai.CompletionsPath, body); status != 200 {
			b.Fatal(status)
		}
	}
	b.ReportMetric(float64(b.N)*tokens/b.Elapsed().Seconds(), "tokens/s")
}
