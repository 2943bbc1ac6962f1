package engine

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"reprise/trace/fleet"
)

func TestParseNoise(t *testing.T) {
	for text, want := range map[string]string{
		"2%":                            "speed=2%,drift=0%,late=0s",
		"speed=2.5%, drift=1%,late=1ms": "speed=2.5%,drift=1%,late=1ms",
		"measured":                      "speed=2.3%,drift=0%,late=0s",
		"late=250us":                    "speed=0%,drift=0%,late=250µs",
		"0%":                            "",
	} {
		n, err := ParseNoise(text)
		if err != nil || n.String() != want {
			t.Errorf("%s: %q, %v; want %q", text, n.String(), err, want)
		}
		if again, err := ParseNoise(n.String()); n.String() != "" && (err != nil || again != n) {
			t.Errorf("%s is read back as %+v, %v", n, again, err)
		}
	}
	for _, text := range []string{"", "2", "much", "speed=31%", "drift=-1%", "late=2s", "late=", "x=1%", "2%,,"} {
		if n, err := ParseNoise(text); err == nil {
			t.Errorf("%q is read as %v", text, n)
		}
	}
}

// Runs of a series vary by the speed, and by a drift that grows with the runs between them; the
// same run is always the same.
func TestNoiseOfRuns(t *testing.T) {
	n := Noise{Speed: 0.02, Drift: 0.01, Late: 1e6}
	var near, far []float64
	for seed := range uint64(2000) {
		a, b, c := n.Run(seed, 0), n.Run(seed, 1), n.Run(seed, 16)
		near, far = append(near, math.Log(b.Factor/a.Factor)), append(far, math.Log(c.Factor/a.Factor))
		if a != n.Run(seed, 0) || a.Seed == b.Seed || a.Late != 1e9 {
			t.Fatalf("%+v and %+v", a, b)
		}
	}
	for _, c := range []struct {
		of   []float64
		runs float64
	}{{near, 1}, {far, 16}} {
		mean, sd := stat.MeanStdDev(c.of, nil)
		if want := math.Sqrt(2*0.02*0.02 + c.runs*0.01*0.01); math.Abs(sd/want-1) > 0.06 || math.Abs(mean) > 4*want/math.Sqrt(2000) {
			t.Errorf("%v runs apart: mean %v, SD %v, want %v", c.runs, mean, sd, want)
		}
	}
	if (Noise{}).Run(1, 5) != (RunNoise{}) {
		t.Error("noise without noise")
	}
}

// A fleet's steps take factor times as long, and its requests enter late by the mean, in their order.
func TestNoisyFleet(t *testing.T) {
	c := DefaultConfig()
	c.Costs = Costs{Step: 1e9, Request: 2e9}
	answers := func(noise RunNoise) (first []Picos) {
		f, err := NewFleet(FleetConfig{Engine: c, Replicas: 1, Router: fleet.RoundRobin, Noise: noise}, func(a *Answer) error {
			first = append(first, a.Tokens[0]-a.At)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(400) {
			if err := f.Send(Arrival{At: Picos(i) * 1e12, Job: Job{ID: i, Prompt: 1, Output: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Finish(); err != nil || len(first) != 400 {
			t.Fatal(err, len(first))
		}
		return first
	}
	if got := answers(RunNoise{Factor: 1.5})[7]; got != 4.5e9 {
		t.Errorf("the first token after %v ps, want 1.5 × 3 ms", got)
	}
	sum := 0.0
	for _, at := range answers(RunNoise{Factor: 1, Late: 5e9, Seed: 3}) {
		sum += float64(at-3e9) / 5e9
	}
	if mean := sum / 400; math.Abs(mean-1) > 4/math.Sqrt(400) {
		t.Errorf("requests are late by %v of the mean", mean)
	}
}

func FuzzParseNoise(f *testing.F) {
	f.Add("speed=2%,drift=0.5%,late=1ms")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNoise(text)
		if err == nil && !(n.Speed >= 0 && n.Speed <= maxNoise && n.Drift >= 0 && n.Drift <= maxNoise && n.Late >= 0) {
			t.Errorf("%q is read as %+v", text, n)
		}
	})
}
