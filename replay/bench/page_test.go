package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/doc/pagetest"
)

// risingSweep has levels at 20, 40, … 120 req/s whose p99 TTFT passes its limit of 200 ms
// after 94 req/s.
func risingSweep() SweepResult {
	r := SweepResult{Model: "m", Contract: []string{"p99 ttft <= 200ms", "error_rate <= 1%"}, Process: "poisson", Command: "reprise sweep " + strings.Repeat("--flag value ", 30),
		Knee: &KneeResult{Load: 80, Found: true, Of: "power"}, Stopped: Stop{stoppedSaturated, "saturated, at level-rate-120: the queue grows"}}
	put := func(role string, load, ttft float64) {
		l := Level{Name: fmt.Sprintf("%s-rate-%g", role, load), Role: role, Load: load, Outcome: outcomeHolds, Sure: true, Trustworthy: true}
		clause := clauseResult("p99 ttft", ttft, 200)
		clause.Clause, clause.From = "p99 ttft <= 200ms", "due"
		if ttft > 200 {
			l.Outcome, l.Why, clause.Outcome = outcomeFails, "it is too slow", report.Fails
		}
		l.Contract = &report.ContractResult{Clauses: []report.ClauseResult{clause, {Clause: "error_rate <= 1%", Outcome: report.Holds, Measured: new(float64), Allowed: 0.01, Unit: "share"}}}
		l.TTFTDue = report.Stat{Count: 400, P50: trace.Ptr(ttft / 3), P95: trace.Ptr(ttft / 2), P99: &ttft}
		l.TPOT, l.ITL, l.E2E = l.TTFTDue, l.TTFTDue, l.TTFTDue
		l.Flow = Flow{OfferedPerS: trace.Ptr(load + 0.123), AchievedPerS: trace.Ptr(load - 0.123), OutputPerS: trace.Ptr(100 * load), InFlight: trace.Ptr(load / 3)}
		l.Requests.ErrorShare = new(float64)
		r.Levels = append(r.Levels, l)
	}
	for i, ttft := range []float64{91.7, 119.3, 134.9, 151.2, 231.4, 1871.4} {
		put(roleLevel, float64(20*(i+1)), ttft)
	}
	r.Levels[5].Outcome, r.Levels[5].Why = outcomeSaturated, "the queue grows"
	put(roleConfirm, 94.01, 156.3)
	r.Highest = Highest{Load: trace.Ptr(94.01), Estimate: trace.Ptr(94.01), Low: trace.Ptr(94.01), High: trace.Ptr(100.), Sustained: true, OutputPerRequest: trace.Ptr(76.4)}
	return r
}

// The highest load is the headline, beside the curve with the limit and the knee.
func TestSweepPage(t *testing.T) {
	r := risingSweep()
	p := r.Page()
	main := p.Plot
	if n := len(main.Series); n != 1 || len(main.Series[0].X) != 7 {
		t.Errorf("the contract limits one latency, at seven levels: %+v", main.Series)
	}
	want := []doc.Mark{{Axis: doc.AxisX, At: 94.01, Label: "highest 94"}, {Axis: doc.AxisX, At: 80, Label: "knee 80"}, {Axis: doc.AxisY, At: 200, Label: "limit 200 ms", Series: 1}}
	if !slices.Equal(main.Marks, want) {
		t.Errorf("marks %+v, want %+v", main.Marks, want)
	}
	said := map[string]bool{}
	for _, s := range p.Sections {
		for _, line := range s.Text {
			for sentence := range strings.SplitSeq(line, ". ") {
				if said[sentence] {
					t.Errorf("said twice: %s", sentence)
				}
				said[sentence] = true
			}
		}
	}
	if line := "level-rate-120: the queue grows"; said[line] {
		t.Error("the end of the sweep is told twice")
	}
	pagetest.FirstScreen(t, "sweep", p, "94 req/s within the contract", "p99 ttft <= 200ms, from schedule\n156 ms", "80 req/s", "94 to 100", "Latency over load")
}

