package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// burnOf judges one clause about error budgets.
func burnOf(t *testing.T, clause string, results []result.Result) *report.ClauseResult {
	t.Helper()
	s := summarise(t, result.Run{}, report.Options{Contract: contractOf(t, clause)}, results...)
	return &s.Contract.Clauses[0]
}

// slowly makes a result every so many milliseconds; those for which bad says so take 100 ms
// to their first token, the others 10 ms.
func slowly(n, everyMS int64, bad func(i int64) bool) (out []result.Result) {
	for i := range n {
		ttft := int64(10)
		if bad(i) {
			ttft = 100
		}
		out = append(out, answer(i, i*everyMS, 0, ttft, ttft+5))
	}
	return out
}

// bruteBurn is the highest burn rate by the definition: at every step of a tenth of the shortest
// window, for every window that ends there, all requests are looked at. It gives the highest one
// of looks whose longest window has requests enough, and of those whose has not; −1 without any.
func bruteBurn(results []result.Result, target float64, windows []time.Duration, isBad func(*result.Result) bool) (worst, thin float64) {
	step := int64(windows[len(windows)-1]) / 10
	first, last := results[0].DueNS, results[0].DueNS
	for i := range results {
		first, last = min(first, results[i].DueNS), max(last, results[i].DueNS)
	}
	from := first / step * step
	end := last/step*step + step
	worst, thin = -1, -1
	for at := min(from+int64(windows[0]), end); at <= end; at += step {
		rate, enough := math.Inf(1), true
		for k, w := range windows {
			n, bad := 0, 0
			for i := range results {
				if r := &results[i]; r.DueNS >= at-int64(w) && r.DueNS < at {
					n++
					if isBad(r) {
						bad++
					}
				}
			}
			if k == 0 && float64(n)*(1-target) < 1-1e-9 {
				enough = false
			}
			if n == 0 {
				rate = 0
			} else {
				rate = min(rate, float64(bad)/float64(n)/(1-target))
			}
		}
		if enough {
			worst = max(worst, rate)
		} else {
			thin = max(thin, rate)
		}
	}
	return worst, thin
}

// Burn rates and their outcomes are those of the definition, for loads of many kinds.
func TestBurnRatesByTheirDefinition(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 19))
		n := 20 + rng.IntN(300)
		burst := rng.Float64()
		var results []result.Result
		at := rng.Int64N(5000)
		for i := range int64(n) {
			at += int64(rng.ExpFloat64() * 40)
			bad := rng.Float64() < []float64{0.002, 0.02, 0.1}[seed%3] || burst < 0.5 && i%97 < 9
			switch {
			case bad && rng.IntN(2) == 0:
				results = append(results, failure(i, at, "reset"))
			case bad:
				results = append(results, answer(i, at, 0, 100, 105))
			default:
				results = append(results, answer(i, at, 0, 10, 15))
			}
		}
		rng.Shuffle(n, func(i, j int) { results[i], results[j] = results[j], results[i] })
		target := []float64{0.9, 0.95, 0.98}[rng.IntN(3)]
		windows := [][]time.Duration{{2 * time.Second}, {2 * time.Second, 500 * time.Millisecond}, {3 * time.Second, time.Second, 200 * time.Millisecond}}[rng.IntN(3)]
		allowed := []float64{1, 2.5, 6}[rng.IntN(3)]
		c := burnOf(t, fmt.Sprintf("{clause: burn_rate <= %v, target: %v%%, windows: '%s', slo: 'ttft:50ms'}", allowed, target*100, windowsText(windows)), results)
		outcomes[c.Outcome]++
		worst, thin := bruteBurn(results, target, windows, func(r *result.Result) bool {
			return r.Error != "" || *r.FirstTokenNS-r.DueNS > int64(50*time.Millisecond)
		})
		step, end, lasted := int64(windows[len(windows)-1])/10, int64(0), 0.0
		for i := range results {
			lasted = max(lasted, float64(*results[i].DoneNS)/1e9)
			end = max(end, results[i].DueNS/step*step+step)
		}
		want := report.Holds
		switch over := func(v float64) bool { return v > allowed+1e-6 }; {
		case over(worst):
			want = report.Fails
		case worst < 0 || over(thin):
			want = report.Unjudged
		}
		if first := slices.MinFunc(results, func(a, b result.Result) int { return int(a.DueNS - b.DueNS) }); max(lasted-float64(first.DueNS)/1e9, float64(end-first.DueNS/step*step)/1e9) < 0.95*windows[0].Seconds() {
			want = report.Unjudged
		}
		if c.Outcome != want {
			t.Fatalf("seed %d: %s (%s), by the definition %s: %v, %v of few", seed, c.Outcome, c.Why, want, worst, thin)
		}
		if c.Measured != nil {
			near(t, fmt.Sprint("seed ", seed), c.Measured, worst, 1e-6)
			// The window that is named has at least that rate.
			from, to := int64(math.Round(c.Window.FromS*1e9)), int64(math.Round(c.Window.ToS*1e9))
			inside, bad := 0, 0
			for i := range results {
				if r := &results[i]; r.DueNS >= from && r.DueNS < to {
					inside++
					if r.Error != "" || *r.FirstTokenNS-r.DueNS > 50e6 {
						bad++
					}
				}
			}
			if inside == 0 || float64(bad)/float64(inside)/(1-target) < *c.Measured-1e-6 {
				t.Fatalf("seed %d: the window from %v s to %v s has %d of %d bad", seed, c.Window.FromS, c.Window.ToS, bad, inside)
			}
		}
	}
	if outcomes[report.Holds] < 30 || outcomes[report.Fails] < 30 || outcomes[report.Unjudged] < 10 {
		t.Errorf("too one-sided to tell: %v", outcomes)
	}
}

