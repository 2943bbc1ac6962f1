package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// A journal that cannot grow stops the run with an error that says so, soon, and
// what was measured can be read.
func TestDiskFull(t *testing.T) {
	long(t)
	t.Parallel()
	w, server := killWorkload(t, 1200, 5*time.Millisecond), killServer(t)
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=160k"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(full, syscall.MNT_DETACH) })
	out := filepath.Join(full, "r.parquet")
	cmd := child(t, "replay", w, "--url", server.url, "-o", out, "--quiet")
	errs := diskFullRun(t, cmd)
	journal := result.JournalName(out)
	if !strings.Contains(errs, "the results are still in "+journal) {
		t.Errorf("stderr: %s", errs)
	}
	kept := killRows(t, journal)
	if kept < 50 || kept > 1000 {
		t.Errorf("%d rows are kept", kept)
	}
}

// So does a limit on the size of files, as of ulimit -f. The results are smaller
// than their journal, and hold what was measured.
func TestFileSizeLimit(t *testing.T) {
	long(t)
	w, server := killWorkload(t, 1200, 5*time.Millisecond), killServer(t)
	out := filepath.Join(t.TempDir(), "r.parquet")
	plain := child(t, "replay", w, "--url", server.url, "-o", out, "--quiet")
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -f 300; exec "$0" "$@"`}, plain.Args...)...)
	cmd.Env = plain.Env
	diskFullRun(t, cmd)
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Rows() < 50 || f.Rows() > 1000 || f.Run.EndedEarly == "" {
		t.Errorf("%d rows, ended early: %q", f.Rows(), f.Run.EndedEarly)
	}
}

// diskFullRun runs a replay whose journal fails, and returns what it says.
func diskFullRun(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { cmd.Process.Signal(os.Kill) })
	cmd.Wait()
	if !hung.Stop() {
		t.Fatal("it hangs")
	}
	if code := cmd.ProcessState.ExitCode(); code != cli.Failure || strings.Count(errs.String(), "results cannot be written, so the run was stopped") != 1 ||
		strings.Contains(errs.String(), "arrow") || strings.Contains(errs.String(), "panic") {
		t.Errorf("after %v, exit code %d: %s", time.Since(begin), code, errs.String())
	}
	t.Logf("after %v: %s", time.Since(begin), errs.String())
	return errs.String()
}
