package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/replay"
	"reprise/replay/report"
	"reprise/replay/simserver"
	"reprise/trace"
)

// A labRequest is one of the requests that both servers get in a round.
type labRequest struct {
	at             simserver.Picos
	prompt, output int
}

// labRound draws the requests of a round: 20 a second, as they come.
func labRound(rng *rand.Rand) []labRequest {
	out := make([]labRequest, 200)
	at := 0.0
	for i := range out {
		at += rng.ExpFloat64() / 20
		out[i] = labRequest{picosOf(at), 100 + rng.IntN(400), 8 + rng.IntN(16)}
	}
	return out
}

func picosOf(seconds float64) simserver.Picos { return simserver.Picos(seconds * 1e12) }

// labRun plays a round to an engine whose steps take factor times as long. No run
// is like another: an engine is faster or slower by 2 % as a whole (its clock, its
// temperature, its neighbours), and each request comes up to some milliseconds late
// (the network).
func labRun(t *testing.T, rng *rand.Rand, round []labRequest, factor float64) report.Summary {
	factor *= math.Exp(0.02 * rng.NormFloat64())
	scaled := func(v simserver.Picos) simserver.Picos { return simserver.Picos(factor * float64(v)) }
	p, err := simserver.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Engine.Costs
	p.Engine.Costs = simserver.Costs{Step: scaled(c.Step), KVToken: scaled(c.KVToken), PrefillToken: scaled(c.PrefillToken),
		DecodeSeq: scaled(c.DecodeSeq), Request: scaled(c.Request)}
	var rows []replay.Result
	fleet, err := simserver.NewFleet(simserver.FleetConfig{Engine: p.Engine, Replicas: 1, Router: simserver.RouterRoundRobin},
		func(a *simserver.Answer) error {
			r := replay.Result{RowID: a.Job.ID, DueNS: int64(round[a.Job.ID].at.Duration()), SentNS: trace.Ptr(int64(a.At.Duration())),
				WantInput: int32(a.Job.Prompt), WantOutput: int32(a.Job.Output), Input: trace.Ptr(int32(a.Job.Prompt))}
			answered(&r, a)
			rows = append(rows, r)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	sent := make([]simserver.Arrival, len(round))
	for i, q := range round {
		sent[i] = simserver.Arrival{At: q.at + picosOf(0.002*rng.ExpFloat64()), Job: simserver.Job{ID: int64(i), Prompt: q.prompt, Output: q.output}}
	}
	slices.SortFunc(sent, func(a, b simserver.Arrival) int { return int(a.At - b.At) })
	for _, a := range sent {
		if err := fleet.Send(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := fleet.Finish(); err != nil {
		t.Fatal(err)
	}
	run := replay.Run{Workload: "sha256:lab", Requests: int64(len(rows)), Simulated: "lab"}
	s, err := report.Summarise(run, &trace.SliceReader[replay.Result]{Rows: rows}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// labComparison is a comparison of ten rounds, the default.
func labComparison(t *testing.T, seed uint64, factor float64) report.Comparison {
	rng := rand.New(rand.NewPCG(seed, 1))
	a, b := report.Arm{Name: "A"}, report.Arm{Name: "B"}
	for range defaultRounds {
		round := labRound(rng)
		a.Runs = append(a.Runs, labRun(t, rng, round, 1))
		b.Runs = append(b.Runs, labRun(t, rng, round, factor))
	}
	c, err := report.Compare([]report.Arm{a, b}, report.CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// On two equal endpoints a difference in any metric is claimed in at most 3 of 100
// comparisons; one that is 10 % slower is found in at least 80 of 100.
func TestCompareClaimsAndFinds(t *testing.T) {
	repeats := uint64(100)
	if testing.Short() {
		repeats = 20 // with the same shares
	}
	quiet, found := uint64(0), uint64(0)
	for seed := range repeats {
		claimed := false
		for _, m := range labComparison(t, seed, 1).Versus[0].Metrics {
			claimed = claimed || m.Significant
		}
		if !claimed {
			quiet++
		}
		if v := labComparison(t, 1000+seed, 1.1).Versus[0]; v.Decision == report.Worse {
			found++
		}
	}
	t.Logf("equal: no difference in any metric in %d of %d; 10 %% slower: found in %d", quiet, repeats, found)
	if quiet*100 < 97*repeats || found*100 < 80*repeats {
		t.Errorf("equal: no difference in any metric in %d of %d; 10 %% slower: found in %d", quiet, repeats, found)
	}
}
