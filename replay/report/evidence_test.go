package report

import (
	"testing"

	"reprise/replay/figure"
)

// Evidence keeps what it was asked for, once, and no more values exactly than it may.
func TestEvidenceMemory(t *testing.T) {
	e := &Evidence{exact: 3}
	e.Keep(Timing{figure.TTFT, FromDue})
	e.Keep(Timing{figure.TTFT, FromDue})
	if len(e.latencies) != 1 || e.Values(Timing{figure.TTFT, FromSent}) != nil {
		t.Errorf("%d latencies are kept", len(e.latencies))
	}
	for i := range int64(50) {
		r := answer(i, 0, 0, 10, 20)
		d := Derive(&r)
		e.Add(&r, &d)
	}
	if q := e.Values(Timing{figure.TTFT, FromDue}).Order(); q.Exact || q.N != 50 {
		t.Errorf("%d values, exactly: %v", q.N, q.Exact)
	}
}
