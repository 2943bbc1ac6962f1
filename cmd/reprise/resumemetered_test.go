package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// A run of several rounds that is measured at its server goes on after a kill: each
// row of each round is there once, and the server's counters fit them.
func TestResumeLoopAndScrape(t *testing.T) {
	long(t)
	w, server := killWorkload(t, 200, 5*time.Millisecond), killServer(t)
	out := filepath.Join(t.TempDir(), "r.parquet")
	args := []string{"replay", w, "--url", server.url, "-o", out, "--quiet", "--details", "--loop", "3", "--scrape", "auto", "--scrape-interval", "100ms"}
	cmd := child(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killAwait(t, result.JournalName(out))
	<-time.After(1700 * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, errs, code := reprise(t, "replay", w, "--url", server.url, "-o", out, "--quiet", "--loop", "3", "--resume"); code != cli.Usage || !strings.Contains(errs, "another metering of servers: measured, not none") {
		t.Errorf("without --scrape: exit code %d: %s", code, errs)
	}
	stdout, errs, code := reprise(t, append(args, "--resume")...)
	if code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if !strings.Contains(stdout, "Servers") {
		t.Errorf("no figures of the server:\n%s", stdout)
	}
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	next := int64(0)
	if err := trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if r.RowID != next%200 || int64(r.Round) != next/200 {
			t.Fatalf("row %d of round %d where the %d-th should be", r.RowID, r.Round, next)
		}
		next++
		return nil
	}); err != nil || next != 600 {
		t.Errorf("%d rows, %v", next, err)
	}
	m, err := result.OpenMetrics(out)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	last := int64(-time.Hour)
	err = trace.Each(m.Reader(), func(_ int64, m *result.Metric) error {
		if m.Name != "vllm:num_requests_running" {
			return nil
		}
		if m.AtNS < last {
			t.Errorf("a value at %v behind one at %v", time.Duration(m.AtNS), time.Duration(last))
		}
		last = m.AtNS
		return nil
	})
	if err != nil || len(f.Run.Resumed) != 1 || last < 2900e6 || f.Run.Server == nil {
		t.Errorf("the last value is at %v, resumed %+v, %v", time.Duration(last), f.Run.Resumed, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*.journal*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
