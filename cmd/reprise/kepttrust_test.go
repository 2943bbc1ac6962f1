package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The limits of --trust that runs were made with are kept in their directory: whoever reads it judges by the same
// ones, unless others are given.
func TestDirectoriesKeepTheirLimits(t *testing.T) {
	dir, _ := simulatedRuns(t)
	w := filepath.Join(dir, "w.parquet")
	const preset, loosened = "--preset=l4-qwen2.5-0.5b", "errors 5 % (default 1 %)"
	for _, c := range []struct {
		making, reading []string
	}{
		{[]string{"sweep", w, preset, "--rates=2,4", "--level-duration=1s", "--level-requests=5", "--warmup=0s", "--no-confirm", "--sustain=0s"}, []string{"report", "sweep"}},
		{[]string{"compare", w, preset, "--set-b=max-num-seqs=8", "--rounds=2"}, []string{"report", "compare"}},
		{[]string{"bench", "serving", preset, "--row=baseline", "--repeats=2"}, []string{"report"}},
	} {
		runs := filepath.Join(t.TempDir(), "runs")
		must(t, append(c.making, "-o", runs, "--quiet", "--trust=max-errors=5%,max-lag=1ms")...)
		for _, command := range c.reading {
			if out, errs, _ := reprise(t, command, runs); !strings.Contains(strings.Join(strings.Fields(out), " "), loosened) {
				t.Errorf("%s of %s: %s%s", command, c.making[0], out, errs)
			}
			if command == "sweep" {
				continue // which prints its answer again
			}
			if out, errs, _ := reprise(t, command, runs, "--trust=max-errors=1%"); out == "" || strings.Contains(strings.Join(strings.Fields(out), " "), loosened) {
				t.Errorf("%s of %s with limits of its own: %s%s", command, c.making[0], out, errs)
			}
		}
	}
}
