package replay

import (
	"context"
	"testing"
	"time"

	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// An instant endpoint answers at once.
type instantly struct{ resulttest.Endpoint }

func (instantly) Prepare(int64, int32, *trace.Request, result.Prompter) (result.Call, error) {
	return fakeCall{}, nil
}

func (instantly) Fire(_ context.Context, s result.Shot, r *result.Result) {
	r.SentNS = trace.Ptr(int64(time.Since(s.Start)))
}

// discard takes Results.
type discard struct{ n int }

func (d *discard) Write(rows []result.Result) (int, error) { d.n += len(rows); return len(rows), nil }

// now is a pacer that waits for nothing.
type now struct{}

func (now) WaitUntil(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// BenchmarkRun is the cost of a request in the Runner itself: feeding,
// releasing and collecting.
func BenchmarkRun(b *testing.B) {
	rows := &trace.SliceReader[trace.Request]{Rows: make([]trace.Request, b.N)}
	r := &Runner{Endpoint: instantly{}, Pacer: func(time.Time) (pace.Pacer, error) { return now{}, nil }}
	var out discard
	b.ReportAllocs()
	b.ResetTimer()
	run, err := r.Run(b.Context(), rows, &out)
	if err != nil || out.n != b.N || run.Requests != int64(b.N) {
		b.Fatalf("%d results of %d, %v", out.n, b.N, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sends/s")
}
