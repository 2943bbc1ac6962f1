package record_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"reprise/datasets/record"
	"reprise/trace"
)

// BenchmarkExchange is what a streamed answer of 50 tokens to a prompt of 10 kB takes, straight
// from the server and through the proxy that records it.
func BenchmarkExchange(b *testing.B) {
	chunk := `{"choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`
	answer := sse(append(slices.Repeat([]string{chunk}, 50), "[DONE]")...)
	prompt := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("some words ", 900))

	engine := answers("text/event-stream", answer)
	direct := httptest.NewServer(engine)
	defer direct.Close()
	proxy := proxied(b, func(o *record.Options) {
		o.Sink = func() (func(*trace.Entry) error, error) {
			return func(*trace.Entry) error { return nil }, nil
		}
	}, engine)

	for _, way := range []struct{ name, url string }{{"direct", direct.URL}, {"recorded", proxy.url}} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				resp, err := http.Post(way.url+"/v1/chat/completions", "application/json", strings.NewReader(prompt))
				if err != nil {
					b.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(got) != answer {
					b.Fatalf("%d bytes of %d: %v", len(got), len(answer), err)
				}
			}
		})
	}
}
