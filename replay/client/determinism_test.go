package client

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// A server whose answers differ now and then is found out; the requests are greedy, and
// no results.
func TestCheckDeterminism(t *testing.T) {
	var n, wrong atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q, err := openai.DecodeRequest(r.Body, 1<<20)
		if err != nil {
			t.Error(err)
			return
		}
		if q.Temperature == nil || *q.Temperature != 0 || q.Seed == nil {
			wrong.Add(1)
		}
		text := tok
		if i := n.Add(1); len(q.Messages[0].Content) > 20 && i%2 == 0 {
			text = strings.Replace(tok, "a b", "c d", 1)
		}
		if len(q.Messages[0].Content) > 30 {
			fails(500, "")(w, r)
			return
		}
		stream(text, stop, done)(w, r)
	})
	h := endpoint(t, Options{URL: url})
	var rows []trace.Request
	for i := range 100 {
		row := trace.Request{InputTokens: 3, OutputTokens: trace.Ptr[int32](2), Temperature: trace.Ptr(float32(1))}
		switch {
		case i >= 80:
			row.InputTokens = 12 // fails
		case i >= 50:
			row.InputTokens = 8 // differs
		}
		rows = append(rows, row)
	}
	d, err := h.CheckDeterminism(t.Context(), reader(rows), 100, words{}, 10)
	if want := (result.Determinism{Rows: 10, Compared: 8, Differed: 3}); d != want || err != nil || wrong.Load() > 0 {
		t.Errorf("%+v, %v, %d not greedy", d, err, wrong.Load())
	}
	if _, err := endpoint(t, Options{URL: url, API: result.APIEmbeddings}).CheckDeterminism(t.Context(), reader(rows), 100, words{}, 1); err == nil {
		t.Error("embeddings are compared")
	}
}
