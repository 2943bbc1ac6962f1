package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// What is done to caches before a run is not done again when it is resumed: the
// servers would lose what the run so far has left, and a random seed would be
// another one.
func TestResumeLeavesCachesAlone(t *testing.T) {
	long(t)
	t.Parallel()
	for _, c := range []struct {
		cache, done string
		hasCall     bool
	}{
		{"cold", result.CacheReset, true},
		{"cold", result.CacheNewSeed, false},
		{"warm", result.CacheWarmPass, true},
	} {
		t.Run(c.done, func(t *testing.T) {
			w, server := killWorkload(t, 400, 5*time.Millisecond), killServer(t)
			inner, err := url.Parse(server.url)
			if err != nil {
				t.Fatal(err)
			}
			var resets, completions atomic.Int64
			proxy := httputil.NewSingleHostReverseProxy(inner)
			proxy.FlushInterval = -1
			srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "cache"):
					if !c.hasCall {
						http.NotFound(rw, r)
						return
					}
					resets.Add(1)
				case strings.HasSuffix(r.URL.Path, "/completions"):
					completions.Add(1)
				}
				proxy.ServeHTTP(rw, r)
			}))
			t.Cleanup(srv.Close)
			out := filepath.Join(t.TempDir(), "r.parquet")
			args := []string{"replay", w, "--url", srv.URL, "-o", out, "--quiet", "--cache", c.cache}
			cmd := child(t, args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killAwait(t, result.JournalName(out))
			<-time.After(1500 * time.Millisecond)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			kept := killRows(t, result.JournalName(out))
			before := resets.Load()
			completions.Store(0)
			_, errs, code := reprise(t, append(args, "--resume")...)
			if code != cli.Good && code != cli.Untrusted {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if n := resets.Load(); n != before {
				t.Errorf("caches were emptied %d times more", n-before)
			}
			if n := completions.Load(); n > int64(400-kept+5) {
				t.Errorf("%d requests where %d rows had no result", n, 400-kept)
			}
			f, err := result.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Run.Cache == nil || f.Run.Cache.Done != c.done {
				t.Errorf("caches: %+v", f.Run.Cache)
			}
		})
	}
}

// A resumption that cannot be is refused before a server is asked for anything.
func TestResumeRefusedBeforeAnythingIsSent(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(rw, r)
	}))
	t.Cleanup(srv.Close)
	w := killWorkload(t, 3, time.Millisecond)
	for _, c := range []struct {
		more string
		code int
		says string
	}{
		{"", cli.Failure, "nothing to resume"},
		{"--cache=cold", cli.Failure, "nothing to resume"},
		{"--thread", cli.Usage, "--thread"},
		{"--dry-run", cli.Usage, "--dry-run"},
	} {
		args := []string{"replay", w, "--url", srv.URL, "-o", filepath.Join(t.TempDir(), "r.parquet"), "--resume"}
		if c.more != "" {
			args = append(args, c.more)
		}
		if _, errs, code := reprise(t, args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d: %s", c.more, code, errs)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}
