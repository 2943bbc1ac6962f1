package arrival

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func lengthOf(t testing.TB, spec string, seed uint64) Length {
	t.Helper()
	s, err := ParseLength(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(Stream(seed, "test"))
}

func lengthMoments(n int, l Length) (mean, cv float64) {
	var sum, square float64
	for range n {
		x := float64(l.Draw())
		sum += x
		square += x * x
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(0, square/float64(n)-mean*mean)) / mean
}

func TestLengthMoments(t *testing.T) {
	for _, c := range []struct {
		spec      string
		mean, cv  float64
		tolerance float64
	}{
		{"constant:0", 0, math.NaN(), 0},
		{"constant:500", 500, 0, 1e-9},
		{"uniform:0..9", 4.5, math.Sqrt(99./12) / 4.5, 0.01},
		{"uniform:0-9", 4.5, math.Sqrt(99./12) / 4.5, 0.01},
		{"5000±500", 5000, 0.1, 0.01},
		{"exponential:1000,0..100000", 1000, 1, 0.01},
		{"lognormal:5000,sigma=0.8", 5000, math.Sqrt(math.Expm1(0.64)), 0.01},
		{"lognormal:5000,2", 5000, 2, 0.03},
		{"gamma:5000,cv=0.7", 5000, 0.7, 0.01},
		{"weibull:5000,1.5", 5000, 1.5, 0.02},
		{"weibull:5000,shape=2", 5000, math.Sqrt(4/math.Pi - 1), 0.01},
		{"normal:5000,sd=500", 5000, 0.1, 0.01},
		{"normal:5000,cv=0.5,5000..16777216", 5000 + 2500*math.Sqrt(2/math.Pi), 2500 * math.Sqrt(1-2/math.Pi) / (5000 + 2500*math.Sqrt(2/math.Pi)), 0.01},
		{"pareto:1000..100000,alpha=1.5", 2700 / 0.999, math.Sqrt(27/0.999-math.Pow(2.7/0.999, 2)) / 2.7 * 0.999, 0.01},
		{"zipf:1..3,s=2", 66. / 49, math.Sqrt(36.*3/49-66.*66/49/49) * 49 / 66, 0.01},
		{"zipf:11..13,s=2", 10 + 66./49, math.Sqrt(36.*3/49-66.*66/49/49) / (10 + 66./49), 0.01},
		{"histogram:0=1,10-29=3", 19.5 * 3 / 4, math.Sqrt(3./4*(19.5*19.5+399./12)-math.Pow(19.5*3/4, 2)) / (19.5 * 3 / 4), 0.01},
	} {
		mean, cv := lengthMoments(400_000, lengthOf(t, c.spec, 1))
		if math.Abs(mean-c.mean) > c.tolerance*c.mean || math.Abs(cv-c.cv) > 2*c.tolerance*max(c.cv, 0.01) {
			t.Errorf("%s: mean %.6g, CV %.4g; want %.6g, %.4g", c.spec, mean, cv, c.mean, c.cv)
		}
	}
}

// What ParseLength's documentation says of clipping.
func TestClippedMean(t *testing.T) {
	l := lengthOf(t, "lognormal:500,sigma=0.8,50..4000", 1)
	const n = 1_000_000
	var sum, low, high, below float64
	for range n {
		x := l.Draw()
		sum += float64(x) / n
		if x == 50 {
			low += 1. / n
		}
		if x == 4000 {
			high += 1. / n
		}
		if x < 363 {
			below += 1. / n
		}
	}
	d := distuv.LogNormal{Mu: math.Log(500) - 0.32, Sigma: 0.8}
	if want := d.CDF(50.5); math.Abs(low-want) > 5e-4 || math.Abs(want-0.007) > 5e-4 {
		t.Errorf("%.4f at 50, want %.4f", low, want)
	}
	if want := 1 - d.CDF(3999.5); math.Abs(high-want) > 3e-4 || math.Abs(want-0.001) > 5e-4 {
		t.Errorf("%.4f at 4000, want %.4f", high, want)
	}
	if math.Abs(below-0.5) > 0.003 {
		t.Errorf("%.4f below 363, want a half", below)
	}
	// E[min(max(X, a), b)] = a F(a) + b (1-F(b)) + mean (Φ(z(b)-σ) - Φ(z(a)-σ))
	z := func(x float64) float64 { return (math.Log(x) - d.Mu) / d.Sigma }
	phi := distuv.UnitNormal.CDF
	want := 50*d.CDF(50) + 4000*(1-d.CDF(4000)) + 500*(phi(z(4000)-0.8)-phi(z(50)-0.8))
	if math.Abs(sum-want) > 2 || math.Abs(want-498.5) > 0.1 {
		t.Errorf("mean %.2f, want %.2f", sum, want)
	}
}

func TestHistogramFromRows(t *testing.T) {
	s, err := newHistogramLength([]bucket{{1, 1, 2}, {2, 4, 0}, {100, 199, 6}})
	if err != nil || s.String() != "histogram:1=2,100-199=6" {
		t.Fatalf("%v, %v", s, err)
	}
	seen := make(map[int32]int)
	l := s.New(Stream(1, "rows"))
	for range 80_000 {
		seen[l.Draw()]++
	}
	if len(seen) != 101 || math.Abs(float64(seen[1])-20_000) > 700 || math.Abs(float64(seen[199])-600) > 130 {
		t.Errorf("%d lengths, %d times 1, %d times 199", len(seen), seen[1], seen[199])
	}
	for _, bad := range [][]bucket{nil, {{0, 0, 0}}, {{5, 4, 1}}, {{-1, 4, 1}}, {{0, maxLength + 1, 1}}, {{0, 5, 1}, {5, 6, 1}}, {{0, 5, -1}}, {{0, 0, maxCount}, {1, 1, 1}}} {
		if _, err := newHistogramLength(bad); err == nil {
			t.Errorf("newHistogramLength(%v) has no error", bad)
		}
	}
	if _, err := newHistogramDist([]bucket{{0, int64(maxDraw) + 1, 1}}); err == nil {
		t.Error("a duration of more than a year has no error")
	}
}

func TestLengthGolden(t *testing.T) {
	for spec, want := range map[string]string{
		"uniform:10..4000":                 "2720 2977 314 1006",
		"exponential:500,1..4000":          "129 1080 1791 100",
		"lognormal:500,sigma=0.8,50..4000": "700 270 168 684",
		"gamma:500,cv=2":                   "882 56 40 60",
		"weibull:500,cv=2":                 "1632 1 1 47",
		"normal:500,sd=200":                "786 11 82 405",
		"pareto:10..4000,alpha=1.2":        "84 10 10 14",
		"zipf:1..4000,s=1.2":               "1 3910 3002 38",
		"histogram:1=2,100-199=6":          "174 124 178 183",
	} {
		l := lengthOf(t, spec, 42)
		if got := fmt.Sprint(l.Draw(), l.Draw(), l.Draw(), l.Draw()); got != want {
			t.Errorf("%q: %q,", spec, got)
		}
	}
}

func TestParseLengthRefuses(t *testing.T) {
	for _, spec := range []string{
		"", "500s", "-5", "16777217", "constant", "constant:-1", "constant:1.5", "constant:16777217", "constant:5,1..9", "uniform:5", "uniform:5,9", "uniform:9..5", "uniform:1..2..3",
		"uniform:..", "uniform:-", "uniform:5-", "500±", "±5", "500±5±5", "uniform:1..9,1..9", "exponential:0", "exponential:5,2", "lognormal:500", "lognormal:500,sigma=0.8,4000..50", "lognormal:500,sd=2",
		"lognormal:500,sigma=0.8,cv=2", "lognormal:500,sigma=9", "lognormal:NaN,1", "gamma:5,0", "gamma:5,1,-1..9", "weibull:5,shape=0.01",
		"normal:500,sd=0", "normal:500,sd=100,600..900", "normal:500,sd=100,1..400", "pareto:0..9,alpha=1", "pareto:1..9", "pareto:1,9,alpha=1", "zipf:0..9,s=2", "zipf:1..9,s=1",
		"histogram:", "histogram:1-2", "histogram:1=1,1=1", "histogram:16777217=1",
	} {
		if s, err := ParseLength(spec); err == nil {
			t.Errorf("ParseLength(%q) = %v", spec, s)
		} else if !refusesWell(err, "a length in tokens") {
			t.Errorf("ParseLength(%q) shows no form: %v", spec, err)
		}
	}
}

// Parsing undoes String, for any specification that can be made.
func TestLengthStringRoundTrips(t *testing.T) {
	r := Stream(1, "round trips")
	within := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }
	kinds := []string{"exponential", "lognormal", "gamma", "weibull", "normal", "uniform", "pareto", "zipf"}
	for range 10_000 {
		l := LengthSpec{kind: kinds[r.IntN(len(kinds))], lo: 1 + r.Int32N(1000)}
		l.hi = l.lo + r.Int32N(1e6)
		switch l.kind {
		case "uniform":
		case "pareto", "zipf":
			l.exponent = within(minZipf, maxExponent)
		default:
			l.mean = float64(l.lo) + r.Float64()*float64(l.hi-l.lo)
			if l.kind != "exponential" {
				l.cv = within(minCV, maxCV)
			}
		}
		if got, err := ParseLength(l.String()); err != nil || got != l {
			t.Fatalf("%#v became %#v, %v", l, got, err)
		}
	}
	if l := (LengthSpec{}); l.String() != "" || l.New(r).Draw() != 0 {
		t.Error("the zero LengthSpec is not empty")
	}
}

func FuzzParseLength(f *testing.F) {
	for _, s := range []string{"constant:3", "uniform:0..9", "lognormal:500,sigma=.8,50..4000", "normal:1,sd=.1,1..1", "pareto:1..16777216,alpha=.05", "zipf:1..16777216,s=20",
		"weibull:5,100,0..0", "histogram:1=2,3-4=5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseLength(spec)
		if err != nil {
			return
		}
		if again, err := ParseLength(s.String()); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q became %q, %v", spec, s, err)
		}
		l := s.New(Stream(1, "fuzz"))
		for range 20 {
			if n := l.Draw(); s.rows == nil && (n < s.lo || n > s.hi) || n < 0 || n > maxLength {
				t.Fatalf("%q drew %v", spec, n)
			}
		}
	})
}
