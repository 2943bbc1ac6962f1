package engine_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reprise/replay/engine"
	"reprise/replay/openai"
)

// The cache of a server knows prompts and answers.
func TestServerWithEngine(t *testing.T) {
	c := engine.DefaultServerConfig()
	c.Engine.KVTokens, c.Engine.Costs = 640, engine.Costs{}
	srv := start(t, c)
	prompt := strings.Repeat("word ", 100)
	ask := func(prompt string, stream bool) (string, *openai.Usage) {
		t.Helper()
		b, _ := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": 40, "ignore_eos": true, "stream": stream,
			"stream_options": map[string]any{"include_usage": true}})
		status, body := post(t, srv, openai.CompletionsPath, string(b))
		if status != 200 {
			t.Fatalf("status %d: %s", status, body)
		}
		all := []openai.Chunk{{}}
		if stream {
			all = chunks(t, body)
		} else if err := json.Unmarshal([]byte(body), &all[0]); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, c := range all {
			for _, choice := range c.Choices {
				text.WriteString(*choice.Text)
			}
		}
		return text.String(), all[len(all)-1].Usage
	}
	cold, u := ask(prompt, true)
	if u.CompletionTokens != 40 || u.PromptTokensDetails.CachedTokens != 0 {
		t.Errorf("cold: %+v", u)
	}
	warm, u := ask(prompt, false)
	if warm != cold || u.PromptTokensDetails.CachedTokens != (u.PromptTokens-1)/16*16 {
		t.Errorf("warm: %+v, or another answer", u)
	}
	// The KV of all tokens but the last generated is there to be found again.
	if _, u = ask(prompt+cold+" and on", true); u.PromptTokensDetails.CachedTokens < 128 {
		t.Errorf("next turn: %+v, %+v", u, u.PromptTokensDetails)
	}
	if status, body := post(t, srv, openai.CompletionsPath, `{"prompt":"`+strings.Repeat("word ", 900)+`"}`); status != 400 {
		t.Errorf("longer than the KV memory: status %d: %s", status, body)
	}
	status, body := get(t, srv, "/metrics")
	for _, want := range []string{`num_requests_running{model_name="sim"} 0`, `kv_cache_usage_perc{model_name="sim"} 0`, `finished_reason="length"} 3`, "num_preemptions_total", "prefix_cache_hits_total"} {
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if status, _ := post(t, srv, "/reset_prefix_cache", ""); status != 200 {
		t.Errorf("reset: status %d", status)
	}
	if _, u = ask(prompt, true); u.PromptTokensDetails.CachedTokens != 0 {
		t.Errorf("after the reset: %+v", u.PromptTokensDetails)
	}
	c.Engine.MaxSeqs = 0
	if _, err := engine.NewServer(c); err == nil {
		t.Error("an engine without places is taken")
	}
}

func get(t testing.TB, srv *httptest.Server, path string) (int, string) {
	t.Helper()
	resp, err := http.Get(srv.URL + path)
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
