package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/replay"
	"reprise/replay/compare"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/fleet"
	"reprise/trace/longtest"
)

// labRound draws the requests of a round: 20 a second, as they come.
func labRound(rng *rand.Rand) []trace.Request {
	out := make([]trace.Request, 200)
	at := 0.0
	for i := range out {
		at += rng.ExpFloat64() / 20
		out[i] = trace.Request{ArrivalNS: int64(at * 1e9), InputTokens: 100 + rng.Int32N(400), OutputTokens: trace.Ptr(8 + rng.Int32N(16))}
	}
	return out
}

// kept takes results as they come.
type kept struct{ rows []result.Result }

func (k *kept) Write(rows []result.Result) (int, error) {
	k.rows = append(k.rows, rows...)
	return len(rows), nil
}

// labRun plays a round to an engine whose steps take factor times as long. No run
// is like another: an engine is faster or slower by 2 % as a whole (its clock, its
// temperature, its neighbours), and each request comes some milliseconds late (the
// network), 2 ms on average.
func labRun(t *testing.T, rng *rand.Rand, round []trace.Request, factor float64) report.Summary {
	factor *= math.Exp(0.02 * rng.NormFloat64())
	scaled := func(v engine.Picos) engine.Picos { return engine.Picos(factor * float64(v)) }
	p, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Engine.Costs
	p.Engine.Costs = engine.Costs{Step: scaled(c.Step), KVToken: scaled(c.KVToken), PrefillToken: scaled(c.PrefillToken),
		DecodeSeq: scaled(c.DecodeSeq), Request: scaled(c.Request)}
	rows := slices.Clone(round)
	for i := range rows {
		rows[i].ArrivalNS += int64(2e6 * rng.ExpFloat64())
	}
	slices.SortFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	var results kept
	_, run, err := Simulation{
		Fleet:   engine.FleetConfig{Engine: p.Engine, Replicas: 1, Router: fleet.RoundRobin},
		Rows:    &trace.SliceReader[trace.Request]{Rows: rows},
		Options: replay.Options{Speed: 1, About: result.Run{Source: result.Source{Workload: "sha256:lab"}, Simulation: result.Simulation{Simulated: "lab"}}},
		Results: &results,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := report.Summarise(run, &trace.SliceReader[result.Result]{Rows: results.rows}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// labComparison is a comparison of as many rounds as is the default.
func labComparison(t *testing.T, seed uint64, factor float64) compare.Comparison {
	rng := rand.New(rand.NewPCG(seed, 1))
	a, b := compare.Arm{Name: "A"}, compare.Arm{Name: "B"}
	for range compare.DefaultRounds {
		round := labRound(rng)
		a.Runs = append(a.Runs, labRun(t, rng, round, 1))
		b.Runs = append(b.Runs, labRun(t, rng, round, factor))
	}
	c, err := compare.Arms([]compare.Arm{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// On two equal endpoints a difference in any metric is claimed in at most 3 of 100
// comparisons; one that is 10 % slower is found in at least 80 of 100.
func TestCompareClaimsAndFinds(t *testing.T) {
	longtest.Skip(t)
	const repeats = 100
	quiet, found := 0, 0
	for seed := range uint64(repeats) {
		claimed := false
		for _, m := range labComparison(t, seed, 1).Versus[0].Metrics {
			claimed = claimed || m.Significant
		}
		if !claimed {
			quiet++
		}
		if v := labComparison(t, 1000+seed, 1.1).Versus[0]; v.Decision == compare.Worse {
			found++
		}
	}
	t.Logf("equal: no difference in any metric in %d of %d; 10 %% slower: found in %d", quiet, repeats, found)
	if quiet < 97 || found < 80 {
		t.Errorf("equal: no difference in any metric in %d of %d; 10 %% slower: found in %d", quiet, repeats, found)
	}
}
