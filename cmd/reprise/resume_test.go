package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// A replay that is killed three times, and resumed each time, ends with every row
// once, and says what happened.
func TestResumeAfterThreeKills(t *testing.T) {
	long(t)
	t.Parallel()
	w, server := killWorkload(t, 1200, 5*time.Millisecond), killServer(t)
	out := filepath.Join(t.TempDir(), "r.parquet")
	args := []string{"replay", w, "--url", server.url, "-o", out, "--quiet", "--seed", "5"}
	name := result.JournalName(out)
	kept := 0
	for _, part := range []string{name, name + ".2", name + ".3"} {
		cmd := child(t, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killAwait(t, part)
		<-time.After(time.Second + time.Duration(rand.Int64N(int64(500*time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		n := killRows(t, name)
		if n < kept {
			t.Fatalf("%d rows where there were %d", n, kept)
		}
		kept = n
		if part == name {
			args = append(args, "--resume")
			resumeRefused(t, args)
		}
	}
	stdout, errs, code := reprise(t, append(args, "--json")...)
	if code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var s struct {
		summary
		Run      result.Run
		Warnings []struct{ Code, Text string }
	}
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatal(err)
	}
	warned := false
	for _, w := range s.Warnings {
		warned = warned || w.Code == "resumed" && strings.Contains(w.Text, "3 times")
	}
	if s.Requests.Rows != 1200 || s.Requests.Succeeded != 1200 || s.Run.Requests != 1200 || len(s.Run.Resumed) != 3 || !warned {
		t.Errorf("%+v, %d interruptions, warnings %+v", s.Requests, len(s.Run.Resumed), s.Warnings)
	}
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	next, moved := int64(0), map[int64]bool{0: true}
	for _, gap := range s.Run.Resumed {
		moved[gap.ShiftNS] = true
	}
	if err := trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if by := r.DueNS - r.RowID*5e6; r.RowID != next || !moved[by] {
			t.Errorf("row %d where %d should be, moved by %d", r.RowID, next, by)
		}
		next = r.RowID + 1
		return nil
	}); err != nil || next != 1200 {
		t.Errorf("%d rows, %v", next, err)
	}
	if left, _ := filepath.Glob(out + ".*"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if _, errs, code := reprise(t, args...); code != cli.Failure || !strings.Contains(errs, "nothing to resume") {
		t.Errorf("again: exit code %d: %s", code, errs)
	}
}

// resumeRefused tries other settings than those of the run.
func resumeRefused(t *testing.T, args []string) {
	t.Helper()
	for _, c := range []struct{ flag, value, names string }{
		{"--seed", "6", `another seed: "5", not "6"`},
		{"--speed", "2", "another speed: 1, not 2"},
		{"--rate", "poisson:9", "another rate"},
		{"--duration", "1h", "another duration ns"},
		{"--warmup", "3", "another warmup requests"},
		{"--api", "chat", "another"},
	} {
		if _, errs, code := reprise(t, append(args, c.flag, c.value)...); code != cli.Usage || !strings.Contains(errs, c.names) {
			t.Errorf("%s %s: exit code %d: %s", c.flag, c.value, code, errs)
		}
	}
	other := killWorkload(t, 3, time.Second)
	if _, errs, code := reprise(t, append([]string{"replay", other}, args[2:]...)...); code != cli.Usage || !strings.Contains(errs, "workload digest") {
		t.Errorf("another workload: exit code %d: %s", code, errs)
	}
	// Without --resume a journal is not written over.
	if _, errs, code := reprise(t, args[:len(args)-1]...); code != cli.Usage || !strings.Contains(errs, "did not finish") {
		t.Errorf("without --resume: exit code %d: %s", code, errs)
	}
	if _, err := os.Stat(args[6]); err == nil {
		t.Error("there are results")
	}
}
