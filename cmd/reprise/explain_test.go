package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/report"
)

// resultsOf150 are results of a simulation, which needs no endpoint and comes out
// the same every time.
func resultsOf150(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log.jsonl")
	if err := os.WriteFile(log, []byte(sharingLog(150)), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "r.parquet")
	must(t, "import", log, "-o", filepath.Join(dir, "t.parquet"))
	must(t, "simulate", filepath.Join(dir, "t.parquet"), "--preset", "l4-qwen2.5-0.5b", "-o", path)
	return path
}

// A number is explained without results, and with them has its value and its sample.
func TestExplainNumber(t *testing.T) {
	out := must(t, "report", "--explain", "p99_ttft")
	for _, want := range []string{"Time to first token", "first_token − sent; first_token − due", "Percentiles by linear interpolation", "latency.from_due.ttft.p99_ms"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	results := resultsOf150(t)
	var s report.Summary
	if err := json.Unmarshal([]byte(must(t, "report", results, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	var e report.Explanation
	if err := json.Unmarshal([]byte(must(t, "report", results, "--explain", "ttft_p99", "--json")), &e); err != nil {
		t.Fatal(err)
	}
	values := map[string]report.Explained{}
	for _, v := range e.Values {
		values[v.Path] = v
	}
	for path, want := range map[string]*float64{"latency.from_sent.ttft.p99_ms": s.Latency.FromSent.TTFT.P99, "latency.from_due.ttft.p99_ms": s.Latency.FromDue.TTFT.P99} {
		v := values[path]
		if got, err := v.Value.Float64(); err != nil || got != *want || *v.Samples != 150 {
			t.Errorf("%s: %+v, and the report has %v", path, v, *want)
		}
	}
	if out := must(t, "report", "--explain", "list"); !strings.Contains(out, "ttft [ms]") || !strings.Contains(out, "run.wire.dials") {
		t.Error(out)
	}
	var all []report.Definition
	if err := json.Unmarshal([]byte(must(t, "report", "--explain", "list", "--json")), &all); err != nil || len(all) != len(report.Definitions()) {
		t.Errorf("%d definitions, error %v", len(all), err)
	}
}

func TestExplainUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--explain", "goodputt"}, "near it are goodput"},
		{[]string{"--explain", "p99_ttft", "a", "b"}, `too many arguments: leave out "b":`},
		{[]string{}, "which results? reprise report RESULTS..."},
	} {
		if _, errs, code := reprise(t, append([]string{"report"}, c.args...)...); code != cli.Usage || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
	}
	if _, errs, code := reprise(t, "report", filepath.Join(t.TempDir(), "absent.parquet"), "--explain", "p99_ttft"); code != cli.Failure {
		t.Errorf("absent results: exit code %d, %s", code, errs)
	}
}