// What is not known is not in the headline.
func TestSweepHeadline(t *testing.T) {
	for want, change := range map[string]func(*SweepResult){
		"94 req/s within the contract":                   func(*SweepResult) {},
		"At least 94 req/s within the contract":          func(r *SweepResult) { r.Highest.AtLeast = true },
		"94 req/s is the knee, without a contract":       func(r *SweepResult) { r.Contract = nil },
		"94 req/s is below the knee, without a contract": func(r *SweepResult) { r.Contract, r.Highest.AtLeast = nil, true },
		"94 in flight within the contract":               func(r *SweepResult) { r.Closed = true },
		"No load is within the contract":                 func(r *SweepResult) { r.Highest = Highest{} },
		"No load was held":                               func(r *SweepResult) { r.Highest, r.Contract = Highest{}, nil },
	} {
		r := risingSweep()
		change(&r)
		if got := r.Page().Headline; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r := risingSweep() // without a contract TTFT is drawn
	for i := range r.Levels {
		r.Levels[i].Contract = nil
	}
	if p := r.Page(); p.Plot.Title != "TTFT" {
		t.Errorf("the main plot is %q", p.Plot.Title)
	}
}

func TestCapacityPage(t *testing.T) {
	r := risingSweep()
	c, err := Plan(&r, Demand{Rate: 200, GPUsPerInstance: 2, Headroom: .2, Prices: Prices{PerGPUHour: 2.5, Watts: 700}})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Page()
	last := p.Plot.Series[1]
	if at := slices.Index(p.Plot.Series[0].Y, 3); at < 0 || last.Y[at] != 4 || last.X[at] > 200 {
		t.Errorf("instances over the rate: %+v", p.Plot.Series)
	}
	pagetest.FirstScreen(t, "capacity", p, "3 instances on 6 GPUs for 200 req/s", "for the target\t3\t6", "with 20 % headroom\t3\t6", "Cost per hour\n15")
	big, err := Plan(&r, Demand{Rate: 1e6, GPUsPerInstance: 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(big.Page().Plot.Series[0].X); n > 402 || n < 100 {
		t.Errorf("%d steps", n)
	}
}

// The page of a suite begins with its verdict, the chief figures and a latency of every
// workload and model, each in its place, with three digits.
func TestSuitePage(t *testing.T) {
	r := SuiteResult{Suite: "serving", About: "Two workloads.", Models: []string{"static", "continuous"}, made: make([][]doc.Fact, 2)}
	for i, name := range []string{"baseline", "prefix_caching"} {
		row := RowResult{Row: name, Load: "burst", Primary: "p99_ttft"}
		for j, model := range r.Models {
			row.Models = append(row.Models, ModelResult{Model: model, Runs: 1, Requests: 100, Succeeded: 100, Trustworthy: true,
				Figures: []Figure{{Metric: "output_tokens_per_s", V: 1234.5}, {Metric: "p50_ttft", V: 37.24}, {Metric: "p99_ttft", V: float64(25517 * (1 + i) / (1 + j)), Largest: true}}})
		}
		r.Rows = append(r.Rows, row)
	}
	p := r.Page(t.TempDir())
	if s := p.Plot.Series; len(s) != 2 || !slices.Equal(s[0].Y, []float64{25517, 51034}) || s[0].X[1] >= 2 || s[1].X[1] <= 2 || !slices.Equal(p.Plot.XNames, []string{"baseline", "prefix caching"}) {
		t.Errorf("%+v", p.Plot)
	}
	if got := strings.Join(p.Table.Rows[3], " "); got != "prefix_caching, continuous 1,230 37.2 25,500* – 0" {
		t.Error(got)
	}
	pagetest.FirstScreen(t, "suite", p, "2 workloads, 4 runs: every one is trustworthy", "TTFT p99 of each workload")
	r.Rows[0].Models[1].Trustworthy, r.Rows[0].Models[1].Reasons = false, []string{"the client was late"}
	if p := r.Page(t.TempDir()); p.Headline != "A run is not trustworthy" || len(p.Verdict) != 1 || p.Verdict[0].Level != doc.Bad || !slices.Equal(p.Verdict[0].Items, []string{"baseline, continuous is not trustworthy: the client was late"}) {
		t.Errorf("%q, %+v", p.Headline, p.Verdict)
	}
}
