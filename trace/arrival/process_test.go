package arrival

import (
	"math"
	"strings"
	"testing"
	"time"
)

// rateAt is the definition of each form, per second.
func rateAt(spec string, s float64) float64 {
	kind, _, _ := strings.Cut(spec, ":")
	switch kind {
	case "ramp": // 0-10,40s
		return min(s/40, 1) * 10
	case "step": // 3-0-12,20s
		return []float64{3, 0, 12}[min(int(s/20), 2)]
	case "diurnal": // 2,peak=14,period=30s
		return 8 - 6*math.Cos(2*math.Pi*s/30)
	case "spikes": // 1,to=30,every=25s,for=5s
		if math.Mod(s, 25) >= 20 {
			return 30
		}
		return 1
	}
	return math.NaN()
}

// Many runs of 100 s against the integral of the rate over each 2 s.
func TestRatesOverTime(t *testing.T) {
	const runs, bins, width = 2000, 50, 2.
	for _, spec := range []string{
		"ramp:0-10,40s", "ramp:0-10,40s,cv=0.5", "ramp:0-10,40s,gaps=weibull,cv=0.7", "step:3-0-12,20s", "step:3-0-12,20s,burstiness=0.8",
		"diurnal:2,peak=14,period=30s", "spikes:1,to=30,every=25s,for=5s",
	} {
		got, square := make([]float64, bins), make([]float64, bins)
		for seed := range uint64(runs) {
			p := processOf(t, spec, seed)
			count := make([]float64, bins)
			at := 0.
			for {
				if at += p.Next().Seconds(); at >= bins*width {
					break
				}
				count[int(at/width)]++
			}
			for i, n := range count {
				got[i] += n / runs
				square[i] += n * n / runs
			}
		}
		var renewal float64 // a renewal process that starts with an arrival is (CV²-1)/2 ahead in the long run
		if _, cv, ok := strings.Cut(spec, "cv="); ok {
			renewal = map[string]float64{"0.5": 0.375, "0.7": 0.255}[cv]
		} else if strings.Contains(spec, "burstiness") {
			renewal = 0.125
		}
		for i := range got {
			want := 0.
			for j := range 1000 {
				want += rateAt(spec, (float64(i)+(float64(j)+0.5)/1000)*width) * width / 1000
			}
			noise := math.Sqrt(max(square[i]-got[i]*got[i], 0.01) / runs)
			if math.Abs(got[i]-want) > 5*noise+renewal*1.1 {
				t.Errorf("%s: %.3f arrivals in bin %d, want %.3f (noise %.3f)", spec, got[i], i, want, noise)
			}
		}
	}
}

// Long-run rates of what repeats, also over very long and very short periods.
func TestLongRunRates(t *testing.T) {
	for _, c := range []struct {
		spec      string
		rate      float64
		tolerance float64
	}{
		{"diurnal:2,peak=6,period=24h", 4, 0.02},
		{"diurnal:0,peak=50000,period=1s", 25000, 0.01},
		{"diurnal:1e-3,peak=3e-3,period=1m", 2e-3, 0.02},
		{"spikes:2,to=20,every=5m,for=10s", 2.6, 0.02},
		{"spikes:0,to=1e-3,every=2ms,for=1ms", 5e-4, 0.02},
		{"spikes:5,to=50000,every=1s,for=100ms,burstiness=2", 5004.5, 0.01},
		{"onoff:10,on=5s,off=20s", 2, 0.04},
		{"onoff:10,on=500ms,off=2s,idle=1,cv=2", 2.8, 0.03},
		{"ramp:1e-6-70000,1ms,cv=0.01", 70000, 0.001},
		{"weibull:3,cv=2", 3, 0.03},
		{"weibull:3,shape=2", 3, 0.01},
		{"gamma:3,burstiness=0.25", 3, 0.03},
	} {
		p := processOf(t, c.spec, 5)
		n, at := 0, time.Duration(0)
		horizon := time.Duration(400_000 / c.rate * 1e9)
		if strings.Contains(c.spec, "24h") {
			horizon = 2 * 24 * time.Hour
		}
		for at < horizon {
			at += p.Next()
			n++
		}
		if got := float64(n) / at.Seconds(); math.Abs(got/c.rate-1) > c.tolerance {
			t.Errorf("%s: %g per second, want %g", c.spec, got, c.rate)
		}
	}
}

// An interrupted Poisson process has gaps that are hyperexponential with a CV
// that is known (Kuczura, "The interrupted Poisson process as an overflow
// process", 1973): with rate a, and phases that end at rates w (on) and b (off),
// CV² = 1 + 2aw/(w+b)².
func TestOnOffGaps(t *testing.T) {
	mean, cv := moments(400_000, processOf(t, "onoff:10,on=5s,off=20s", 9).Next)
	want := math.Sqrt(1 + 2*10*0.2/(0.25*0.25))
	if math.Abs(mean-0.5) > 0.03 || math.Abs(cv/want-1) > 0.03 {
		t.Errorf("mean %.3f s, CV %.2f; want 0.5 s, %.2f", mean, cv, want)
	}
}

