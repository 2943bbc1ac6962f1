package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

// askedAPI sends a body and folds the answer as the client does.
func askedAPI(t *testing.T, c engine.ServerConfig, path, body string) (int, openai.Outcome, string) {
	t.Helper()
	status, text := post(t, start(t, c), path, body)
	return status, folded(text), text
}

// folded folds an answer, a stream or a body.
func folded(text string) openai.Outcome {
	s := openai.NewScanner(strings.NewReader(text), func() time.Duration { return 0 }, 0)
	col := openai.NewCollector(1 << 20)
	if strings.HasPrefix(text, "{") {
		col.Add(openai.Event{Data: []byte(text)})
		return col.Finish(0, nil)
	}
	ev, err := s.Scan()
	for ; err == nil; ev, err = s.Scan() {
		col.Add(ev)
	}
	return col.Finish(ev.At, err)
}

// A message has the words that a chat about the same has, and its counts add up to the
// chat's: those of the cache stand beside the rest of the prompt.
func TestMessages(t *testing.T) {
	srv := start(t, fast())
	prompt := strings.Repeat("hello there ", 40)
	ask := func(path, members string) (int, openai.Outcome, string) {
		t.Helper()
		status, text := post(t, srv, path, fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],%s}`, prompt, members))
		return status, folded(text), text
	}
	_, chat, _ := ask(openai.ChatPath, `"max_tokens":9,"ignore_eos":true`)
	status, o, text := ask(openai.MessagesPath, `"max_tokens":9,"ignore_eos":true,"stream":true`)
	n := chat.Usage.PromptTokens
	cached := (n - 1) / 16 * 16
	if status != 200 || o.Err != nil || o.FinishReason != "max_tokens" || o.TokenEvents != 9 ||
		o.Usage.CompletionTokens != 9 || o.Usage.PromptTokens != n || o.Usage.PromptTokensDetails.CachedTokens != cached {
		t.Fatalf("status %d, %+v, usage %+v of %d\n%s", status, o, o.Usage, n, text)
	}
	if string(o.Text.Content) != string(chat.Text.Content) ||
		!strings.Contains(text, fmt.Sprintf(`"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":9`, n-cached, cached)) {
		t.Errorf("%q, the chat %q: %s", o.Text.Content, chat.Text.Content, text)
	}
	status, whole, text := ask(openai.MessagesPath, `"max_tokens":9,"ignore_eos":true`)
	if status != 200 || *whole.Usage.PromptTokensDetails != *o.Usage.PromptTokensDetails ||
		whole.Usage.TotalTokens != n+9 || !strings.Contains(text, string(chat.Text.Content)) {
		t.Errorf("whole: status %d, %+v: %s", status, whole.Usage, text)
	}
	if status, text := post(t, srv, openai.MessagesPath,
		`{"messages":[{"role":"user","content":"p"}]}`); status != 400 || !strings.Contains(text, "must have max_tokens") {
		t.Errorf("without max_tokens: status %d: %s", status, text)
	}
}

func TestEmbeddings(t *testing.T) {
	vector := func(body string) ([]float32, int) {
		t.Helper()
		status, o, text := askedAPI(t, fast(), openai.EmbeddingsPath, body)
		if status != 200 || o.Err != nil || o.TokenEvents != 0 || o.Usage == nil {
			t.Fatalf("%s: status %d, %+v", body, status, o)
		}
		var list openai.EmbeddingList
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Data) != 1 {
			t.Fatalf("%v: %s", err, text)
		}
		return list.Data[0].Embedding, list.Usage.PromptTokens
	}
	a, n := vector(`{"input":"hello there"}`)
	b, _ := vector(`{"input":["hello there"],"max_tokens":5}`)
	c, m := vector(`{"input":[1,2,3]}`)
	if n < 1 || m != 3 || !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("%d and %d tokens, %v, %v, %v", n, m, a, b, c)
	}
	full := fast()
	full.MaxModelLen = 2
	if status, _, _ := askedAPI(t, full, openai.EmbeddingsPath, `{"input":[1,2,3]}`); status != 400 {
		t.Errorf("too long: status %d", status)
	}
}

// A server that is full refuses the other APIs too.
func TestOtherAPIsAreRefused(t *testing.T) {
	c := fast()
	c.Engine.MaxSeqs, c.Engine.MaxWaiting, c.Engine.Costs.Step, c.Quirks = 1, 0, 1e15, "early-headers"
	srv := start(t, c)
	// One that has the only place, as its headers say.
	resp, err := http.Post(srv.URL+openai.CompletionsPath, "application/json",
		strings.NewReader(`{"prompt":"p","stream":true,"max_tokens":5,"ignore_eos":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, path := range []string{openai.ResponsesPath, openai.EmbeddingsPath, openai.MessagesPath} {
		if status, text := post(t, srv, path, `{"input":"p","messages":[{"role":"user","content":"p"}],"max_tokens":2}`); status != 429 || !strings.Contains(text, map[bool]string{true: "rate_limit_error", false: "RateLimitError"}[path == openai.MessagesPath]) {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
}