// The burn rates of the workbook: 2 % of a budget of 30 days spent in an hour is a rate of
// 14.4, and 5 % in six hours one of 6.
func TestRatesOfTheWorkbook(t *testing.T) {
	for _, c := range []struct {
		hours int64
		spent float64
		rate  float64
	}{{1, 0.02, 14.4}, {6, 0.05, 6}, {72, 0.1, 1}} {
		n := c.hours * 1000
		bad := int64(math.Round(c.rate * 0.01 * float64(n)))
		every := c.hours * 3600_000 / n
		results := slowly(n, every, func(i int64) bool { return i%n < bad })
		got := burnOf(t, "{clause: error_budget_spent <= 100%, target: 99%, period: 720h, slo: 'ttft:50ms'}", results)
		near(t, fmt.Sprint(c.hours, " h, spent"), got.Measured, c.spent, 1.1e-3) // the last request is due a thousandth before the end
		got = burnOf(t, fmt.Sprintf("{clause: burn_rate <= 100, target: 99%%, windows: %dh, slo: 'ttft:50ms'}", c.hours), results)
		near(t, fmt.Sprint(c.hours, " h, rate"), got.Measured, c.rate, 1e-6)
	}
}

func TestErrorBudgets(t *testing.T) {
	tenth := func(i int64) bool { return i%10 == 0 }
	never := func(int64) bool { return false }
	first := func(i int64) bool { return i < 30 }
	for _, c := range []struct {
		clause, outcome, why string
		results              []result.Result
		measured             float64
	}{
		{"{clause: error_budget_spent <= 100%, target: 90%, slo: 'ttft:50ms'}", report.Holds, "", slowly(100, 100, tenth), 1},
		{"{clause: error_budget_spent <= 100%, target: 95%, slo: 'ttft:50ms'}", report.Fails, "", slowly(100, 100, tenth), 2},
		{"{clause: error_budget_spent <= 0%, target: 95%}", report.Holds, "", slowly(100, 100, tenth), 0}, // slow, but not failed
		{"{clause: error_budget_spent <= 0%, target: 95%}", report.Fails, "", append(slowly(99, 100, never), failure(99, 9900, "reset")), 0.2},
		{"{clause: error_budget_spent <= 50%, target: 99%}", report.Unjudged, "a target of 99 % takes 100 requests, and there were 99", slowly(99, 100, never), math.NaN()},
		{"{clause: error_budget_spent <= 50%, target: 99%}", report.Unjudged, "no request succeeded or failed", nil, math.NaN()},
		{"{clause: burn_rate <= 2, target: 99%, windows: 60s}", report.Unjudged, "less than a window of 1m0s", slowly(200, 100, never), math.NaN()},
		{"{clause: burn_rate <= 2, target: 99.9%, windows: 2s}", report.Unjudged, "a target of 99.9 % takes 1,000 requests in a window, and none of 2s has as many", slowly(2000, 10, never), math.NaN()},
		{"{clause: burn_rate <= 2, target: 99%, windows: 2s}", report.Unjudged, "no request", nil, math.NaN()},
		// A burst in the first 3 s: a long window has it, a short one beside it only while it lasts.
		{"{clause: burn_rate <= 1, target: 90%, windows: 10s, slo: 'ttft:50ms'}", report.Fails, "", slowly(300, 100, first), 3},
		{"{clause: burn_rate <= 1, target: 90%, windows: '10s,1s', slo: 'ttft:50ms'}", report.Holds, "", slowly(300, 100, first), 0},
		{"{clause: burn_rate <= 1, target: 90%, windows: '2s,1s', slo: 'ttft:50ms'}", report.Fails, "", slowly(300, 100, first), 10},
		// Requests that fail count whatever the SLO asks.
		{"{clause: burn_rate <= 1, target: 50%, windows: 1s, slo: 'ttft:50ms'}", report.Fails, "", []result.Result{failure(0, 0, "reset"), failure(1, 500, "reset"), answer(2, 999, 0, 5, 9)}, 1.333333},
		{"{clause: attainment >= 90%, slo: 'ttft:50ms'}", report.Holds, "", slowly(100, 100, tenth), 0.9},
		{"{clause: attainment >= 91%, slo: 'ttft:50ms'}", report.Fails, "", slowly(100, 100, tenth), 0.9},
	} {
		got := burnOf(t, c.clause, c.results)
		if got.Outcome != c.outcome || !strings.Contains(got.Why, c.why) || (c.why == "") != (got.Why == "") {
			t.Errorf("%s: %s, %q; want %s, %q", c.clause, got.Outcome, got.Why, c.outcome, c.why)
		}
		near(t, c.clause, got.Measured, c.measured, 1e-6)
	}
}

