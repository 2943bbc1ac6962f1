package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"reprise/replay/result"
	"reprise/trace"
)

// writers are all that write nothing but a summary.
var writers = map[string]func(io.Writer, Summary) error{
	"md": func(w io.Writer, s Summary) error { return Page(s).WriteMarkdown(w) }, "csv": WriteCSV, "junit.xml": WriteJUnit,
	"prom": WritePrometheus, "br.json": WriteBenchmarkReport,
}

func written(t *testing.T, write func(io.Writer, Summary) error, s Summary) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// formatted is a summary for the golden files: small or broken, on a known machine.
func formatted(t *testing.T, of func() (result.Run, []result.Result, Options)) Summary {
	t.Helper()
	run, results, opts := of()
	run.Model, run.Started, run.Environment = "org/a_model@v1", "2026-05-01T12:00:00Z", fullEnvironment()
	return summarise(t, run, opts, results...)
}

func TestFormatsGolden(t *testing.T) {
	for name, of := range map[string]func() (result.Run, []result.Result, Options){"small": smallRun, "broken": brokenRun} {
		s := formatted(t, of)
		for suffix, write := range writers {
			golden(t, name+"."+suffix, []byte(written(t, write, s)))
		}
	}
}

// Nothing of a summary, however odd, fails a writer or becomes a command to who reads it.
func TestFormatsOfAnything(t *testing.T) {
	full, _ := fullSummary(t)
	run, results, opts := smallRun()
	evil := "</details>|*x*\x1b[31m\"\n@user #1 `a` \xff"
	run.Model, run.Note, run.Workload, run.Version = evil, evil, evil, evil
	run.Environment = fullEnvironment()
	run.Environment.Deployment.Engine = evil
	results[0] = failure(0, 0, evil)
	for name, s := range map[string]Summary{"full": full, "evil": summarise(t, run, opts, results...), "empty": summarise(t, result.Run{}, Options{})} {
		for suffix, write := range writers {
			out := written(t, write, s)
			if strings.ContainsAny(out, "\x1b\r") {
				t.Errorf("%s.%s: control characters", name, suffix)
			}
			if suffix == "md" && regexp.MustCompile("@user|#1 |<[^ds/]|</details>\\\\|[^\\\\]`a").MatchString(out) {
				t.Errorf("%s: the Markdown says more than text:\n%s", name, out)
			}
		}
		readBack(t, name, s)
	}
}

// readBack reads what was written with the readers that others have.
func readBack(t *testing.T, name string, s Summary) {
	t.Helper()
	var suites junitSuites
	if err := xml.Unmarshal([]byte(written(t, WriteJUnit, s)), &suites); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	again, err := xml.Marshal(suites)
	if err != nil {
		t.Fatal(err)
	}
	var twice junitSuites
	if want := len(s.Verdict.Checks) + clauses(s); xml.Unmarshal(again, &twice) != nil || twice.Tests != want {
		t.Errorf("%s: %d cases of %d checks and clauses", name, twice.Tests, want)
	}
	families(t, written(t, WritePrometheus, s))
	rows, err := csv.NewReader(strings.NewReader(written(t, WriteCSV, s))).ReadAll()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if key := row[0] + " " + row[1] + " " + row[3]; seen[key] {
			t.Errorf("%s: two rows for %s", name, key)
		} else {
			seen[key] = true
		}
	}
}

func families(t *testing.T, doc string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	out, err := p.TextToMetricFamilies(strings.NewReader(doc))
	if err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	return out
}

