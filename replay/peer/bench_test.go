package peer

import (
	"io"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// inSequence is n requests, 13 ms apart and some 52 in flight, each with 64 gaps.
func inSequence(n int) report.Reread {
	events := []int64{30}
	for range 64 {
		events = append(events, events[len(events)-1]+10)
	}
	return func() trace.Reader[result.Result] {
		return &copies{n: int64(n), one: answer(0, 0, 0, events...)}
	}
}

// A copies reader yields n copies of a result, each 13 ms behind the one before.
type copies struct {
	n, i int64
	one  result.Result
}

func (q *copies) Read(rows []result.Result) (int, error) {
	n := int(min(int64(len(rows)), q.n-q.i))
	for i := range n {
		r, shift := q.one, q.i*13*msNS
		r.RowID, r.DueNS = q.i, shift
		for _, p := range []**int64{&r.SentNS, &r.HeadersNS, &r.FirstEventNS, &r.FirstTokenNS, &r.LastTokenNS, &r.DoneNS} {
			*p = trace.Ptr(**p + shift)
		}
		rows[i] = r
		q.i++
	}
	if q.i == q.n {
		return n, io.EOF
	}
	return n, nil
}

func BenchmarkPasses(b *testing.B) {
	for name, f := range map[string]func(report.Reread) error{
		"vllm": func(r report.Reread) error { return WriteVLLM(io.Discard, result.Run{}, r, VLLMOptions{}) },
		"vllm-detailed": func(r report.Reread) error {
			return WriteVLLM(io.Discard, result.Run{}, r, VLLMOptions{Detailed: true})
		},
		"aiperf": func(r report.Reread) error { _, err := Under("aiperf", result.Run{}, r, report.Options{}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			if err := f(inSequence(b.N)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "results/s")
		})
	}
}
