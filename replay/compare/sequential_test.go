package compare

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/textpage"
)

// Of comparisons in which nothing differs a design claims no more than alpha, and nearly as much,
// whatever symmetric distribution the differences have. The test computes the ranks itself.
func TestDesignKeepsAlpha(t *testing.T) {
	for _, alpha := range []float64{0.01, 0.05} {
		for _, rounds := range []int{8, 12, 20, 40} {
			d := newDesign(rounds, alpha)
			if !slices.IsSorted(d.levels) || d.levels[len(d.levels)-1] > alpha*(1+1e-9) || d.looks[len(d.looks)-1] != rounds || len(d.looks) != len(d.levels) {
				t.Fatalf("%d rounds, alpha %v: %+v", rounds, alpha, d)
			}
			const n = 4000
			rng := rand.New(rand.NewPCG(11, uint64(rounds)))
			claimed := 0
			for range n {
				var differences []float64
				for range rounds {
					v := rng.ExpFloat64() // Laplace
					if rng.IntN(2) == 0 {
						v = -v
					}
					differences = append(differences, v)
				}
				for k, look := range d.looks {
					if signedRank(differences[:look]).P <= d.levels[k]*(1+1e-9) {
						claimed++
						break
					}
				}
			}
			share, sd := float64(claimed)/n, math.Sqrt(alpha*(1-alpha)/n)
			if share > alpha+3*sd || rounds >= 12 && share < 0.7*alpha-3*sd {
				t.Errorf("%d rounds, alpha %v: claimed in %.2f %%, by looks after %v at %v", rounds, alpha, 100*share, d.looks, d.levels)
			}
		}
	}
}

// A look that takes the whole of alpha each time claims too much: what a design is for.
func TestLooksWithoutDesign(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	claimed := 0
	for range 2000 {
		var differences []float64
		for n := 1; n <= 20; n++ {
			differences = append(differences, rng.NormFloat64())
			if n >= 6 && signedRank(differences).P <= 0.05 {
				claimed++
				break
			}
		}
	}
	if claimed < 240 { // 12 %
		t.Errorf("claimed in %d of 2,000", claimed)
	}
}

// A design finds the shift that it is planned for about as often as asked, counted over
// differences of the test's own.
func TestPlannedRoundsHaveTheirPower(t *testing.T) {
	for _, shift := range []float64{0.6, 0.9, 1.5} {
		n, d := plannedRounds(shift, 0.05)
		rng := rand.New(rand.NewPCG(21, uint64(n)))
		found, looked := 0, 0
		const samples = 2000
		for range samples {
			var differences []float64
			for range n {
				differences = append(differences, shift+rng.NormFloat64())
			}
			for k, look := range d.looks {
				looked++
				if signedRank(differences[:look]).P <= d.levels[k]*(1+1e-9) {
					found++
					break
				}
			}
		}
		if share := float64(found) / samples; share < 0.77 || share > 0.95 {
			t.Errorf("a shift of %v in %d rounds: found in %.1f %%, looks %v", shift, n, 100*share, d.looks)
		}
		if fixed := roundsFor(shift, 0.05); n < fixed || n > fixed+max(4, fixed/5) {
			t.Errorf("a shift of %v: %d rounds, and %d with one look", shift, n, fixed)
		}
	}
}

// pilotOf are n rounds of two arms, whose E2E and TTFT vary by these shares from run to run.
func pilotOf(n int, e2e, ttft float64) []Arm {
	rng := rand.New(rand.NewPCG(8, 8))
	arms := []Arm{{Name: "A"}, {Name: "B"}}
	stat := func(of, sd float64) report.Stat {
		v := trace.Ptr(of * math.Exp(sd*rng.NormFloat64()))
		return report.Stat{P50: v, P90: v, P95: v, P99: v, Mean: v}
	}
	for range n {
		for i := range arms {
			var s report.Summary
			s.Latency.FromDue.E2E, s.Latency.FromDue.TTFT = stat(900, e2e), stat(80, ttft)
			arms[i].Runs = append(arms[i].Runs, s)
		}
	}
	return arms
}

