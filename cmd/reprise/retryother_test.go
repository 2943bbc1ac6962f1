package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/result"
)

// A server that is full leaves its requests to the other, which the report says of each.
func TestReplayRetryOther(t *testing.T) {
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Step: 1e9}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Id") != "" { // of the run
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		sim.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(full.Close)
	fine := httptest.NewServer(sim.Handler())
	t.Cleanup(fine.Close)
	w, out := killWorkload(t, 40, time.Millisecond), filepath.Join(t.TempDir(), "r.parquet")
	run := func(retry string) (s struct {
		summary
		Run     result.Run
		Retries struct {
			ByEndpoint []struct {
				Name     string
				Attempts int64 `json:"attempts_requests"`
				PassedOn int64 `json:"passed_on_requests"`
				TookOver int64 `json:"took_over_requests"`
			} `json:"by_endpoint"`
		}
	}) {
		t.Helper()
		text := must(t, "replay", w, "--url", full.URL, "--url", fine.URL, "-o", out, "--quiet", "--json", "--retry", retry, "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h")
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, retry := range []string{"1,other", "3,1h,other"} {
		s := run(retry)
		by := s.Retries.ByEndpoint
		if s.Requests.Succeeded != 40 || !s.Run.RetryOther || len(by) != 2 || by[0].Attempts != 20 || by[0].PassedOn != 20 || by[0].TookOver != 0 ||
			by[1].Attempts != 40 || by[1].PassedOn != 0 || by[1].TookOver != 20 {
			t.Errorf("%s: %d succeeded, %+v", retry, s.Requests.Succeeded, by)
		}
	}
	for _, bad := range []string{"0,other", "2,other,1s", "2,", "2,1s,", "2,others", "other"} {
		if _, errs, code := reprise(t, "replay", w, "--url", full.URL, "--url", fine.URL, "-o", out, "--retry", bad); code != cli.Usage || !strings.Contains(errs, "--retry") {
			t.Errorf("%s: exit code %d: %s", bad, code, errs)
		}
	}
	if _, errs, code := reprise(t, "replay", w, "--url", fine.URL, "-o", out, "--retry", "2,other"); code != cli.Usage || !strings.Contains(errs, "needs several --url") {
		t.Errorf("one endpoint: exit code %d: %s", code, errs)
	}
}
