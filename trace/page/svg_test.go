package page

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// drawSVG draws a plot and holds that it is well-formed XML.
func drawSVG(t testing.TB, p *Plot) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return b.String()
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
	}
}

var place2 = regexp.MustCompile(`[MLHV]?(-?[0-9.]+)`)

// Whatever is drawn lies within the axes, and no coordinate is not a number.
func TestSVGStaysWithinTheAxes(t *testing.T) {
	for _, page := range []*Page{demo(), edgeCases()} {
		for _, s := range page.Sections {
			for i := range s.Plots {
				p := &s.Plots[i]
				c, _, _ := newChart(p)
				if len(c.Series) == 0 {
					if err := p.WriteSVG(io.Discard); !errors.Is(err, errNoData) {
						t.Errorf("%q: no data, and the error is %v", p.Title, err)
					}
					continue
				}
				svg := drawSVG(t, p)
				if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
					t.Errorf("%q: a place that is no number", p.Title)
				}
				d := newDrawing(p, &c)
				for _, tr := range c.Series {
					for j, x := range tr.X.v {
						y := tr.Y.v[j]
						if px := d.x.at(x); px < svgLeft-0.01 || px > svgWidth-svgRight+0.01 {
							t.Errorf("%q: X %v lies at %v", p.Title, x, px)
						}
						if py := d.y.at(y); py < d.top-0.01 || py > d.top+d.tall+0.01 { // NaN is neither
							t.Errorf("%q: Y %v lies at %v", p.Title, y, py)
						}
					}
				}
			}
		}
	}
}

