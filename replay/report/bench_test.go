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

func BenchmarkPage(b *testing.B) {
	run, results, opts := smallRun()
	s, err := Summarise(run, &trace.SliceReader[result.Result]{Rows: results}, opts)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Page(s).Write(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// inARow is n requests, 13 ms apart and some 52 in flight, each with 64 gaps.
func inARow(n int) Reread {
	events := []int64{30}
	for range 64 {
		events = append(events, events[len(events)-1]+10)
	}
	return func() trace.Reader[result.Result] { return &queue{n: int64(n), one: answer(0, 0, 0, events...)} }
}

// A queue yields n copies of a result, each 13 ms behind the one before.
type queue struct {
	n, i int64
	one  result.Result
}

func (q *queue) Read(rows []result.Result) (int, error) {
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

func BenchmarkSteady(b *testing.B) {
	if _, err := findSteady(result.Run{}, inARow(b.N), Options{}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "results/s")
}

// BenchmarkSessions is what the figures by session add to a summary, for each result of
// 12,000: a third of them alone in their session, the others in trees of nine.
func BenchmarkSessions(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var rows []result.Result
	for len(rows) < 12_000 {
		tree := playedTree(rng, 1+8*rng.IntN(2), true, 1)
		for i := range tree {
			r := &tree[i]
			for j := range r.Parents {
				r.Parents[j] += int64(len(rows)) - 3
			}
			r.RowID, r.Session = int64(len(rows)+i), trace.Ptr(int64(len(rows)))
			r.Input, r.Cached, r.Output = trace.Ptr(int32(900)), trace.Ptr(int32(512)), trace.Ptr(int32(40))
		}
		rows = append(rows, tree...)
	}
	b.ReportAllocs()
	for b.Loop() {
		c := newCollector(result.Run{Load: result.Load{Speed: 1}}, Options{Exact: DefaultExact})
		for i := range rows {
			c.sessions.add(&rows[i], Succeeded, false, false, 0)
		}
		c.bySession(&Summary{}, false)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/result")
}
