package doc

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A chart is a plot as the script reads it: one entry of the embedded JSON.
type chart struct {
	Kind   string   `json:"k"`
	LogX   bool     `json:"lx,omitempty"`
	LogY   bool     `json:"ly,omitempty"`
	Zero   bool     `json:"z,omitempty"`
	XLabel string   `json:"xl"`
	XUnit  string   `json:"xu,omitempty"`
	XNames []string `json:"xn,omitempty"`
	YNames []string `json:"yn,omitempty"`
	YUnit  string   `json:"yu,omitempty"`
	Series []track  `json:"s"`
	Marks  []mark   `json:"m,omitempty"`
}

// A mark is a dashed line across the plot.
type mark struct {
	Axis   string  `json:"a"` // x or y
	At     float64 `json:"v"`
	Label  string  `json:"t,omitempty"`
	Series int     `json:"s,omitempty"` // among those that are drawn, from 1; 0 has the colour of the axis
	Margin bool    `json:"e,omitempty"` // the label is beside the end of the line, outside the axes
}

// A track is a drawn series. Bars have either upper edges (X is the lower one)
// or one width, on the axis, around X.
type track struct {
	Name  string   `json:"n"`
	X     numbers  `json:"x"`
	Y     numbers  `json:"y"`
	Hi    *numbers `json:"h,omitempty"`
	Width *numbers `json:"w,omitempty"`
	Tone  int      `json:"c,omitempty"`
	Thin  bool     `json:"t,omitempty"`
}

// numbers are written with so many significant digits; values that are not finite
// become null.
type numbers struct {
	v      []float64
	digits int
}

func (n numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, v := range n.v {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
			continue
		}
		b = strconv.AppendFloat(b, v, 'g', n.digits, 64)
	}
	return append(b, ']'), nil
}

// digits is how many significant digits values need so that about six of the
// axis between the least and the greatest survive: six, and as many more as the
// two have in common (instants within a day of Unix time, say); 17, which are exact, at most.
func digits(clouds []cloud, of func(cloud) []float64) int {
	lo, hi := bounds(clouds, of)
	if span := hi - lo; span > 0 {
		common := math.Floor(math.Log10(max(math.Abs(lo), math.Abs(hi)) / span))
		return min(max(6, 6+int(common)), 17)
	}
	return 6
}

