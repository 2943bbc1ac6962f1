package bench

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"reprise/replay"
	"reprise/replay/compare"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/fleet"
)

// A traffic is a kind of load that two engines are compared under.
type traffic struct {
	name string
	rows func(rng *rand.Rand) []trace.Request
	live int // sessions; or with closed requests in flight
	// closed is a closed loop of requests, and not of session trees.
	closed bool
}

// lognormal draws a length of this mean and sigma 0.8 within bounds.
func lognormal(rng *rand.Rand, mean, least, most float64) int32 {
	return int32(min(max(math.Exp(math.Log(mean)-0.32+0.8*rng.NormFloat64()), least), most))
}

// open are n requests that arrive by gaps of a mean.
func open(n int, perS float64, gap func(*rand.Rand) float64, prompt, answer [3]float64) func(*rand.Rand) []trace.Request {
	return func(rng *rand.Rand) (out []trace.Request) {
		at := 0.0
		for range n {
			at += gap(rng) / perS
			out = append(out, trace.Request{ArrivalNS: int64(at * 1e9), InputTokens: lognormal(rng, prompt[0], prompt[1], prompt[2]), OutputTokens: trace.Ptr(lognormal(rng, answer[0], answer[1], answer[2]))})
		}
		return out
	}
}

func exponential(rng *rand.Rand) float64 { return rng.ExpFloat64() }

// burst is a gap with a mean of 1 and a CV of 4, from two exponentials: one of twenty gaps is
// long. With rare·l + (1−rare)·s = 1 the squared CV is 2(rare·l² + (1−rare)·s²) − 1.
func burst(rng *rand.Rand) float64 {
	const cv2, rare = 16, 0.05
	d := math.Sqrt((cv2 - 1) / 2.0 * rare * (1 - rare))
	long, short := 1+d/rare, 1-d/(1-rare)
	if rng.Float64() < rare {
		return long * rng.ExpFloat64()
	}
	return short * rng.ExpFloat64()
}

// turns are sessions of 2 to 6 turns, each with the prompt and answer before in its own, and
// think times of a second.
func turns(rng *rand.Rand) (out []trace.Request) {
	block := uint64(0)
	for s := range int64(36) {
		var blocks []uint64
		length := int32(0)
		parent := int64(-1)
		for turn := range int32(2 + rng.IntN(5)) {
			length += 64 + 16*rng.Int32N(20)
			for int32(len(blocks))*16 < length {
				blocks = append(blocks, block)
				block++
			}
			r := trace.Request{ArrivalNS: s * 1e9, Session: trace.Ptr(s), Turn: trace.Ptr(turn), InputTokens: length, OutputTokens: trace.Ptr(16 + rng.Int32N(64)), Blocks: slices.Clone(blocks), ThinkNS: trace.Ptr(int64(1e9 * rng.ExpFloat64()))}
			if parent >= 0 {
				r.Parents = []int64{parent}
			}
			parent = int64(len(out))
			out = append(out, r)
		}
	}
	return out
}

var traffics = []traffic{
	{name: "chat, Poisson", rows: open(150, 8, exponential, [3]float64{500, 50, 4000}, [3]float64{100, 10, 800})},
	{name: "chat, bursts (CV 4)", rows: open(150, 8, burst, [3]float64{500, 50, 4000}, [3]float64{100, 10, 800})},
	{name: "long prompts, short answers", rows: open(150, 3, exponential, [3]float64{4000, 500, 16000}, [3]float64{40, 10, 200})},
	{name: "closed loop of 16", rows: open(150, 1, exponential, [3]float64{500, 50, 4000}, [3]float64{100, 10, 800}), live: 16, closed: true},
	{name: "sessions, 8 live", rows: turns, live: 8},
}

// powerNoise is that of the comparisons: the speed of a run varies by 2 %, half a percent
// more from run to run drifts and stays, and requests come 1 ms late on average.
var powerNoise = engine.Noise{Speed: 0.02, Drift: 0.005, Late: 1e6}

