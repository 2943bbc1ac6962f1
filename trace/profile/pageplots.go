package profile

import (
	"math"
	"math/bits"

	"reprise/trace/doc"
)

// binEdge is the n-th lower edge of a bin, four to each doubling: 2^(n/4) rounded
// to the edge of a bucket, so that every bucket lies in one bin. Below 16 it is
// rounded up, which makes bins of whole numbers as even as they can be; those
// that hold none have two edges that coincide.
func binEdge(n int) int64 {
	edge := [...]int64{64, 76, 91, 108}[n%4]
	switch shift := n/4 - 6; {
	case shift < -2:
		return (edge + 1<<-shift - 1) >> -shift
	case shift < 0:
		return (edge + 1<<(-shift-1)) >> -shift
	case shift > 56:
		return math.MaxInt64
	default:
		return edge << shift
	}
}

// binOf is the last bin that begins at or below v, which is above 0.
func binOf(v int64) int {
	n := 4*bits.Len64(uint64(v)) - 1
	for binEdge(n) > v {
		n--
	}
	return n
}

// bars is a histogram for a logarithmic axis in units of per, with four bars to
// each doubling. Values of 0 have no place there; their share is returned.
func (h *sheet) bars(name, metric string, per float64) (s doc.Series, zeros float64) {
	s.Name = name
	last := -1
	var none, all int64
	for _, b := range h.buckets[histogramKey{metric, ""}] {
		all += b.Count
		if b.Lo <= 0 {
			none += b.Count
			continue
		}
		if n := binOf(b.Lo); n != last {
			last = n
			s.X, s.Hi, s.Y = append(s.X, float64(binEdge(n))/per),
				append(s.Hi, float64(binEdge(n+1))/per), append(s.Y, 0)
		}
		s.Y[len(s.Y)-1] += float64(b.Count)
	}
	return s, ratio(none, all)
}

// histogram is a plot of the values of a metric in units of per. what are the
// values, such as gaps.
func (h *sheet) histogram(title, metric, what, label, unit string, per float64) doc.Plot {
	series, zeros := h.bars(what, metric, per)
	about := "Four bars to each doubling."
	if zeros > 0 {
		some := doc.Percent(zeros)
		if zeros < 0.0005 {
			some = "under 0.1 %"
		}
		about += " Values of 0, " + some + " of all, have no place on this axis."
	}
	return doc.Plot{Title: title, Text: about, Kind: doc.Bars, LogX: true,
		XLabel: label, XUnit: unit, YLabel: what, Series: []doc.Series{series}}
}

// cdf is the share of values at or below each. The values are in units of per.
func (h *sheet) cdf(name, metric, category string, per float64) doc.Series {
	s := doc.Series{Name: name}
	list := h.buckets[histogramKey{metric, category}]
	for _, b := range list {
		s.N += b.Count
	}
	var sum int64
	for _, b := range list {
		sum += b.Count
		s.X, s.Y = append(s.X, float64(b.Hi-1)/per), append(s.Y, ratio(sum, s.N))
	}
	return s
}

// cumulative is a plot of such curves.
func cumulative(title, about, label, unit string, series ...doc.Series) doc.Plot {
	return doc.Plot{Title: title, Text: about, Kind: doc.CDF, XLabel: label, XUnit: unit,
		YLabel: "share at most", Series: series}
}

// quantile is the middle of the bucket that the value at p lies in, as near as
// 1 %; NaN when there are none.
func (h *sheet) quantile(metric string, p float64) float64 {
	list := h.buckets[histogramKey{metric, ""}]
	var all, sum int64
	for _, b := range list {
		all += b.Count
	}
	for _, b := range list {
		if sum += b.Count; float64(sum) >= p*float64(all) {
			return (float64(b.Lo) + float64(b.Hi-1)) / 2
		}
	}
	return math.NaN()
}

// series is a value of each bin of time, up to the end of the last one that has
// it. One that is missing before that is a break.
func (h *sheet) series(name string, of func(*TimeBin) *float64) doc.Series {
	s := doc.Series{Name: name}
	if h.OverTime == nil || len(h.OverTime.Bins) < 2 {
		return s
	}
	end, last := 0, 0.0 // of the points up to the last value
	for i := range h.OverTime.Bins {
		b := &h.OverTime.Bins[i]
		y := math.NaN()
		if v := of(b); v != nil {
			y, end, last = *v, i+1, b.EndS
		}
		s.X, s.Y = append(s.X, b.StartS), append(s.Y, y)
	}
	if end == 0 {
		return doc.Series{Name: name}
	}
	s.X, s.Y = append(s.X[:end], last), append(s.Y[:end], s.Y[end-1])
	return s
}

// overTimePlot is a plot of such series.
func overTimePlot(title, about, label, unit string, series ...doc.Series) doc.Plot {
	return doc.Plot{Title: title, Text: about, Kind: doc.Step,
		XLabel: "time since the first arrival", XUnit: "s", YLabel: label, YUnit: unit, Series: series}
}
