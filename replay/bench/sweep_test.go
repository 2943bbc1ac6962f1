package bench

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/fleet"
	"reprise/trace/longtest"
)

// The knee of curves whose shape is known.
func TestKnee(t *testing.T) {
	for name, c := range map[string]struct {
		latency func(x float64) float64
		want    float64
		found   bool
	}{
		"M/M/1, of rate 10":   {func(x float64) float64 { return 1 / (10 - x) }, 5, true},         // Kleinrock: at half of the capacity
		"M/D/1, of rate 10":   {func(x float64) float64 { return .1 + x/10/(2*(10-x)) }, 6, true}, // at 2−√2 of it, 5.86
		"flat up to a wall":   {func(x float64) float64 { return .1 + 50*max(0, x-8) }, 8, true},
		"flat":                {func(x float64) float64 { return .1 }, 9, false},
		"as a square of load": {func(x float64) float64 { return x * x }, 1, true},
	} {
		var loads, latency []float64
		for x := 1.; x <= 9; x++ {
			loads, latency = append(loads, x), append(latency, c.latency(x))
		}
		if at, found := findKnee(loads, latency); at < 0 || loads[at] != c.want || found != c.found {
			t.Errorf("%s: the knee is number %d, found %v", name, at, found)
		}
	}
	if at, _ := findKnee(nil, nil); at != -1 {
		t.Error("no levels have a knee")
	}
	// One more level far in saturation does not move it.
	loads, latency := []float64{1, 10, 20, 25}, []float64{.1, .15, .25, 3}
	a, _ := findKnee(loads, latency)
	b, _ := findKnee(append(loads, 50), append(latency, 1000))
	if a != 2 || b != 2 {
		t.Errorf("the knee is number %d, and with another level %d", a, b)
	}
}

func clauseResult(clause string, measured, allowed float64) report.ClauseResult {
	outcome := report.Holds
	if measured > allowed {
		outcome = report.Fails
	}
	return report.ClauseResult{Clause: clause, Outcome: outcome, Measured: &measured, Allowed: allowed, Unit: "ms"}
}

