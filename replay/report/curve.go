package report

import (
	"reprise/replay/result"
	"reprise/trace"
)

const (
	maxBins  = 1 << 20
	firstBin = int64(1e6) // 1 ms
)

// A Curve holds how many requests began and ended in each bin of time: at most
// maxBins of equal width, 8 MB, which double in width as the run grows. How
// many were open is exact at the edges of the bins.
type Curve struct {
	width    int64
	up, down []int32
}

func (c *Curve) bin(ns int64) int64 {
	if c.width == 0 {
		c.width = firstBin
	}
	for ns/c.width >= maxBins {
		c.up, c.down = halve(c.up, add32), halve(c.down, add32)
		c.width *= 2
	}
	b := ns / c.width
	if n := int(b) + 1 - len(c.up); n > 0 {
		c.up = append(c.up, make([]int32, n)...)
		c.down = append(c.down, make([]int32, n)...)
	}
	return b
}

func add32(into *int32, n int32) { *into += n }

// halve joins the bins of a series by twos, in place.
func halve[T any](bins []T, join func(into *T, other T)) []T {
	half := (len(bins) + 1) / 2
	for i := range half {
		b := bins[2*i]
		if 2*i+1 < len(bins) {
			join(&b, bins[2*i+1])
		}
		bins[i] = b
	}
	return bins[:half]
}

// Add counts a request that was open from one instant to another, in nanoseconds
// since the run began.
func (c *Curve) Add(from, to int64) {
	last := c.bin(max(from, to)) // first, since it may change the width
	c.up[c.bin(from)]++
	c.down[last]++
}

// levels yields how many requests were open at the end of each bin.
func (c *Curve) levels(yield func(bin int, open int64) bool) {
	var open int64
	for i := range c.up {
		open += int64(c.up[i]) - int64(c.down[i])
		if !yield(i, open) {
			return
		}
	}
}

// Parts cuts the time of a curve into intervals of at most limit beginnings and
// ends, or of one bin.
func (c *Curve) Parts(limit int) []Interval {
	var out []Interval
	held, from := 0, int64(0)
	for i := range c.up {
		n := int(c.up[i]) + int(c.down[i])
		if at := int64(i) * c.width; held > 0 && held+n > limit {
			out = append(out, Interval{from, at})
			held, from = 0, at
		}
		held += n
	}
	return append(out, Interval{from, MaxInstant + 1})
}

// An Interval is a part of a run's time. Its end is not in it.
type Interval struct{ from, to int64 } // nanoseconds

// Contains tells whether an instant, in nanoseconds, is within the interval.
func (p Interval) Contains(ns int64) bool { return p.from <= ns && ns < p.to }

// Reread opens the results of a run from their beginning; it is called once
// for each pass over them.
type Reread func() trace.Reader[result.Result]
