package doc

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// cdfOf is the distribution of values, which ascend.
func cdfOf(name string, values ...float64) Series {
	s := Series{Name: name, X: values, N: int64(len(values))}
	for i := range values {
		s.Y = append(s.Y, float64(i+1)/float64(len(values)))
	}
	return s
}

// spread are n values between two, as far apart on a logarithmic axis.
func spread(n int, lo, hi float64) (out []float64) {
	for i := range n {
		out = append(out, lo*math.Pow(hi/lo, float64(i)/float64(n-1)))
	}
	return out
}

// The axis of a CDF fits its values: linear where they lie close, logarithmic where they
// span decades, and never begun by a few values far below the others.
func TestCDFAxis(t *testing.T) {
	near := spread(200, 8, 12)
	for name, c := range map[string]struct {
		values []float64
		log    bool
		lowest float64 // that is drawn
		left   string
	}{
		"close":        {near, false, 8, ""},
		"far":          {spread(200, 1, 1000), true, 1, ""},
		"a tail":       {append(slices.Clone(near), 5000), true, 8, ""},
		"below":        {append([]float64{0.001, 0.001, 0.001}, append(slices.Clone(near), 5000)...), true, 8, "1.47 % of the values are below 8 ms and lie left of the axis."},
		"zero":         {append([]float64{0, 0}, append(slices.Clone(near), 5000)...), true, 8, "0.99 % of the values are below 8 ms and lie left of the axis."},
		"all at zero":  {[]float64{0, 0, 0}, false, 0, ""},
		"one":          {[]float64{7}, false, 7, ""},
		"one far":      {append(spread(200, 30, 38), 130), true, 30, ""},
		"in two":       {append(spread(100, 30, 38), spread(100, 100, 130)...), false, 30, ""},
		"below, close": {append([]float64{0.001}, near...), false, 0.001, ""},
	} {
		p := Plot{Kind: CDF, XUnit: "ms", Series: []Series{cdfOf("gaps", c.values...)}}
		line, _, remarks := p.fitted()
		if line.Kind != map[bool]Kind{true: Step, false: Line}[len(c.values) <= 60] || line.YUnit != "%" || line.LogX != c.log || math.Abs(line.Series[0].X[0]/c.lowest-1) > 0.06 && c.lowest > 0 {
			t.Errorf("%s: logarithmic %v, from %v", name, line.LogX, line.Series[0].X[0])
		}
		if got := strings.Join(remarks, ""); c.left == "" && got != "" || !strings.Contains(got, c.left) {
			t.Errorf("%s: %q", name, got)
		}
		if y := line.Series[0].Y; y[len(y)-1] != 100 {
			t.Errorf("%s: ends at %v %%", name, y[len(y)-1])
		}
		if p.Series[0].Y[len(c.values)-1] != 1 {
			t.Errorf("%s: the plot itself was changed", name)
		}
	}
}

// The percentiles are said and marked, those that there are values enough for.
func TestCDFPercentiles(t *testing.T) {
	p := Plot{Kind: CDF, XUnit: "ms", Series: []Series{cdfOf("a", spread(1000, 1, 1000)...), cdfOf("b", spread(50, 10, 20)...), {Name: "none"}}}
	line, values, _ := p.fitted()
	want := []string{"a: p50 31.5 · p95 708 · p99 933 ms", "b: p50 14 · p95 19.4 ms"}
	if !slices.Equal(values, want) {
		t.Errorf("%q, want %q", values, want)
	}
	var marks []float64
	for _, m := range line.Marks {
		marks = append(marks, m.At)
	}
	if !slices.Equal(marks, []float64{50, 99, 95}) {
		t.Errorf("marks at %v", marks)
	}
	html := render(t, &Document{Title: "T", Sections: []Section{{Plots: []Plot{p}}}})
	if !strings.Contains(html, want[0]) || !strings.Contains(html, `{"a":"y","v":95,"t":"p95","e":true}`) {
		t.Error("the page does not say or mark them")
	}
}

// A limit has the colour of its series; a mark of a series that is not drawn is not either.
func TestMarks(t *testing.T) {
	p := Plot{LogY: true, Series: []Series{{Name: "none"}, {Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}},
		Marks: []Mark{{At: 50, Label: "limit", Series: 2}, {At: 2, Label: "of nothing", Series: 1}, {Axis: AxisX, At: 1.5, Label: "knee"}, {At: -1, Label: "no place"}}}
	c, _, spoken := newChart(&p)
	want := []mark{{"y", 50, "limit", 1, false}, {"x", 1.5, "knee", 0, false}}
	if !slices.Equal(c.Marks, want) || !strings.Contains(spoken, "limit at 50. knee at 1.5.") {
		t.Errorf("%+v, %s", c.Marks, spoken)
	}
	if drawn := Drawn(p)[0]; len(drawn.Series) != 1 || len(drawn.Marks) != 3 || drawn.Marks[0].Series != 1 {
		t.Errorf("%+v", drawn)
	}
	p.Marks[0].Series = 3
	if err := p.check(); err == nil || err.Error() != "mark 1: want a finite place on an axis, and the number of a series" {
		t.Error(err)
	}
}
