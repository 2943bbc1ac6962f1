//go:build unix

package main

import (
	"encoding/json"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/report"
	"reprise/replay/result"
)

// A client that stood still, here stopped by a signal, says so by its exit code,
// unless that is allowed.
func TestStoppedClientIsNotTrusted(t *testing.T) {
	long(t)
	w, server := killWorkload(t, 300, 10*time.Millisecond), killServer(t)
	out := filepath.Join(t.TempDir(), "r.parquet")
	cmd := child(t, "replay", w, "--url", server.url, "-o", out, "--quiet", "--max-stall", "300ms")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killAwait(t, result.JournalName(out))
	<-time.After(700 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Second) // a look each second: one is overdue by at least a second
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Untrusted {
		t.Errorf("exit code %d", code)
	}
	for limit, want := range map[string]bool{"300ms": false, "1h": true, "-1s": true} {
		stdout, _, code := reprise(t, "report", out, "--json", "--max-stall", limit)
		var s report.Summary
		if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != cli.Untrusted && !want {
			t.Fatalf("exit code %d, %v", code, err)
		}
		for _, c := range s.Verdict.Checks {
			if c.Code == "client_stalled" && (c.Holds != want || *c.Measured < 900) {
				t.Errorf("--max-stall %s: stood still for %v ms, holds %v", limit, *c.Measured, c.Holds)
			}
		}
	}
}
