package report

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
)

// loop yields the same results over and over, n in all, each as a row of its own.
type loop struct {
	rows []result.Result
	n    int
}

func (l *loop) Read(rows []result.Result) (int, error) {
	n := min(len(rows), l.n)
	for i := range n {
		rows[i] = l.rows[(l.n-i)%len(l.rows)]
		rows[i].RowID = int64(l.n - i)
	}
	if l.n -= n; l.n == 0 {
		return n, io.EOF
	}
	return n, nil
}

func BenchmarkSummarise(b *testing.B) {
	for _, gaps := range []int{1, 128} {
		rng := rand.New(rand.NewPCG(1, 1))
		var rows []result.Result
		for i := range int64(1000) {
			events := []int64{20 + rng.Int64N(100)}
			for range gaps {
				events = append(events, events[len(events)-1]+1+rng.Int64N(20))
			}
			r := answer(i, i*10, rng.Int64N(2), events...)
			r.Category = trace.Categories()[i%5]
			rows = append(rows, r)
		}
		b.Run(fmt.Sprintf("gaps=%d", gaps), func(b *testing.B) {
			b.ReportAllocs()
			if _, err := Summarise(result.Run{Source: result.Source{ServerBlock: 16}}, &loop{rows, b.N}, Options{}); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "results/s")
		})
	}
}
