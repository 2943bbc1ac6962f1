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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// A stop is when a client was stopped: after one instant and before the other.
type stop struct{ after, before time.Time }

// stallingServer answers after 100 ms. Once a replay has begun its journal, it stops
// the replay for 0.4 s whenever a request has arrived, and says when.
func stallingServer(t *testing.T, journal string, client *atomic.Pointer[exec.Cmd]) (url string, stopped func() []stop) {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Request: 1e11, Step: 1e9}
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	var stops []stop
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(journal); err == nil && r.Method == http.MethodPost {
			p := client.Load().Process
			lock.Lock()
			after := time.Now()
			p.Signal(syscall.SIGSTOP)
			stops = append(stops, stop{after, time.Now()})
			lock.Unlock()
			time.AfterFunc(400*time.Millisecond, func() { p.Signal(syscall.SIGCONT) })
		}
		s.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []stop {
		lock.Lock()
		defer lock.Unlock()
		return slices.Clone(stops)
	}
}

// ranInTTFT is the share of the times to first token of a results file in which its client,
// which was stopped once in each, had not been stopped yet: at least and at most.
func ranInTTFT(t *testing.T, path string, stopped []stop) (least, most float64) {
	t.Helper()
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began, err := time.Parse(time.RFC3339Nano, f.Run.Started)
	if err != nil {
		t.Fatal(err)
	}
	var after, before, all time.Duration
	n := 0
	err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		sent := began.Add(time.Duration(*r.SentNS))
		after, before = after+stopped[n].after.Sub(sent), before+stopped[n].before.Sub(sent)
		all += time.Duration(*r.FirstTokenNS - *r.SentNS)
		n++
		return nil
	})
	if err != nil || n != len(stopped) {
		t.Fatalf("%d results of a client that was stopped %d times: %v", n, len(stopped), err)
	}
	return float64(after) / float64(all), float64(before) / float64(all)
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
	url, stopped := stallingServer(t, result.JournalName(out), &client)
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
	for _, says := range []string{"of TTFT is the client's own delay, since it stood still or read late",
		"in 4 of 4 requests", "client stalls in TTFT (!)"} {
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
		t.Fatalf("from the file: exit code %d, %+v", code, c)
	}
	if least, most := ranInTTFT(t, out, stopped()); *c.Measured < 1-most-0.01 || *c.Measured > 1-least+0.01 {
		t.Errorf("stalls were %v of TTFT, and the client was stopped for %v to %v of it", *c.Measured, 1-most, 1-least)
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
	url, _ = stallingServer(t, result.JournalName(out), &client)
	cmd = child(t, "replay", w, "--url", url, "-o", out, "--quiet")
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
