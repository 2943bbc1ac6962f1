//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
)

// stallingServer answers after 100 ms. Once a replay has begun its journal, it stops
// the replay for 0.4 s whenever a request has arrived.
func stallingServer(t *testing.T, journal string, client *atomic.Pointer[exec.Cmd]) string {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Base, c.ITL, c.PrefillRate = 100*time.Millisecond, time.Millisecond, 1e9
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(journal); err == nil && r.Method == http.MethodPost {
			p := client.Load().Process
			p.Signal(syscall.SIGSTOP)
			time.AfterFunc(400*time.Millisecond, func() { p.Signal(syscall.SIGCONT) })
		}
		s.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A client that is stopped after each request has arrived sends on time, and reads
// every first token late. It says so: by its exit code, in words and in figures, also
// from its file, and from the journal of a run that was killed.
func TestStoppedBetweenSendingAndFirstToken(t *testing.T) {
	long(t)
	t.Parallel()
	dir := t.TempDir()
	var client atomic.Pointer[exec.Cmd]
	out := filepath.Join(dir, "r.parquet")
	url := stallingServer(t, result.JournalName(out), &client)
	const requests = 4
	var log strings.Builder
	for i := range requests {
		fmt.Fprintf(&log, `{"timestamp": %d, "input_length": 40, "output_length": 3, "hash_ids": [%d]}`+"\n", i*1500, i)
	}
	writeFiles(t, map[string]string{filepath.Join(dir, "log.jsonl"): log.String()})
	w := filepath.Join(dir, "w.parquet")
	must(t, "import", filepath.Join(dir, "log.jsonl"), "-o", w)

	var stdout, stderr bytes.Buffer
	cmd := child(t, "replay", w, "--url", url, "-o", out, "--quiet", "--details", "--max-lag", "-1s", "--max-lag-p50", "-1s", "--max-lag-drift", "-1s")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client.Store(cmd)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.Untrusted {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
	for _, says := range []string{"client stalls and late reads were 99", "in 4 of 4 requests", "client stalls in TTFT (!)"} {
		if !strings.Contains(strings.Join(strings.Fields(stdout.String()), " "), says) {
			t.Errorf("the report does not say %q:\n%s", says, stdout.String())
		}
	}

	judged := func(path string, more ...string) (report.Summary, report.Check, int) {
		t.Helper()
		stdout, stderr, code := reprise(t, append([]string{"report", path, "--json", "--max-lag", "-1s", "--max-lag-p50", "-1s", "--max-lag-drift", "-1s"}, more...)...)
		var s report.Summary
		if err := json.Unmarshal([]byte(stdout), &s); err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		for _, c := range s.Verdict.Checks {
			if c.Code == "stalled_ttft" {
				return s, c, code
			}
		}
		t.Fatal("stalls are not checked")
		return s, report.Check{}, code
	}
	s, c, code := judged(out)
	if code != cli.Untrusted || c.Holds || c.Measured == nil || *c.Measured < 0.5 {
		t.Errorf("from the file: exit code %d, %+v", code, c)
	}
	if n := s.Run.Stalls; n == nil || n.Count < requests || n.LongestNS < int64(300*time.Millisecond) {
		t.Errorf("%+v", n)
	}
	if ttft := s.Latency.FromSent.TTFT.Min; ttft == nil || *ttft < 300 {
		t.Errorf("the stalls are in no TTFT: %v", s.Latency.FromSent.TTFT)
	}
	if _, c, code := judged(out, "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-cpu", "-1", "--max-stall", "-1s", "--max-gc-pause", "-1s", "--max-clock-jump", "-1s"); code != cli.Good || !c.Holds {
		t.Errorf("without limits: exit code %d, %+v", code, c)
	}

	// Killed when two answers are in its journal.
	out = filepath.Join(dir, "killed.parquet")
	cmd = child(t, "replay", w, "--url", stallingServer(t, result.JournalName(out), &client), "-o", out, "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client.Store(cmd)
	<-time.After(time.Second)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		f, err := result.Open(result.JournalName(out))
		if err != nil {
			continue
		}
		rows := f.Rows()
		f.Close()
		if rows >= 2 {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, c, code := judged(result.JournalName(out)); code != cli.Untrusted || c.Holds || c.Measured == nil || *c.Measured < 0.5 {
		t.Errorf("from the journal: exit code %d, %+v", code, c)
	}
}
