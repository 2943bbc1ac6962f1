package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// A crowd yields n results, 1 ms apart, with latencies from lognormal
// distributions and two gaps each. It keeps what exact percentiles need.
type crowd struct {
	n, i            int64
	rng             *rand.Rand
	keep            bool
	ttft, e2e, gaps []int64
	peak            uint64 // of the heap
}

func newCrowd(n int64, keep bool) *crowd {
	return &crowd{n: n, keep: keep, rng: rand.New(rand.NewPCG(1, 2))}
}

func (c *crowd) Read(rows []result.Result) (int, error) {
	for k := range rows {
		if c.i == c.n {
			return k, io.EOF
		}
		rows[k] = c.next()
		if c.i++; c.i%1_000_000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			c.peak = max(c.peak, m.HeapSys-m.HeapReleased)
		}
	}
	return len(rows), nil
}

func (c *crowd) next() result.Result {
	normal := func(median, sigma float64) int64 { return int64(median * 1e6 * math.Exp(sigma*c.rng.NormFloat64())) }
	due := c.i * msNS
	sent := due + normal(0.1, 1)
	first := sent + normal(200, 0.8)
	gaps := []int64{normal(20, 0.5), normal(20, 0.5)}
	last := first + gaps[0] + gaps[1]
	if c.keep {
		c.ttft, c.e2e, c.gaps = append(c.ttft, first-sent), append(c.e2e, last-sent), append(c.gaps, gaps...)
	}
	prompt, output := int32(normal(1000, 1)/1e6+1), int32(3)
	return result.Result{
		RowID: c.i, Category: trace.Categories()[c.i%5], Class: []string{"batch", "chat"}[c.i%2], DueNS: due, SentNS: &sent, HeadersNS: &first,
		FirstEventNS: &first, FirstTokenNS: &first, LastTokenNS: &last, DoneNS: &last,
		WantInput: prompt, Input: &prompt, WantOutput: trace.Ptr(output), Output: &output, OutputFrom: result.FromUsage, Events: 3, GapsNS: gaps,
	}
}

// holdPercentiles holds the percentiles of a summary against those of the values.
func holdPercentiles(t testing.TB, s *Summary, c *crowd) {
	t.Helper()
	for _, m := range []struct {
		name   string
		stat   *Stat
		values []int64
	}{{"TTFT", &s.Latency.FromSent.TTFT, c.ttft}, {"E2E", &s.Latency.FromSent.E2E, c.e2e}, {"ITL", &s.Latency.ITLChunk, c.gaps}} {
		if m.stat.Method != hdr {
			t.Errorf("%s: %s; the bound is not tried", m.name, m.stat.Method)
		}
		slices.Sort(m.values)
		exact := sample.Sorted(m.values)
		for _, p := range percentiles {
			want, got := float64(exact.At(p.per, 1000))/1e6, **p.of(m.stat)
			if off := math.Abs(got-want) / want; off > 0.001 {
				t.Errorf("%s %s: %v, exactly %v: %.3f %% off", m.name, p.name, got, want, 100*off)
			}
		}
	}
}

// Beyond the values that are kept exactly, percentiles are within 0.1 %.
func TestPercentilesOfMany(t *testing.T) {
	c := newCrowd(200_000, true)
	s, err := Summarise(result.Run{}, c, Options{Exact: 1000})
	if err != nil {
		t.Fatal(err)
	}
	holdPercentiles(t, &s, c)
}

// A page of 100,000 requests stays far below 3 MB.
func TestPageSize(t *testing.T) {
	s, err := Summarise(result.Run{Source: result.Source{ServerBlock: 16}}, newCrowd(100_000, false), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var one, many bytes.Buffer
	if err := Page(s).Write(&one); err != nil {
		t.Fatal(err)
	}
	var runs []Named
	for i := range 8 {
		runs = append(runs, Named{fmt.Sprint("run ", i), s})
	}
	if err := Overlay(runs).Write(&many); err != nil {
		t.Fatal(err)
	}
	if one.Len() > 500_000 || many.Len() > 3_000_000 {
		t.Errorf("%d bytes of one run, %d of eight", one.Len(), many.Len())
	}
	t.Logf("%d bytes of one run, %d of eight", one.Len(), many.Len())
}

// BenchmarkTenMillion reads ten million results, holds their percentiles within
// 0.1 % of the exact ones, and reports the heap. It takes most of a minute:
//
//	go test ./replay/report -run - -bench TenMillion -benchtime 1x
func BenchmarkTenMillion(b *testing.B) {
	for b.Loop() {
		c := newCrowd(10_000_000, false)
		s, err := Summarise(result.Run{}, c, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(c.peak)/1e6, "heap-MB")
		again := newCrowd(10_000_000, true)
		for range again.n {
			again.next()
			again.i++
		}
		holdPercentiles(b, &s, again)
	}
}
