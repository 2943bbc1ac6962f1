package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/trace/textpage"
)

func TestRegression(t *testing.T) {
	figure := func(v, lo, hi float64) *Figure { return &Figure{V: v, Lo: lo, Hi: hi} }
	for _, c := range []struct {
		metric    string
		is, was   *Figure
		most      float64
		regressed bool
		want      string
	}{
		{"p95_ttft", figure(150, 150, 150), figure(100, 100, 100), 0.1, true,
			"REGRESSION: TTFT p95 (ms) is 150, in the baseline 100 (+50.0 %, limit 10 %)"},
		{"p95_ttft", figure(109, 109, 109), figure(100, 100, 100), 0.1, false,
			"no regression: TTFT p95 (ms) is 109, in the baseline 100 (+9.0 %, limit 10 %)"},
		{"p95_ttft", figure(50, 50, 50), figure(100, 100, 100), 0, false,
			"no regression: TTFT p95 (ms) is 50, in the baseline 100 (−50.0 %, limit 0 %)"},
		{"p95_ttft", figure(150, 90, 160), figure(100, 95, 105), 0.1, false,
			"no regression, since repeats overlap: TTFT p95 (ms) is 150, in the baseline 100 (+50.0 %, limit 10 %); they are 90 to 160, and were 95 to 105"},
		{"p95_ttft", figure(150, 110, 160), figure(100, 95, 105), 0.1, true,
			"REGRESSION: TTFT p95 (ms) is 150, in the baseline 100 (+50.0 %, limit 10 %)"},
		{"output_tokens_per_s", figure(80, 78, 82), figure(100, 99, 101), 0.1, true,
			"REGRESSION: Output tokens/s is 80, in the baseline 100 (−20.0 %, limit 10 %)"},
		{"output_tokens_per_s", figure(80, 78, 99), figure(100, 99, 101), 0.1, false,
			"no regression, since repeats overlap: Output tokens/s is 80, in the baseline 100 (−20.0 %, limit 10 %); they are 78 to 99, and were 99 to 101"},
		{"output_tokens_per_s", figure(120, 120, 120), figure(100, 100, 100), 0.1, false,
			"no regression: Output tokens/s is 120, in the baseline 100 (+20.0 %, limit 10 %)"},
		{"error_rate", figure(0.05, 0.05, 0.05), figure(0.01, 0.01, 0.01), 1, true,
			"REGRESSION: Errors (%) is 5, in the baseline 1 (+400.0 %, limit 100 %)"},
		{"error_rate", figure(0.05, 0.05, 0.05), figure(0, 0, 0), 0.1, false,
			"no regression: Errors (%) is 5, in the baseline 0 (+5.0 points, limit 10 %)"},
		{"error_rate", figure(0.425, 0.425, 0.425), figure(0, 0, 0), 0.1, true,
			"REGRESSION: Errors (%) is 42.5, in the baseline 0 (+42.5 points, limit 10 %)"},
		{"error_rate", figure(0, 0, 0), figure(0, 0, 0), 0, false,
			"no regression: Errors (%) is 0, in the baseline 0 (+0.0 points, limit 0 %)"},
		{"hit_ratio", figure(0.3, 0.3, 0.3), figure(0, 0, 0), 0.1, false,
			"no regression: Cache hits (%) is 30, in the baseline 0 (+30.0 points, limit 10 %)"},
		{"session_success", figure(0.5, 0.5, 0.5), figure(1, 1, 1), 0.1, true,
			"REGRESSION: Session success (%) is 50, in the baseline 100 (−50.0 %, limit 10 %)"},
		{"p95_ttft", figure(150, 150, 150), figure(0, 0, 0), 0.1, false, "not held against the baseline, which has no p95_ttft to compare"},
		{"p95_ttft", figure(1, 1, 1), nil, 0.1, false, "not held against the baseline, which has no p95_ttft to compare"},
		{"max_running", figure(9, 9, 9), figure(1, 1, 1), 0.1, false, "not held against the baseline: neither more nor less max_running is worse"},
	} {
		got := regression(metric(c.metric), c.is, c.was, c.most)
		if got.Text != c.want || got.refuted() != c.regressed {
			t.Errorf("regressed %v: %s\nwant %v: %s", got.refuted(), got.Text, c.regressed, c.want)
		}
	}
}

// Errors are held against the baseline whatever metric is the primary one: figures of the requests that succeeded hide
// those that did not.
func TestRegressionOfErrors(t *testing.T) {
	result := func(ttft, errors float64) *SuiteResult {
		return &SuiteResult{Suite: "s", Models: []string{"m"}, Rows: []RowResult{{Row: "chat", Primary: "p95_ttft", Models: []ModelResult{{Model: "m",
			Figures: []Figure{{Metric: "p95_ttft", V: ttft, Lo: ttft, Hi: ttft}, {Metric: errorRate, V: errors, Lo: errors, Hi: errors}}}}}}}
	}
	for _, c := range []struct {
		ttft, errors, was float64
		regressed         bool
	}{{100, 0.425, 0, true}, {50, 0.425, 0, true}, {100, 0.05, 0, false}, {100, 0, 0.425, false}, {100, 0.5, 0.3, true}} {
		r := result(c.ttft, c.errors)
		r.Against("before", *result(100, c.was), 0.1)
		if r.Regressed() != c.regressed {
			t.Errorf("%+v: regressed %v: %s", c, r.Regressed(), r.Rows[0].Models[0].Regression.Text)
		}
	}
}

// The headline counts the runs that are not trustworthy, and each row stands once with all that is against it.
func TestSuiteCountsUntrustedRuns(t *testing.T) {
	var s Suite
	var all []runsOf
	for i, reasons := range [][]report.Reason{nil, {{Code: "stalled_ttft", Text: "late"}, {Code: "stalled_gap", Text: "later"}}, {{Code: "stalled_gap", Text: "later"}}} {
		name := fmt.Sprint("row ", i)
		s.Rows = append(s.Rows, Row{Name: name, Primary: metric("p99_ttft")})
		all = append(all, runsOf{name, "m", []report.Summary{{Verdict: report.Verdict{Trustworthy: reasons == nil, Reasons: reasons}}}})
	}
	r := s.result([]string{"m"}, all)
	p := r.Page("")
	if p.Headline != "2 of 3 runs are not trustworthy" || !slices.Equal(p.Verdict[0].Items, []string{"row 1 is not trustworthy: late; later", "row 2 is not trustworthy: later"}) {
		t.Errorf("%s %q", p.Headline, p.Verdict[0].Items)
	}
}

// A suite prints every line and every reason whole, however many there are.
func TestSuitePrintsAllLines(t *testing.T) {
	r := SuiteResult{Suite: "s", Models: []string{"m"}}
	reason := strings.Repeat("a long reason ", 30)
	for i := range 25 {
		r.Rows = append(r.Rows, RowResult{Row: fmt.Sprintf("row-%02d", i), Models: []ModelResult{{Model: "m", Reasons: []string{reason + fmt.Sprintf("ends %02d", i)}}}})
	}
	var out bytes.Buffer
	if err := r.WriteText(&out, textpage.Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for i := range r.Rows {
		said := strings.Join(strings.Fields(out.String()), " ")
		if strings.Count(said, fmt.Sprintf("row-%02d", i)) != 2 || !strings.Contains(said, fmt.Sprintf("ends %02d", i)) {
			t.Errorf("row %d is not whole in\n%s", i, said)
		}
	}
}
