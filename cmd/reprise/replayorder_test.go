package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
)

// What cannot be is refused before a cache is emptied or warmed for it.
func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(rw, r)
	}))
	t.Cleanup(srv.Close)
	w := killWorkload(t, 3, time.Millisecond)
	for says, more := range map[string][]string{
		"no turns with a think or tool time":      {"--thread", "--cache", "warm"},
		"--set http2 supports only --connections": {"--set", "http2", "--connections", "per-session"},
	} {
		args := append([]string{"replay", w, "--url", srv.URL, "-o", filepath.Join(t.TempDir(), "r.parquet")}, more...)
		if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, says) {
			t.Errorf("%q: exit code %d: %s", more, code, errs)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}
