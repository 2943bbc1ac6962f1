package report_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/longtest"
)

// A steadyCase is a load whose truth is known: from when on it is steady, or that it never
// is. Rates are of what the engine can do.
type steadyCase struct {
	name    string
	steady  bool
	warmUpS float64 // after which it is, at the latest
	rate    func(share float64) float64
	cv      float64 // of the gaps between arrivals
	closed  int     // requests in flight of a closed loop
	stepS   float64 // at which the load changes: no steady state goes on across it
}

func flat(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }

var steadyCases = []steadyCase{
	{"stationary, half of the capacity", true, 30, flat(0.5), 1, 0, 0},
	{"stationary, four fifths", true, 60, flat(0.8), 1, 0, 0},
	{"bursty, half of the capacity", true, 30, flat(0.5), 2.5, 0, 0},
	{"ramp over the first quarter, then flat", true, 110, func(at float64) float64 { return 0.6 * min(1, 0.1+at*3.6) }, 1, 0, 0},
	{"closed loop", true, 60, flat(4), 1, 24, 0},
	{"ramping throughout", false, 0, func(at float64) float64 { return 0.1 + 0.7*at }, 1, 0, 0},
	{"overloaded by a fifth", false, 0, flat(1.2), 1, 0, 0},
	{"overloaded by half, bursty", false, 0, flat(1.5), 2.5, 0, 0},
	{"a wave", false, 0, func(at float64) float64 { return 0.45 - 0.35*math.Cos(2*math.Pi*at) }, 1, 0, 0},
	{"a step in the middle", false, 0, func(at float64) float64 {
		if at < 0.5 {
			return 0.3
		}
		return 0.75
	}, 1, 0, 200},
}

const steadySeconds = 400

// steadyRun plays a case on a simulated L4 with 16 places, in virtual time.
func steadyRun(t *testing.T, c *steadyCase, seed uint64) []result.Result {
	t.Helper()
	preset, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	fleet := engine.FleetConfig{Engine: preset.Engine, Replicas: 1, Router: fleet.RoundRobin}
	fleet.Engine.MaxSeqs = 16
	const capacity = 12.9 // requests/s, what a closed loop of more than its places does
	rng := rand.New(rand.NewPCG(seed, 16))
	gamma := func(shape float64) float64 { // Marsaglia and Tsang, with Johnk's boost below 1
		boost := 1.0
		if shape < 1 {
			boost, shape = math.Pow(rng.Float64(), 1/shape), shape+1
		}
		d := shape - 1.0/3
		for {
			x := rng.NormFloat64()
			v := math.Pow(1+x/math.Sqrt(9*d), 3)
			if v > 0 && math.Log(rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
				return boost * d * v
			}
		}
	}
	var rows []trace.Request
	for at := 0.0; at < steadySeconds; {
		shape := 1 / (c.cv * c.cv)
		rows = append(rows, trace.Request{ArrivalNS: int64(at * 1e9), InputTokens: int32(50 + rng.IntN(300)),
			OutputTokens: trace.Ptr(int32(min(max(200*math.Exp(0.6*rng.NormFloat64()-0.18), 4), 1500)))})
		at += gamma(shape) / shape / (capacity * c.rate(at/steadySeconds))
	}
	var out trace.SliceWriter[result.Result]
	options := replay.Options{Concurrency: c.closed, Duration: steadySeconds * time.Second}
	if _, _, err := (bench.Simulation{Fleet: fleet, Rows: &trace.SliceReader[trace.Request]{Rows: rows}, Options: options, Results: &out}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.Rows
}

// p99Between is the p99 of TTFT of the requests that were sent and finished in a time.
func p99Between(t *testing.T, results []result.Result, from, to float64) float64 {
	t.Helper()
	var inside []result.Result
	for _, r := range results {
		if float64(*r.SentNS) >= from*1e9 && float64(*r.DoneNS) < to*1e9 {
			inside = append(inside, r)
		}
	}
	s, err := report.Summarise(result.Run{}, &trace.SliceReader[result.Result]{Rows: inside}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return *s.Latency.FromSent.E2E.P99
}

// A steady state is found where there is one, and its p99 is that of the time which is
// known to be steady, within what runs differ by; none is claimed where there is none.
func TestSteadyAgainstTruth(t *testing.T) {
	seeds := 1
	if longtest.On() {
		seeds = 20 // of ten loads: 200 runs
	}
	for _, c := range steadyCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, reasons := 0, map[string]int{}
			var p99, known []float64
			for seed := range seeds {
				results := steadyRun(t, &c, uint64(1000+seed))
				sum, err := report.SummariseSteady(result.Run{}, func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: results} }, report.Options{})
				if err != nil {
					t.Fatal(err)
				}
				s := sum.Steady
				if s.Reason != "" {
					reasons[s.Reason]++
					continue
				}
				if c.stepS > 0 && (s.Window.ToS < c.stepS+10 || s.Window.FromS > c.stepS-10) {
					continue // on one side of it
				}
				found++
				p99 = append(p99, *s.E2E.P99)
				known = append(known, p99Between(t, results, c.warmUpS, steadySeconds))
			}
			switch {
			case !c.steady && found > 0:
				t.Errorf("a steady state is claimed in %d of %d runs", found, seeds)
			case !c.steady:
				return
			case found < seeds-seeds/20:
				t.Fatalf("a steady state is found in %d of %d runs: %v", found, seeds, reasons)
			}
			// By how much runs of the same load differ, in the time that is known to be steady.
			mean, sd := 0.0, 0.0
			for _, v := range known {
				mean += v / float64(len(known))
			}
			for _, v := range known {
				sd += (v - mean) * (v - mean) / float64(len(known)-1)
			}
			sd = math.Sqrt(sd)
			bias := 0.0
			for _, v := range p99 {
				bias += (v - mean) / float64(len(p99))
			}
			slices.Sort(p99)
			t.Logf("%d of %d; p99 of E2E %.0f to %.0f ms, off by %.0f ms in the mean; known are %.0f ± %.0f ms", found, seeds, p99[0], p99[len(p99)-1], bias, mean, sd)
			if seeds >= 20 && (math.Abs(bias) > sd || p99[0] < mean-4*sd || p99[len(p99)-1] > mean+4*sd) {
				t.Errorf("p99 of E2E %.0f to %.0f ms, off by %.0f ms in the mean; known are %.0f ± %.0f ms", p99[0], p99[len(p99)-1], bias, mean, sd)
			}
		})
	}
}
