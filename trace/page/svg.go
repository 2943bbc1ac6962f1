package page

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// The drawing of a plot as SVG, in its own units.
const (
	svgWidth  = 760.0
	svgPlot   = 300.0 // height of the part within the axes
	svgLane   = 22.0  // of a lane
	svgLeft   = 64.0
	svgRight  = 30.0
	svgLetter = 6.6 // mean width of a letter at 12 units
)

// Half of the height of bars in lanes, as shares of a lane.
const (
	laneThick = 0.36
	laneThin  = 0.1
)

// errNoData is the error for a plot without a point.
var errNoData = errors.New("page: the plot has no data")

// WriteSVG draws the plot as an image of its own, in one call of w.Write: the
// points that the page would draw, on axes with the same marks. It follows the
// reader's light or dark scheme. A plot without a point is an error, and nothing
// is written.
func (p *Plot) WriteSVG(w io.Writer) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("page: plot: %w", err)
	}
	c, _, label := newChart(p)
	if len(c.Series) == 0 {
		return errNoData
	}
	line, _, _ := p.fitted()
	p = &line
	d := newDrawing(p, &c)
	d.head(p, label)
	var lines strings.Builder // the grid
	bottom := d.top + d.tall
	across := d.x.ticks((svgWidth - svgLeft - svgRight) / 75)
	if len(p.XNames) > 0 {
		across = nil
	}
	for i, name := range p.XNames {
		across = append(across, tick{d.x.at(float64(i + 1)), clipped(name, 100/len(p.XNames))})
	}
	for _, t := range across {
		fmt.Fprintf(&lines, "M%s %sV%s", place(t.at), place(d.top), place(bottom))
		d.text(t.at, bottom+17, "middle", t.label)
	}
	up := d.y.ticks(d.tall / 38)
	if p.Kind == Lanes {
		up = nil
	}
	for i, name := range p.YNames {
		up = append(up, tick{d.y.at(float64(i + 1)), clipped(name, 8)})
	}
	for _, t := range up {
		fmt.Fprintf(&lines, "M%s %sH%s", place(svgLeft), place(t.at), place(svgWidth-svgRight))
		d.text(svgLeft-7, t.at+4, "end", t.label)
	}
	fmt.Fprintf(&d.b, `<path class="grid" d="%s"/>`+"\n", lines.String())
	d.text(svgLeft, d.top-10, "start", titled(p.YLabel, p.YUnit))
	d.text(svgWidth-svgRight, d.top+d.tall+36, "end", titled(p.XLabel, p.XUnit))
	for i := range c.Series {
		d.series(i, &c)
	}
	d.marks(c.Marks)
	d.b.WriteString("</svg>\n")
	_, err := w.Write(d.b.Bytes())
	return err
}

// A drawing collects the elements of an image.
type drawing struct {
	b    bytes.Buffer
	x, y scale
	top  float64 // of the part within the axes
	tall float64 // its height
	keys []key
}

// A key is the entry of a series in the legend.
type key struct {
	name string
	x, y float64
	tone int
}

func newDrawing(p *Plot, c *chart) *drawing {
	d := &drawing{tall: svgPlot}
	if p.Kind == Lanes {
		d.tall = svgLane * float64(max(len(p.YNames), 2))
	}
	y := 44.0
	x := svgLeft
	if len(c.Series) > 1 {
		y += 14
		for i, t := range c.Series {
			wide := 45 + svgLetter*float64(utf8.RuneCountInString(t.Name))
			if x+wide > svgWidth-svgRight && x > svgLeft {
				x, y = svgLeft, y+18
			}
			d.keys = append(d.keys, key{t.Name, x, y, t.colour(i)})
			x += wide
		}
	}
	d.top = y + 32
	d.x = scale{from: svgLeft, to: svgWidth - svgRight, log: p.LogX, unit: percentSign(p.XUnit)}
	d.y = scale{from: d.top + d.tall, to: d.top, log: p.LogY, unit: percentSign(p.YUnit)}
	d.x.lo, d.x.hi = xRange(p, c)
	d.y.lo, d.y.hi = yRange(p, c)
	if p.Kind == Lanes { // the first is the topmost
		d.y.from, d.y.to = d.y.to, d.y.from
	}
	d.x.timed = p.XUnit == "s" && !p.LogX && d.x.hi-d.x.lo > 180 && d.x.hi < 1e7
	return d
}

