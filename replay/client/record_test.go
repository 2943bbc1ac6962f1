package client

import (
	"net/http"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// Every class of end in one run, over the network: one Result for each row.
func TestRecordHTTP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	handlers := []http.HandlerFunc{stream(role, tok, tok, stop, usage, done), stream(tok), breaks(tok), fails(503, ""), hangs(tok)}
	want := []string{"", openai.KindIncomplete, openai.KindReset, openai.KindUnavailable, openai.KindCancelled}
	next := make(chan http.HandlerFunc, 500)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { (<-next)(w, r) })
	h := endpoint(t, Options{URL: url})
	var rows []trace.Request
	for i := range 100 {
		next <- handlers[i%5]
		rows = append(rows, trace.Request{ArrivalNS: int64(i) * 1e6, InputTokens: 2, OutputTokens: trace.Ptr[int32](2),
			Status: trace.StatusCancelled, E2ENS: trace.Ptr(int64(time.Hour))})
		if i%5 == 4 {
			rows[i].E2ENS = trace.Ptr(int64(20 * time.Millisecond))
		}
	}
	r := &replay.Runner{Prompter: words{}, Endpoint: h, Options: replay.Options{MaxInFlight: 1}} // one at a time: handlers in order
	h.Describe(&r.About)
	run, err := r.Record(t.Context(), reader(rows), path)
	if err != nil {
		t.Fatal(err)
	}
	f, results := readAll(t, path)
	if !reflect.DeepEqual(f.Run, run) || run.Requests != 100 || len(results) != 100 || run.API != result.APIChat || run.Connections != PerRequest || run.HeldBack == 0 {
		t.Errorf("run %+v", run)
	}
	for i, r := range results {
		if r.RowID != int64(i) || r.Error != want[i%5] {
			t.Errorf("row %d: result %d, error %q, want %q", i, r.RowID, r.Error, want[i%5])
		}
		inOrder(t, "row", &r.DueNS, r.ReleasedNS, r.SentNS, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
	}
}