// A window that surely burns too fast fails the clause, though others have too few requests
// to say so.
func TestFailureBeatsTooFewRequests(t *testing.T) {
	results := slowly(100, 10, func(i int64) bool { return i%2 == 0 })      // the first second is dense and bad
	for i, r := range slowly(10, 500, func(i int64) bool { return true }) { // and then there are few, all bad
		r.RowID = int64(100 + i)
		for _, at := range []**int64{&r.SentNS, &r.HeadersNS, &r.FirstEventNS, &r.FirstTokenNS, &r.LastTokenNS, &r.DoneNS} {
			*at = trace.Ptr(**at + 1e9)
		}
		r.DueNS += 1e9
		results = append(results, r)
	}
	clause := "{clause: burn_rate <= %d, target: 90%%, windows: 1s, slo: 'ttft:50ms'}"
	if got := burnOf(t, fmt.Sprintf(clause, 4), results); got.Outcome != report.Fails || *got.Measured < 5 || *got.Measured > 7 {
		t.Errorf("%+v", got)
	}
	if got := burnOf(t, fmt.Sprintf(clause, 7), results); got.Outcome != report.Unjudged || !strings.Contains(got.Why, "burns 10 times the budget, of 2 requests; a target of 90 % takes 10") {
		t.Errorf("%+v", got)
	}
	if got := burnOf(t, fmt.Sprintf(clause, 10), results); got.Outcome != report.Holds {
		t.Errorf("%+v", got)
	}
}

// A clause with each has the figures that the requests of one user would have alone, and is
// judged by the one that is worst off.
func TestClausesOfEachUser(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	results := messy(rng, 4000)
	by := map[int64][]result.Result{}
	for i := range results {
		u := min(rng.Int64N(12), rng.Int64N(12))
		results[i].User = &u
		if rng.IntN(50) == 0 {
			results[i].User, u = nil, -1
		}
		by[u] = append(by[u], results[i])
	}
	for _, condition := range []string{"p95 ttft <= 60ms", "max itl <= 90ms", "error_rate <= 5%", "p99 e2e <= 1s", "goodput >= 10%, slo: 'ttft:30ms'", "error_budget_spent <= 300%, target: 90%", "hit_ratio >= 10%"} {
		got := burnOf(t, "{clause: "+condition+", each: user}", results)
		var worst *report.ClauseResult
		var judged, failing int64
		for u, rows := range by {
			one := burnOf(t, "{clause: "+condition+"}", rows)
			if one.Measured == nil {
				continue
			}
			judged++
			if one.Outcome == report.Fails {
				failing++
			}
			name := fmt.Sprint(u)
			if u < 0 {
				name = "none"
			}
			if worst == nil || *one.Margin < *worst.Margin {
				worst = one
			}
			if got.Worst == name && *one.Measured != *got.Measured {
				t.Errorf("%s: %v of user %s; alone %v", condition, *got.Measured, name, *one.Measured)
			}
		}
		if worst == nil {
			t.Fatalf("%s: no user is judged", condition)
		}
		if got.Outcome != worst.Outcome || *got.Measured != *worst.Measured || got.Each.Values != int64(len(by)) || got.Each.Judged != judged || got.Each.Failing != failing {
			t.Errorf("%s: %+v %+v; of these alone %+v, %d judged, %d failing", condition, got, got.Each, worst, judged, failing)
		}
	}
}

