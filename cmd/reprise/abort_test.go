package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// A run that meets its condition stops, says which it was, and keeps its results.
func TestAbortOn(t *testing.T) {
	long(t)
	t.Parallel()
	w, url := killWorkload(t, 3000, 20*time.Millisecond), killServer(t).url
	out := filepath.Join(t.TempDir(), "r.parquet")
	_, errs, code := reprise(t, "replay", w, "--url", url, "-o", out, "--quiet", "--abort-on", "errors>50%,ttft-p50>1ns")
	if code != cli.Untrusted || !strings.Contains(errs, "p50_ttft was") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Rows() < 400 || f.Rows() == 3000 || f.Rows() != f.Run.Requests || !strings.Contains(f.Run.EndedEarly, "p50_ttft") {
		t.Errorf("%d rows, run %+v", f.Rows(), f.Run)
	}
}

func TestAbortOnIsChecked(t *testing.T) {
	for on, says := range map[string]string{"errors>5": "percentage", "queue": "WHAT>VALUE", "e2e-p99>1s": "p99_e2e cannot be told here", "errors>5%,errors>6%": "two of error_rate"} {
		if _, errs, code := reprise(t, "replay", "none.parquet", "-o", "r.parquet", "--abort-on", on); code != cli.Usage || !strings.Contains(errs, "--abort-on") || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d: %s", on, code, errs)
		}
	}
}