func TestProcessSpellings(t *testing.T) {
	for a, b := range map[string]string{
		"gamma:2,burstiness=0.25": "gamma:2,2", "gamma:2,cv=2": "gamma:2,2", "ramp:1-2,over=1m,burstiness=4": "ramp:1-2,1m0s,cv=0.5",
		"diurnal:2,6,24h": "diurnal:2,peak=6,period=24h0m0s", "weibull:2,3": "weibull:2,cv=3", "onoff:1,5s,20s": "onoff:1,on=5s,off=20s",
		"step:1e-5-2e+0-3,each=1s": "step:1e-05-2-3,1s", "spikes:1,9,1m,10s,gaps=weibull,cv=2": "spikes:1,to=9,every=1m0s,for=10s,gaps=weibull,cv=2",
		"onoff:1,5s,20s,idle=0.5,gaps=gamma,cv=3": "onoff:1,on=5s,off=20s,idle=0.5,cv=3",
	} {
		if s, err := ParseProcess(a); err != nil || s.String() != b {
			t.Errorf("%s is %q, %v; want %q", a, s, err, b)
		}
	}
}

func TestParseProcessRefusesChanging(t *testing.T) {
	for _, spec := range []string{
		"ramp:1,60s", "ramp:1-2", "ramp:1-2-3,60s", "ramp:1-0,60s", "ramp:-1-2,60s", "ramp:1-2,0s", "ramp:1-2,60x", "ramp:1-2,60s,gaps=normal,cv=1",
		"ramp:1-2,60s,gaps=weibull", "ramp:1-2,60s,cv=0", "ramp:1-2,60s,cv=1,burstiness=1", "ramp:1-2,60s,cv=1,cv=2", "ramp:1-2,60s,7",
		"step:1,60s", "step:1-0,60s", "step:1--2,60s", "step:,60s", "step:" + strings.Repeat("1-", maxSteps) + "1,60s",
		"diurnal:2,peak=1,period=24h", "diurnal:0,peak=0,period=1h", "diurnal:2,peak=6", "diurnal:2,peak=6,period=1us",
		"spikes:2,to=20,every=10s,for=10s", "spikes:2,to=0,every=10s,for=1s", "spikes:2,to=20,every=10s",
		"onoff:10,on=5s", "onoff:10,on=1ms,off=1s", "onoff:10,on=5s,off=0s", "onoff:10,on=5s,off=5s,idle=-1", "onoff:0,on=5s,off=5s",
		"poisson:2,cv=3", "constant:2,cv=1", "gamma:2,burstiness=0", "gamma:2,shape=1", "weibull:2,burstiness=1", "weibull:2,shape=0.1", "weibull:2,1..3",
	} {
		if s, err := ParseProcess(spec); err == nil {
			t.Errorf("ParseProcess(%q) = %v", spec, s)
		} else if !refusesWell(err, "an arrival process") {
			t.Errorf("ParseProcess(%q) shows no form: %v", spec, err)
		}
	}
}

// First draws of each form: a change of these changes every workload made from a seed.
func TestGoldenChanging(t *testing.T) {
	for spec, want := range map[string]string{
		"weibull:2.5,cv=2":                         "1.305945s 1µs 68µs 37.868ms",
		"ramp:1-10,60s":                            "253.302ms 1.836413s 2.398719s 118.661ms",
		"ramp:1-10,60s,cv=3":                       "1.211492s 0s 273µs 3.136ms",
		"step:1-5-2,2s":                            "258.115ms 1.825331s 716.431ms 39.922ms",
		"diurnal:2,peak=6,period=24h":              "129.057ms 1.079559s 1.791073s 99.804ms",
		"spikes:2,to=20,every=5m,for=10s":          "129.057ms 1.07956s 1.791076s 99.804ms",
		"onoff:10,on=5s,off=20s":                   "25.811ms 358.215ms 19.961ms 118.205ms",
		"onoff:10,on=5s,off=20s,gaps=weibull,cv=2": "326.486ms 17µs 9.467ms 2.871ms",
	} {
		if got := first(processOf(t, spec, 42).Next); got != want {
			t.Errorf("%q: %q,", spec, got)
		}
	}
}

// The integral of the rate over a wait is the work that was asked for.
func TestClocksIntegrate(t *testing.T) {
	r := Stream(1, "clocks")
	for _, c := range []*pieces{
		wave(1e-9, 9e-9, time.Hour),
		periodic([]piece{{3e9, 0, 0}, {7e9, 2e-9, 2e-9}, {2e9, 5e-9, 0}}),
	} {
		integral := func(at time.Duration) float64 { // from 0
			sum := float64(at/c.period) * c.each
			at %= c.period
			for _, p := range c.list {
				d := min(at, p.length)
				sum += (p.from + p.rate(d)) / 2 * float64(d)
				at -= d
			}
			return sum
		}
		at := time.Duration(0)
		for range 10_000 {
			work := r.ExpFloat64() * math.Pow(10, r.Float64()*6-4)
			next := at + c.advance(work)
			if got := integral(next) - integral(at); math.Abs(got-work) > 1e-8*(1+work)+1e-15*integral(at) {
				t.Fatalf("%g of work took from %v to %v, in which there is %g", work, at, next, got)
			}
			at = next
		}
	}
}
