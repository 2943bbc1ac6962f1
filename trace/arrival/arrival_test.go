package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func processOf(t testing.TB, spec string, seed uint64) Process {
	t.Helper()
	s, err := ParseProcess(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(Stream(seed, "test"))
}

func distOf(t testing.TB, spec string, seed uint64) Dist {
	t.Helper()
	s, err := ParseDist(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(Stream(seed, "test"))
}

// moments returns the mean in seconds and the coefficient of variation of n draws.
func moments(n int, draw func() time.Duration) (mean, cv float64) {
	var sum, square float64
	for range n {
		x := draw().Seconds()
		sum += x
		square += x * x
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(square/float64(n)-mean*mean) / mean
}

func TestMoments(t *testing.T) {
	const n = 400_000
	check := func(spec string, wantMean, wantCV, tolerance float64, draw func() time.Duration) {
		mean, cv := moments(n, draw)
		if math.Abs(mean/wantMean-1) > tolerance || math.Abs(cv-wantCV) > 2*tolerance*max(wantCV, 0.01) {
			t.Errorf("%s: mean %.6g s, CV %.4g; want %.6g s, %.4g", spec, mean, cv, wantMean, wantCV)
		}
	}
	for _, c := range []struct {
		spec      string
		mean, cv  float64
		tolerance float64
	}{
		{"poisson:2.5", 0.4, 1, 0.01},
		{"poisson:100000", 1e-5, 1, 0.01},
		{"gamma:4,1", 0.25, 1, 0.01},
		{"gamma:4,0.3", 0.25, 0.3, 0.01},
		{"gamma:10,3", 0.1, 3, 0.03},
		{"gamma:10,5", 0.1, 5, 0.05},
		{"constant:3", 1. / 3, 0, 1e-6},
		{"constant:70000", 1. / 70000, 0.0317, 0.1}, // gaps of 14 and 15 µs
	} {
		check(c.spec, c.mean, c.cv, c.tolerance, processOf(t, c.spec, 1).Next)
	}
	for _, c := range []struct {
		spec      string
		mean, cv  float64
		tolerance float64
	}{
		{"constant:3s", 3, 0, 1e-9},
		{"exponential:250ms", 0.25, 1, 0.01},
		{"lognormal:4s,0.5", 4, 0.5, 0.01},
		{"lognormal:4s,1.2", 4, 1.2, 0.02},
		{"gamma:2s,0.7", 2, 0.7, 0.01},
		{"uniform:1s,3s", 2, 1 / math.Sqrt(12), 0.01},
		{"lognormal:4s,sigma=0.8", 4, math.Sqrt(math.Expm1(0.64)), 0.02},
		{"weibull:3s,0.4", 3, 0.4, 0.01},
		{"weibull:3s,cv=2.5", 3, 2.5, 0.03},
		{"weibull:3s,shape=2", 3, math.Sqrt(4/math.Pi - 1), 0.01},
		{"normal:3s,0.1", 3, 0.1, 0.01},
		{"normal:1s,cv=1", 1.2876, math.Sqrt(1-0.2876*1.2876) / 1.2876, 0.01}, // 0.2876 is φ(1)/Φ(1)
		{"pareto:1s,100s,alpha=1.5", 2.7 / 0.999, math.Sqrt(27/0.999-math.Pow(2.7/0.999, 2)) / 2.7 * 0.999, 0.01},
		{"zipf:1s,3s,s=2", 66. / 49, math.Sqrt(36.*3/49-66.*66/49/49) * 49 / 66, 0.01},
		{"histogram:0=1,1000000000-2999999999=3", 1.5, math.Sqrt(13./4-2.25) / 1.5, 0.01},
	} {
		check(c.spec, c.mean, c.cv, c.tolerance, distOf(t, c.spec, 1).Draw)
	}
}

// The rate of a constant process is exact although its gaps are whole microseconds: any span has as many arrivals as
// rate and span say, the first of them at 0.
func TestConstantKeepsRate(t *testing.T) {
	for _, rate := range []int{1, 3, 4, 7, 50, 333, 70000} {
		s, err := ParseProcess(fmt.Sprintf("constant:%d", rate))
		if err != nil {
			t.Fatal(err)
		}
		p, at, n := s.From0(Stream(0, "test")), time.Duration(0), 0
		at += p.Next()
		for _, seconds := range []int{1, 2, 15, 60} {
			for ; at < time.Duration(seconds)*time.Second; at += p.Next() {
				n++
			}
			if n != rate*seconds {
				t.Errorf("constant:%d: %d arrivals in %d s, want %d", rate, n, seconds, rate*seconds)
			}
		}
	}
}

// First draws of each kind: a change of these changes every workload made from a seed.
func TestGolden(t *testing.T) {
	for spec, want := range map[string]string{
		"poisson:2.5":   "103.246ms 863.648ms 1.432861s 79.843ms",
		"gamma:2.5,2":   "705.442ms 44.447ms 32.144ms 47.93ms",
		"gamma:2.5,0.5": "547.411ms 211.806ms 687.563ms 330.832ms",
		"gamma:2.5,3":   "528.629ms 0s 129µs 1.483ms",
		"constant:3":    "333.333ms 333.334ms 333.333ms 333.333ms",
	} {
		if got := first(processOf(t, spec, 42).Next); got != want {
			t.Errorf("%q: %q,", spec, got)
		}
	}
	for spec, want := range map[string]string{
		"constant:3s":      "3s 3s 3s 3s",
		"exponential:4s":   "1.032459s 8.636477s 14.32861s 798.434ms",
		"lognormal:4s,1.2": "5.560458s 1.80798s 1.033866s 5.404735s",
		"gamma:4s,1.2":     "5.004079s 3.893027s 1.073758s 1.802449s",
		"uniform:1s,3s":    "2.846259s 1.001883s 1.024155s 1.626242s",

		"weibull:4s,2":                "13.059454s 6µs 680µs 378.68ms",
		"normal:4s,0.5":               "6.877347s 33.523ms 364.55ms 3.113252s",
		"pareto:1s,1m,alpha=1.2":      "7.905451s 1.00078s 1.010102s 1.363712s",
		"zipf:1s,1m,s=1.2":            "1s 1m0s 55s 8s",
		"histogram:0=1,500-9000000=9": "6.693ms 0s 7.256ms 5.091ms",
	} {
		if got := first(distOf(t, spec, 42).Draw); got != want {
			t.Errorf("%q: %q,", spec, got)
		}
	}
}

func first(draw func() time.Duration) string {
	var s []string
	for range 4 {
		s = append(s, draw().String())
	}
	return strings.Join(s, " ")
}

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		name string
		want uint64
	}{
		{0, "", 0x317197857f8a47c2}, {1, "sessions", 0xe9bacfc6bfc53f6f}, {1, "think", 0x60bebadae7855537}, {2, "think", 0x5d6d63cf2df7a4b6},
	} {
		if got := Stream(c.seed, c.name).Uint64(); got != c.want {
			t.Errorf("{%d, %q, %#x},", c.seed, c.name, got)
		}
	}
}

func TestDrawsAreWholeMicroseconds(t *testing.T) {
	for _, spec := range []string{"exponential:1us", "lognormal:720h,100", "gamma:720h,100", "uniform:0s,1us", "normal:1us,100",
		"weibull:720h,100", "pareto:1us,720h,alpha=0.05", "zipf:1us,720h,s=1.01", "histogram:0-99999=1",
	} {
		d := distOf(t, spec, 7)
		for range 100_000 {
			if x := d.Draw(); x < 0 || x > maxDraw || x%time.Microsecond != 0 {
				t.Fatalf("%s drew %v", spec, x)
			}
		}
	}
}

// refusesWell tells whether an error says what was wanted, and shows how that is written
// without listing everything that there is.
func refusesWell(err error, want string) bool {
	s := err.Error()
	return strings.Contains(s, " is not "+want+": write ") && len(s) < 400
}

// What a person gets for a value of no form, and of a form that is known.
func TestRefusals(t *testing.T) {
	process := func(s string) error { _, err := ParseProcess(s); return err }
	dist := func(s string) error { _, err := ParseDist(s); return err }
	length := func(s string) error { _, err := ParseLength(s); return err }
	for _, c := range []struct {
		parse      func(string) error
		text, want string
	}{
		{process, "fast", `"fast" is not an arrival process: write 5, 300/min or gamma:5,cv=2`},
		{process, "weibull:2", `"weibull:2" is not an arrival process: write weibull:RATE,cv=CV or weibull:RATE,shape=K, with RATE from 1e-6 to 100000 per second or as 300/min, and CV from 0.01 to 100`},
		{dist, "soon", `"soon" is not a distribution of times: write 4s, exponential:4s or lognormal:4s,cv=1.5`},
		{length, "long", `"long" is not a length in tokens: write 500, uniform:50..4000 or lognormal:500,0.8`},
	} {
		if err := c.parse(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// A number alone is what people mean by it.
func TestPlainNumbers(t *testing.T) {
	for text, want := range map[string]string{"5": "poisson:5", "300/min": "poisson:5", "constant:300/min": "constant:5", "ramp:60/min-10,1min": "ramp:1-10,1m0s"} {
		if s, err := ParseProcess(text); err != nil || s.String() != want {
			t.Errorf("process %s is %s, %v; want %s", text, s, err, want)
		}
	}
	for text, want := range map[string]string{"16": "constant:16", "10k": "constant:10000"} {
		if s, err := ParseLength(text); err != nil || s.String() != want {
			t.Errorf("length %s is %s, %v; want %s", text, s, err, want)
		}
	}
	for text, want := range map[string]string{"4": "constant:4s", "5 min": "constant:5m0s", "exponential:2min": "exponential:2m0s"} {
		if s, err := ParseDist(text); err != nil || s.String() != want {
			t.Errorf("distribution %s is %s, %v; want %s", text, s, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, spec := range []string{
		"", "poisson", "poisson:", "poisson:0", "poisson:-1", "poisson:NaN", "poisson:Inf", "poisson:1e9", "poisson:1e-9",
		"poisson:2,3", "poisson:2 s", "0", "1e6", "-5", "gamma:2", "gamma:2,0", "gamma:2,NaN", "gamma:2,1,1", "constant:1,1", "weibull:2", "2.5x",
	} {
		if s, err := ParseProcess(spec); err == nil {
			t.Errorf("ParseProcess(%q) = %v", spec, s)
		} else if !refusesWell(err, "an arrival process") {
			t.Errorf("ParseProcess(%q) shows no form: %v", spec, err)
		}
	}
	for _, spec := range []string{
		"", "constant", "constant:x", "721h", "constant:-1s", "constant:1ns", "constant:1s,2s", "constant:721h", "exponential:0s",
		"exponential:1s,1", "lognormal:1s", "lognormal:1s,0", "lognormal:0s,1", "gamma:1s,-1", "gamma:1s,Inf",
		"normal:0s,1", "normal:1s", "weibull:1s", "weibull:1s,shape=0", "lognormal:1s,sigma=0", "lognormal:1s,sigma=4", "gamma:1s,sigma=1", "gamma:1s,cv=1,cv=1",
		"pareto:0s,1s,alpha=1", "pareto:2s,1s,alpha=1", "pareto:1s,2s", "pareto:1s,2s,alpha=0", "zipf:1s,9s,s=1", "zipf:0s,9s,s=2", "constant:1s..2s",
		"histogram:", "histogram:1", "histogram:1=0", "histogram:2-1=3", "histogram:1-5=2,5-7=1", "histogram:-1=2", "histogram:1=-2", "histogram:1-2-3=4",
		"histogram:1=1099511627777", "histogram:99999999999999999=1", "histogram:1=1,",
		"uniform:1s", "uniform:2s,1s", "uniform:1s,1s", "uniform:1s,2s,3s",
	} {
		if s, err := ParseDist(spec); err == nil {
			t.Errorf("ParseDist(%q) = %v", spec, s)
		} else if !refusesWell(err, "a distribution of times") {
			t.Errorf("ParseDist(%q) shows no form: %v", spec, err)
		}
	}
}

// Parsing undoes String, for any specification that can be made.
func TestStringRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	within := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }
	pick := func(kinds string) string { k := strings.Fields(kinds); return k[r.IntN(len(k))] }
	for range 10_000 {
		p := ProcessSpec{kind: pick("poisson gamma weibull constant"), rate: within(minRate, maxRate)}
		if p.kind == "gamma" || p.kind == "weibull" {
			p.cv = within(minCV, maxCV)
		}
		if got, err := ParseProcess(p.String()); err != nil || got != p {
			t.Fatalf("%#v became %#v, %v", p, got, err)
		}
		p = ProcessSpec{kind: pick("ramp step diurnal spikes onoff"), gaps: pick("- gamma weibull"), first: time.Hour}
		if p.gaps == "-" {
			p.gaps = ""
		} else {
			p.cv = within(minCV, maxCV)
		}
		p.rates[0], p.rates[1] = within(1e-3, 1), within(1, maxRate)
		switch p.kind {
		case "ramp":
			p.steps = 2
		case "step":
			p.rates[2], p.steps = within(minRate, maxRate), 3
		case "spikes", "onoff":
			p.second = time.Duration(minPhase + time.Microsecond*time.Duration(r.IntN(1e6)))
		}
		if got, err := ParseProcess(p.String()); err != nil || got != p {
			t.Fatalf("%#v became %#v, %v", p, got, err)
		}
		d := DistSpec{kind: pick("constant exponential lognormal gamma weibull normal uniform pareto zipf")}
		d.lo = time.Duration(1+r.Int64N(int64(time.Hour/time.Microsecond))) * time.Microsecond
		switch d.kind {
		case "lognormal", "gamma", "weibull", "normal":
			d.cv = within(minCV, maxCV)
		case "pareto", "zipf":
			d.exponent = within(minZipf, maxExponent)
			fallthrough
		case "uniform":
			d.hi = d.lo + time.Microsecond*time.Duration(1+r.IntN(1e6))
		}
		if got, err := ParseDist(d.String()); err != nil || got != d {
			t.Fatalf("%#v became %#v, %v", d, got, err)
		}
	}
}

func TestZeroSpecs(t *testing.T) {
	if gap := (ProcessSpec{}).New(Stream(1, "")).Next(); gap != 0 {
		t.Errorf("the zero ProcessSpec gave a gap of %v", gap)
	}
	if d := (DistSpec{}).New(Stream(1, "")).Draw(); d != 0 {
		t.Errorf("the zero DistSpec drew %v", d)
	}
}

func FuzzParseProcess(f *testing.F) {
	for _, s := range []string{"poisson:2.5", "gamma:4,2", "constant:1e3", "gamma:,", ":", "poisson:0x1p-2", "weibull:2,shape=.7", "ramp:0-1e-5,1ms,cv=100", "step:1-0-2,1h",
		"diurnal:0,peak=1e-6,period=720h,gaps=weibull,cv=100", "spikes:0,to=1e-6,every=2ms,for=1ms", "onoff:1e5,on=1ms,off=720h,idle=1,burstiness=1e-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseProcess(spec)
		if err != nil {
			return
		}
		if again, err := ParseProcess(s.String()); err != nil || again != s {
			t.Fatalf("%q became %q, %v", spec, s, err)
		}
		p := s.New(Stream(1, "fuzz"))
		for range 20 {
			if gap := p.Next(); gap < 0 || gap > maxDraw || gap%time.Microsecond != 0 {
				t.Fatalf("%q gave a gap of %v", spec, gap)
			}
		}
	})
}

func FuzzParseDist(f *testing.F) {
	for _, s := range []string{"constant:3s", "exponential:4s", "lognormal:4s,1.2", "gamma:1ms,.5", "uniform:0,1h", "uniform:,", "weibull:1s,shape=.2", "normal:1us,100",
		"pareto:1us,720h,alpha=.05", "zipf:1us,720h,s=1.01", "histogram:1-2=3,4=5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseDist(spec)
		if err != nil {
			return
		}
		if again, err := ParseDist(s.String()); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q became %q, %v", spec, s, err)
		}
		dist := s.New(Stream(1, "fuzz"))
		for range 20 {
			if d := dist.Draw(); d < 0 || d > maxDraw || d%time.Microsecond != 0 {
				t.Fatalf("%q drew %v", spec, d)
			}
		}
	})
}