// The line is through logarithms, and the clause that breaks first counts.
func TestInterpolate(t *testing.T) {
	result := func(c ...report.ClauseResult) *report.ContractResult { return &report.ContractResult{Clauses: c} }
	for _, c := range []struct {
		lo, hi float64
		a, b   *report.ContractResult
		want   float64
	}{
		{20, 24, result(clauseResult("p99 ttft", 100, 200)), result(clauseResult("p99 ttft", 400, 200)), 22},
		{20, 24, result(clauseResult("p99 ttft", 100, 200), clauseResult("p99 tpot", 10, 20)),
			result(clauseResult("p99 ttft", 400, 200), clauseResult("p99 tpot", 160, 20)), 21},
		{20, 24, result(clauseResult("p99 ttft", 100, 200)), result(clauseResult("p99 ttft", 150, 200)), 20},   // it is the queue that does not hold
		{20, 24, result(clauseResult("error_rate", 0, .01)), result(clauseResult("error_rate", .04, .01)), 21}, // no logarithm of 0
		{20, 24, nil, nil, 20},
	} {
		if got := interpolate(c.lo, c.hi, c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("between %v and %v: %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
}

// A fixed ladder ascends and stops; a search doubles and then halves.
func TestLadders(t *testing.T) {
	play := func(l Ladder, limit float64, beyond string) (loads []float64) {
		var levels []Level
		for range 50 {
			load := l.nextLoad(levels)
			if load == 0 {
				return loads
			}
			outcome := outcomeHolds
			if load > limit {
				outcome = beyond
			}
			loads = append(loads, load)
			levels = append(levels, Level{Load: load, Outcome: outcome})
		}
		t.Errorf("%+v does not end", l)
		return nil
	}
	for name, c := range map[string]struct {
		ladder Ladder
		limit  float64
		beyond string
		want   []float64
	}{
		"fixed":              {Ladder{Loads: []float64{1, 2, 5, 8}}, 2, outcomeSaturated, []float64{1, 2, 5}},
		"a contract alone":   {Ladder{Loads: []float64{1, 2, 5, 8}}, 2, outcomeFails, []float64{1, 2, 5, 8}},
		"past":               {Ladder{Loads: []float64{1, 2, 5, 8}, Past: true}, 2, outcomeSaturated, []float64{1, 2, 5, 8}},
		"the client":         {Ladder{Loads: []float64{1, 2, 5, 8}, Past: true}, 2, outcomeUntrusted, []float64{1, 2, 5}},
		"search":             {Ladder{From: 1, Resolution: .1}, 11, outcomeFails, []float64{1, 2, 4, 8, 16, 12, 10, 11}},
		"search down":        {Ladder{From: 8, Resolution: .3}, 1.4, outcomeSaturated, []float64{8, 4, 2, 1, 1.5, 1.25}},
		"whole":              {Ladder{From: 1, Resolution: .01, Whole: true}, 5, outcomeFails, []float64{1, 2, 4, 8, 6, 5}},
		"the client, on top": {Ladder{From: 1, Resolution: .1}, 3, outcomeUntrusted, []float64{1, 2, 4}},
		"whole, none at all": {Ladder{From: 4, Resolution: .1, Whole: true}, 0, outcomeFails, []float64{4, 2, 1}},
		"rates, none at all": {Ladder{From: 1. / 16, Resolution: .1}, 0, outcomeFails, []float64{1. / 16, 1. / 32, .01562}},
	} {
		got := play(c.ladder, c.limit, c.beyond)
		same := len(got) == len(c.want)
		for i := range got {
			same = same && math.Abs(got[i]-c.want[i]) < 1e-4
		}
		if !same {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for name, l := range map[string]Ladder{"descends": {Loads: []float64{2, 1}}, "zero": {Loads: []float64{0}},
		"half a request": {Loads: []float64{1.5}, Whole: true}, "no resolution": {From: 1}, "not a number": {Loads: []float64{math.NaN()}}} {
		if l.check() == nil {
			t.Errorf("a ladder that %s is taken", name)
		}
	}
}

// Tables of the binomial distribution: of 100 values the true median lies between the
// 40th and the 61st, with 95 % (Conover, "Practical nonparametric statistics").
func TestBounds(t *testing.T) {
	if lo, hi := percentileBounds(100, .5); math.Abs(lo*99+1-40) > 1e-9 || math.Abs(hi*99+1-61) > 1e-9 {
		t.Errorf("the median of 100 is between the ranks %v and %v", lo*99+1, hi*99+1)
	}
	// 1 − 0.99^n passes 97.5 % at n = 368.
	if _, hi := percentileBounds(367, .99); hi <= 1 {
		t.Errorf("367 values bound a p99 by p%v", 100*hi)
	}
	if _, hi := percentileBounds(368, .99); hi != 1 {
		t.Errorf("368 values bound a p99 by p%v", 100*hi)
	}
}

// What chance does to a server without a queue is no saturation.
func TestFollows(t *testing.T) {
	flow := func(offered, achieved float64, before, after int64) Flow {
		return Flow{OfferedPerS: &offered, AchievedPerS: &achieved, OpenBefore: before, OpenAfter: after}
	}
	bursty := func(before, after int64) Flow {
		f := flow(20, 18, before, after)
		f.Dispersion = trace.Ptr(9.0)
		return f
	}
	for _, c := range []struct {
		Flow
		want bool
	}{
		{flow(20, 19.5, 200, 280), true}, // 97.5 %
		{flow(20, 18, 200, 263), true},   // three deviations are 64.6
		{flow(20, 18, 200, 267), false},
		{flow(2, 1, 0, 8), true},       // of 0 and 8 they are 8.5
		{flow(25, 20, 250, 250), true}, // failures are another matter
		{Flow{}, true},
		{bursty(55, 142), true},  // an engine at two thirds of its capacity, gamma with a CV of 4
		{bursty(200, 400), true}, // of arrivals with a dispersion of 9 they are 220
		{bursty(200, 430), false},
	} {
		if c.Follows() != c.want {
			t.Errorf("%+v: follows %v", c.Flow, c.Follows())
		}
	}
}

// A queue that grows by more than chance is not steady, however long it was before, and one that
// grows by 1 % of what is offered may be.
func TestSteady(t *testing.T) {
	flow := func(offered, early, late, dispersion float64) Flow {
		return Flow{Seconds: 150, OfferedPerS: &offered, Early: &early, Late: &late, Dispersion: &dispersion}
	}
	for _, c := range []struct {
		Flow
		want bool
	}{
		{flow(34.1, 60, 135, 1), false}, // 33.1 req/s come out of 34.1
		{flow(34.1, 60, 85, 1), true},   // 25.6 are 1 %
		{flow(34.1, 600, 624, 1), true}, // a deviation is 24
		{flow(34.1, 600, 630, 1), false},
		{flow(8, 2, 7, 1), true},   // 6 are 1 %
		{flow(2, 20, 23, 1), true}, // a deviation is 3.3
		{flow(2, 20, 26, 1), false},
		{flow(2, 20, 26, 4), true}, // in bursts
		{flow(2, 8, 2, 1), true},
		{Flow{}, true},
	} {
		if c.Steady() != c.want {
			t.Errorf("%+v: steady %v", c.Flow, c.Steady())
		}
	}
}

// Requests that come in bursts are more dispersed than those of a Poisson process, whose dispersion
// is 1; gaps with a CV of 4 come to 16 in windows that are long.
func TestDispersion(t *testing.T) {
	for process, want := range map[string][2]float64{"poisson:20": {.8, 1.2}, "gamma:20,cv=4": {11, 21}, "constant:20": {0, .05}} {
		p, err := arrival.ParseProcess(process)
		if err != nil {
			t.Fatal(err)
		}
		gaps, at := p.New(arrival.Stream(1, "test")), int64(0)
		var due []int64
		for range 20_000 {
			at += int64(gaps.Next())
			due = append(due, at)
		}
		if got := dispersionOf(due, due[0], at, 5*time.Second); got == nil || *got < want[0] || *got > want[1] {
			t.Errorf("%s: %v, want %v", process, *got, want)
		}
	}
	if got := dispersionOf([]int64{5}, 5, 5, time.Second); got != nil {
		t.Errorf("of one request: %v", *got)
	}
}

// engineSweep is a sweep of the engine of [engineLoad], with a workload of 12,000 rows.
func engineSweep(t *testing.T) *Sweep {
	t.Helper()
	preset, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	workload := filepath.Join(t.TempDir(), "w.parquet")
	var rows []trace.Request
	r := rand.New(rand.NewPCG(1, 2))
	for i := range int64(12_000) {
		rows = append(rows, trace.Request{ArrivalNS: i, InputTokens: int32(lognormal(r, 500, 50, 4000)), OutputTokens: trace.Ptr(int32(lognormal(r, 100, 10, 800)))})
	}
	if _, err = writeRows(workload, rows); err != nil {
		t.Fatal(err)
	}
	return &Sweep{Target: &virtualServer{fleet: engine.FleetConfig{Engine: preset.Engine, Replicas: 1, Router: fleet.RoundRobin}},
		Workload: workload, Process: "poisson", Ladder: Ladder{Resolution: .05}, Duration: 60 * time.Second, Requests: 150,
		StopTTFT: 10 * time.Second, Report: report.Options{Limits: report.DefaultLimits()}, Dir: dirOf(t)}
}

// A sweep that saturates an engine says at which throughput, and gives levels near that no
// intervals, but those below.
func TestNoIntervalsNearSaturation(t *testing.T) {
	longtest.Skip(t)
	sweep := func(loads ...float64) SweepResult {
		s := engineSweep(t)
		s.Ladder.Loads = loads
		r, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	resolved := func(l *Level) bool { return l.Intervals[0].Resolved && l.Intervals[0].Low != nil } // the p50 of TTFT

	found := sweep(.5*engineCapacity, .9*engineCapacity, 1.3*engineCapacity)
	if found.Saturation == nil || *found.Saturation < .9*engineCapacity || *found.Saturation > 1.1*engineCapacity {
		t.Fatalf("saturation at %v req/s, want some %v", found.Saturation, engineCapacity)
	}
	if half, near := &found.Levels[0], &found.Levels[1]; !resolved(half) || resolved(near) || !strings.Contains(near.Intervals[0].Why, "near saturation") {
		t.Errorf("at half: %+v, at 90 %%: %+v", half.Intervals[0], near.Intervals[0])
	}
	if note := found.chanceNote(); !strings.Contains(note, "too few values for an interval (always so above 6") {
		t.Error(note)
	}
	if found = sweep(.9 * engineCapacity); found.Saturation != nil || !resolved(&found.Levels[0]) {
		t.Errorf("without a level that saturates: %v, %+v", found.Saturation, found.Levels[0].Intervals[0])
	}
}