// What Prometheus reads is what the summary has, in seconds, under names in its style.
func TestPrometheusValues(t *testing.T) {
	s := formatted(t, smallRun)
	all := families(t, written(t, WritePrometheus, s))
	value := func(name string, labels map[string]string) float64 {
		for _, m := range all[name].GetMetric() {
			found := 0
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && want == l.GetValue() {
					found++
				}
			}
			if found == len(labels) {
				return m.GetGauge().GetValue()
			}
		}
		return math.NaN()
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   float64
	}{
		{"reprise_ttft_seconds", map[string]string{"origin": "due", "statistic": "p99", "model": "org/a_model@v1", "run": "2026-05-01T12:00:00Z"}, *s.Latency.FromDue.TTFT.P99 / 1000},
		{"reprise_ttft_values", map[string]string{"origin": "sent"}, float64(s.Latency.FromSent.TTFT.Count)},
		{"reprise_send_lag_seconds", map[string]string{"statistic": "max"}, *s.Latency.SendLag.Max / 1000},
		{"reprise_requests", map[string]string{"outcome": "succeeded"}, float64(s.Requests.Succeeded)},
		{"reprise_output_tokens_per_second", nil, *s.Throughput.OutputTokensPerS},
		{"reprise_goodput_ratio", map[string]string{"origin": "due"}, *s.Goodput.FromDue.Share},
		{"reprise_prefix_cache_hit_ratio", map[string]string{"kind": "measured"}, *s.Cache.Measured},
		{"reprise_started_timestamp_seconds", nil, 1777636800},
		{"reprise_trustworthy", nil, map[bool]float64{true: 1}[s.Verdict.Trustworthy]},
	} {
		if got := value(c.name, c.labels); !(math.Abs(got-c.want) <= 1e-9*math.Abs(c.want)) {
			t.Errorf("%s%v: %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	style := regexp.MustCompile(`^reprise_[a-z0-9_]+$`)
	for name, f := range all {
		if !style.MatchString(name) || strings.HasSuffix(name, "_ms") || f.GetHelp() == "" {
			t.Errorf("%s, help %q", name, f.GetHelp())
		}
	}
	if few := families(t, written(t, WritePrometheus, formatted(t, brokenRun))); strings.Contains(few["reprise_ttft_seconds"].String(), `"p99"`) {
		t.Error("a percentile of two values is given")
	}
}

// A check that does not hold fails its case, with the reason in words.
func TestJUnitOutcomes(t *testing.T) {
	s := formatted(t, brokenRun)
	suite := verdictSuite(&s)
	suite.sum(&s)
	if suite.Failures != len(s.Verdict.Reasons) || suite.Failures == 0 {
		t.Errorf("%d failures, %d reasons", suite.Failures, len(s.Verdict.Reasons))
	}
	for _, c := range suite.Cases {
		if c.Failure != nil && (c.Failure.Text == "" || c.Failure.Message == "") {
			t.Errorf("%s fails without a reason", c.Name)
		}
	}
}

func clauses(s Summary) int {
	if s.Contract == nil {
		return 0
	}
	return len(s.Contract.Clauses)
}

// A clause that fails is a failure, and one that cannot be judged an error.
func TestContractInFormats(t *testing.T) {
	s := formatted(t, smallRun)
	margin, v := 0.5, 2.0
	s.Contract = &ContractResult{Name: "a|b", Clauses: []ClauseResult{
		{Clause: "p50 ttft <= 1s", Outcome: Holds, Measured: &v, Allowed: 1000, Unit: "ms", Margin: &margin},
		{Clause: "p99 ttft <= 1ms", Outcome: Fails, Measured: &v, Allowed: 1, Unit: "ms", Margin: trace.Ptr(-1.0)},
		{Clause: "p99.9 e2e <= 1s", Outcome: Unjudged, Why: "too few", Allowed: 1000, Unit: "ms"},
	}}
	var suites junitSuites
	if err := xml.Unmarshal([]byte(written(t, WriteJUnit, s)), &suites); err != nil || len(suites.Suites) != 2 {
		t.Fatalf("%d suites, error %v", len(suites.Suites), err)
	}
	if c := suites.Suites[1]; c.Tests != 3 || c.Failures != 1 || c.Errors != 1 || c.Cases[1].Failure == nil || c.Cases[2].Error.Message != "too few" {
		t.Errorf("%+v", c)
	}
	all := families(t, written(t, WritePrometheus, s))
	if len(all["reprise_contract_clause_holds"].GetMetric()) != 2 || len(all["reprise_contract_clause_margin_ratio"].GetMetric()) != 2 || all["reprise_contract_holds"].GetMetric()[0].GetGauge().GetValue() != 0 {
		t.Errorf("%v", all["reprise_contract_clause_holds"])
	}
	if md := written(t, writers["md"], s); !strings.Contains(md, "p99 ttft <= 1ms") {
		t.Error("the contract is not in the Markdown")
	}
	readBack(t, "contract", s)
}

// A Benchmark Report says that a run was simulated, and names no load in flight that there was none of.
func TestBenchmarkReportIsHonest(t *testing.T) {
	run, results, opts := smallRun()
	run.Simulated, run.Timing = "{}", result.ClosedLoop
	var r struct {
		Run      struct{ Description string }
		Scenario struct {
			Load struct{ Standardized map[string]any }
		}
	}
	text := written(t, WriteBenchmarkReport, summarise(t, run, opts, results...))
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	load := r.Scenario.Load.Standardized
	if load["concurrency"] != nil || load["rate_qps"] != nil || !strings.HasPrefix(r.Run.Description, "Simulated") {
		t.Errorf("%q, %v", r.Run.Description, load)
	}
}