// A line of two points goes from corner to corner of the axes.
func TestSVGPlaces(t *testing.T) {
	p := &Plot{Title: "T", XLabel: "x", YLabel: "y", Series: []Series{{Name: "a", X: []float64{0, 10}, Y: []float64{0, 100}}}}
	svg := drawSVG(t, p)
	m := regexp.MustCompile(`<path class="line" d="([^"]*)" style="stroke: var\(--s1\)"`).FindStringSubmatch(svg)
	if m == nil {
		t.Fatal(svg)
	}
	var got []float64
	for _, n := range place2.FindAllStringSubmatch(strings.ReplaceAll(m[1], "L", " "), -1) {
		v, err := strconv.ParseFloat(n[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	top := 44 + 32.0
	want := []float64{svgLeft, top + svgPlot, svgWidth - svgRight, roundTo(top+svgPlot-svgPlot/1.06, 3)}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, label := range []string{">0<", ">4<", ">10<", ">100<", "<title>T</title>"} {
		if !strings.Contains(svg, label) {
			t.Errorf("no %s", label)
		}
	}
}

func TestSVGEscapes(t *testing.T) {
	for _, s := range hostile {
		p := everywhere(s).Sections[0].Plots[0]
		svg := drawSVG(t, &p)
		if n := strings.Count(svg, "<"); n != strings.Count(drawSVG(t, &everywhere("harmless").Sections[0].Plots[0]), "<") {
			t.Errorf("%q changes the elements", s)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(s scale, count float64) (out []string) {
		for _, tick := range s.ticks(count) {
			if tick.label != "" {
				out = append(out, tick.label)
			}
		}
		return out
	}
	for _, test := range []struct {
		s     scale
		count float64
		want  string
	}{
		{scale{lo: 0, hi: 1}, 6, "0 0.2 0.4 0.6 0.8 1"},
		{scale{lo: 0, hi: 3600, timed: true}, 6, "0:00 10:00 20:00 30:00 40:00 50:00 1:00:00"},
		{scale{lo: 0, hi: 6700}, 4, "0 2k 4k 6k"},
		{scale{lo: 1, hi: 1e6, log: true}, 8, "1 10 100 1k 10k 100k 1M"},
		{scale{lo: 36, hi: 223, log: true}, 9, "40 50 60 70 80 90 100 200"},
		{scale{lo: -1, hi: 1, unit: "%"}, 4, "−1% −0.5% 0% 0.5% 1%"},
		{scale{lo: 1e-6, hi: 3e-6}, 3, "1e−6 2e−6 3e−6"},
	} {
		if got := strings.Join(labels(test.s, test.count), " "); got != test.want {
			t.Errorf("%+v: %s, want %s", test.s, got, test.want)
		}
	}
	if got := clock(200000.5); got != "2 d 07:33" {
		t.Error(got)
	}
}

func TestCSV(t *testing.T) {
	p := &Plot{XLabel: "length", XUnit: "tokens", YLabel: "requests", Kind: Bars, Series: []Series{
		{Name: "a, b", X: []float64{1, 2}, Hi: []float64{2, 4}, Y: []float64{5, nan}}, {Name: "c", X: []float64{0.1}, Y: []float64{1e-7}},
	}}
	var b bytes.Buffer
	if err := p.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := "series,length (tokens) from,length (tokens) to,requests\n\"a, b\",1,2,5\n\"a, b\",2,4,\nc,0.1,,1e-07\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
	if _, err := csv.NewReader(&b).ReadAll(); err != nil {
		t.Error(err)
	}
	if err := (&Plot{Series: []Series{{X: []float64{1}}}}).WriteCSV(io.Discard); err == nil {
		t.Error("ragged series were written")
	}
}

// However narrow the range, a logarithmic axis of an ordinary plot has four labels
// at least, in order and far enough apart to be read.
func TestLogAxesHaveLabels(t *testing.T) {
	for _, count := range []float64{5.5, 8, 9} { // of the page's upright axes, of an image's, and of those that lie
		for lo := 1.; lo < 10; lo *= 1.17 {
			for _, decades := range []float64{0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 1, 1.3, 1.8, 2.5, 3.5, 6, 12} {
				s := scale{lo: lo, hi: lo * math.Pow(10, decades), to: count, log: true}
				var at []float64
				for _, tick := range s.ticks(count) {
					if tick.label != "" {
						at = append(at, tick.at)
					}
				}
				least := math.Inf(1)
				for i := 1; i < len(at); i++ {
					least = min(least, at[i]-at[i-1])
				}
				if len(at) < 4 && (decades <= 2.5 || len(at) < 3) || float64(len(at)) > 2*count || least < 0.39 {
					t.Errorf("%.3g to %.3g on about %g: %d labels, at least %.2f apart", s.lo, s.hi, count, len(at), least)
				}
			}
		}
	}
}

// A plot that asks for it shows zero, be the values far above it or below.
func TestZeroIsInSight(t *testing.T) {
	for _, y := range [][]float64{{50, 60}, {-60, -50}, {50, 60, 55}} {
		for _, zero := range []bool{false, true} {
			p := &Plot{Zero: zero, Series: []Series{{X: []float64{1, 2, 3}[:len(y)], Y: y}}}
			c, _, _ := newChart(p)
			if lo, hi := yRange(p, &c); (lo <= 0 && hi >= 0) != zero || c.Zero != zero {
				t.Errorf("%v, zero %v: from %v to %v", y, zero, lo, hi)
			}
		}
	}
}

// Bars of a timeline lie in their lanes, the first on top, with the colour that they are
// given; those that are thin are thinner. The CSV names the lanes.
func TestLanes(t *testing.T) {
	p := &Plot{Title: "T", Kind: Lanes, XUnit: "s", YLabel: "session", YNames: []string{"7", "+1"}, Series: []Series{
		{Name: "decode", X: []float64{0, 5}, Hi: []float64{4, 10}, Y: []float64{1, 2}, Tone: 3},
		{Name: "none", Tone: 1},
		{Name: "think", X: []float64{4}, Hi: []float64{5}, Y: []float64{1}, Tone: 5, Thin: true},
	}}
	svg := drawSVG(t, p)
	bar := regexp.MustCompile(`M(\S+) (\S+)H(\S+)V(\S+)H\S+Z`)
	var got [][]float64
	for _, m := range bar.FindAllStringSubmatch(svg, -1) {
		var at []float64
		for _, s := range m[1:] {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, v)
		}
		got = append(got, at)
	}
	if len(got) != 3 {
		t.Fatalf("%d bars in\n%s", len(got), svg)
	}
	upper, lower, thin := got[0], got[1], got[2]
	if upper[0] != svgLeft || lower[2] != svgWidth-svgRight || upper[3] >= lower[1] || thin[0] != upper[2] || thin[2] != lower[0] || thin[3]-thin[1] >= (upper[3]-upper[1])/2 || thin[1] < upper[1] || thin[3] > upper[3] {
		t.Errorf("bars at %v", got)
	}
	for _, want := range []string{"fill: var(--s3); fill-opacity: 1", "fill: var(--s5); fill-opacity: .65", ">7<", ">+1<", "session: 7, +1", "decode"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s", want)
		}
	}
	var csv strings.Builder
	if err := p.WriteCSV(&csv); err != nil || !strings.Contains(csv.String(), "decode,5,10,+1\n") || !strings.Contains(csv.String(), "think,4,5,7\n") {
		t.Errorf("%v\n%s", err, csv.String())
	}
}
