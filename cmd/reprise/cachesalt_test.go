package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
)

// A server's prefix cache is shared within a salt: that of a run leaves it nothing of
// earlier runs, and those of rows keep tenants apart.
func TestCacheSalt(t *testing.T) {
	long(t)
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Step: 1e9}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim.Handler())
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var log, rows strings.Builder
	for i := range 8 { // the same 512 tokens, and 40 of their own
		fmt.Fprintf(&log, `{"timestamp": %d, "input_length": 552, "output_length": 2, "hash_ids": [0, %d]}`+"\n", i, 1+i)
		fmt.Fprintf(&rows, `{"row":%d,"body":{"cache_salt":"tenant-%d"}}`+"\n", i, i%2)
	}
	w, salts, out := filepath.Join(dir, "w.parquet"), write("salts.jsonl", rows.String()), filepath.Join(dir, "r.parquet")
	must(t, "import", write("log.jsonl", log.String()), "-o", w)
	cached := func(more ...string) (tokens []int32) {
		t.Helper()
		must(t, append([]string{"replay", w, "--url", srv.URL, "-o", out, "--quiet", "--seed", "7", "--concurrency", "1", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h"}, more...)...)
		_, results := targetResults(t, out)
		for _, r := range results {
			tokens = append(tokens, *r.Cached)
		}
		return tokens
	}
	for _, api := range []string{"completions", "chat"} {
		first, again := cached("--api", api), cached("--api", api)
		if first[0] > 16 || first[1] < 496 || again[0] < 536 {
			t.Errorf("%s without a salt: %v, then %v", api, first, again)
		}
		if salted := cached("--api", api, "--extra-body", `{"cache_salt":"run-`+api+`"}`); fmt.Sprint(salted) != fmt.Sprint(first) {
			t.Errorf("%s, a salt of the run's own: %v, want those of a cold cache, %v", api, salted, first)
		}
		tenants := cached("--api", api, "--extra-body", `{"cache_salt":"other"}`, "--set", "row-extra="+salts)
		for i, n := range tenants {
			if hit := n > 100; hit != (i > 1) {
				t.Errorf("%s, row %d of tenant %d: %d tokens cached", api, i, i%2, n)
			}
		}
	}
	if _, errs, code := reprise(t, "replay", w, "--url", srv.URL, "-o", out, "--quiet", "--extra-body", `{"cache_salt":""}`); code == cli.Good || !strings.Contains(errs, "400") && !strings.Contains(errs, "bad_request") {
		t.Errorf("an empty salt: exit code %d: %s", code, errs)
	}
}
