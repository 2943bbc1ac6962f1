package pagetest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// FirstScreen holds a page to what all reports keep to: at 1280 × 800 pixels the first
// screen shows the answer, which contains every text of says, and the whole main plot, where
// there is one; and neither there nor at 390 × 844 does anything run off to the side. All
// plots are drawn, without an error. It keeps a screenshot of each size in light and dark.
func FirstScreen(t *testing.T, name string, page interface{ Write(io.Writer) error }, says ...string) {
	t.Helper()
	var html bytes.Buffer
	if err := page.Write(&html); err != nil {
		t.Fatal(err)
	}
	b := Open(t)
	for _, size := range [][2]int{{1280, 800}, {390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			s := b.Show(html.Bytes(), size[0], size[1], scheme)
			s.Screenshot(fmt.Sprintf("%s-%d-%s", name, size[0], scheme))
			if s.Plots != s.Drawn || s.Errors != "" {
				t.Errorf("%s, %d pixels, %s: %s of %s plots drawn, errors %q", name, size[0], scheme, s.Drawn, s.Plots, s.Errors)
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
	boxes := append(s.Boxes("header > .headline, header > .first > .figures"), s.Boxes("header > .first figure .plot")...)
	if len(boxes) < 2 {
		t.Fatalf("%s: %d elements on the first screen", name, len(boxes))
	}
	for _, box := range boxes {
		if box.Bottom > 800 || box.Bottom-box.Top < 20 {
			t.Errorf("%s: an element of the first screen is at %.0f to %.0f, below 800", name, box.Top, box.Bottom)
		}
	}
}
