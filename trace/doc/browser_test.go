package doc

import (
	"strings"
	"testing"

	"reprise/trace/doc/pagetest"
)

// edgeCases is a page of plots that are easy to draw wrongly.
func edgeCases() *Document {
	one := Series{X: []float64{5}, Y: []float64{7}}
	var plots []Plot
	for k := range Kind(len(kinds)) {
		for _, log := range []bool{false, true} {
			for _, s := range [][]Series{
				{one}, {one, one}, {{X: []float64{1, 2}, Y: []float64{0, 0}}}, {{X: []float64{1, 2, 3}, Y: []float64{-3, nan, -1}}},
				{{X: []float64{1e-90, 1e16}, Y: []float64{1e-90, 1e16}}}, {{X: []float64{1e15, 1e15 + 1}, Y: []float64{1e15, 1e15 + 1}}},
				{{X: []float64{0, 3, 5}, Y: []float64{1, 2, 3}}, {X: []float64{1, 3, 9}, Y: []float64{2, 3, 4}}}, {},
			} {
				if k != Lanes {
					plots = append(plots, Plot{Kind: k, LogX: log, LogY: log, XUnit: "s", Series: s})
				}
			}
		}
	}
	for _, s := range [][]Series{
		{{X: []float64{5}, Y: []float64{1}, Hi: []float64{5.5}}}, {{X: []float64{0}, Y: []float64{1}, Hi: []float64{0}}}, {},
		{{X: []float64{0, 0, 1e16}, Y: []float64{1, 3, 2}, Hi: []float64{9, 2, inf}}, {}, {X: []float64{-1, nan}, Y: []float64{2, 1}, Hi: []float64{1e9, 1}, Thin: true, Tone: 6}},
	} {
		plots = append(plots, Plot{Kind: Lanes, XUnit: "s", YNames: []string{"7", "+1", `<b>"&`}, Series: s})
	}
	p := &Document{Title: "Edge cases", Sections: []Section{{Plots: plots}}}
	for _, s := range hostile {
		p.Sections, p.Terms = append(p.Sections, everywhere(s).Sections...), append(p.Terms, everywhere(s).Terms...)
	}
	return p
}

func TestBrowserDrawsEveryPlot(t *testing.T) {
	b := pagetest.Open(t)
	for name, p := range map[string]*Document{"demo": demo(), "edge cases": edgeCases()} {
		if s := b.Show([]byte(render(t, p)), 1200, 2400, "light"); s.Plots == "0" || s.Drawn != s.Plots || s.Errors != "" {
			t.Errorf("%s: %q of %q plots drawn, errors %q", name, s.Drawn, s.Plots, s.Errors)
		}
	}
}

// The policy is what stands between a hole in the escaping and a script that
// runs: neither another script nor a changed one may.
func TestBrowserRefusesOtherScripts(t *testing.T) {
	b := pagetest.Open(t)
	html := render(t, demo())
	other := strings.Replace(html, "<main>", `<script>document.body.id = 'taken'</script><img src=x onerror="document.body.id = 'taken'"><main>`, 1)
	if s := b.Show([]byte(other), 1200, 800, "light"); len(s.Boxes("#taken")) > 0 || len(s.Boxes("main")) != 1 {
		t.Error("a foreign script ran, or another page is shown")
	}
	changed := strings.Replace(html, "/* Draws the plots", "/* Draws no plots", 1)
	if changed == html {
		t.Fatal("nothing was changed")
	}
	if s := b.Show([]byte(changed), 1200, 800, "light"); s.Drawn != "0" {
		t.Error("a changed script ran")
	}
}
