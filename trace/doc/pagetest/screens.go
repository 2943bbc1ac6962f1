package pagetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// FirstScreen holds a page to what all reports keep to: at 1280 × 800 pixels the first
// screen shows the answer, which contains every text of says, and the whole main plot, where
// there is one; and neither there nor at 390 × 844 does anything run off to the side. All
// plots are drawn, without an error. On paper the page is white, with no table or plot cut
// off. It keeps a screenshot of each size in light and dark, and of the print. What needs no
// browser, [Readable], is tried without one too.
func FirstScreen(t *testing.T, name string, page interface{ Write(io.Writer) error }, says ...string) {
	t.Helper()
	var html bytes.Buffer
	if err := page.Write(&html); err != nil {
		t.Fatal(err)
	}
	Readable(t, name, html.Bytes())
	b := Open(t)
	b.checkPrint(name, html.Bytes())
	for _, size := range [][2]int{{1280, 800}, {390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			s := b.Show(html.Bytes(), size[0], size[1], scheme)
			s.Screenshot(fmt.Sprintf("%s-%d-%s", name, size[0], scheme))
			if s.Plots != s.Drawn || s.Errors != "" {
				t.Errorf("%s, %d pixels, %s: %s of %s plots drawn, errors %q", name, size[0], scheme, s.Drawn,
					s.Plots, s.Errors)
			}
			if s.Width > size[0] {
				t.Errorf("%s runs off the page: %d pixels wide in a window of %d", name, s.Width, size[0])
			}
			// Tables scroll inside themselves, and so do not make the page wide; but the
			// part that scrolls is to end before the edge.
			for _, box := range append(s.Boxes(".scroll"), s.Boxes("figure")...) {
				if box.Right > float64(size[0]) {
					t.Errorf("%s, %d pixels: a table or a plot ends at %.0f", name, size[0], box.Right)
				}
			}
		}
	}
	s := b.Show(html.Bytes(), 1280, 800, "light")
	answer := strings.ReplaceAll(s.Text("header"), "\u00a0", " ")
	for _, want := range says {
		if !strings.Contains(answer, want) {
			t.Errorf("%s: the first screen does not say %q:\n%s", name, want, answer)
		}
	}
	boxes := append(s.Boxes("header > .headline, header > .first > .figures"),
		s.Boxes("header > .first figure .plot")...)
	if len(boxes) < 2 {
		t.Fatalf("%s: %d elements on the first screen", name, len(boxes))
	}
	for _, box := range boxes {
		if box.Bottom > 800 || box.Bottom-box.Top < 20 {
			t.Errorf("%s: an element of the first screen is at %.0f to %.0f, below 800", name, box.Top, box.Bottom)
		}
	}
}

// checkPrint holds a page to what paper asks of it.
func (b *Browser) checkPrint(name string, html []byte) {
	b.t.Helper()
	s := b.Print(html)
	s.Screenshot(name + "-print")
	if s.Plots != s.Drawn || s.Errors != "" {
		b.t.Errorf("%s, printed: %s of %s plots drawn, errors %q", name, s.Drawn, s.Plots, s.Errors)
	}
	var white string
	if b.eval(`getComputedStyle(document.body).backgroundColor`, &white); white != "rgb(255, 255, 255)" {
		b.t.Errorf("%s is printed on %s", name, white)
	}
	for _, selector := range []string{"table", "figure", "canvas", ".facts", "h1, h2, h3, p"} {
		for _, box := range s.Boxes(selector) {
			if box.Right > printed+0.5 {
				b.t.Errorf("%s, printed: a %s ends at %.0f of %d pixels", name, selector, box.Right, printed)
			}
		}
	}
	var splits int
	if b.eval(`[...document.querySelectorAll('figure, tr')].filter(e => getComputedStyle(e).breakInside !== 'avoid').length`, &splits); splits > 0 {
		b.t.Errorf("%s, printed: %d plots and rows may be split", name, splits)
	}
}

var (
	headings = regexp.MustCompile(`<h([1-6])[ >]`)
	plotted  = regexp.MustCompile(`<div class="plot"[^>]*>`)
	spoken   = regexp.MustCompile(` role="img" [^>]*aria-label="[^"]{20,}"`)
	plotData = regexp.MustCompile(`(?s)<script type="application/json" id="plot-data">(.*?)</script>`)
)

// Readable holds a page to what readers need who cannot see it all: headings in their order,
// a description of every plot, and p50, p95 and p99 on every distribution.
func Readable(t *testing.T, name string, html []byte) {
	t.Helper()
	last := "0"
	for i, m := range headings.FindAllSubmatch(html, -1) {
		level := string(m[1])
		if level > string(last[0]+1) || (level == "1") != (i == 0) {
			t.Errorf("%s: heading %d is of level %s, after one of level %s", name, i+1, level, last)
		}
		last = level
	}
	for _, plot := range plotted.FindAll(html, -1) {
		if !spoken.Match(plot) {
			t.Errorf("%s: a plot has no text for readers who do not see it: %s", name, plot)
		}
	}
	data := plotData.FindSubmatch(html)
	if data == nil {
		return
	}
	var charts []struct {
		K, Xl, Yu string
		S         []struct{ Y []*float64 }
		M         []struct{ T string }
	}
	if err := json.Unmarshal(data[1], &charts); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range charts {
		distribution := c.K == "line" || c.K == "step"
		for _, s := range c.S {
			distribution = distribution && s.Y[0] != nil && *s.Y[0] >= 0 && len(s.Y) > 1 && *s.Y[0] < *s.Y[len(s.Y)-1]
			for i, y := range s.Y {
				distribution = distribution && y != nil && (i == 0 || *y >= *s.Y[i-1])
			}
			if distribution {
				end := *s.Y[len(s.Y)-1]
				distribution = c.Yu == "%" && end == 100 || c.Yu == "" && end == 1
			}
		}
		var marks []string
		for _, m := range c.M {
			marks = append(marks, m.T)
		}
		for _, want := range []string{"p50", "p95", "p99"} {
			if distribution && !slices.Contains(marks, want) {
				t.Errorf("%s: the distribution over %s does not mark %s", name, c.Xl, want)
			}
		}
	}
}
