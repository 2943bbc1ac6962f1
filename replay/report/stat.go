package report

import (
	"math"

	"reprise/trace/sample"
)

// Rounded cuts v to steps of 1/per, so that the last bits of a division do not reach a
// file. What is not finite becomes nil.
func Rounded(v, per float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if math.Abs(v) < 1e9 { // beyond, the step may be finer than a float64
		v = math.Round(v*per) / per
	}
	return &v
}

// milliseconds converts nanoseconds, whole to the nanosecond.
func milliseconds(ns float64) *float64 { return Rounded(ns/1e6, 1e6) }

// Seconds converts nanoseconds, whole to the nanosecond. It is never nil.
func Seconds(ns int64) *float64 { return Rounded(float64(ns)/1e9, 1e9) }

// Ratio is a/b rounded to nine decimals, nil where b is 0.
func Ratio(a, b int64) *float64 {
	if b == 0 {
		return nil
	}
	return Rounded(float64(a)/float64(b), 1e9)
}

// PerSecond is the rate of n in ns nanoseconds, nil where there is no time.
func PerSecond(n, ns int64) *float64 {
	if ns <= 0 {
		return nil
	}
	return Rounded(float64(n)/float64(ns)*1e9, 1e6)
}

// percentiles are those of a [Stat], in thousandths.
var percentiles = [...]struct {
	name   string
	per    int64 // thousandths
	needed int64 // samples: 1/(1−p)
	of     func(*Stat) **float64
}{
	{"p50", 500, 2, func(s *Stat) **float64 { return &s.P50 }},
	{"p90", 900, 10, func(s *Stat) **float64 { return &s.P90 }},
	{"p95", 950, 20, func(s *Stat) **float64 { return &s.P95 }},
	{"p99", 990, 100, func(s *Stat) **float64 { return &s.P99 }},
	{"p99.9", 999, 1000, func(s *Stat) **float64 { return &s.P999 }},
}

// StatOf describes values, given in nanoseconds, and returns their order statistics.
// Nothing may be added to s after.
func StatOf(s *sample.Values) (Stat, sample.Order) {
	q := s.Order()
	out := Stat{Count: s.N, Method: hdr}
	if q.Exact {
		out.Method = exact
	}
	if s.N == 0 {
		return out, q
	}
	out.Mean = milliseconds(s.Mean())
	out.Min, out.Max = milliseconds(float64(s.Min)), milliseconds(float64(s.Max))
	if s.N > 1 {
		out.SD = milliseconds(s.SD())
	}
	for _, p := range percentiles {
		if s.N >= p.needed {
			*p.of(&out) = milliseconds(float64(q.At(p.per, 1000)))
		}
	}
	if out.P99 != nil && *out.P50 > 0 {
		out.TailRatio = Rounded(*out.P99 / *out.P50, 1e6)
	}
	return out, q
}

// addSpan adds a duration where there is one.
func addSpan(to *sample.Values, d Span) {
	if d.OK {
		to.Add(d.NS)
	}
}

// distributionOf returns points of the cumulative distribution of nanoseconds for a
// plot: x in milliseconds and the share of values up to it. It takes every half
// percent, and beyond 99.5 % ever smaller steps as far as the sample reaches, so about
// 260 points however many values there are.
func distributionOf(q *sample.Order, atLeastMS float64) (x, y []float64) {
	if q.N == 0 {
		return nil, nil
	}
	const den = 1_000_000
	point := func(num int64) {
		x = append(x, max(float64(q.At(num, den))/1e6, atLeastMS))
		y = append(y, float64(num)/den)
	}
	for num := int64(0); num <= 995_000; num += 5_000 {
		point(num)
	}
	for rest := int64(4_500); rest >= 1; rest = rest * 9 / 10 {
		if rest*q.N < den {
			break
		}
		point(den - rest)
	}
	point(den)
	return x, y
}