// run plays rows to an engine whose costs are longer by a factor, as the run-th of a series.
func (k *traffic) run(t *testing.T, rows []trace.Request, factor float64, series, run uint64) report.Summary {
	t.Helper()
	p, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	p.Engine.Costs = p.Engine.Costs.Times(factor)
	o := replay.Options{Speed: 1, About: result.Run{Source: result.Source{Workload: "sha256:lab"}, Simulation: result.Simulation{Simulated: "lab"}}}
	var reader trace.Reader[trace.Request] = &trace.SliceReader[trace.Request]{Rows: rows}
	switch {
	case k.closed:
		o.Concurrency = k.live
	case k.live > 0:
		trees, err := replay.ReadTrees(reader, 16, false, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer trees.Close()
		o.Sessions, reader = &replay.SessionLoad{Live: k.live, Trees: trees}, nil
	}
	var results kept
	_, about, err := Simulation{
		Fleet: engine.FleetConfig{Engine: p.Engine, Replicas: 1, Router: fleet.RoundRobin, Noise: powerNoise.Run(series, run)},
		Rows:  reader, BlockSize: 16, Options: o, Results: &results,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(results.rows, func(a, b result.Result) int { return cmp.Compare(a.RowID, b.RowID) })
	s, err := report.Summarise(about, &trace.SliceReader[result.Result]{Rows: results.rows}, report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A planned is what a comparison that was planned came to.
type planned struct {
	plan     compare.Plan
	rounds   int
	decision string
	change   *compare.Interval
}

// compareByPlan compares as the command does: pilot rounds, a plan for a change of 5 %, and
// rounds until a look decides.
func (k *traffic) compareByPlan(t *testing.T, seed uint64, factor, alpha float64) planned {
	t.Helper()
	run := uint64(0)
	arms := func(rounds int, from uint64, into []compare.Arm) []compare.Arm {
		for i := len(into[0].Runs); i < rounds; i++ {
			rows := k.rows(rand.New(rand.NewPCG(seed, from+uint64(i))))
			for side := range 2 {
				side = (side + i) % 2 // they take turns
				s := k.run(t, rows, []float64{1, factor}[side], seed, run)
				run++
				into[side].Runs = append(into[side].Runs, s)
			}
		}
		return into
	}
	fresh := func() []compare.Arm { return []compare.Arm{{Name: "A"}, {Name: "B"}} }
	o := compare.Options{Alpha: alpha, Detect: 0.05}
	plan, err := compare.NewPlan(arms(compare.DefaultPilot, 1000, fresh()), o, 0)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", k.name, seed, err)
	}
	o.Plan = &plan
	both, out := fresh(), planned{plan: plan}
	for _, look := range plan.Looks {
		both = arms(look, 0, both)
		c, err := compare.Arms(both, o)
		if err != nil {
			t.Fatal(err)
		}
		out.rounds, out.decision, out.change = look, c.Versus[0].Decision, c.Versus[0].Metrics[0].Change
		if c.Versus[0].Decided() {
			break
		}
	}
	return out
}

// TestComparePower makes planned comparisons of five kinds of traffic. An engine that is 5 %
// slower is found in at least 80 % of them; of 500 pairs that are the same a difference is claimed in
// at most 7 % at a nominal 5 %, and 93 % of the intervals hold 0.
func TestComparePower(t *testing.T) {
	if os.Getenv("REPRISE_TEST_STATISTICS") == "" {
		t.Skip("REPRISE_TEST_STATISTICS is not set: 1,000 comparisons in virtual time")
	}
	const same, slower = 100, 100 // of each kind
	claimedOf, coveredOf, ofAll, foundOf, foundAll := 0, 0, 0, 0, 0
	for i := range traffics {
		k := &traffics[i]
		claimed, covered, found, rounds, most := 0, 0, 0, 0, 0
		metrics := map[string]int{}
		for seed := range uint64(same) {
			c := k.compareByPlan(t, 1+seed, 1, 0.05)
			if c.decision == compare.Worse || c.decision == "better" {
				claimed++
			}
			if c.change != nil && c.change.Low != nil && *c.change.Low <= 0 && *c.change.High >= 0 {
				covered++
			}
		}
		for seed := range uint64(slower) {
			c := k.compareByPlan(t, 10_000+seed, 1.05, 0.05)
			if c.decision == compare.Worse {
				found++
			}
			rounds, most = rounds+c.rounds, most+c.plan.Rounds()
			metrics[c.plan.Primary]++
		}
		line := fmt.Sprintf("%s: +5 %% found in %d of %d, in %.1f rounds of %.1f planned; A/A claimed in %d of %d, interval holds 0 in %d; metrics %v",
			k.name, found, slower, float64(rounds)/float64(slower), float64(most)/float64(slower), claimed, same, covered, metrics)
		t.Log(line)
		if found*100 < 80*slower {
			t.Error(line)
		}
		claimedOf, coveredOf, ofAll, foundOf, foundAll = claimedOf+claimed, coveredOf+covered, ofAll+same, foundOf+found, foundAll+slower
	}
	const claimedMost, foundLeast = 7, 80 // percent
	if claimedOf*100 > claimedMost*ofAll || foundOf*100 < foundLeast*foundAll || coveredOf*100 < (100-claimedMost)*ofAll {
		t.Errorf("A/A claimed in %d of %d, the interval holds 0 in %d; +5 %% found in %d of %d", claimedOf, ofAll, coveredOf, foundOf, foundAll)
	}
	t.Logf("together: A/A claimed in %d of %d, the interval holds 0 in %d; +5 %% found in %d of %d", claimedOf, ofAll, coveredOf, foundOf, foundAll)
}
