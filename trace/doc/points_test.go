package doc

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var nan, inf = math.NaN(), math.Inf(1)

// same compares lists in which NaN equals NaN.
func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}

func TestClean(t *testing.T) {
	for _, test := range []struct {
		name       string
		s          Series
		kind       Kind
		logX, logY bool
		x, y, hi   []float64
		lost       loss
	}{
		{name: "sorted, and equal X in order",
			s: Series{X: []float64{3, 1, 2, 1}, Y: []float64{30, 10, 20, 11}},
			x: []float64{1, 1, 2, 3}, y: []float64{10, 11, 20, 30}, lost: loss{given: 4, placed: 4}},
		{name: "missing Y break a line, missing X go",
			s: Series{X: []float64{1, 2, 3, nan, -inf, 1e17}, Y: []float64{1, nan, inf, 4, 5, 6}},
			x: []float64{1, 2, 3}, y: []float64{1, nan, nan}, lost: loss{given: 6, placed: 1, noX: 3, noY: 2}},
		{name: "a scatter has no breaks", kind: Points,
			s: Series{X: []float64{1, 2}, Y: []float64{1, nan}},
			x: []float64{1}, y: []float64{1}, lost: loss{given: 2, placed: 1, noY: 1}},
		{name: "logarithmic X", logX: true,
			s: Series{X: []float64{-1, 0, 1, 10, 1e-200}, Y: []float64{0, 0, -5, 0, 1}},
			x: []float64{1, 10}, y: []float64{-5, 0}, lost: loss{given: 5, placed: 2, logs: 3}},
		{name: "logarithmic Y", logY: true,
			s: Series{X: []float64{-1, 0, 1, 2}, Y: []float64{0, -1, 5, nan}},
			x: []float64{1, 2}, y: []float64{5, nan}, lost: loss{given: 4, placed: 1, logs: 2, noY: 1}},
		{name: "bars need a width", kind: Bars,
			s: Series{X: []float64{4, 1, 2, 3}, Y: []float64{4, 1, 2, 3}, Hi: []float64{5, 2, 2, nan}},
			x: []float64{1, 4}, y: []float64{1, 4}, hi: []float64{2, 5}, lost: loss{given: 4, placed: 2, noX: 2}},
	} {
		c, l := clean(test.s, test.kind, test.logX, test.logY)
		if !same(c.x, test.x) || !same(c.y, test.y) || !same(c.hi, test.hi) {
			t.Errorf("%s: got %v; want %v %v %v", test.name, c, test.x, test.y, test.hi)
		}
		if l != test.lost {
			t.Errorf("%s: lost %+v; want %+v", test.name, l, test.lost)
		}
	}
}

// The steps of a CDF on one X stay in order though other points are not.
func TestCleanSortsStably(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s Series
	for i := range 1000 {
		s.X, s.Y = append(s.X, float64(rng.IntN(5))), append(s.Y, float64(i))
	}
	c, _ := clean(s, Step, false, false)
	for i := 1; i < len(c.x); i++ {
		if c.x[i] < c.x[i-1] || c.x[i] == c.x[i-1] && c.y[i] < c.y[i-1] {
			t.Fatalf("(%v, %v) comes after (%v, %v)", c.x[i], c.y[i], c.x[i-1], c.y[i-1])
		}
	}
}

func TestCleanLeavesInput(t *testing.T) {
	s := Series{X: []float64{3, 1, 2}, Y: []float64{3, inf, 2}}
	clean(s, Line, false, false)
	if !same(s.X, []float64{3, 1, 2}) || !same(s.Y, []float64{3, inf, 2}) {
		t.Errorf("the caller's series was changed to %v", s)
	}
}

func TestThinKeepsBreaks(t *testing.T) {
	var c cloud
	for i := range 10_000 {
		y := math.Sin(float64(i) / 100)
		if i >= 4000 && i < 5000 || i == 7000 { // one that shows and one that does not
			y = nan
		}
		c.x, c.y = append(c.x, float64(i)), append(c.y, y)
	}
	got := c.thin(200, false, false)
	if n := got.placed(); n != 200 {
		t.Errorf("%d points; want 200", n)
	}
	var breaks []float64
	for i, y := range got.y {
		if math.IsNaN(y) {
			breaks = append(breaks, got.x[i])
		}
	}
	if len(breaks) != 1 || breaks[0] < 4000 || breaks[0] >= 5000 {
		t.Errorf("breaks at %v; want one in [4000, 5000)", breaks)
	}
	if !slices.IsSorted(got.x) {
		t.Error("X does not ascend")
	}
}

