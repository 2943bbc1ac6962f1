package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"reprise/replay/openai"
	"reprise/trace"
	"reprise/trace/ending"
	"reprise/trace/ending/endingtest"
)

// Over the wire each ending of each API has the same class, whatever the label of the answer
// says that it is.
func TestEndingsOverTheWire(t *testing.T) {
	var label, body string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{label}
		if label == "" {
			w.Header()["Content-Type"] = nil
		}
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	endpoints := map[string]*HTTP{}
	for _, api := range []string{endingtest.Chat, endingtest.Completions, endingtest.Responses, endingtest.Messages} {
		endpoints[api] = endpoint(t, Options{URL: s.URL, Model: "m", API: api, Connections: Pooled})
	}
	row := trace.Request{InputTokens: 1, OutputTokens: trace.Ptr[int32](8), Kind: "chat"}
	for _, c := range endingtest.Cases() {
		for _, label = range []string{"text/event-stream; charset=utf-8", "application/json", "text/plain", ""} {
			if c.Stream != "" {
				body = c.Stream
				want := c.Kind
				if c.API == endingtest.Responses && want == ending.GaveUp {
					want = ending.InStream // it says so of any answer that was cancelled
				}
				if r := fire(t, endpoints[c.API], row, 0); r.Error != want || int(r.Events) != c.Tokens {
					t.Errorf("%s, %s, as %q: %q with %d token events, want %q with %d", c.API, c.Name, label, r.Error, r.Events, want, c.Tokens)
				}
			}
			if c.Body != "" {
				body = c.Body
				r := fire(t, endpoints[c.API], row, 0)
				if r.Error != openai.KindNotStreamed && r.Error != openai.KindStream || r.Events != 0 || r.FirstTokenNS != nil {
					t.Errorf("%s, %s, whole, as %q: %q", c.API, c.Name, label, r.Error)
				}
			}
		}
	}
}