func percentSign(unit string) string {
	if unit == "%" {
		return unit
	}
	return ""
}

// edges are the least and the greatest X that a track covers.
func (t *track) edges(log bool) (lo, hi []float64) {
	switch {
	case t.Hi != nil:
		return t.X.v, t.Hi.v
	case t.Width == nil:
		return t.X.v, t.X.v
	}
	half := t.Width.v[0] / 2
	for _, x := range t.X.v {
		if log {
			lo, hi = append(lo, x/math.Pow(10, half)), append(hi, x*math.Pow(10, half))
		} else {
			lo, hi = append(lo, x-half), append(hi, x+half)
		}
	}
	return lo, hi
}

// xRange is where the values lie, with room around points and lone values.
func xRange(p *Plot, c *chart) (float64, float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	dots := p.Kind == Points // that the edge would cut
	for i := range c.Series {
		dots = dots || p.Kind == Line && len(c.Series[i].X.v) == 1
		from, to := c.Series[i].edges(c.LogX)
		for j := range from {
			lo, hi = min(lo, from[j]), max(hi, to[j])
		}
	}
	switch {
	case len(p.XNames) > 0:
		return 0.5, float64(len(p.XNames)) + 0.5
	case lo == hi && c.LogX:
		return lo / 2, hi * 2
	case lo == hi:
		room := math.Abs(lo) / 2
		if room == 0 {
			room = 1
		}
		return lo - room, hi + room
	case dots && c.LogX:
		room := max(1.02, math.Pow(hi/lo, 0.02))
		return lo / room, hi * room
	case dots:
		return lo - (hi-lo)*0.02, hi + (hi-lo)*0.02
	}
	return lo, hi
}