// The metric that varies least decides, or E2E where that is not clear; who names one gets it.
func TestPlanChooses(t *testing.T) {
	for _, c := range []struct {
		e2e, ttft float64
		asked     string
		want      string
	}{
		{0.01, 0.05, "", "mean_e2e"},
		{0.05, 0.01, "", "mean_ttft"},
		{0.02, 0.019, "", "mean_e2e"},
		{0.01, 0.05, "p99_ttft", "p99_ttft"},
	} {
		p, err := NewPlan(pilotOf(6, c.e2e, c.ttft), Options{Primary: c.asked, Alpha: 0.05, Detect: 0.05}, 0)
		if err != nil || p.Primary != c.want || p.Chosen != (c.asked == "") || p.Needed != p.Rounds() || *p.Power < power || len(p.Candidates) != 10 {
			t.Errorf("%+v: %v: %+v", c, err, p)
		}
		// The upper bound of the spread: χ² of 5 degrees of freedom is above 2.343 in 80 %.
		if want := *p.SD * math.Sqrt(5/2.3425); math.Abs(*p.UpperSD/want-1) > 1e-3 {
			t.Errorf("an upper SD of %v, want %v", *p.UpperSD, want)
		}
		if says := p.String(); !strings.Contains(says, "A change of 5 % needs") || !strings.HasPrefix(says, labelOf(c.want)+" decides") {
			t.Error(says)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for want, f := range map[string]func() (Plan, error){
		"3 rounds of two servers at least": func() (Plan, error) { return NewPlan(pilotOf(2, 0.1, 0.1), Options{}, 10) },
		"from pilot rounds":                func() (Plan, error) { return NewPlan(nil, Options{Detect: 0.05}, 0) },
		"1 to 200 rounds":                  func() (Plan, error) { return NewPlan(nil, Options{}, 0) },
		"200 at most: make":                func() (Plan, error) { return NewPlan(pilotOf(6, 0.5, 0.5), Options{Detect: 0.01}, 0) },
		"is a share": func() (Plan, error) {
			return NewPlan(pilotOf(6, 0.1, 0.1), Options{Primary: "error_rate", Detect: 0.01}, 0)
		},
		"no value in some of the pilot": func() (Plan, error) {
			return NewPlan(pilotOf(6, 0.1, 0.1), Options{Primary: "p50_itl", Detect: 0.01}, 0)
		},
		"a change to detect": func() (Plan, error) { return NewPlan(nil, Options{Detect: -1}, 10) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(want, "a change ")) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// A comparison by a plan decides only at its looks, with the interval of the look, and says that
// it stopped.
func TestComparisonByPlan(t *testing.T) {
	plan := Plan{Primary: "p50_ttft", Alpha: 0.05, Looks: []int{8, 12, 16}, Levels: []float64{0.01, 0.02, 0.04}}
	arms := func(n int, factor float64) []Arm { return unresampled(armsOf(t, n, factor, 0.01)) }
	for _, c := range []struct {
		n        int
		factor   float64
		decision string
		says     string
	}{
		{8, 1.2, Worse, "8 rounds of at most 16."},
		{10, 1.2, undecided, "No verdict yet: the plan has up to 16 rounds, and the next look is after 12."},
		{8, 1, undecided, "No verdict yet"},
		{16, 1, notFound, "No difference found in TTFT p50"},
		{16, 1.2, Worse, "16 rounds."},
	} {
		got := compared(t, arms(c.n, c.factor), Options{Plan: &plan})
		v := got.Versus[0]
		m := v.Metrics[0]
		if v.Decision != c.decision || !strings.Contains(v.Text, c.says) || got.Primary != "p50_ttft" || got.Alpha != 0.05 {
			t.Errorf("%d rounds × %v: %s: %s", c.n, c.factor, v.Decision, v.Text)
		}
		if c.n != 10 {
			if want := m.Wilcoxon.P <= plan.level(c.n); m.Significant != want || (*m.Change.Low > 0 || *m.Change.High < 0) != want {
				t.Errorf("%d rounds × %v: p %v, %+v", c.n, c.factor, m.Wilcoxon.P, m.Change)
			}
		} else if m.Change.Low != nil || m.Significant {
			t.Errorf("between two looks: %+v", m.Change)
		}
	}
	plan.Pilot, plan.SD = 6, trace.Ptr(0.02)
	var text bytes.Buffer
	planned := compared(t, arms(8, 1.2), Options{Plan: &plan})
	if err := planned.Document().WriteText(&text, textpage.Options{Details: true}); err != nil || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "The plan: TTFT p50 decides; it varies by 2.0 % over 6 pilot rounds. Being significantly worse in p50, p95 or p99 of TTFT, TPOT, ITL, E2E or session time, or more errors, decides too. At most 16 rounds, and fewer if it is decided after 8 or 12.") {
		t.Errorf("%v\n%s", err, &text)
	}
	if _, err := Arms(arms(17, 1), Options{Plan: &plan}); err == nil || !strings.Contains(err.Error(), "at most 16 rounds") {
		t.Error(err)
	}
}

// Pilot rounds decide by themselves where the change is many times their spread, whoever asked for the metric; a
// gate goes on where B is better. Where nothing differs they hardly ever do.
func TestPilotDecides(t *testing.T) {
	for _, c := range []struct {
		times float64
		gate  bool
		clear bool
	}{{1.2, false, true}, {1.2, true, true}, {0.8, false, true}, {0.8, true, false}, {1.001, false, false}} {
		o := Options{Gate: c.gate}
		pilot := unresampled(armsOf(t, 6, c.times, 0.003))
		p, err := NewPlan(pilot, o, 10)
		if err != nil || (p.Clear != nil) != c.clear {
			t.Errorf("%+v: %+v, %v", c, p, err)
			continue
		}
		if p.Clear == nil {
			continue
		}
		o.Plan = &p
		v := compared(t, pilot, o).Versus[0]
		if want := map[bool]string{true: Worse, false: better}[c.times > 1]; v.Decision != want || v.Rounds != 6 {
			t.Errorf("%+v: %s, %s", c, v.Decision, v.Text)
		}
	}
	rng, decided := rand.New(rand.NewPCG(1, 2)), 0
	for range 20_000 {
		differences := make([]float64, 6)
		for i := range differences {
			differences[i] = rng.NormFloat64()
		}
		if clear(differences, 1) != nil {
			decided++
		}
	}
	if decided > 10 { // 2 are expected
		t.Errorf("%d of 20,000 pilots without a difference decide", decided)
	}
}
