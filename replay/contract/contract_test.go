package contract

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
	"reprise/trace/textpage"
)

var answer, failure, messy = resulttest.Answer, resulttest.Failure, resulttest.Messy

func summarise(t *testing.T, run result.Run, opts report.Options, results ...result.Result) report.Summary {
	t.Helper()
	s, err := report.Summarise(run, &trace.SliceReader[result.Result]{Rows: results}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func show(v *float64) any {
	if v == nil {
		return "null"
	}
	return *v
}

// near holds two figures equal to within a nanosecond and some relative error.
func near(t *testing.T, what string, got *float64, want, relative float64) {
	t.Helper()
	if math.IsNaN(want) != (got == nil) || got != nil && math.Abs(*got-want) > 2e-6+relative*math.Abs(want) {
		t.Errorf("%s: got %v, want %v", what, show(got), want)
	}
}

// contractOf parses clauses as a contract's lines.
func contractOf(t *testing.T, lines ...string) *Contract {
	t.Helper()
	c, err := Parse("c.yaml", []byte("gpus: 2\nprice_per_gpu_hour: 3\nclauses:\n  - "+strings.Join(lines, "\n  - ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// bounds is a contract of every measure, from both origins, within a scope or not.
func bounds(t *testing.T, where string) *Contract {
	t.Helper()
	var lines []string
	add := func(clause string, more ...string) {
		if where != "" {
			more = append(more, "where: "+where)
		}
		lines = append(lines, strings.Join(append([]string{"clause: " + clause}, more...), "\n    "))
	}
	for _, stat := range []string{"p50", "p95", "p99", "p99.9", "mean", "max"} {
		spread, _ := figure.Names(func(s *figure.Subject) bool {
			return judged(figure.Figure{Subject: s, Statistic: figure.Mean}) && !s.Sessions && !s.Servers
		})
		for _, name := range spread {
			if figure.Find(name).Origin {
				add(stat+" "+name+" <= 50ms", "from: sent")
				add(stat + " " + name + " <= 50ms")
			} else {
				add(stat + " " + name + " <= 20ms")
			}
		}
	}
	for _, clause := range []string{"error_rate <= 1%", "hit_ratio >= 20%", "requests_per_s >= 20", "prompt_tokens_per_s >= 5", "output_tokens_per_s >= 5000"} {
		add(clause)
	}
	add("goodput >= 50%", "slo: ttft:30ms,tpot:40ms,itl:80ms,e2e:300ms")
	add("goodput >= 50%", "slo: ttft:30ms,tpot:40ms,itl:80ms,e2e:300ms", "from: sent")
	return contractOf(t, lines...)
}

// measuredOf finds what a summary says of a clause.
func measuredOf(t *testing.T, s *report.Summary, c *report.ClauseResult) *float64 {
	t.Helper()
	subject, _, _ := strings.Cut(c.Clause, " ")
	switch subject {
	case "error_rate":
		return s.Requests.ErrorShare
	case "hit_ratio":
		return s.Cache.Measured
	case "requests_per_s":
		return s.Throughput.RequestsPerS
	case "prompt_tokens_per_s":
		return s.Throughput.PromptTokensPerS
	case "output_tokens_per_s":
		return s.Throughput.OutputTokensPerS
	case "goodput":
		return map[string]*float64{"due": s.Goodput.FromDue.Share, "sent": s.Goodput.FromSent.Share}[c.From]
	}
	name := strings.Fields(c.Clause)[1]
	if c.From != "" {
		name = "from_" + c.From + "." + name
	} else if name == "itl" {
		name = "itl_chunk"
	}
	l := &s.Latency
	stat := map[string]*report.Stat{
		"from_sent.ttft": &l.FromSent.TTFT, "from_sent.e2e": &l.FromSent.E2E, "from_sent.headers": &l.FromSent.Headers,
		"from_sent.ttfo": &l.FromSent.TTFO, "from_due.ttfo": &l.FromDue.TTFO,
		"from_due.ttft": &l.FromDue.TTFT, "from_due.e2e": &l.FromDue.E2E, "from_due.headers": &l.FromDue.Headers,
		"itl_chunk": &l.ITLChunk, "itl_token": &l.ITLToken, "tpot": &l.TPOT,
	}[name]
	if stat != nil {
		return map[string]*float64{"p50": stat.P50, "p95": stat.P95, "p99": stat.P99, "p99.9": stat.P999, "mean": stat.Mean, "max": stat.Max}[subject]
	}
	t.Fatalf("%+v is not in the summary", c)
	return nil
}

// A clause about all requests has the figure that the summary prints, whether it
// comes from every value or from a histogram.
func TestClausesHaveTheSummarysFigures(t *testing.T) {
	slo, _ := report.ParseSLO("ttft:30ms,tpot:40ms,itl:80ms,e2e:300ms")
	results := messy(rand.New(rand.NewPCG(5, 6)), 2000)
	for _, exact := range []int{0, 700} {
		s := summarise(t, result.Run{Source: result.Source{ServerBlock: 16}}, report.Options{Contract: bounds(t, ""), SLO: slo, Exact: exact}, results...)
		outcomes := map[string]int{}
		for i := range s.Contract.Clauses {
			c := &s.Contract.Clauses[i]
			outcomes[c.Outcome]++
			if want := measuredOf(t, &s, c); c.Measured == nil || want == nil || *c.Measured != *want {
				t.Errorf("exact %d: %s from %s: %v, and %v in the summary", exact, c.Clause, c.From, show(c.Measured), show(want))
			}
		}
		if outcomes[report.Holds] < 5 || outcomes[report.Fails] < 5 {
			t.Errorf("too one-sided to tell: %v", outcomes)
		}
	}
}

// The figures are the same to the last nanosecond, even where a percentile lies in
// the middle of a gap of hours.
func TestPercentileOfAWideGap(t *testing.T) {
	s := sample.Values{Limit: 1 << 20}
	for i := range 3411 {
		s.Add(int64(i/3240) * 33570367678183)
	}
	st, _ := report.StatOf(&s)
	if p95 := statisticOf(figure.P95, &s); *p95 != *st.P95 {
		t.Errorf("%v, and %v in the summary", *p95, *st.P95)
	}
}

// The clauses of a scope have the figures that a run of its requests alone would
// have, but for the duration, which is the run's.
func TestScopedClausesAreOfTheirRequests(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	slo, _ := report.ParseSLO("ttft:30ms,tpot:40ms,itl:80ms,e2e:300ms")
	results := messy(rng, 5000)
	var inside []result.Result
	for i := range results {
		r := &results[i]
		r.Class = []string{"", "gold", "silver"}[rng.IntN(3)]
		length := r.WantInput
		if r.Error == "" && r.SentNS != nil && r.DoneNS != nil && r.Input != nil {
			length = *r.Input
		}
		if r.Class == "gold" || r.Category == trace.Branch && length < 8000 {
			inside = append(inside, *r)
		}
	}
	where := "class = gold or category = branch and input_tokens < 8000"
	opts := report.Options{Contract: bounds(t, where), SLO: slo}
	s := summarise(t, result.Run{Source: result.Source{ServerBlock: 16}}, opts, results...)
	alone := summarise(t, result.Run{Source: result.Source{ServerBlock: 16}}, report.Options{SLO: slo}, inside...)
	stretch := *alone.DurationS / *s.DurationS
	if len(inside) < 1500 || len(inside) > 3000 || len(s.Contract.Clauses) != len(Of(opts).Clauses) {
		t.Fatalf("%d inside, %d clauses", len(inside), len(s.Contract.Clauses))
	}
	for i := range s.Contract.Clauses {
		c := &s.Contract.Clauses[i]
		want := measuredOf(t, &alone, c)
		if c.Measured == nil || want == nil || c.Where != where {
			t.Errorf("%s where %s: %v", c.Clause, c.Where, c)
			continue
		}
		if c.Unit == "1/s" {
			near(t, c.Clause, c.Measured, *want*stretch, 1e-6)
		} else if *c.Measured != *want {
			t.Errorf("%s from %s: %v; of these alone %v", c.Clause, c.From, *c.Measured, *want)
		}
	}
}

// contractNote is what the page says of the contract.
func contractNote(s report.Summary) doc.Note {
	for _, n := range report.Page(s).Verdict {
		if n.Word == "Contract" {
			return n
		}
	}
	return doc.Note{}
}

// evenly makes n results, one a second, whose TTFT is 1, 2, … n ms.
func evenly(n int64) (out []result.Result) {
	for i := range n {
		out = append(out, answer(i, i*1000, 0, i+1, i+21))
	}
	return out
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		clause  string
		results []result.Result
		outcome string
		margin  float64 // NaN is null
	}{
		{"max ttft <= 20ms", evenly(20), report.Holds, 0}, // what is allowed is allowed
		{"max ttft <= 19.999999ms", evenly(20), report.Fails, -0.00000005},
		{"max ttft <= 40ms", evenly(20), report.Holds, 0.5},
		{"max ttft <= 8ms", evenly(20), report.Fails, -1.5},
		{"p95 ttft <= 1s", evenly(20), report.Holds, 0.98095},
		{"p95 ttft <= 1s", evenly(19), report.Unjudged, math.NaN()},
		{"p97 ttft <= 1s", evenly(34), report.Holds, 0.96699},
		{"p97 ttft <= 1s", evenly(33), report.Unjudged, math.NaN()},
		{"p99.99 ttft <= 1s", evenly(9999), report.Unjudged, math.NaN()},
		{"mean ttft <= 1ms", evenly(1), report.Holds, 0},
		{"mean ttft <= 1ms", nil, report.Unjudged, math.NaN()},
		{"mean tpot <= 1ms", []result.Result{answer(0, 0, 0, 5)}, report.Unjudged, math.NaN()},
		{"error_rate <= 50%", []result.Result{answer(0, 0, 0, 5), failure(1, 0, "reset")}, report.Holds, 0},
		{"error_rate <= 40%", []result.Result{answer(0, 0, 0, 5), failure(1, 0, "reset")}, report.Fails, -0.25},
		{"error_rate <= 0%", []result.Result{answer(0, 0, 0, 5)}, report.Holds, math.NaN()},
		{"error_rate <= 0%", []result.Result{answer(0, 0, 0, 5), failure(1, 0, "reset")}, report.Fails, math.NaN()},
		{"error_rate <= 10%", []result.Result{failure(1, 0, "reset")}, report.Fails, -9},
		{"output_tokens_per_s >= 4", []result.Result{answer(0, 0, 0, 5, 500)}, report.Holds, 0},
		{"output_tokens_per_s >= 5", []result.Result{answer(0, 0, 0, 5, 500)}, report.Fails, -0.2},
		{"requests_per_s >= 1", []result.Result{answer(0, 0, 0, 5, 500)}, report.Holds, 1},
		{"prompt_tokens_per_s >= 100", []result.Result{answer(0, 0, 0, 5, 500)}, report.Holds, 1},
		{"hit_ratio >= 10%", evenly(5), report.Unjudged, math.NaN()},
		{"{clause: max ttft <= 1s, where: class = gold}", evenly(5), report.Unjudged, math.NaN()},
		{"{clause: goodput >= 50%, slo: 'ttft:10ms'}", evenly(20), report.Holds, 0},
		{"{clause: goodput >= 50%, slo: 'ttft:5ms'}", evenly(20), report.Fails, -0.5},
		// 2 GPUs at 3 for an hour is 6, for 4 M output tokens.
		{"cost_per_million_output_tokens <= 1.5", []result.Result{expensive(4_000_000)}, report.Holds, 0},
		{"cost_per_million_output_tokens <= 1", []result.Result{expensive(4_000_000)}, report.Fails, -0.5},
		{"cost_per_million_output_tokens <= 1", []result.Result{expensive(0)}, report.Unjudged, math.NaN()},
	} {
		s := summarise(t, result.Run{}, report.Options{Contract: contractOf(t, c.clause)}, c.results...)
		got := &s.Contract.Clauses[0]
		if got.Outcome != c.outcome || s.Contract.Holds != (c.outcome == report.Holds) || s.Contract.Judged != (c.outcome != report.Unjudged) ||
			s.Contract.Fails() != (c.outcome == report.Fails) || (got.Why == "") != (c.outcome != report.Unjudged) {
			t.Errorf("%s of %d: %+v", c.clause, len(c.results), got)
		}
		near(t, c.clause, got.Margin, c.margin, 1e-6)
	}
}

// expensive is a result that took an hour.
func expensive(output int32) result.Result {
	r := answer(0, 0, 0, 5, 3600_000)
	r.Output = &output
	return r
}

// The wait in the client counts from schedule and not from sent.
func TestOrigins(t *testing.T) {
	s := summarise(t, result.Run{}, report.Options{Contract: contractOf(t, "max ttft <= 50ms", "{clause: max ttft <= 50ms, from: sent}")}, answer(0, 0, 100, 20))
	if c := s.Contract.Clauses; c[0].From != "due" || *c[0].Measured != 120 || c[1].From != "sent" || *c[1].Measured != 20 {
		t.Errorf("%+v", c)
	}
}

// What is outside the window counts for no clause.
func TestContractOfTheWindow(t *testing.T) {
	results := evenly(40)
	results[0] = failure(0, 0, "reset")
	for i := range results {
		results[i].Class = "gold"
	}
	run := result.Run{Sending: result.Sending{Window: &result.Window{From: &result.Place{DueNS: 10e9}, To: &result.Place{DueNS: 30e9}}}}
	contract := contractOf(t, "max ttft <= 30ms", "error_rate <= 0%", "{clause: max ttft <= 30ms, where: class = gold}", "{clause: error_rate <= 0%, where: class = gold}", "{clause: goodput >= 100%, slo: 'ttft:30ms'}")
	s := summarise(t, run, report.Options{Contract: contract}, results...)
	for _, c := range s.Contract.Clauses {
		if c.Outcome != report.Holds || c.Samples != 20 {
			t.Errorf("%+v", c)
		}
	}
	run.Window = nil
	s = summarise(t, run, report.Options{Contract: contract}, results...)
	for _, c := range s.Contract.Clauses {
		if c.Outcome != report.Fails {
			t.Errorf("without a window: %+v", c)
		}
	}
}

// Clauses of one scope share their values; those of all requests keep none.
func TestContractMemory(t *testing.T) {
	c := contractOf(t, "p95 ttft <= 1s", "{clause: p95 ttft <= 1s, where: class = gold}", "{clause: p99 ttft <= 1s, where: class = 'gold'}",
		"{clause: p99 ttft <= 1s, where: class = gold, from: sent}", "{clause: p99 itl <= 1s, where: class = silver}")
	j := c.Judge(&result.Run{}, report.SLO{}, nil, func() *report.Evidence { return new(report.Evidence) }).(*judge)
	timings := []report.Timing{{Of: figure.TTFT, Origin: report.FromDue}, {Of: figure.TTFT, Origin: report.FromSent}, {Of: figure.ITL, Origin: report.FromSent}}
	kept := func() (counts []int64) {
		for _, v := range j.scopes {
			for _, timing := range timings {
				n := int64(-1) // not kept
				if values := v.Values(timing); values != nil {
					n = values.N
				}
				counts = append(counts, n)
			}
		}
		return counts
	}
	if got := fmt.Sprint(kept()); got != "[-1 -1 -1 0 0 -1 -1 -1 0]" {
		t.Errorf("values by scope: %v", got)
	}
	for i := range 100 {
		j.Add(rowOf([]string{"gold", "silver"}[i%2], 100), false)
	}
	if got := fmt.Sprint(kept()); got != "[-1 -1 -1 50 50 -1 -1 -1 50]" {
		t.Errorf("values by scope after 50 requests of each: %v", got)
	}
}

// A contract of latencies alone is deaf to failures, and the report says so.
func TestContractWithoutErrorRate(t *testing.T) {
	for clauses, want := range map[string]bool{
		"max ttft <= 1s":                                          true,
		"max ttft <= 1s|error_rate <= 50%":                        false,
		"max ttft <= 1s|{clause: goodput >= 10%, slo: 'ttft:1s'}": false,
		"requests_per_s >= 1":                                     false,
	} {
		for _, failures := range []int{0, 1} {
			results := append(evenly(5), failure(9, 9, "reset"))[:5+failures]
			s := summarise(t, result.Run{}, report.Options{Contract: contractOf(t, strings.Split(clauses, "|")...)}, results...)
			said := false
			for _, w := range s.Warnings {
				said = said || w.Code == "contract_without_error_rate"
			}
			if said != (want && failures > 0) {
				t.Errorf("%s with %d failures: %v", clauses, failures, s.Warnings)
			}
		}
	}
}

func TestContractIsShown(t *testing.T) {
	contract := contractOf(t, "p95 ttft <= 10ms", "{clause: max e2e <= 1s, where: class = gold or input_tokens < 2048 and category != cold and output_tokens > 3}", "p99.99 ttft <= 1s", "requests_per_s >= 2", "error_rate <= 1%")
	contract.Name = "chat \x1b[31m"
	results := evenly(1100)
	results[7] = answer(7, 0, 0, 8, 6_612_742)
	for i := range results {
		results[i].Class = "gold"
	}
	s := summarise(t, result.Run{Simulation: result.Simulation{Simulated: "a model"}}, report.Options{Contract: contract}, results...)
	const says = `the contract "chat ?[31m" is not met (1/5): p95 ttft from schedule is 1,050 ms, 10,400 % over 10ms; ` +
		`max e2e from schedule where class = gold or input_tokens < 2048 and category != cold and output_tokens > 3 is 6,612,742 ms, 661,000 % over 1s; ` +
		`requests_per_s is 0.166 1/s, 91.7 % short of 2; it cannot be judged: p99.99 ttft from schedule: it takes 10,000 values, and there were 1,100`
	if got := s.Contract.String(); got != says {
		t.Errorf("got\n%s\nwant\n%s", got, says)
	}
	var text bytes.Buffer
	if err := report.Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if utf8.RuneCountInString(line) > textpage.MaxWidth {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	p := report.Page(s)
	if p.Sections[0].Title != "Contract" || len(p.Sections[0].Tables[0].Rows) != 5 {
		t.Errorf("%+v", p.Sections[0])
	}
	if n := contractNote(s); n.Level != doc.Bad || n.Text != strings.TrimPrefix(says, "the contract ")+"." {
		t.Errorf("%+v", n)
	}
	for _, want := range []string{"Contract: \"chat ?[31m\" is not met", "fails by 10,400 %", "holds, 100 % headroom", "cannot be judged"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, text.String())
		}
	}
}

// A contract that holds names the clause with the least room, and what the run's
// verdict does to it.
func TestContractHolds(t *testing.T) {
	contract := contractOf(t, "max ttft <= 40ms", "{clause: max e2e <= 100ms, from: sent}", "error_rate <= 0%")
	s := summarise(t, result.Run{}, report.Options{Contract: contract}, evenly(20)...)
	const says = "the contract is met (3/3); tightest: max ttft from schedule 20 ms, 50 % headroom"
	if got := s.Contract.String(); got != says || contractNote(s).Level != doc.Good {
		t.Errorf("%s", got)
	}
	s = summarise(t, result.Run{Client: result.Client{GCPauseMaxNS: int64(time.Second)}}, report.Options{Contract: contract}, evenly(20)...)
	if got := contractNote(s); got.Level != doc.Warn || !strings.Contains(got.Text, "cannot be trusted") {
		t.Errorf("%+v", got)
	}
}
