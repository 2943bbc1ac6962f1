package synth

import (
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// A workload of a model of too few requests says so with their number, and so does its comparison
// with the trace; one of enough does not.
func TestFewRequests(t *testing.T) {
	longtest.Skip(t)
	for n, few := range map[int]bool{FewRequests - 1: true, FewRequests: false} {
		rows := make([]trace.Request, n)
		for i := range rows {
			rows[i] = trace.Request{ArrivalNS: int64(i) * 1e8, InputTokens: int32(8 + i%40), OutputTokens: trace.Ptr(int32(5 + i%7)), Blocks: []uint64{uint64(i), uint64(i + n), uint64(i + 2*n)}[:(8+i%40+15)/16]}
		}
		meta := trace.Meta{BlockSize: 16, Convention: trace.PartialTail, Tier: "internal"}
		for _, k := range []int{1, 10} {
			m, err := Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, FitOptions{KSwap: k})
			if err != nil {
				t.Fatal(err)
			}
			if m.few() != few {
				t.Errorf("%d requests, k %d: few is %t", n, k, m.few())
			}
			w, err := m.Generate(t.Context(), Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Meta().SourceFormat; strings.Contains(got, "fitted to 1999 requests (few: below 2000)") != few {
				t.Errorf("%d requests: %s", n, got)
			}
			if k == 1 {
				continue
			}
			f := Compared(t, meta, rows, w.Meta(), readAll(t, w.Reader()))
			warned := false
			for _, w := range f.Warnings {
				warned = warned || w.Code == "few_requests" && strings.Contains(w.Message, "1,999 requests")
			}
			if warned != few {
				t.Errorf("%d requests: %+v", n, f.Warnings)
			}
		}
	}
}
