package doc

import (
	"cmp"
	"math"
	"slices"
)

const (
	maxPoints = 2000 // of a drawn series; more than the pixels of a wide screen
	maxBars   = 500  // of a drawn histogram: two pixels each on a wide screen
)

// A cloud is a cleaned series, in ascending X. In lines and steps a NaN Y is a
// break. hi is nil except for bars with edges.
type cloud struct{ x, y, hi []float64 }

// A loss counts the points of a series that are not drawn, by reason.
type loss struct {
	given  int // points of the series
	placed int // points left in the cloud, breaks not counted
	noX    int // without an X or, for bars, without a width
	noY    int // without a Y
	logs   int // at zero or less on a logarithmic axis
	drawn  int // points after thinning
}

// finite reports whether v can be drawn: uPlot writes no axis for more than 17
// digits.
func finite(v float64) bool { return math.Abs(v) <= 1e16 }

// flush rounds values below 1e-100 to zero, which bounds the span of a logarithmic
// axis.
func flush(v float64) float64 {
	if math.Abs(v) < 1e-100 {
		return 0
	}
	return v
}

// clean copies the points of s that can be drawn and sorts them by X.
func clean(s Series, k Kind, logX, logY bool) (cloud, loss) {
	var c cloud
	l := loss{given: len(s.X)}
	for i, x := range s.X {
		x, y, hi := flush(x), flush(s.Y[i]), math.Inf(1)
		if s.Hi != nil {
			hi = s.Hi[i]
		}
		switch {
		case !finite(x), s.Hi != nil && (!finite(hi) || hi <= x):
			l.noX++
			continue
		case logX && x <= 0, logY && finite(y) && y <= 0:
			l.logs++
			continue
		case !finite(y):
			l.noY++
			if k == Bars || k == Points {
				continue
			}
			y = math.NaN()
		}
		c.x = append(c.x, x)
		c.y = append(c.y, y)
		if s.Hi != nil {
			c.hi = append(c.hi, hi)
		}
	}
	if !slices.IsSorted(c.x) {
		// Points with equal X keep their order, so that the steps of a CDF do.
		order := make([]int, len(c.x))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.x[a], c.x[b]) })
		c.x, c.y, c.hi = pick(c.x, order), pick(c.y, order), pick(c.hi, order)
	}
	l.placed = c.placed()
	return c, l
}

// placed counts the points; breaks are none.
func (c cloud) placed() int {
	n := 0
	for _, y := range c.y {
		if !math.IsNaN(y) {
			n++
		}
	}
	return n
}

// pick returns v at the given indices; nil stays nil.
func pick(v []float64, at []int) []float64 {
	if v == nil {
		return nil
	}
	out := make([]float64, len(at))
	for i, j := range at {
		out[i] = v[j]
	}
	return out
}

// scatter thins a cloud of points to at most limit of them. LTTB alone would keep
// the rim of the cloud and empty its middle, and show two bands where there is
// one. So half of the points are every n-th, which keep the density, and half
// are those of LTTB, which keep the outliers.
func (c cloud) scatter(limit int, logX, logY bool) cloud {
	n := len(c.x)
	if n <= limit {
		return c
	}
	kept := lttb(scaled(c.x, logX), scaled(c.y, logY), limit/2)
	for i := range limit / 2 {
		kept = append(kept, i*n/(limit/2))
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	return cloud{x: pick(c.x, kept), y: pick(c.y, kept)}
}

// thin cuts a line to at most limit points with LTTB, computed in the space of
// the axes, so that on a logarithmic axis small values count.
// Breaks are put back between kept points where most of what lay between them
// was missing; shorter ones would not be visible at this density.
func (c cloud) thin(limit int, logX, logY bool) cloud {
	var at []int // the points that are not breaks
	for i, y := range c.y {
		if !math.IsNaN(y) {
			at = append(at, i)
		}
	}
	kept := lttb(scaled(pick(c.x, at), logX), scaled(pick(c.y, at), logY), limit)

	var out cloud
	for j, k := range kept {
		if j > 0 {
			a, b := at[kept[j-1]], at[k]
			between, present := b-a-1, k-kept[j-1]-1
			if missing := between - present; 2*missing > between {
				gap := a + 1
				for !math.IsNaN(c.y[gap]) {
					gap++
				}
				out.x = append(out.x, c.x[gap])
				out.y = append(out.y, math.NaN())
			}
		}
		out.x = append(out.x, c.x[at[k]])
		out.y = append(out.y, c.y[at[k]])
	}
	return out
}

// scaled maps values, which are positive if log is set, to where they lie on the axis.
func scaled(v []float64, log bool) []float64 {
	if !log {
		return v
	}
	out := make([]float64, len(v))
	for i := range v {
		out[i] = math.Log10(v[i])
	}
	return out
}

// barWidth is the width on the axis (on a logarithmic one: in decades) of bars
// that are centred on their X: the smallest distance of two neighbours.
func (c cloud) barWidth(log bool) float64 {
	at := scaled(c.x, log)
	width := math.Inf(1)
	for i := 1; i < len(at); i++ {
		if d := at[i] - at[i-1]; d > 0 {
			width = min(width, d)
		}
	}
	switch {
	case !math.IsInf(width, 1):
		return width
	case log:
		return 0.1
	}
	return 1
}

// fitBars merges neighbouring bars if there are more than maxBars: those whose
// middles fall into the same one of maxBars equal parts of the axis are added up.
// It does not use LTTB, because a histogram that lost bars would no longer add
// up. Only neighbours within a part are merged, so that lone bars of a long tail
// stay narrow.
func (c cloud) fitBars(log bool) cloud {
	if len(c.x) <= maxBars {
		return c
	}
	if c.hi == nil { // give centred bars their two edges
		half := c.barWidth(log) / 2
		edged := cloud{y: c.y, x: make([]float64, len(c.x)), hi: make([]float64, len(c.x))}
		for i, x := range c.x {
			if log {
				edged.x[i], edged.hi[i] = x*math.Pow(10, -half), x*math.Pow(10, half)
			} else {
				edged.x[i], edged.hi[i] = x-half, x+half
			}
		}
		c = edged
	}
	lo, hi := scaled(c.x, log), scaled(c.hi, log)
	first := lo[0]
	part := (slices.Max(hi) - first) / maxBars
	var out cloud
	last := -1
	for i := range lo {
		p := int(((lo[i]+hi[i])/2 - first) / part)
		p = max(last, min(p, maxBars-1)) // max: overlapping bars may step back
		if p == last {
			j := len(out.y) - 1
			out.y[j] += c.y[i]
			out.hi[j] = max(out.hi[j], c.hi[i])
			continue
		}
		last = p
		out.x = append(out.x, c.x[i])
		out.hi = append(out.hi, c.hi[i])
		out.y = append(out.y, c.y[i])
	}
	return out
}

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
