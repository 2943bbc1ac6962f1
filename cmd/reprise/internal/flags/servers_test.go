package flags

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
)

// trtllm-serve has its metrics at /prometheus/metrics, and lines of JSON at /metrics.
func TestScrapeOtherPage(t *testing.T) {
	var first, second atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		first.Add(1)
		_, _ = io.WriteString(w, `[{"gpuMemUsage":1}]`)
	})
	mux.HandleFunc("/prometheus/metrics", func(w http.ResponseWriter, _ *http.Request) {
		second.Add(1)
		_, _ = io.WriteString(w, "# TYPE trtllm_kv_cache_utilization gauge\ntrtllm_kv_cache_utilization 0.5\n")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	var f Servers
	cmd := new(cobra.Command)
	f.Register(cmd)
	if err := cmd.ParseFlags([]string{"--scrape", "auto"}); err != nil {
		t.Fatal(err)
	}
	m, empty, err := f.Metering(t.Context(), []string{s.URL + "/v1"}, http.Header{})
	if err != nil || len(empty) != 0 || m.Scraper == nil {
		t.Fatalf("%v, %v", empty, err)
	}
	defer m.Scraper.Close()
	if got := m.Scraper.Once(t.Context()); len(got) != 1 || got[0].Value != 0.5 || first.Load() != 1 || second.Load() != 2 {
		t.Errorf("%v; asked %d and %d times", got, first.Load(), second.Load())
	}
}