func TestEachUserCannotBeJudged(t *testing.T) {
	results := evenly(60)
	for i := range results {
		results[i].User = trace.Ptr(int64(i % 4))
	}
	if got := burnOf(t, "{clause: p99 ttft <= 1s, each: user}", results); got.Outcome != report.Unjudged || got.Why != "of 4 users none can be judged; user 0 has the most: it takes 100 values, and there were 15" {
		t.Errorf("%+v", got)
	}
	if got := burnOf(t, "{clause: p99 ttft <= 1s, each: user, where: class = gold}", results); got.Outcome != report.Unjudged || got.Why != "no measured request is in its scope" {
		t.Errorf("%+v", got)
	}
	many := evenly(mostEach + 5)
	for i := range many {
		many[i].User = trace.Ptr(int64(i))
	}
	if got := burnOf(t, "{clause: max ttft <= 1h, each: user}", many); got.Outcome != report.Unjudged || !strings.Contains(got.Why, "more than 4,096") || got.Measured != nil {
		t.Errorf("%+v", got)
	}
	if got := burnOf(t, "{clause: max ttft <= 2s, each: user}", many); got.Outcome != report.Fails || got.Worst != fmt.Sprint(mostEach-1) {
		t.Errorf("%+v", got)
	}
}

// Clauses about the steady state have the figures of the report.
func TestClausesOfTheSteadyState(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	var results []result.Result
	at := int64(0)
	for i := range int64(4000) {
		at += int64(rng.ExpFloat64() * 20)
		length := 100 + rng.Int64N(200)
		if i < 200 {
			length += 3000 // a slow start
		}
		results = append(results, answer(i, at, 0, length/2, length))
	}
	c := contractOf(t, "{clause: p95 ttft <= 200ms, from: sent, where: state = steady}", "{clause: requests_per_s >= 40, where: state = steady}",
		"{clause: output_tokens_per_s >= 40, where: state = steady}", "{clause: error_rate <= 1%, where: state = steady and user = none}", "p95 ttft <= 200ms")
	reread := func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: results} }
	o := report.Options{Contract: c}
	if err := o.AddSteady(result.Run{}, reread); err != nil || o.Steady == nil || o.Steady.Reason != "" {
		t.Fatalf("%+v, %v", o.Steady, err)
	}
	s := summarise(t, result.Run{}, o, results...)
	got := s.Contract.Clauses
	if *got[0].Measured != *o.Steady.TTFT.P95 || got[0].Samples != o.Steady.Inside || *got[1].Measured != *o.Steady.RequestsPerS || *got[2].Measured != *o.Steady.OutputTokensPerS {
		t.Errorf("%+v\n%+v", got, o.Steady)
	}
	if got[0].Outcome != report.Holds || got[4].Outcome != report.Fails {
		t.Errorf("the slow start is in the steady state: %+v", got)
	}
	// Without one, and where nobody looked for it, such a clause cannot be judged.
	o.Steady = &report.Steady{Reason: "of the moon"}
	if s = summarise(t, result.Run{}, o, results...); s.Contract.Clauses[0].Why != "there is no steady state: of the moon" || s.Contract.Clauses[1].Outcome != report.Unjudged {
		t.Errorf("%+v", s.Contract.Clauses)
	}
	o.Steady = nil
	if s = summarise(t, result.Run{}, o, results...); s.Contract.Clauses[0].Why != "the steady state was not looked for" {
		t.Errorf("%+v", s.Contract.Clauses[0])
	}
}
