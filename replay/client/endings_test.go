package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reprise/replay/engine"
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
					t.Errorf("%s, %s, as %q: %q with %d token events, want %q with %d", c.API, c.Name, label,
						r.Error, r.Events, want, c.Tokens)
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

// The simulated server ends its answers as package ending says, in every API: the client has the
// class of each word, and the server's own count of ends agrees.
func TestEndingsOfTheSimulatedServer(t *testing.T) {
	for _, word := range []string{"stop", "eos", "length", "max_tokens", "tool_calls", "content_filter",
		"cache_threshold", "abort", "timeout", "error", "cancelled"} {
		c := quirkConfig()
		c.Engine.Costs = engine.Costs{}
		c.Quirks = "finish-reason=" + word
		s := quirkServer(t, c)
		want := ending.Answer{Ended: true, Finish: word, Generated: true, Tokens: 8}.Failure()
		for _, api := range []string{endingtest.Chat, endingtest.Completions, endingtest.Responses, endingtest.Messages} {
			kind := want
			if api == endingtest.Responses && kind == ending.GaveUp {
				kind = ending.InStream // as above
			}
			row := trace.Request{InputTokens: 12, OutputTokens: trace.Ptr[int32](8), Kind: "chat"}
			if r := fire(t, endpoint(t, Options{URL: s.URL, Model: "m", API: api, Connections: Pooled}), row,
				0); r.Error != kind {
				t.Errorf("%s of %s: %q, want %q", word, api, r.Error, kind)
			}
		}
		reason := "stop"
		switch {
		case want != "":
			reason = "abort"
		case ending.Finish(word) == ending.Length:
			reason = "length"
		}
		resp, err := http.Get(s.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(page), `finished_reason="`+reason+`"} 4`) {
			t.Errorf("%s does not count as %s in\n%s", word, reason, page)
		}
	}
}
