package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace/longtest"
)

func probing(t *testing.T, o Options) *HTTP {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// Servers answer an empty object in their own ways: what is not there is told from what
// refuses it, without a token. Embeddings must work.
func TestServerAPIs(t *testing.T) {
	for _, c := range []struct {
		name   string
		status map[string]int
		has    string
	}{
		{"vLLM", map[string]int{"/v1/completions": 400, "/v1/chat/completions": 400, "/v1/responses": 400, "/v1/messages": 400}, "chat completions messages responses"},
		{"Dynamo, whose embeddings have no model", map[string]int{"/v1/completions": 400, "/v1/chat/completions": 400, "/v1/responses": 400, "/v1/embeddings": 400}, "chat completions responses"},
		{"llama-server", map[string]int{"/v1/completions": 400, "/v1/chat/completions": 400, "/v1/responses": 400, "/v1/messages": 500, "/v1/embeddings": 501}, "chat completions messages responses"},
		{"other methods only", map[string]int{"/v1/completions": 405, "/v1/chat/completions": 307}, ""},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, ok := c.status[r.URL.Path]
			if !ok {
				status = http.StatusNotFound
			}
			w.WriteHeader(status)
		}))
		h := probing(t, Options{URL: srv.URL, Model: "m"})
		got, err := h.APIs(t.Context())
		var has []string
		for _, api := range []string{result.APIChat, result.APICompletions, result.APIEmbeddings, result.APIMessages, result.APIResponses} {
			if got[api] {
				has = append(has, api)
			}
		}
		if err != nil || strings.Join(has, " ") != c.has {
			t.Errorf("%s: %q, %v", c.name, has, err)
		}
		srv.Close()
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer srv.Close()
	var refused *SetupError
	if _, err := probing(t, Options{URL: srv.URL, Model: "m"}).APIs(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("a refused key: %v", err)
	}
}

// A probe whose connection breaks is sent again, twice; what was sent is counted.
func TestProbesSurviveResets(t *testing.T) {
	longtest.Skip(t)
	broken := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken > 0 {
			broken--
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	h := probing(t, Options{URL: srv.URL})
	broken = 2
	if model, err := h.Probe(t.Context()); err != nil || model != "m" {
		t.Fatalf("%q, %v", model, err)
	}
	broken = 2
	if n, err := h.CalibrateAPI(t.Context(), result.APICompletions, "a", 0); err != nil || n != 4 {
		t.Fatalf("%d tokens, %v", n, err)
	}
	if got := h.Probed(); !reflect.DeepEqual(got, Probed{Requests: 3, PromptTokens: 5, OutputTokens: 1}) {
		t.Errorf("%+v", got)
	}
	broken = 9
	if _, err := h.CalibrateAPI(t.Context(), result.APICompletions, "a", 0); err == nil {
		t.Error("a server that always breaks the connection is no error")
	}
}