// yRange has zero in it, unless the values would then be a thin band far from it.
func yRange(p *Plot, c *chart) (float64, float64) {
	if p.Kind == Lanes {
		return 0.5, float64(len(p.YNames)) + 0.5
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, t := range c.Series {
		for _, y := range t.Y.v {
			if !math.IsNaN(y) {
				lo, hi = min(lo, y), max(hi, y)
			}
		}
	}
	for _, m := range c.Marks {
		if m.Axis == "y" {
			lo, hi = min(lo, m.At), max(hi, m.At)
		}
	}
	if c.LogY {
		room := max(1.1, math.Pow(hi/lo, 0.06))
		if p.Kind == Bars {
			return lo / max(2, room), hi * room
		}
		return lo / room, hi * room
	}
	if lo == 0 && hi == 0 {
		return 0, 1
	}
	whole := p.Zero || p.Kind == Bars || p.Kind == Step || lo == hi
	if lo > 0 && (whole || lo <= hi/2) {
		lo = 0
	}
	if hi < 0 && (whole || hi >= lo/2) {
		hi = 0
	}
	room := (hi - lo) * 0.06
	if lo != 0 {
		lo -= room
	}
	if hi != 0 {
		hi += room
	}
	return lo, hi
}

const svgStyle = `
svg { --back: #fff; --ink: #1c2530; --soft: #5a6673; --faint: #e6e9ed; --s1: #2f6fd6; --s2: #d9700c; --s3: #168a6e; --s4: #8e4bb8; --s5: #c8324f; --s6: #66727f; }
@media (prefers-color-scheme: dark) { svg { --back: #1a1f26; --ink: #e3e8ee; --soft: #98a4b1; --faint: #2d353f; --s1: #6ea6f5; --s2: #f2a14f; --s3: #4fc7a4; --s4: #c595e6; --s5: #f27d93; --s6: #a2aebb; } }
text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.title { font-size: 15px; font-weight: 600; } .title, .key { fill: var(--ink); }
.grid { stroke: var(--faint); fill: none; } .line { fill: none; stroke-width: 1.75; stroke-linejoin: round; } .mark { fill: none; stroke-dasharray: 4 4; } .at { font-size: 11px; paint-order: stroke; stroke: var(--back); stroke-width: 4px; stroke-linejoin: round; }
`

func (d *drawing) head(p *Plot, label string) {
	height := d.top + d.tall + 50
	fmt.Fprintf(&d.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n", place(svgWidth), place(height), place(svgWidth), place(height))
	fmt.Fprintf(&d.b, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", escape(p.Title), escape(label), svgStyle)
	fmt.Fprintf(&d.b, `<rect width="100%%" height="100%%" style="fill: var(--back)"/>`+"\n")
	fmt.Fprintf(&d.b, `<text class="title" x="%s" y="26">%s</text>`+"\n", place(svgLeft), escape(p.Title))
	for i, k := range d.keys {
		dashed := dash(i)
		if p.Kind == Lanes {
			dashed = ""
		}
		fmt.Fprintf(&d.b, `<path d="M%s %sh22" style="fill: none; stroke: %s; stroke-width: %s%s"/><text class="key" x="%s" y="%s">%s</text>`+"\n",
			place(k.x), place(k.y-4), tone(k.tone), map[bool]string{true: "2.5", false: "10"}[p.Kind == Line || p.Kind == Step], dashed, place(k.x+28), place(k.y), escape(k.name))
	}
}

// escape makes text safe in XML, which has no place for control characters.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, s))
}

// clipped shortens a name to so many letters; an axis has room for 100.
func clipped(name string, letters int) string {
	if r := []rune(name); len(r) > letters {
		return string(r[:max(1, letters-2)]) + "…"
	}
	return name
}

func tone(colour int) string { return fmt.Sprintf("var(--s%d)", colour) }

// place writes a coordinate, to a tenth of a unit.
func place(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func (d *drawing) text(x, y float64, anchor, s string) {
	if s != "" {
		fmt.Fprintf(&d.b, `<text x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", place(x), place(y), anchor, escape(s))
	}
}

// marks are dashed lines with their labels: those of horizontal ones at the left edge or
// in the margin, those of vertical ones at the top, one under the other.
func (d *drawing) marks(marks []mark) {
	row := 0.0
	var above []float64
	var labels strings.Builder // last, on a halo, so that no line runs through them
	for _, m := range marks {
		colour := "var(--soft)"
		if m.Series > 0 {
			colour = tone((m.Series-1)%tones + 1)
		}
		line, x, y, anchor := "", svgLeft+6, 0.0, "start"
		if m.Axis == "y" {
			at := d.y.at(m.At)
			line, y = fmt.Sprintf("M%s %sH%s", place(svgLeft), place(at), place(svgWidth-svgRight)), max(at-3, d.top+9)
			if m.Margin {
				x, y = svgWidth-svgRight+4, at+2
			}
			if i := slices.IndexFunc(above, func(o float64) bool { return math.Abs(o-y) < 12 }); i >= 0 {
				if y = at + 11; m.Margin { // under its own line, or under the other label
					y = above[i] + 11
				}
			}
			above = append(above, y)
		} else {
			at := d.x.at(m.At)
			line, y = fmt.Sprintf("M%s %sV%s", place(at), place(d.top), place(d.top+d.tall)), d.top+12+14*row
			if x = at + 5; d.crowded(at, m.Label, marks) {
				x, anchor = at-5, "end"
			}
			row++
		}
		fmt.Fprintf(&d.b, `<path class="mark" d="%s" style="stroke: %s"/>`+"\n", line, colour)
		if m.Label != "" {
			fmt.Fprintf(&labels, `<text class="at" x="%s" y="%s" text-anchor="%s" style="fill: %s">%s</text>`+"\n", place(x), place(y), anchor, colour, escape(m.Label))
		}
	}
	d.b.WriteString(labels.String())
}

// crowded tells whether a label right of a vertical line would meet the edge or another line.
func (d *drawing) crowded(at float64, label string, marks []mark) bool {
	end := at + 10 + svgLetter*float64(utf8.RuneCountInString(label))
	return end > svgWidth-svgRight || slices.ContainsFunc(marks, func(o mark) bool { return o.Axis == "x" && d.x.at(o.At) > at && d.x.at(o.At) < end })
}

func (d *drawing) series(i int, c *chart) {
	t := &c.Series[i]
	switch c.Kind {
	case kinds[Bars].code:
		var bars strings.Builder
		base := d.y.from
		if !d.y.log {
			base = d.y.at(max(0, d.y.lo))
		}
		lo, hi := t.edges(d.x.log)
		for j := range lo {
			x0, x1, y := d.x.at(lo[j]), d.x.at(hi[j]), d.y.at(t.Y.v[j])
			if x1-x0 > 6 {
				x1--
			}
			fmt.Fprintf(&bars, "M%s %sV%sH%sV%sZ", place(x0), place(base), place(y), place(max(x1, x0+1)), place(base))
		}
		fmt.Fprintf(&d.b, `<path d="%s" style="fill: %s; fill-opacity: %s"/>`+"\n", bars.String(), tone(t.colour(i)), map[bool]string{true: ".75", false: ".5"}[len(c.Series) == 1])
	case kinds[Lanes].code:
		var bars strings.Builder
		half, opacity := laneThick, "1"
		if t.Thin {
			half, opacity = laneThin, ".65"
		}
		for j, lane := range t.Y.v {
			x0, x1 := d.x.at(t.X.v[j]), d.x.at(t.Hi.v[j])
			fmt.Fprintf(&bars, "M%s %sH%sV%sH%sZ", place(x0), place(d.y.at(lane-half)), place(max(x1, x0+1)), place(d.y.at(lane+half)), place(x0))
		}
		fmt.Fprintf(&d.b, `<path d="%s" style="fill: %s; fill-opacity: %s"/>`+"\n", bars.String(), tone(t.colour(i)), opacity)
	case kinds[Points].code:
		fmt.Fprintf(&d.b, `<path class="line" d="%s" style="stroke: %s; stroke-width: 4; stroke-linecap: round; stroke-opacity: .8"/>`+"\n", d.dots(t), tone(t.colour(i)))
		if i%2 == 1 { // hollow
			fmt.Fprintf(&d.b, `<path class="line" d="%s" style="stroke: var(--back); stroke-width: 1.5; stroke-linecap: round"/>`+"\n", d.dots(t))
		}
	default:
		fmt.Fprintf(&d.b, `<path class="line" d="%s" style="stroke: %s%s"/>`+"\n", d.path(t, c.Kind == kinds[Step].code), tone(t.colour(i)), dash(i))
		if n := len(t.X.v); n <= 60 {
			wide := 5
			if n == 1 { // no line leads to it
				wide = 10
			}
			fmt.Fprintf(&d.b, `<path class="line" d="%s" style="stroke: %s; stroke-width: %d; stroke-linecap: round"/>`+"\n", d.dots(t), tone(t.colour(i)), wide)
		}
	}
}

// dash tells the lines of neighbouring series apart for readers who cannot by their colour.
func dash(i int) string {
	return [...]string{"", "; stroke-dasharray: 9 4", "; stroke-dasharray: 2 4", "; stroke-dasharray: 12 4 2 4"}[i%4]
}

func (d *drawing) path(t *track, step bool) string {
	var b strings.Builder
	move := true
	for i, x := range t.X.v {
		y := t.Y.v[i]
		if math.IsNaN(y) {
			if step && !move {
				fmt.Fprintf(&b, "H%s", place(d.x.at(x)))
			}
			move = true
			continue
		}
		px, py := place(d.x.at(x)), place(d.y.at(y))
		switch {
		case move:
			fmt.Fprintf(&b, "M%s %s", px, py)
		case step:
			fmt.Fprintf(&b, "H%sV%s", px, py)
		default:
			fmt.Fprintf(&b, "L%s %s", px, py)
		}
		move = false
	}
	return b.String()
}

// dots are lines of no length, which round ends make circles.
func (d *drawing) dots(t *track) string {
	var b strings.Builder
	for i, x := range t.X.v {
		if y := t.Y.v[i]; !math.IsNaN(y) {
			fmt.Fprintf(&b, "M%s %sh0", place(d.x.at(x)), place(d.y.at(y)))
		}
	}
	return b.String()
}
