package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reprise/replay/result"
	"sync"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/trace"
)

// Pages of an endpoint at a Unix socket are asked over the socket, with the key that
// it takes, whatever proxy the environment names; one that is given by its URL as well.
func TestScrapeSocket(t *testing.T) {
	long(t)
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Step: 1e9}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "r") // the address of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	pages := map[string]int{}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet {
			mu.Lock()
			pages[r.URL.Path]++
			mu.Unlock()
		}
		http.StripPrefix("/engine", sim.Handler()).ServeHTTP(w, r)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("REPRISE_TEST_KEY", "a-key")
	out := filepath.Join(t.TempDir(), "r.parquet")
	must(t, "replay", killWorkload(t, 20, time.Millisecond), "--url", "unix://"+socket+":/engine/v1", "-o", out, "--quiet", "--api-key-env", "REPRISE_TEST_KEY",
		"--scrape", "auto", "--scrape", "again=unix://"+socket+":/engine/metrics", "--max-lag", "-1s", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "-1s")
	m, err := result.OpenMetrics(out)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	answered := map[string]float64{}
	if err := trace.Each(m.Reader(), func(_ int64, m *result.Metric) error {
		if m.Name == "vllm:generation_tokens_total" {
			answered[m.Target] = m.Value
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if a := answered["server-1"]; a == 0 || answered["again"] != a || len(answered) != 2 {
		t.Errorf("tokens by the pages: %v", answered)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := pages["/engine/metrics"]; n < 6 { // each before, at the start and after
		t.Errorf("pages asked for: %v", pages)
	}
}
