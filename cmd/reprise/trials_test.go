package main

import (
	"context"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/bench"
	"reprise/replay/report"
	"reprise/replay/result"
)

// The same trial of an endpoint and of an engine in virtual time ends in results of
// the same shape, and of the load that the trial asks for.
func TestTrials(t *testing.T) {
	long(t)
	w := targetWorkload(t, 8)
	s := targetStart(t, "p", (*httptest.Server).Start)
	for name, args := range map[string][]string{
		"live":      {"--url", s.URL, "--connections", "pooled"},
		"simulated": {"--preset", "l4-qwen2.5-0.5b", "--replicas", "2"},
	} {
		var f runs.Trials
		cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := f.Target(cmd)
			if err != nil {
				return err
			}
			for load, want := range map[bench.Load]int64{{Rate: "constant:50"}: 8, {Concurrency: 3}: 8, {Speed: 2}: 8} {
				trial := bench.Trial{Name: name, Workload: w, Load: load, Warmup: "2", Seed: "7", Cache: result.CacheAsIs, Note: "a note", Results: filepath.Join(t.TempDir(), "r.parquet")}
				s, err := measureTrial(cmd.Context(), target, trial)
				if err != nil {
					return err
				}
				if s.Requests.Succeeded != want-2 || s.Requests.WarmUp != 2 || s.Run.Note != "a note" || s.Run.Seed != "7" {
					t.Errorf("%s, %s: %+v, run %+v", name, load, s.Requests, s.Run)
				}
				if load.Concurrency > 0 && s.Run.Concurrency != 3 || load.Rate != s.Run.Rate {
					t.Errorf("%s: asked for %s, was %q and %d", name, load, s.Run.Rate, s.Run.Concurrency)
				}
			}
			trial := bench.Trial{Workload: w, Load: bench.Load{Rate: "constant:100"}, Duration: 300 * time.Millisecond, Loop: true, Rows: 4, Results: filepath.Join(t.TempDir(), "r.parquet")}
			s, err := measureTrial(cmd.Context(), target, trial)
			if s.Requests.Succeeded != 30 { // each 10 ms from 0 on
				t.Errorf("%s: %+v of a loop of 4 rows, 300 ms at 100 a second", name, s.Requests)
			}
			return err
		}}
		f.Register(cmd)
		cmd.SetArgs(append(args, "--quiet"))
		cmd.SetErr(io.Discard)
		cmd.SilenceUsage = true
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that answers one at a time, and clients that do not wait for ever: what
// does not fit into the timeout fails as such, and the engine drops it.
func TestSimulateTimeout(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "concurrency_sweep", "-n", "50", "-o", "w.parquet")
	simulated := func(timeout string) report.Summary {
		_, errs, code := reprise(t, "simulate", "w.parquet", "--costs", "step=10ms", "--max-num-seqs", "1", "--concurrency", "5", "--timeout", timeout, "-o", "r.parquet", "--quiet")
		s, err := bench.Summarise("r.parquet", report.Options{})
		if err != nil {
			t.Fatalf("exit code %d, %v\n%s", code, err, errs)
		}
		return s
	}
	if s := simulated("0s"); s.Requests.Succeeded != 50 {
		t.Errorf("without one: %+v", s.Requests)
	}
	// An answer takes 1.28 s, and 4 others go before it.
	if s := simulated("4s"); s.Requests.Failed == 0 || s.Requests.Succeeded == 0 || len(s.Errors) != 1 || s.Errors[0].Class != "timeout" || *s.Latency.FromSent.E2E.Max > 4000 {
		t.Errorf("%+v, %+v", s.Requests, s.Errors)
	}
}

// A flag of an engine that is simulated is not ignored where an endpoint answers.
func TestEndpointHasNoEngineFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "10", "-o", "w.parquet")
	for _, args := range []string{
		"sweep w.parquet --url http://127.0.0.1:1 --no-prefix-caching",
		"sweep w.parquet --url http://127.0.0.1:1 --replicas 2",
		"compare w.parquet --url-a http://127.0.0.1:1 --url-b http://127.0.0.1:2 -o d --max-num-seqs 8",
	} {
		if _, errs, code := reprise(t, strings.Fields(args)...); code != cli.Usage || !strings.Contains(errs, "is of a simulated engine") {
			t.Errorf("%s: code %d\n%s", args, code, errs)
		}
	}
}

// measureTrial makes a trial and summarises its results.
func measureTrial(ctx context.Context, target bench.Target, t bench.Trial) (report.Summary, error) {
	if err := target.Run(ctx, t); err != nil {
		return report.Summary{}, err
	}
	return bench.Summarise(t.Results, report.Options{})
}