func TestThinShortSeries(t *testing.T) {
	c := cloud{x: []float64{0, 1, 2, 3, 4, 5, 6}, y: []float64{nan, 1, nan, nan, 4, 5, nan}}
	got := c.thin(100, false, false)
	if want := (cloud{x: []float64{1, 2, 4, 5}, y: []float64{1, nan, 4, 5}}); !same(got.x, want.x) || !same(got.y, want.y) {
		t.Errorf("got %v; want %v", got, want)
	}
}

// Of a bump to 3 and a dip to 0.001 within one bucket, the bump is the larger
// on a linear axis, and the dip by far on a logarithmic one.
func TestThinInLogSpace(t *testing.T) {
	var c cloud
	for i := range 10_000 {
		c.x, c.y = append(c.x, float64(i)+1), append(c.y, 1)
	}
	c.y[1503], c.y[1520] = 1e-3, 3
	for _, log := range []bool{false, true} {
		got := c.thin(100, false, log)
		if dip, bump := slices.Contains(got.y, 1e-3), slices.Contains(got.y, 3); dip != log || bump == log {
			t.Errorf("log=%v: dip kept: %v, bump kept: %v", log, dip, bump)
		}
	}
}

func TestScatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var c cloud
	for i := range 20_000 {
		c.x, c.y = append(c.x, float64(i)), append(c.y, rng.NormFloat64())
	}
	c.y[12_345] = 50
	got := c.scatter(2000, false, false)
	if len(got.x) > 2000 || len(got.x) < 1500 {
		t.Errorf("%d points", len(got.x))
	}
	if !slices.Contains(got.y, 50) {
		t.Error("the outlier is lost")
	}
	middle := 0
	for i, y := range got.y {
		if c.y[int(got.x[i])] != y {
			t.Fatalf("point %d is not of the input", i)
		}
		if math.Abs(y) < 0.5 {
			middle++
		}
	}
	// 38 % of a normal sample lie there; LTTB alone leaves next to none.
	if share := float64(middle) / float64(len(got.y)); share < 0.15 {
		t.Errorf("only %.0f %% of the points are in the middle of the cloud", 100*share)
	}
}

func TestBarWidth(t *testing.T) {
	for _, test := range []struct {
		x    []float64
		log  bool
		want float64
	}{
		{[]float64{1, 2, 4}, false, 1},
		{[]float64{1, 1, 4}, false, 3},
		{[]float64{5}, false, 1},
		{[]float64{1, 100, 1000}, true, 1},
		{[]float64{5}, true, 0.1},
	} {
		if got := (cloud{x: test.x}).barWidth(test.log); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v log=%v: got %v; want %v", test.x, test.log, got, test.want)
		}
	}
}

// However bars are joined, they add up to the same, stay apart and in order,
// and cover the same range.
func TestFitBars(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, log := range []bool{false, true} {
		for _, edges := range []bool{false, true} {
			var c cloud
			at, sum := 1.0, 0.0
			for i := range 5000 {
				width := 0.5 + rng.Float64()
				n := float64(rng.IntN(100))
				c.x, c.y = append(c.x, at), append(c.y, n)
				if edges {
					c.hi = append(c.hi, at+width)
				}
				at += width
				if i%7 == 0 {
					at += 10 * rng.Float64()
				}
				sum += n
			}
			got := c.fitBars(log)
			if len(got.x) > maxBars || len(got.x) < maxBars/5 {
				t.Errorf("log=%v edges=%v: %d bars", log, edges, len(got.x))
			}
			total := 0.0
			for i := range got.x {
				total += got.y[i]
				if got.hi[i] <= got.x[i] || i > 0 && got.x[i] < got.hi[i-1]-1e-6 {
					t.Fatalf("log=%v edges=%v: bar %d is [%v, %v)", log, edges, i, got.x[i], got.hi[i])
				}
			}
			if total != sum {
				t.Errorf("log=%v edges=%v: bars add up to %v; want %v", log, edges, total, sum)
			}
			if edges && (got.x[0] != c.x[0] || got.hi[len(got.hi)-1] != c.hi[len(c.hi)-1]) {
				t.Errorf("log=%v: the range changed", log)
			}
		}
	}
}
