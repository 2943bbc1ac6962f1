package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// An interrupt leaves the finished file, also when it comes twice within a second, as
// from timeout, which signals the process and its group.
func TestInterruptLeavesTheFinishedFile(t *testing.T) {
	long(t)
	t.Parallel()
	w, server := killWorkload(t, 3000, 10*time.Millisecond), killServer(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for _, times := range []int{1, 2} {
			out := filepath.Join(t.TempDir(), "r.parquet")
			cmd := child(t, "replay", w, "--url", server.url, "-o", out, "--quiet")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killAwait(t, result.JournalName(out))
			time.Sleep(300 * time.Millisecond)
			for range times {
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
			cmd.Wait()
			finishedEarly(t, out, cmd.ProcessState.ExitCode())
		}
	}
	timeout, err := exec.LookPath("timeout")
	if err != nil {
		t.Skip("the rest needs timeout of GNU")
	}
	for _, sig := range []string{"INT", "TERM"} {
		out := filepath.Join(t.TempDir(), "r.parquet")
		cmd := child(t, "replay", w, "--url", server.url, "-o", out, "--quiet")
		cmd.Args, cmd.Path = append([]string{timeout, "--preserve-status", "-s", sig, "4"}, cmd.Args...), timeout
		cmd.Run()
		finishedEarly(t, out, cmd.ProcessState.ExitCode())
	}
}

// finishedEarly expects the finished file of a run that was interrupted.
func finishedEarly(t *testing.T, out string, code int) {
	t.Helper()
	f, err := result.Open(out)
	if err != nil {
		t.Fatalf("exit code %d: %v", code, err)
	}
	defer f.Close()
	if _, err := os.Stat(result.JournalName(out)); err == nil || code != cli.Untrusted || f.Rows() == 0 || f.Run.EndedEarly == "" {
		t.Errorf("exit code %d, %d rows, ended early %q, journal: %v", code, f.Rows(), f.Run.EndedEarly, err == nil)
	}
}
