package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
)

// The simulated endpoint speaks HTTP/1.1 and, to those that begin with it, HTTP/2 on
// one port, with the same answers and faults.
func TestServeHTTP2(t *testing.T) {
	long(t)
	c := engine.DefaultServerConfig()
	c.Engine.Costs, c.Faults = engine.Costs{Step: 1e9}, "error=503:10%,reset:10%"
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	protocols := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- serve(ctx, sim.Gate(l), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/completions") && r.Header.Get("X-Request-Id") != "" {
				mu.Lock()
				protocols[r.Proto]++
				mu.Unlock()
			}
			sim.Handler().ServeHTTP(w, r)
		}))
	}()
	w, dir := killWorkload(t, 200, time.Millisecond), t.TempDir()
	for _, c := range []struct{ how, proto string }{
		{"--connections=per-request", "HTTP/1.1"}, {"--set http2", "HTTP/2.0"}, {"--set http2=true --connections=pooled", "HTTP/2.0"},
	} {
		out := filepath.Join(dir, "r.parquet")
		mu.Lock()
		clear(protocols)
		mu.Unlock()
		args := append([]string{"replay", w, "--url", "http://" + l.Addr().String(), "-o", out, "--quiet", "--scrape", "auto"}, strings.Fields(c.how)...)
		_, errs, code := reprise(t, args...)
		if code != cli.Good && code != cli.Untrusted { // of its errors
			t.Fatalf("%s: exit code %d: %s", c.how, code, errs)
		}
		run, rows := targetResults(t, out)
		failed := map[string]int{}
		for _, r := range rows {
			failed[r.Error]++
			if r.Error == "" && (r.Events != *r.Output || *r.Output != *r.WantOutput) {
				t.Errorf("%s: row %d has %d events of %d tokens", c.how, r.RowID, r.Events, *r.Output)
			}
		}
		if len(rows) != 200 || failed[""] < 120 || failed["reset"] < 3 || failed["unavailable"] < 3 || len(failed) != 3 || run.HTTP2 != (c.proto == "HTTP/2.0") {
			t.Errorf("%s: %v", c.how, failed)
		}
		mu.Lock()
		if len(protocols) != 1 || protocols[c.proto] != 200 {
			t.Errorf("%s: %v", c.how, protocols)
		}
		mu.Unlock()
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
