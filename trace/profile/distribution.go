package profile

import (
	"maps"
	"math"
	"slices"
)

// Stats describes values of one unit, which the name of the field that holds it
// tells. Quantiles are exact order statistics with linear interpolation, as
// numpy's default: with n sorted values, at rank p·(n−1). They describe the
// whole trace and not a sample of it, so they are given however few values
// there are.
type Stats struct {
	Count int64    `json:"count"`
	Mean  float64  `json:"mean"`
	SD    *float64 `json:"sd"` // of a sample (n−1); null below two values
	Min   float64  `json:"min"`
	P50   float64  `json:"p50"`
	P90   float64  `json:"p90"`
	P95   float64  `json:"p95"`
	P99   float64  `json:"p99"`
	P999  float64  `json:"p99_9"`
	Max   float64  `json:"max"`
	// Approximate is set when there were too many distinct values to keep them
	// all: quantiles are then within 1 %. Mean and sd are exact always.
	Approximate bool `json:"approximate,omitempty"`
}

// exactValues is how many distinct values a distribution of times keeps. Beyond
// it the quantiles come from a log-linear histogram. As map entries they take
// about 20 MB.
const exactValues = 1 << 19

// nearValues is up to where a distribution counts values in a slice.
const nearValues = 1 << 16

// A distribution counts values that are not negative by their exact value, so
// its memory follows the distinct values and not the rows. The zero
// distribution is empty and keeps any number of distinct values.
type distribution struct {
	limit  int // distinct values from nearValues up to keep; 0 is without limit
	near   []int64
	far    map[int64]int64
	coarse *Histogram // in place of near and far, above limit

	n, total, max int64
	min           int64
	mean, m2      float64 // Welford's running mean and sum of squared deviations
}

func (d *distribution) add(v int64) { d.addTimes(v, 1) }

// addTimes counts a value several times.
func (d *distribution) addTimes(v, times int64) {
	if d.n == 0 || v < d.min {
		d.min = v
	}
	d.max = max(d.max, v)
	d.n += times
	d.total += v * times
	delta := float64(v) - d.mean
	d.mean += delta * float64(times) / float64(d.n)
	d.m2 += delta * (float64(v) - d.mean) * float64(times)
	switch {
	case d.coarse != nil:
		d.coarse.Add(v, times)
	case v < nearValues:
		if n := int(v) + 1 - len(d.near); n > 0 {
			d.near = append(d.near, make([]int64, n)...)
		}
		d.near[v] += times
	default:
		if d.far == nil {
			d.far = map[int64]int64{}
		}
		d.far[v] += times
		if d.limit == 0 || len(d.far) <= d.limit {
			return
		}
		d.coarse = &Histogram{}
		for v, n := range d.far {
			d.coarse.Add(v, n)
		}
		for v, n := range d.near {
			d.coarse.Add(int64(v), n)
		}
		d.near, d.far = nil, nil
	}
}

// sd returns the sample standard deviation, or nil below two values.
func (d *distribution) sd() *float64 {
	if d.n < 2 {
		return nil
	}
	return new(math.Sqrt(d.m2 / float64(d.n-1)))
}

// A valueCount is a value and how often it came.
type valueCount struct {
	v float64
	n int64
}

// sorted returns the values in ascending order: the middles of buckets when the
// distribution is coarse.
func (d *distribution) sorted() []valueCount {
	var list []valueCount
	if d.coarse != nil {
		for _, b := range d.coarse.Buckets() {
			middle := (float64(b.Lo) + float64(b.Hi-1)) / 2
			list = append(list, valueCount{min(max(middle, float64(d.min)), float64(d.max)), b.Count})
		}
		return list
	}
	for v, n := range d.near {
		if n > 0 {
			list = append(list, valueCount{float64(v), n})
		}
	}
	for _, v := range slices.Sorted(maps.Keys(d.far)) {
		list = append(list, valueCount{float64(v), d.far[v]})
	}
	return list
}

// stats summarises the values in units of per, or returns nil when there are
// none.
func (d *distribution) stats(per float64) *Stats {
	if d.n == 0 {
		return nil
	}
	q := quantiles(d.sorted(), d.n, 0.5, 0.9, 0.95, 0.99, 0.999)
	s := &Stats{Count: d.n, Mean: d.mean / per, SD: d.sd(), Min: float64(d.min) / per, Max: float64(d.max) / per,
		P50: q[0] / per, P90: q[1] / per, P95: q[2] / per, P99: q[3] / per, P999: q[4] / per,
		Approximate: d.coarse != nil}
	if s.SD != nil {
		*s.SD /= per
	}
	return s
}

// quantiles returns the quantiles at ascending ps of n > 0 sorted values.
func quantiles(sorted []valueCount, n int64, ps ...float64) []float64 {
	out := make([]float64, len(ps))
	i, before := 0, int64(0) // before: values in front of sorted[i]
	for j, p := range ps {
		rank := float64(n-1) * p
		k := int64(rank)
		for k >= before+sorted[i].n {
			before += sorted[i].n
			i++
		}
		low, high := sorted[i].v, sorted[i].v
		if k+1 >= before+sorted[i].n && i+1 < len(sorted) {
			high = sorted[i+1].v
		}
		out[j] = low + (rank-float64(k))*(high-low)
	}
	return out
}
