package profile

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/trace/doc"
)

// A sheet is what a page is made of.
type sheet struct {
	*Summary
	buckets map[histogramKey][]Bucket
}

// warned tells whether the summary has a warning of that code.
func (h *sheet) warned(code string) bool {
	return slices.ContainsFunc(h.Warnings, func(w Warning) bool { return w.Code == code })
}

// asSentence begins a clause with a capital and ends it with a full stop.
func asSentence(clause string) string {
	if clause == "" || strings.HasSuffix(clause, ".") {
		return clause
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}

// figure prints v for prose: three significant digits, or all that are before
// the point, with thousands apart and without zeros at the end.
func figure(v float64) string {
	size := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case size >= 99.95:
		return doc.Fixed(v, 0)
	case size < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	places := max(0, 2-int(math.Floor(math.Log10(size))))
	text := doc.Fixed(v, places)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// compact prints a large count in millions or billions.
func compact(n int64) string {
	switch {
	case n >= 1e9:
		return doc.Fixed(float64(n)/1e9, 2) + " G"
	case n >= 1e6:
		return doc.Fixed(float64(n)/1e6, 1) + " M"
	}
	return doc.Count(n)
}

// lasting prints a time in seconds in the unit that suits it.
func lasting(s float64) string {
	switch size := math.Abs(s); {
	case size == 0:
		return "0 s"
	case size < 0.9995e-3:
		return figure(s*1e6) + " µs"
	case size < 0.9995:
		return figure(s*1e3) + " ms"
	case size < 120:
		return figure(s) + " s"
	case size < 2*3600:
		return figure(s/60) + " min"
	case size < 48*3600:
		return figure(s/3600) + " h"
	}
	return figure(s/86400) + " days"
}

// often prints a rate of requests, of 1/s, over the time in which there are some.
func often(perS float64) string {
	rate, unit := perS, "s"
	for _, longer := range []struct {
		times float64
		unit  string
	}{{60, "min"}, {60, "h"}, {24, "day"}} {
		if rate >= 0.1 {
			break
		}
		rate, unit = rate*longer.times, longer.unit
	}
	return figure(rate) + " requests/" + unit
}

// shareBar draws a share from 0 to 1 as a line of text.
func shareBar(v float64) string {
	const columns = 24
	return strings.Repeat("━", int(math.Round(min(max(v, 0), 1)*columns)))
}

// ratio is part/whole, and 0 without a whole.
func ratio(part, whole int64) float64 {
	if r := share(part, whole); r != nil {
		return *r
	}
	return 0
}

// statsTable lists distributions, those that there are, one a row.
func statsTable(caption string, print func(float64) string, list ...namedStats) []doc.Table {
	t := doc.Table{Caption: caption, Head: []string{"", "count", "mean", "sd", "min", "p50", "p90", "p95",
		"p99", "p99.9", "max"}}
	for _, s := range list {
		if s.Stats == nil {
			continue
		}
		row := []string{s.name, doc.Count(s.Count), print(s.Mean), doc.OrDash(s.SD, print)}
		for _, v := range []float64{s.Min, s.P50, s.P90, s.P95, s.P99, s.P999, s.Max} {
			row = append(row, print(v))
		}
		t.Rows = append(t.Rows, row)
	}
	if t.Rows == nil {
		return nil
	}
	return []doc.Table{t}
}
