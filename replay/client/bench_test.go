package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// BenchmarkHTTPStream is the cost of an event of a stream over loopback, the
// server's write included: 64 streams at once, 200 events each, as fast as they
// go.
func BenchmarkHTTPStream(b *testing.B) {
	const events = 200
	h := endpoint(b, Options{Connections: Pooled, URL: serveCanned(b, strings.Repeat(tok, events)+stop+usage+done)})
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var r result.Result
			h.Fire(b.Context(), result.Shot{Call: benchCall(b, h), Start: time.Now()}, &r)
			if r.Error != "" || r.Events != events {
				b.Errorf("%s: %d events", r.Error, r.Events)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)*events/b.Elapsed().Seconds(), "events/s")
}

// benchCall encodes a small request. Prepare is for one goroutine.
func benchCall(b *testing.B, h *HTTP) *httpCall {
	c := &httpCall{api: result.APIChat, session: h1.NoSession, header: h.header, body: h.bodies.Get().(*[]byte), bound: openai.BoundOf(0, 0)}
	var err error
	if c.head, err = h.targets[0].wire.headOf(c); err != nil {
		b.Fatal(err)
	}
	c.at = len(c.head) + lengthRoom
	*c.body = append(append((*c.body)[:0], make([]byte, c.at)...), `{"model":"m","messages":[]}`...)
	return c
}

// serveCanned answers every request with the same stream, an event in each
// HTTP chunk and write.
func serveCanned(b *testing.B, answer string) string {
	pieces := strings.SplitAfter(answer, "\n\n")
	return serve(b, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	})
}

// BenchmarkHTTPRequest is the cost of a short request over loopback, server
// included, on a connection of its own and on a pooled one.
func BenchmarkHTTPRequest(b *testing.B) {
	for _, conns := range []string{PerRequest, Pooled} {
		b.Run(conns, func(b *testing.B) {
			url := serveCanned(b, tok+stop+usage+done)
			h := endpoint(b, Options{Connections: conns, URL: url})
			row := trace.Request{InputTokens: 500, OutputTokens: trace.Ptr[int32](1)}
			b.ReportAllocs()
			for b.Loop() {
				if r := fire(b, h, row, 0); r.Error != "" {
					b.Fatal(r.Error)
				}
			}
		})
	}
}

// BenchmarkLag reports how late requests leave: a thousand a second over
// loopback for the time of the benchmark, the server on the same cores.
func BenchmarkLag(b *testing.B) {
	h := endpoint(b, Options{URL: serveCanned(b, tok+tok+stop+done)})
	rows := make([]trace.Request, b.N)
	for i := range rows {
		rows[i] = trace.Request{ArrivalNS: int64(i) * 1e6, InputTokens: 100, OutputTokens: trace.Ptr[int32](2)}
	}
	var out trace.SliceWriter[result.Result]
	if _, err := (&replay.Runner{Prompter: words{}, Endpoint: h}).Run(b.Context(), reader(rows), &out); err != nil {
		b.Fatal(err)
	}
	var released, sent float64
	for _, r := range out.Rows {
		if r.Error != "" {
			b.Fatal(r.Error)
		}
		released += float64(*r.ReleasedNS - r.DueNS)
		sent += float64(*r.SentNS - r.DueNS)
	}
	b.ReportMetric(released/1e3/float64(b.N), "µs-released")
	b.ReportMetric(sent/1e3/float64(b.N), "µs-sent")
}
