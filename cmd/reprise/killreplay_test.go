package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// killWorkload imports n small requests, one each gap.
func killWorkload(t testing.TB, n int, gap time.Duration) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 40, "output_length": %d, "hash_ids": [%d]}`+"\n", int64(i)*gap.Milliseconds(), 1+i%30, i)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w := filepath.Join(dir, "w.parquet")
	must(t, "import", filepath.Join(dir, "log.jsonl"), "-o", w)
	return w
}

// A killTarget notes when it ended each answer.
type killTarget struct {
	url string
	mu  sync.Mutex
	end []time.Time
}

func killServer(t testing.TB) *killTarget {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Step: 5e9}
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &killTarget{}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.Handler().ServeHTTP(rw, r)
		if r.Context().Err() != nil {
			return // the client hung up, or was killed
		}
		w.mu.Lock()
		w.end = append(w.end, time.Now())
		w.mu.Unlock()
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// ended is how many answers had ended by an instant.
func (w *killTarget) ended(by time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.end {
		if !at.After(by) {
			n++
		}
	}
	return n
}

// killStalls watches how late this machine wakes who sleeps, since tests share it.
func killStalls(t testing.TB) (worst func() time.Duration) {
	var mu sync.Mutex
	var most time.Duration
	over := make(chan struct{})
	tick := time.NewTicker(10 * time.Millisecond)
	t.Cleanup(func() { close(over); tick.Stop() })
	go func() {
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			mu.Lock()
			most = max(most, time.Since(last))
			mu.Unlock()
		}
	}()
	return func() time.Duration { mu.Lock(); defer mu.Unlock(); return most }
}

// At whatever moment a replay is killed, its journal opens, and of what the
// server had answered a second before nothing is missing. While it still ran,
// its journal could be reported on.
func TestReplayKilledAtAnyMoment(t *testing.T) {
	long(t)
	w := killWorkload(t, 3000, 2*time.Millisecond)
	// What a run asks beside its rows, before it begins its journal.
	probe, small := killServer(t), killWorkload(t, 3, time.Millisecond)
	must(t, "replay", small, "--url", probe.url, "-o", filepath.Join(t.TempDir(), "r.parquet"), "--quiet")
	beside := probe.ended(time.Now()) - 3
	worst := killStalls(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range 2 {
		t.Run("", func(t *testing.T) {
			for range 6 {
				after := time.Duration(rng.Int64N(int64(3 * time.Second)))
				t.Run("", func(t *testing.T) {
					t.Parallel()
					killAndCount(t, w, after, beside, worst)
				})
			}
		})
	}
}

func killAndCount(t *testing.T, w string, after time.Duration, beside int, worst func() time.Duration) {
	server, out := killServer(t), filepath.Join(t.TempDir(), "r.parquet")
	cmd := child(t, "replay", w, "--url", server.url, "-o", out, "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	journal := result.JournalName(out)
	killAwait(t, journal)
	running, killed := time.NewTimer(after/2), time.NewTimer(after)
	<-running.C
	_ = killRows(t, journal)
	<-killed.C
	kill := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the run was over before it was killed")
	}
	got := killRows(t, journal)
	// A second, and as long as this machine may have kept the client from work.
	by := kill.Add(-time.Second - 50*time.Millisecond - 2*worst())
	if want := server.ended(by) - beside; got < want {
		t.Errorf("killed after %v: %d results, of at least %d requests that were over (stalls of %v)", after, got, want, worst())
	}
	t.Logf("killed after %v: %d results of %d ended, stalls of %v", after, got, server.ended(kill)-beside, worst())
}

// killAwait waits until a file holds something: a journal does as soon as its run
// is about to begin.
func killAwait(t *testing.T, file string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 120_000 {
		<-tick.C
		if fi, err := os.Stat(file); err == nil && fi.Size() > 0 {
			return
		}
	}
	t.Fatal("the run does not begin")
}

// killRows reports on a journal, and counts its rows.
func killRows(t *testing.T, journal string) int {
	t.Helper()
	out, errs, code := reprise(t, "report", journal, "--json")
	if code != cli.Untrusted {
		t.Fatalf("report on a journal: exit code %d: %s", code, errs)
	}
	var s struct {
		Requests struct{ Rows int }
		Verdict  struct{ Reasons []struct{ Code string } }
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	early := false
	for _, r := range s.Verdict.Reasons {
		early = early || r.Code == "ended_early"
	}
	if !early {
		t.Error("the report does not say that this is a journal")
	}
	f, err := result.Open(journal)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, last := 0, int64(-1)
	err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if r.RowID <= last {
			t.Errorf("row %d after %d", r.RowID, last)
		}
		rows, last = rows+1, r.RowID
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return max(rows, s.Requests.Rows)
}

// An interrupt that comes more than a second after another ends the process at once, and
// leaves the journal; report and export read it under the name of the results.
func TestJournalInPlaceOfResults(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	w, server := killWorkload(t, 3000, 10*time.Millisecond), killServer(t)
	to, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	var begun atomic.Int64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	hung := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { // answers half of the requests
		if at := begun.Add(1); at > 20 && at%2 == 0 {
			_, _ = io.Copy(io.Discard, r.Body) // until then nobody notices that the client is gone
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(hung.Close)
	cmd := child(t, "replay", w, "--url", hung.URL, "-o", "r.parquet", "--quiet")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killAwait(t, "r.parquet.journal")
	time.Sleep(1500 * time.Millisecond)
	_, errs, _ := reprise(t, "report", "r.parquet")
	if want := regexp.MustCompile(`^r\.parquet is not finished: its run is still going on\. Read from its journal: \d+ requests\. The figures are of the run so far\.\n`); !want.MatchString(errs) {
		t.Errorf("while it runs:\n%s", errs)
	}
	for range 2 {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
	}
	cmd.Wait()
	if state := cmd.ProcessState; state.Exited() {
		t.Fatalf("it was not ended by a signal: %v", state)
	}
	want := regexp.MustCompile(`^r\.parquet is not finished: its run ended at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. Read from its journal: (\d+) requests\. To run it whole, repeat its command with --overwrite\.\n`)
	out, errs, code := reprise(t, "report", "r.parquet")
	if said := want.FindStringSubmatch(errs); code != cli.Untrusted || said == nil || !strings.Contains(out, "this is its journal") {
		t.Errorf("exit code %d\n%s%s", code, errs, out)
	}
	inDirectory, _, _ := reprise(t, "report", ".")
	if inDirectory != out {
		t.Errorf("the directory has another report:\n%s", inDirectory)
	}
	table, errs, code := reprise(t, "export", "r.parquet", "--to", "table")
	said := want.FindStringSubmatch(errs)
	if code != cli.Good || said == nil || fmt.Sprint(strings.Count(table, "\n")-1) != said[1] || !strings.Contains(table, "\nr,0,0,") {
		t.Errorf("exit code %d, %d lines: %s", code, strings.Count(table, "\n"), errs)
	}
}
