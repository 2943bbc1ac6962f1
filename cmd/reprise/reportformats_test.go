package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// Each format is written to stdout or a file, and is what it says.
func TestReportFormats(t *testing.T) {
	results := resultsOf150(t)
	for format, begins := range map[string]string{"markdown": "# Simulation report\n", "csv": "name,of,unit,statistic,value,count\n", "junit": xml.Header, "prometheus": "# HELP reprise_info", "text": "Simulated", "json": "{"} {
		out := must(t, "report", results, "--format", format)
		if !strings.HasPrefix(out, begins) {
			t.Errorf("%s begins with %.60q", format, out)
		}
		file := filepath.Join(t.TempDir(), "out")
		must(t, "report", results, "--format", format, "-o", file)
		if doc, err := os.ReadFile(file); err != nil || string(doc) != out {
			t.Errorf("%s: the file differs from stdout, error %v", format, err)
		}
	}
}

// Formats that there are not, or that go against each other, are refused.
func TestReportFormatMistakes(t *testing.T) {
	results := resultsOf150(t)
	for _, args := range [][]string{
		{"--push", "http://me:SECRET@127.0.0.1"},
		{"--format", "yaml"}, {"--format", "csv", "--json"}, {"--explain", "ttft", "--format", "csv"},
	} {
		if _, errs, code := reprise(t, append([]string{"report", results}, args...)...); code != cli.Usage || strings.Contains(errs, "SECRET") {
			t.Errorf("%q: exit code %d, %s", args, code, errs)
		}
	}
}
