package monitor

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"reprise/replay"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// scraped is the page at a URL as Prometheus parses it.
func scraped(t *testing.T, url string) (families map[string]*dto.MetricFamily, page string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", answer.Status, err, b)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if families, err = parser.TextToMetricFamilies(strings.NewReader(string(b))); err != nil {
		t.Fatal(err)
	}
	return families, string(b)
}

func listening(t *testing.T) (*Monitor, string) {
	t.Helper()
	m := New("v1")
	url, open, err := m.Listen(t.Context(), "127.0.0.1:0")
	if err != nil || open {
		t.Fatal(err, open)
	}
	return m, url
}

// value is that of a family with one metric, or of the one with a class; of a histogram,
// its count.
func value(f *dto.MetricFamily, class string) float64 {
	for _, m := range f.GetMetric() {
		if class != "" && m.GetLabel()[0].GetValue() != class {
			continue
		}
		switch {
		case m.Counter != nil:
			return m.GetCounter().GetValue()
		case m.Gauge != nil:
			return m.GetGauge().GetValue()
		case m.Histogram != nil:
			return float64(m.GetHistogram().GetSampleCount())
		}
	}
	return math.NaN()
}

// Counters go on from run to run, gauges are those of the last, and the page is as
// Prometheus wants it.
func TestMetrics(t *testing.T) {
	m, url := listening(t)
	answer := resulttest.Answer(0, 100, 3, 40, 50, 70) // TTFT 40 ms, gaps 10 and 20
	answer.Cached = trace.Ptr(int32(64))
	cancelled := resulttest.Failure(2, 200, result.KindCancelled)
	for round := range 2 {
		run := m.Begin(10)
		for _, r := range []result.Result{answer, resulttest.Failure(1, 150, "timeout"), cancelled} {
			run.Observe(&r)
		}
		run.Progress(replay.Progress{Elapsed: time.Second, Sent: 3, Due: 5, InFlight: 2, Done: 1, Stalled: 20 * time.Millisecond})
		run.Progress(replay.Progress{Elapsed: 2 * time.Second, Sent: 4, Due: 4, InFlight: 1, Done: 3, LeftOut: 4, Stalled: 20 * time.Millisecond})
		f, page := scraped(t, url)
		n := float64(round + 1)
		for name, want := range map[string]float64{
			"reprise_requests_sent_total": 4 * n, "reprise_requests_due_total": 5 * n, "reprise_requests_succeeded_total": n,
			"reprise_requests_cancelled_total": n, "reprise_requests_left_out_total": 4 * n, "reprise_requests_failed_total": n,
			"reprise_requests_in_flight": 1, "reprise_requests_planned": 6, "reprise_schedule_position_seconds": 2, "reprise_schedule_progress_ratio": 0.5,
			"reprise_send_lag_seconds": 3 * n, "reprise_time_to_first_token_seconds": n, "reprise_inter_token_latency_seconds": 2 * n, "reprise_e2e_request_latency_seconds": n,
			"reprise_prompt_tokens_total": 100 * n, "reprise_cached_tokens_total": 64 * n, "reprise_output_tokens_total": 3 * n,
			"reprise_client_stalled_seconds_total": 0.02 * n, "reprise_build_info": 1,
		} {
			if got := value(f[name], ""); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if value(f["reprise_requests_failed_total"], "timeout") != n || value(f["reprise_client_cpu_seconds_total"], "") <= 0 || value(f["reprise_client_memory_bytes"], "") <= 0 {
			t.Error(page)
		}
		var ttft strings.Builder
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, `reprise_time_to_first_token_seconds_bucket{le="0.0`) {
				ttft.WriteString(line)
			}
		}
		if want := `{le="0.035"} 0`; !strings.Contains(ttft.String(), want) || !strings.Contains(ttft.String(), `{le="0.05"} `+strconv.Itoa(round+1)) {
			t.Errorf("without %s:\n%s", want, ttft.String())
		}
		problems, err := promlint.New(strings.NewReader(page)).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
	m.Begin(0)
	if f, _ := scraped(t, url); value(f["reprise_schedule_progress_ratio"], "") != 0 || value(f["reprise_requests_in_flight"], "") != 0 || value(f["reprise_requests_sent_total"], "") != 8 {
		t.Error("a run that begins keeps gauges, or loses counters")
	}
}

func TestListen(t *testing.T) {
	for given, want := range map[string]string{"9090": ":9090", ":9090": ":9090", "localhost:9090": "localhost:9090", "[::1]:0": "[::1]:0", "": "", "localhost": "", "90909": "", "a:b:c": "", "localhost:": ""} {
		if got, err := Address(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	if _, _, err := New("").Listen(t.Context(), "127.0.0.1:"+port); err == nil || err.Error() != "port "+port+" is in use: stop the process that uses it, choose another port, or use port 0 for any free one" {
		t.Error(err)
	}
	ctx, end := context.WithCancel(t.Context())
	url, open, err := New("").Listen(ctx, ":0")
	if err != nil || !open || !strings.HasPrefix(url, "http://localhost:") {
		t.Errorf("%s, %v, %v", url, open, err)
	}
	scraped(t, url)
	end()
	for range 100 {
		answer, err := http.Get(url)
		if err != nil {
			return
		}
		answer.Body.Close()
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it listens after its end")
}

// BenchmarkObserve is what a request of 50 tokens costs the goroutine that collects
// results, while another scrapes as fast as it can.
func BenchmarkObserve(b *testing.B) {
	for name, beside := range map[string]bool{"alone": false, "while scraped": true} {
		b.Run(name, func(b *testing.B) {
			m := New("")
			run := m.Begin(0)
			events := make([]int64, 50)
			for i := range events {
				events[i] = int64(40 + 10*i)
			}
			r := resulttest.Answer(0, 0, 1, events...)
			over := make(chan struct{})
			if beside {
				go func() {
					for {
						select {
						case <-over:
							return
						default:
							if _, err := m.registry.Gather(); err != nil {
								panic(err)
							}
						}
					}
				}()
			}
			b.ReportAllocs()
			for b.Loop() {
				run.Observe(&r)
			}
			close(over)
		})
	}
}

// BenchmarkScrape is what a scrape costs the machine of the client.
func BenchmarkScrape(b *testing.B) {
	m := New("")
	run := m.Begin(0)
	r := resulttest.Answer(0, 0, 1, 40, 50, 60)
	run.Observe(&r)
	url, _, err := m.Listen(b.Context(), "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		answer, err := http.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			b.Fatal(err)
		}
		answer.Body.Close()
	}
}
