package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/doc/pagetest"
	"reprise/trace/textpage"
)

// round makes the results of n requests whose times to the first token are drawn
// around 100 ms and scaled by a factor.
func roundOf(rng *rand.Rand, n int, factor float64) []result.Result {
	var out []result.Result
	for row := range int64(n) {
		first := int64(factor * (80 + 40*rng.Float64()))
		step := int64(math.Round(factor * 10))
		out = append(out, resulttest.Answer(row, 10*row, 0, first, first+step, first+2*step))
	}
	return out
}

// armsOf are n rounds of a server and of one with the factor, which vary by a noise
// that both sides of a round have, and by one of their own.
func armsOf(t *testing.T, n int, factor, own float64) []Arm {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	a, b := Arm{Name: "A", Clusters: &Clusters{}}, Arm{Name: "B", Clusters: &Clusters{}}
	for range n {
		both := 1 + 0.2*rng.Float64()
		for _, side := range []struct {
			arm    *Arm
			factor float64
		}{{&a, 1}, {&b, factor}} {
			rows := roundOf(rng, 200, both*side.factor*(1+own*rng.NormFloat64()))
			run := result.Run{Source: result.Source{Workload: "sha256:w", Tier: "partner"}, Sending: result.Sending{Requests: int64(len(rows))}}
			side.arm.Runs = append(side.arm.Runs, summarise(t, run, report.Options{}, rows...))
			if err := side.arm.Clusters.Add(run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []Arm{a, b}
}

// unresampled arms are compared sooner, without intervals of percentiles.
func unresampled(arms []Arm) []Arm {
	for i := range arms {
		arms[i].Clusters = nil
	}
	return arms
}

func summarise(t *testing.T, run result.Run, opts report.Options, results ...result.Result) report.Summary {
	t.Helper()
	s, err := report.Summarise(run, &trace.SliceReader[result.Result]{Rows: results}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compared(t *testing.T, arms []Arm, o Options) Comparison {
	t.Helper()
	c, err := Arms(arms, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompareFindsAndSaysWhatChanged(t *testing.T) {
	for _, c := range []struct {
		factor   float64
		decision string
		says     string
	}{
		{1.2, Worse, "B is slower: TTFT p99 +"},
		{1 / 1.2, better, "B is faster: TTFT p99 −"},
		{1, notFound, "No difference found in TTFT p99: "},
	} {
		got := compared(t, armsOf(t, 10, c.factor, 0.01), Options{})
		v := got.Versus[0]
		if v.Decision != c.decision || !strings.HasPrefix(v.Text, c.says) || !strings.Contains(v.Text, "10 rounds") {
			t.Errorf("× %v: %s: %s", c.factor, v.Decision, v.Text)
		}
		m := v.Metrics[0]
		if m.Metric != DefaultPrimary || math.Abs(m.Change.Estimate-(c.factor-1)) > 0.03 || *m.Change.Low > m.Change.Estimate || *m.Change.High < m.Change.Estimate {
			t.Errorf("× %v: change %+v", c.factor, m.Change)
		}
		// The interval and the test agree: it leaves out zero when it is significant.
		if outside := *m.Change.Low > 0 || *m.Change.High < 0; outside != m.Significant {
			t.Errorf("× %v: significant %v, interval %v to %v", c.factor, m.Significant, *m.Change.Low, *m.Change.High)
		}
		if (c.decision == notFound) != strings.Contains(v.Text, "Minimum detectable effect") || *m.Detectable < 0.005 || *m.Detectable > 0.06 {
			t.Errorf("× %v: detectable %v: %s", c.factor, *m.Detectable, v.Text)
		}
		if (c.decision != notFound) != (len(v.Others) > 5) {
			t.Errorf("× %v: others %q", c.factor, v.Others)
		}
		if got.Tier != "partner" || !got.Trustworthy() {
			t.Errorf("tier %q, trustworthy %v", got.Tier, got.Trustworthy())
		}
	}
}

// A pair cancels what both sides have, which is far more than the difference.
func TestCompareUsesPairs(t *testing.T) {
	m := compared(t, armsOf(t, 10, 1.05, 0.002), Options{}).Versus[0].Metrics[0]
	if !m.Significant || m.Noise.N != 9 || m.Noise.SD < 0.04 {
		t.Errorf("significant %v, noise %+v", m.Significant, m.Noise)
	}
}

func TestCompareNeedsRounds(t *testing.T) {
	for n, says := range map[int]string{
		2: "No verdict: 2 rounds are too few, alpha 0.01 needs 8.",
		7: "No verdict: 7 rounds are too few, alpha 0.01 needs 8.",
	} {
		c := compared(t, unresampled(armsOf(t, n, 2, 0.01)), Options{})
		if v := c.Versus[0]; v.Decision != undecided || !strings.HasPrefix(v.Text, says) || v.Metrics[0].Significant {
			t.Errorf("%d rounds: %s: %s", n, v.Decision, v.Text)
		}
		if c.Warnings[len(c.Warnings)-1].Code != warnTooFewRounds {
			t.Errorf("%d rounds: warnings %v", n, c.Warnings)
		}
	}
	// Five rounds decide nothing, whatever alpha is.
	if c := compared(t, unresampled(armsOf(t, 5, 2, 0.01)), Options{Alpha: 0.1, FamilyAlpha: 0.2}); c.Versus[0].Decision != undecided || c.Versus[0].Metrics[0].Significant || len(c.Versus[0].Others) > 0 || c.LeastRounds != 6 {
		t.Errorf("five rounds: %+v", c.Versus[0].Text)
	}
	if c := compared(t, unresampled(armsOf(t, 6, 2, 0.01)), Options{Alpha: 0.05}); c.Versus[0].Decision != Worse {
		t.Errorf("six rounds at 0.05: %s", c.Versus[0].Text)
	}
}

func TestCompareSingleRunsHasNoVerdict(t *testing.T) {
	c := compared(t, armsOf(t, 1, 1.5, 0.01), Options{})
	v := c.Versus[0]
	if c.Kind != kindSingle || v.Decision != undecided || !strings.HasPrefix(v.Text, "No verdict, since one run each") || len(v.Others) > 0 {
		t.Fatalf("%s: %s", v.Decision, v.Text)
	}
	r := v.Metrics[0].Resampled
	if r == nil || !r.Paired || r.Clusters < 180 || *r.Change.Low < 0.3 || *r.Change.High > 0.7 || *r.Change.Low >= *r.Change.High {
		t.Fatalf("resampled %+v", r)
	}
	if math.Abs(r.A.Estimate / *v.Metrics[0].A - 1) > 0.01 {
		t.Errorf("resampling has %v, the report %v", r.A.Estimate, *v.Metrics[0].A)
	}
}

// Three arms share their alpha: each p is twice what it was.
func TestCompareManyArms(t *testing.T) {
	two := armsOf(t, 10, 1.2, 0.01)
	c := compared(t, append(two, Arm{Name: "C", Runs: two[1].Runs}), Options{})
	for _, v := range c.Versus {
		if m := v.Metrics[0]; math.Abs(*m.P-2*m.Wilcoxon.P) > 1e-12 || !m.Significant {
			t.Errorf("%s: p %v of %v", v.B, *m.P, m.Wilcoxon.P)
		}
	}
}

func TestCompareDetect(t *testing.T) {
	m := compared(t, unresampled(armsOf(t, 10, 1, 0.02)), Options{Detect: 0.03}).Versus[0].Metrics[0]
	fine := compared(t, unresampled(armsOf(t, 10, 1, 0.02)), Options{Detect: 0.01}).Versus[0].Metrics[0]
	if *m.RoundsFor < 8 || *m.RoundsFor > 60 || *fine.RoundsFor < 5**m.RoundsFor {
		t.Errorf("3 %%: %d rounds, 1 %%: %d rounds", *m.RoundsFor, *fine.RoundsFor)
	}
}

func TestCompareWarns(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		change func(*result.Run)
	}{
		"workload":  {warnWorkload, func(r *result.Run) { r.Workload = "sha256:x" }},
		"tokenizer": {warnSettings, func(r *result.Run) { r.Tokenizer = "x" }},
		"seed":      {warnSettings, func(r *result.Run) { r.Seed = "2" }},
		"rate":      {warnSettings, func(r *result.Run) { r.Rate = "poisson:2" }},
		"cache":     {warnSettings, func(r *result.Run) { r.Cache = &result.CacheDiscipline{Done: "reset"} }},
		"client":    {warnClient, func(r *result.Run) { r.Cores++ }},
		"model":     {warnModel, func(r *result.Run) { r.Model = "x" }},
	} {
		two := unresampled(armsOf(t, 2, 1, 0.01))
		c.change(&two[1].Runs[1].Run)
		got := compared(t, two, Options{})
		if w := got.Warnings[0]; w.Code != c.code || !strings.Contains(w.Text, "in 1 round:") {
			t.Errorf("%s: %v", name, got.Warnings)
		}
	}
	two := unresampled(armsOf(t, 3, 1, 0.01))
	for i := range 3 {
		two[0].Runs[i].Run.Started = fmt.Sprintf("2026-05-01T10:0%d:00Z", i)
		two[1].Runs[i].Run.Started = fmt.Sprintf("2026-05-01T11:0%d:00Z", i)
	}
	two[1].Runs[2].Verdict.Trustworthy = false
	got := compared(t, two, Options{})
	if got.Warnings[0].Code != warnOrder || got.Warnings[1].Code != warnUntrusted || got.Trustworthy() {
		t.Errorf("%v", got.Warnings)
	}
	two[1].Runs[1].Run.Started = two[0].Runs[1].Run.Started
	if got := compared(t, two, Options{}); got.Warnings[0].Code != warnSameRun {
		t.Errorf("%v", got.Warnings)
	}
}

func TestCompareRefuses(t *testing.T) {
	two := armsOf(t, 2, 1, 0.01)
	for want, f := range map[string]func() (Comparison, error){
		"A has 2 runs and B has 1 run": func() (Comparison, error) {
			return Arms([]Arm{two[0], {Name: "B", Runs: two[1].Runs[:1]}}, Options{})
		},
		"two arms":      func() (Comparison, error) { return Arms(two[:1], Options{}) },
		"primary":       func() (Comparison, error) { return Arms(two, Options{Primary: "ttft"}) },
		"alpha":         func() (Comparison, error) { return Arms(two, Options{Alpha: 0.5}) },
		"to detect":     func() (Comparison, error) { return Arms(two, Options{Detect: -1}) },
		"has no runs":   func() (Comparison, error) { return Arms([]Arm{{Name: "A"}, {Name: "B"}}, Options{}) },
		"at most 200 r": func() (Comparison, error) { return Arms([]Arm{{Runs: make([]report.Summary, 201)}, {}}, Options{}) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// Every writer takes every kind; what cannot be said is null and not NaN.
func TestComparisonWriters(t *testing.T) {
	same := armsOf(t, 10, 1, 0)
	same[1].Runs = same[0].Runs // no difference at all
	for name, c := range map[string]Comparison{
		"rounds": compared(t, armsOf(t, 10, 1.2, 0.01), Options{Detect: 0.03}),
		"single": compared(t, armsOf(t, 1, 1.2, 0.01), Options{}),
		"same":   compared(t, same, Options{Detect: 0.03}),
	} {
		var text, html bytes.Buffer
		if err := c.Document().WriteText(&text, textpage.Options{Details: true}); err != nil {
			t.Fatal(err)
		}
		var answer bytes.Buffer
		if err := c.Document().WriteText(&answer, textpage.Options{Width: 80, Rest: "All metrics: --details."}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(answer.String(), "\n"); n > textpage.AnswerLines || !strings.Contains(answer.String(), c.Versus[0].Text[:20]) {
			t.Errorf("%s: an answer of %d lines:\n%s", name, n, answer.String())
		}
		if _, err := json.Marshal(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Document().Write(&html); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.Contains(text.String(), "tier partner") || !strings.Contains(html.String(), "tier partner") {
			t.Errorf("%s does not say its tier", name)
		}
	}
}

// A and B are named by what differs, the effect has its interval, and the distributions
// are of all requests.
func TestComparisonPage(t *testing.T) {
	arms := armsOf(t, 10, 1.2, 0.01)
	for i := range arms {
		for j := range arms[i].Runs {
			arms[i].Runs[j].Run.Simulated = "a model of an engine with many costs that are the same on both sides, step=" + []string{"5.16ms", "5.7ms"}[i]
		}
	}
	c := compared(t, arms, Options{})
	p := c.Document()
	m := c.Versus[0].Metrics[0]
	want := fmt.Sprintf("B is slower: TTFT p99 +%.1f %% [%.1f, %.1f], p = 0.002, 10 rounds.", 100*m.Change.Estimate, 100**m.Change.Low, 100**m.Change.High)
	if p.Headline != want {
		t.Errorf("%q, want %q", p.Headline, want)
	}
	for i, s := range p.Plot.Series {
		at, _ := slices.BinarySearch(s.Y, 0.5)
		if r := c.Versus[0].Metrics[1]; s.N != 2000 || len(s.X) > 260 || r.Metric != "p50_ttft" || math.Abs(s.X[at]-*[]*float64{r.A, r.B}[i]) > 15 {
			t.Errorf("%s: %d values in %d points, half of them up to %v", s.Name, s.N, len(s.X), s.X[at])
		}
	}
	pagetest.FirstScreen(t, "compare", p, want, "A: step=5.16ms · B: step=5.7ms", "TTFT p99, ms\t", "Minimum detectable effect", "TTFT distribution")
	same := compared(t, unresampled(armsOf(t, 10, 1, 0.01)), Options{})
	if p := same.Document(); p.Plot != nil || !strings.HasPrefix(p.Headline, "No difference found in TTFT p99: ") {
		t.Errorf("%q, with a plot of nothing", p.Headline)
	}
}

// What differs is said first, a family of metrics after the other, and the rest by
// name; the table has the same order.
func TestComparisonSaysWhatDiffersFirst(t *testing.T) {
	contrast := func(label, unit string, change float64, significant bool) Contrast {
		return Contrast{Label: label, Unit: unit, Relative: unit != "share", Rounds: 10, P: trace.Ptr(0.02), Detectable: trace.Ptr(0.1), Significant: significant, Change: &Interval{Estimate: change}}
	}
	v := Versus{B: "new", Decision: Worse, Metrics: []Contrast{contrast("TPOT p95", "ms", 0.6, true), contrast("TTFT p50", "ms", 0.3, true), contrast("TTFT p99", "ms", 0.2, false),
		contrast("TTFT mean", "ms", 0.4, true), contrast("output tokens/s", "tokens/s", -0.2, true), contrast("errors", "share", 0.05, true), contrast("E2E p99", "ms", 0, false), contrast("E2E mean", "ms", 0.1, true)}}
	v.Metrics[0].Primary = true
	if got, _ := v.otherMetrics(); got != "After Holm, also TTFT p50 +30.0 %, mean +40.0 %; output tokens/s −20.0 %; errors +5.0 pt; E2E mean +10.0 %." {
		t.Error(got)
	}
	if _, got := v.otherMetrics(); got != "No difference found in TTFT p99 (MDE 10.0 %), E2E p99 (MDE 10.0 %)." {
		t.Error(got)
	}
	c := Comparison{Kind: kindRounds, A: "old"}
	_, rows := c.table(&v)
	for i, label := range []string{"TPOT p95, ms", "TTFT p50, ms", "TTFT mean, ms", "output tokens/s", "errors", "E2E mean, ms", "TTFT p99, ms", "E2E p99, ms"} {
		if rows[i][0] != label {
			t.Errorf("row %d is %s, want %s", i, rows[i][0], label)
		}
	}
	for i := range v.Metrics {
		v.Metrics[i].Detectable = nil
	}
	if _, got := v.otherMetrics(); got != "" {
		t.Errorf("of rounds that could find none: %s", got)
	}
	for i := range v.Metrics {
		v.Metrics[i].Rounds = minRounds - 1
	}
	if got, _ := v.otherMetrics(); got != "" {
		t.Errorf("of too few rounds: %s", got)
	}
}

// One run each has one figure of a change wherever that stands, is called by its side, and says which side lacks a
// value.
func TestOneRunEach(t *testing.T) {
	arms := armsOf(t, 1, 1.07, 0.01)
	arms[0].Runs[0].Verdict = report.Verdict{Reasons: []report.Reason{{Text: "the client was late"}}}
	arms[1].Runs[0].Run.Workload = "sha256:x"
	c := compared(t, arms, Options{})
	m := &c.Versus[0].Metrics[0]
	says := signed(m.Change.Estimate) + " % ["
	if !strings.Contains(c.headline(), says) || c.Versus[0].metric("p50_ttft").Resampled.A.Estimate != *c.Versus[0].metric("p50_ttft").A {
		t.Errorf("no %s in %s", says, c.headline())
	}
	for _, i := range []*Interval{m.Resampled.A, m.Resampled.B, m.Resampled.Change} {
		if *i.Low > i.Estimate || *i.High < i.Estimate {
			t.Errorf("%v is not from %v to %v", i.Estimate, *i.Low, *i.High)
		}
	}
	if all := fmt.Sprint(c.Warnings, c.lead()); strings.Contains(all, "round") || !strings.Contains(all, "In A, the client was late") ||
		!strings.Contains(all, "other workloads: that") {
		t.Error(all)
	}
	for sides, want := range map[string]string{"b": "TTFT p99 has no value in B; ", "a": "TTFT p99 has no value in A; ", "ab": "TTFT p99 has no value in A and in B; "} {
		arms := unresampled(armsOf(t, 1, 1, 0.01))
		for i, side := range []string{"a", "b"} {
			if strings.Contains(sides, side) {
				arms[i].Runs[0].Latency.FromDue.TTFT.P99 = nil
			}
		}
		c := compared(t, arms, Options{})
		m := &c.Versus[0].Metrics[0]
		if !strings.Contains(c.headline(), want) || (m.A == nil) != strings.Contains(sides, "a") || (m.B == nil) != strings.Contains(sides, "b") || len(c.Warnings) > 0 {
			t.Errorf("%s: %s %v", sides, c.headline(), c.Warnings)
		}
	}
}

// The headline names the latencies that are in doubt, and says where the decision does not rest on them.
func TestDoubtIsOfFigures(t *testing.T) {
	for _, c := range []struct{ code, primary, want string }{
		{"stalled_gap", "mean_e2e", "; besides, 1 of 20 runs is not trustworthy in ITL, TPOT, token ITL, on which E2E mean does not rest"},
		{"late_last_token", "mean_e2e", ", but do not rely on it: 1 of 20 runs is not trustworthy in E2E, TPOT"},
		{"send_lag_p99", "mean_e2e", ", but do not rely on it: 1 of 20 runs is not trustworthy"},
		{"stalled_gap", "output_tokens_per_s", ", but do not rely on it: 1 of 20 runs is not trustworthy in ITL, TPOT, token ITL"},
	} {
		arms := unresampled(armsOf(t, 10, 1.3, 0.001))
		arms[0].Runs[3].Verdict = report.Verdict{Reasons: []report.Reason{{Code: c.code}}}
		if got := compared(t, arms, Options{Primary: c.primary}); !strings.HasSuffix(got.headline(), c.want) || got.Trustworthy() {
			t.Errorf("%+v: %s", c, got.headline())
		}
	}
}

// The finding comes first, then how many runs cannot be trusted, and which file says why.
func TestFindingComesBeforeDoubt(t *testing.T) {
	few, many := unresampled(armsOf(t, 3, 1.3, 0.001)), unresampled(armsOf(t, 10, 1.3, 0.001))
	for _, c := range []struct {
		arms     []Arm
		bad      int
		headline string
		says     string
	}{
		{many, 0, "B is slower: TTFT p99 +", ""},
		{many, 1, ", but do not rely on it: 1 of 20 runs is not trustworthy", "1 of 20 runs is not trustworthy: " +
			"reprise report a/1 says why"},
		{many, 3, ", but do not rely on it: 3 of 20 runs are not trustworthy", "3 of 20 runs are not trustworthy: " +
			"reprise report a/1 says why"},
		{few, 2, "needs 8; besides, 2 of 6 runs are not trustworthy", "2 of 6 runs are not trustworthy: reprise " +
			"report a/1 says why"},
	} {
		for _, arm := range c.arms {
			for i := range arm.Runs {
				arm.Runs[i].Verdict.Trustworthy = arm.Name == "B" || i >= c.bad
			}
		}
		c.arms[0].Files = []string{"a/1", "a/2"}
		got := compared(t, c.arms, Options{})
		if h := got.headline(); !strings.Contains(h, c.headline) || strings.HasPrefix(strings.ToLower(h), "not") ||
			got.Untrusted() != c.says {
			t.Errorf("%d bad: %s\n%s", c.bad, h, got.Untrusted())
		}
	}
}

// Where so few rounds were made that no p but the first can be significant, the table says so and how many rounds can.
func TestTooFewRoundsForOtherMetrics(t *testing.T) {
	for rounds, want := range map[int]string{3: "From 10 rounds on", 6: "with 6 rounds it is never below 0.", 9: "From 10 rounds on", 10: ""} {
		c := compared(t, unresampled(armsOf(t, rounds, 1.5, 0.001)), Options{})
		says := c.tooFew(&c.Versus[0])
		other := slices.ContainsFunc(c.Versus[0].Metrics, func(m Contrast) bool { return !m.Primary && m.Significant })
		first := c.firstTable().Caption
		if (want != "" && c.Versus[0].Decided()) != strings.Contains(first, "the first line only") {
			t.Errorf("%d rounds: %s", rounds, first)
		}
		if (want == "") != (says == "") || !strings.Contains(says, want) || other != (says == "") {
			t.Errorf("%d rounds: %q, and another metric is significant: %v", rounds, says, other)
		}
	}
}

// The set-up of a side is said in words that name it.
func TestSettingsInWords(t *testing.T) {
	for _, c := range [][3]string{
		{"endpoints.0", "http://a:1", "http://a:1"}, {"model", "m", "m"}, {"environment.servers.0.block_size", "16",
			"block size 16"},
		{"api", "completions", "api completions"}, {"prompt_text", "", "without prompt text"}, {"no_prefix_caching",
			"true", "no prefix caching on"}, {"gone", "false", "gone off"},
		{"sampling.ignore_eos", "true", "ignore eos on"},
	} {
		if got := named(c[0], c[1]); got != c[2] {
			t.Errorf("%s is %q, want %q", c[0], got, c[2])
		}
	}
}
