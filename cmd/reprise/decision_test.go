package main

import (
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

func TestReportDecision(t *testing.T) {
	a, b := resultsOf150(t), resultsOf150(t)
	out := must(t, "report", a, b, "--format", "decision", "--slo", "ttft:1s", "--why", "enough", "--price-per-gpu-hour", "2", "--gpus", "1")
	for _, want := range []string{"# Decision record", "accepted, and preferred", " requests/s (1 GPU, 2 each per hour)", "enough", "sha256:"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	// The runs are named as asked, and what the contract says of cost is taken from it.
	contract := t.TempDir() + "/c.yaml"
	writeFiles(t, map[string]string{contract: "clauses: [max ttft <= 1h]\ngpus: 1\nprice_per_gpu_hour: 2\n"})
	html := t.TempDir() + "/d.html"
	out = must(t, "report", a, b, "--format", "decision", "--contract", contract, "--name", "before,after", "--html", html)
	for _, want := range []string{"| setting | before | after |", " requests/s (1 GPU, 2 each per hour)"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if page := string(read(t, html)); !strings.Contains(page, "before is preferred: the most output tokens/s within the contract") {
		t.Error("the page does not say what is preferred")
	}
	for _, args := range [][]string{{"--why", "x"}, {"--format", "decision", "--definitions", "vllm"},
		{"--format", "csv", b}, {"--price-per-gpu-hour", "2"}} {
		if _, errs, code := reprise(t, append([]string{"report", a}, args...)...); code != cli.Usage {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
}
