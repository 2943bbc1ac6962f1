package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// replayed makes a trace of n rows with recorded times, and results of every
// second row that took factor times as long, sent 7 ms after they were due.
func replayedRows(n int, factor float64) (rows []Recorded, results []result.Result) {
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range int64(n) {
		first := 50 + rng.Int64N(100)
		last := first + 200
		rows = append(rows, Recorded{InputTokens: 100, OutputTokens: trace.Ptr[int32](2), Status: trace.StatusOK,
			TTFTNS: trace.Ptr(first * resulttest.MS), E2ENS: trace.Ptr(last * resulttest.MS)})
		if i%2 == 1 {
			results = append(results, resulttest.Answer(i, i, 7, int64(factor*float64(first)), int64(factor*float64(last))))
		}
	}
	return rows, results
}

func production2(rows []Recorded, results []result.Result, run result.Run) (Comparison, error) {
	s, err := report.Summarise(run, &trace.SliceReader[result.Result]{Rows: results}, report.Options{})
	if err != nil {
		return Comparison{}, err
	}
	return Production(trace.Meta{Digest: "sha256:w", Tier: "partner"}, &trace.SliceReader[Recorded]{Rows: rows}, s,
		&trace.SliceReader[result.Result]{Rows: results}, Options{})
}

func TestCompareProduction(t *testing.T) {
	run := result.Run{Source: result.Source{Workload: "sha256:w", Tier: "public"}, Sending: result.Sending{Requests: 1500}}
	rows, results := replayedRows(3000, 1.5)
	rows[1].Status = trace.StatusFailed
	rows[3].TTFTNS = nil
	c, err := production2(rows, results, run)
	if err != nil {
		t.Fatal(err)
	}
	v := c.Versus[0]
	if c.Kind != kindProduction || v.Decision != undecided || !strings.HasPrefix(v.Text, "No verdict on a change") || c.Tier != "partner" {
		t.Errorf("%s %s: %s", c.Tier, v.Decision, v.Text)
	}
	seen := map[string]Contrast{}
	for _, m := range v.Metrics {
		seen[m.Metric] = m
	}
	for _, name := range []string{"p50_ttft", "p99_ttft", "mean_e2e", "median_ratio_ttft", "median_ratio_e2e"} {
		m := seen[name]
		if m.Change == nil || math.Abs(m.Change.Estimate-0.5) > 0.01 || m.Resampled == nil || math.Abs(m.Resampled.Change.Estimate-0.5) > 0.02 {
			t.Errorf("%s: %+v", name, m.Change)
		}
	}
	// Row by row, what rows differ by is out of it.
	if i := seen["median_ratio_ttft"].Resampled.Change; *i.High-*i.Low > 0.01 {
		t.Errorf("the ratio of a row lies within %v and %v", *i.Low, *i.High)
	}
	if w := c.Warnings[0]; w.Code != warnJoin || !strings.Contains(w.Text, "1,499 of 1,500 rows") {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestCompareProductionRefusesOtherTraces(t *testing.T) {
	run := result.Run{Source: result.Source{Workload: "sha256:w"}, Sending: result.Sending{Requests: 50}}
	rows, results := replayedRows(100, 1)
	other := run
	other.Workload = "sha256:x"
	if c, err := production2(rows, results, other); err != nil || c.Warnings[0].Code != warnWorkload {
		t.Errorf("the same lengths: %v", err)
	}
	for want, f := range map[string]func() (Comparison, error){
		"the trace ends with row 49": func() (Comparison, error) { return production2(rows[:50], results, run) },
		"row 7 has different lengths": func() (Comparison, error) {
			changed := append([]Recorded(nil), rows...)
			changed[7].InputTokens++
			return production2(changed, results, other)
		},
		"out of order at row": func() (Comparison, error) {
			return production2(rows, []result.Result{results[1], results[0]}, run)
		},
		"no row has a time": func() (Comparison, error) {
			bare := make([]Recorded, len(rows))
			return production2(bare, results, run)
		},
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