// bounds are the least and the greatest finite value; +Inf and -Inf of none.
func bounds(clouds []cloud, of func(cloud) []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, c := range clouds {
		for _, v := range of(c) {
			if !math.IsNaN(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	return lo, hi
}

func xs(c cloud) []float64 { return slices.Concat(c.x, c.hi) }

func ys(c cloud) []float64 { return c.y }

// newChart prepares a plot. The chart has no series if there is nothing to
// draw. remarks tell what was left out; label describes the plot to readers who
// cannot see it.
func newChart(p *Plot) (c chart, remarks []string, label string) {
	spoken := kinds[p.Kind].name
	line, _, left := p.fitted()
	p, remarks = &line, left
	c = chart{Kind: kinds[p.Kind].code, LogX: p.LogX, LogY: p.LogY, Zero: p.Zero, XLabel: axis(p.XLabel, "X"),
		XUnit: p.XUnit, XNames: p.XNames, YNames: p.YNames, YUnit: p.YUnit}
	var clouds []cloud
	var names []string
	var from []*Series
	places := make([]int, len(p.Series)+1) // among the series that are drawn
	for i, s := range p.Series {
		name := axis(s.Name, axis(p.YLabel, "Y"))
		cl, l := clean(s, p.Kind, p.LogX, p.LogY)
		if l.placed > 0 {
			switch p.Kind {
			case Bars:
				cl = cl.fitBars(p.LogX)
			case Points:
				cl = cl.scatter(maxPoints, p.LogX, p.LogY)
			case Lanes:
			default:
				cl = cl.thin(maxPoints, p.LogX, p.LogY)
			}
			l.drawn = cl.placed()
			clouds = append(clouds, cl)
			names, from = append(names, name), append(from, &p.Series[i])
			places[i+1] = len(clouds)
		}
		remarks = append(remarks, l.remarks(name, p.Kind)...)
	}
	if len(clouds) == 0 {
		return c, remarks, ""
	}
	for _, m := range p.Marks {
		if m.At <= 0 && (m.Axis == AxisX && p.LogX || m.Axis == AxisY && p.LogY) ||
			m.Series > 0 && places[m.Series] == 0 {
			continue // the axis has no place for it, or the plot no such series
		}
		c.Marks = append(c.Marks, mark{[...]string{AxisX: "x", AxisY: "y"}[m.Axis], m.At, m.Label,
			places[m.Series], m.margin})
	}
	xd, yd := digits(clouds, xs), digits(clouds, ys)
	for i, cl := range clouds {
		t := track{Name: names[i], X: numbers{cl.x, xd}, Y: numbers{cl.y, yd}, Tone: from[i].Tone, Thin: from[i].Thin}
		switch {
		case cl.hi != nil:
			t.Hi = &numbers{cl.hi, xd}
		case p.Kind == Bars:
			t.Width = &numbers{[]float64{cl.barWidth(p.LogX)}, 6}
		}
		c.Series = append(c.Series, t)
	}
	// The label puts the plot into words for a screen reader.
	extent := func(label, otherwise, unit string, log bool, of func(cloud) []float64) string {
		s := titled(axis(label, otherwise), unit)
		if log {
			s += ", logarithmic"
		}
		lo, hi := bounds(clouds, of)
		return fmt.Sprintf("%s, from %s to %s", s, short(lo), short(hi))
	}
	across := extent(p.XLabel, "X", p.XUnit, p.LogX, xs)
	if len(p.XNames) > 0 {
		across = fmt.Sprintf("%s: %s", axis(p.XLabel, "X"), strings.Join(p.XNames, ", "))
	}
	up := extent(p.YLabel, "Y", p.YUnit, p.LogY, ys)
	if len(p.YNames) > 0 {
		up = fmt.Sprintf("%s: %s", axis(p.YLabel, "Y"), strings.Join(p.YNames, ", "))
	}
	label = fmt.Sprintf("%s. X axis: %s. Y axis: %s. Series: %s.", spoken, across, up, strings.Join(names, ", "))
	for _, m := range c.Marks {
		if m.Label != "" && spoken != kinds[CDF].name {
			label += fmt.Sprintf(" %s at %s.", m.Label, short(m.At))
		}
	}
	return c, remarks, label
}

// axis is the name of an axis or a series, or otherwise if it has none.
func axis(name, otherwise string) string { return cmp.Or(name, otherwise) }

// remarks are the sentences under the plot.
func (l loss) remarks(name string, k Kind) []string {
	var out []string
	if l.placed == 0 {
		out = append(out, fmt.Sprintf("%s: no data.", name))
	}
	if l.logs > 0 {
		out = append(out, fmt.Sprintf("%s: %s of %s values are not shown, because a logarithmic axis has no place "+
			"for zero or less.",
			name, Count(int64(l.logs)), Count(int64(l.given))))
	}
	if l.noX > 0 {
		out = append(out, fmt.Sprintf("%s: %s of %s values have no place on the X axis.", name, Count(int64(l.noX)),
			Count(int64(l.given))))
	}
	if l.noY > 0 && l.placed > 0 {
		out = append(out, fmt.Sprintf("%s: %s of %s values are missing.", name, Count(int64(l.noY)),
			Count(int64(l.given))))
	}
	switch {
	case l.drawn == l.placed:
	case k == Bars:
		out = append(out, fmt.Sprintf("%s: %s bars are drawn as %s; neighbours are added together.", name,
			Count(int64(l.placed)), Count(int64(l.drawn))))
	case k == Points:
		out = append(out, fmt.Sprintf("%s: %s of %s points are drawn: an even choice, and the outliers.", name,
			Count(int64(l.drawn)), Count(int64(l.placed))))
	default:
		out = append(out, fmt.Sprintf("%s: %s of %s points are drawn, chosen to keep the shape (LTTB).", name,
			Count(int64(l.drawn)), Count(int64(l.placed))))
	}
	return out
}

// titled is an axis label with its unit.
func titled(label, unit string) string {
	if label == "" || unit == "" {
		return label + unit
	}
	return label + " (" + unit + ")"
}

// short writes a number with four significant digits, as people write them.
func short(v float64) string {
	s := strconv.FormatFloat(v, 'g', 4, 64)
	if a := math.Abs(v); a >= 1e-4 && a < 1e9 {
		if r, err := strconv.ParseFloat(s, 64); err == nil {
			return strconv.FormatFloat(r, 'f', -1, 64)
		}
	}
	return s
}
