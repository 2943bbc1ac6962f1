package page

import "math"

// lttb picks at most limit (3 or more) of the points (x[i], y[i]) so that a
// line through them looks like a line through all, and returns their indices in
// ascending order. The first and the last point are always among them.
//
// It is Largest-Triangle-Three-Buckets, after Sveinn Steinarsson, "Downsampling
// Time Series for Visual Representation" (University of Iceland, 2013), section
// 4.2: the inner points are split into limit-2 buckets of equal size, and from
// each the one is kept that spans the largest triangle with the point kept
// before and the mean of the bucket after. Peaks survive, which averaging or
// taking every n-th point would lose. One pass, no allocation but the result.
func lttb(x, y []float64, limit int) []int {
	n := len(x)
	if n <= limit {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	// start is where bucket b begins: 0 is the first point alone, limit-1 the last alone.
	start := func(b int) int {
		if b >= limit {
			return n
		}
		return (b-1)*(n-2)/(limit-2) + 1
	}
	kept := make([]int, 1, limit)
	for b := 1; b < limit-1; b++ {
		from, to, end := start(b), start(b+1), start(b+2)
		var mx, my float64
		for i := to; i < end; i++ {
			mx += x[i]
			my += y[i]
		}
		mx /= float64(end - to)
		my /= float64(end - to)

		a := kept[len(kept)-1]
		best, most := from, -1.0
		for i := from; i < to; i++ {
			area := math.Abs((x[a]-mx)*(y[i]-y[a]) - (x[a]-x[i])*(my-y[a]))
			if area > most {
				best, most = i, area
			}
		}
		kept = append(kept, best)
	}
	return append(kept, n-1)
}
