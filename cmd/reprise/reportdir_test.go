package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// A directory is as good as the one results file in it, whatever else it holds; with
// none or several it is refused, and says what to do.
func TestReportOfADirectory(t *testing.T) {
	dir, files := simulatedRuns(t, "1")
	if got := must(t, "report", dir); got != must(t, "report", files[0]) {
		t.Errorf("another report:\n%s", got)
	}
	row := filepath.Join(dir, "row")
	if err := os.Mkdir(row, 0o755); err != nil {
		t.Fatal(err)
	}
	refuse := func(dir, says string) {
		t.Helper()
		out, errs, code := reprise(t, "report", dir)
		if code != cli.Usage || out != "" || !strings.Contains(errs, says) {
			t.Errorf("exit code %d: %s%s", code, out, errs)
		}
	}
	refuse(row, "a directory without results: name the file that replay or simulate wrote")
	second := filepath.Join(row, "results.parquet")
	if err := os.WriteFile(second, read(t, files[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(dir, "2 results files: name one, or several to be set side by side, such as "+second+" "+files[0])
	// What is no results file is told as such.
	if _, errs, code := reprise(t, "report", filepath.Join(dir, "w.parquet")); code != cli.Failure || !strings.Contains(errs, "w.parquet holds a trace or a workload, not the results of a run: reprise profile ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// Without a prefix cache the report of a simulation does not speak of its memory.
func TestSimulationWithoutACacheSaysSo(t *testing.T) {
	dir, _ := simulatedRuns(t)
	text := must(t, "simulate", filepath.Join(dir, "w.parquet"), "--preset", "l4-qwen2.5-0.5b", "--no-prefix-caching", "--details", "-o", filepath.Join(dir, "r.parquet"))
	expect(t, text, "Prefix caching was off, so every prompt was computed whole", "the same run with prefix caching on")
	if strings.Contains(text, "more memory") {
		t.Error(text)
	}
}
