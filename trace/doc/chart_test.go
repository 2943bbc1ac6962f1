package doc

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	got, err := json.Marshal(numbers{[]float64{0, 1, -2.5, 1.0 / 3, 1234567.8, 1e-9, 100000, nan, inf}, 6})
	if want := "[0,1,-2.5,0.333333,1.23457e+06,1e-09,100000,null,null]"; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if got, _ := json.Marshal(numbers{nil, 6}); string(got) != "[]" {
		t.Errorf("none: %s", got)
	}
}

func TestDigits(t *testing.T) {
	for _, test := range []struct {
		v    []float64
		want int
	}{
		{nil, 6}, {[]float64{5}, 6}, {[]float64{0, 100}, 6}, {[]float64{-1, 1, nan}, 6},
		{[]float64{1.7e9, 1.7e9 + 86400}, 10}, {[]float64{1e15, 1e15 + 1}, 17},
	} {
		if got := digits([]cloud{{x: test.v}}, xs); got != test.want {
			t.Errorf("%v: %d; want %d", test.v, got, test.want)
		}
	}
}

// Neighbours on an axis of Unix seconds must not collapse.
func TestUnixTimesStayApart(t *testing.T) {
	var s Series
	for i := range 1000 {
		s.X, s.Y = append(s.X, 1.7e9+float64(i)*60), append(s.Y, 1)
	}
	c, _, _ := newChart(&Plot{Series: []Series{s}})
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ S []struct{ X []float64 } }
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Compact(back.S[0].X)); n != 1000 {
		t.Errorf("%d distinct instants; want 1000", n)
	}
}

func TestRemarks(t *testing.T) {
	long := Series{Name: "long"}
	for i := range 12_000 {
		long.X, long.Y = append(long.X, float64(i)+1), append(long.Y, math.Mod(float64(i*i), 17)+1)
	}
	for _, test := range []struct {
		name string
		p    Plot
		want []string
	}{
		{"nothing to say", Plot{Series: []Series{{X: []float64{1}, Y: []float64{1}}}}, nil},
		{"no data", Plot{Series: []Series{{Name: "a"}, {Name: "b", X: []float64{1}, Y: []float64{nan}}}}, []string{"a: no data.", "b: no data."}},
		{"logarithmic", Plot{LogX: true, YLabel: "Share", Series: []Series{{X: []float64{0, 1}, Y: []float64{1, 1}}}},
			[]string{"Share: 1 of 2 values are not shown, because a logarithmic axis has no place for zero or less."}},
		{"no X, no Y", Plot{Series: []Series{{Name: "a", X: []float64{nan, 1, 2}, Y: []float64{1, 1, nan}}}},
			[]string{"a: 1 of 3 values have no place on the X axis.", "a: 1 of 3 values are missing."}},
		{"thinned line", Plot{Series: []Series{long}}, []string{"long: 2,000 of 12,000 points are drawn, chosen to keep the shape (LTTB)."}},
		{"joined bars", Plot{Kind: Bars, Series: []Series{long}}, []string{"long: 12,000 bars are drawn as 500; neighbours are added together."}},
	} {
		_, got, _ := newChart(&test.p)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q; want %q", test.name, got, test.want)
		}
	}
}

func TestThinnedScatterSaysSo(t *testing.T) {
	s := Series{Name: "lag"}
	for i := range 5000 {
		s.X, s.Y = append(s.X, float64(i)), append(s.Y, math.Mod(float64(i*i), 17))
	}
	c, remarks, _ := newChart(&Plot{Kind: Points, Series: []Series{s}})
	if n := len(c.Series[0].X.v); n > maxPoints {
		t.Errorf("%d points", n)
	}
	if len(remarks) != 1 || !strings.Contains(remarks[0], "of 5,000 points are drawn: an even choice") {
		t.Errorf("remarks: %q", remarks)
	}
}

func TestDescribe(t *testing.T) {
	_, _, got := newChart(&Plot{
		Kind: Step, LogX: true, XLabel: "TTFT", XUnit: "ms", YLabel: "Share",
		Series: []Series{{Name: "a", X: []float64{12.3456, 5400}, Y: []float64{0, 1}}, {Name: "b", X: []float64{10}, Y: []float64{1}}},
	})
	if want := "Step plot. X axis: TTFT (ms), logarithmic, from 10 to 5400. Y axis: Share, from 0 to 1. Series: a, b."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Count(int64(n)); got != want {
			t.Errorf("%d: got %s; want %s", n, got, want)
		}
	}
}
