package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/replay/scrape"
	"reprise/trace"
)

// meterServer is a server without a network: a counter of what was fired and a
// gauge that rises by one with every scrape, from 1.
type meterServer struct {
	fired  atomic.Int64
	asked  atomic.Int64
	broken atomic.Bool
}

func (m *meterServer) RoundTrip(*http.Request) (*http.Response, error) {
	if m.broken.Load() {
		return nil, errors.New("no route")
	}
	time.Sleep(2 * time.Millisecond)
	body := fmt.Sprintf("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} %d\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} %d\n"+
		"# TYPE vllm:h histogram\nvllm:h_bucket{le=\"+Inf\"} 3\nvllm:h_count 3\nvllm:h_sum 4\n", m.fired.Load(), m.asked.Add(1))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func (m *meterServer) metering(t *testing.T) Metering {
	t.Helper()
	s, err := scrape.New(scrape.Options{Targets: []scrape.Target{{Name: "a", URL: "http://a"}}, Transport: m})
	if err != nil {
		t.Fatal(err)
	}
	return Metering{Scraper: s}
}

func meterRows(t *testing.T, path string) (*result.MetricsFile, []result.Metric) {
	t.Helper()
	f, err := result.OpenMetrics(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var out trace.SliceWriter[result.Metric]
	if _, err := trace.Copy(&out, f.Reader()); err != nil {
		t.Fatal(err)
	}
	return f, out.Rows
}

func meterOf(t *testing.T, s *result.Server, metric string) result.ServerMetric {
	t.Helper()
	for _, m := range s.Metrics {
		if m.Metric == metric {
			return m
		}
	}
	t.Fatalf("nothing of %s", metric)
	return result.ServerMetric{}
}

// A run of 10 requests, one each second, is scraped once before it, each second,
// and once an interval after its end; the counter misses none of the requests.
func TestRecordMetrics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	server := &meterServer{}
	var run result.Run
	var killed string
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hold: func(int32) time.Duration { return 300 * time.Millisecond }}
		f.fired = func() {
			if server.fired.Add(1) == 6 { // at 5 s, as kill -9 would leave it
				synctest.Wait()
				dir := t.TempDir()
				killed = filepath.Join(dir, "run.parquet.journal")
				for _, name := range []string{result.JournalName(path), result.JournalName(result.MetricsName(path))} {
					b, err := os.ReadFile(name)
					if err != nil {
						t.Error(err)
					}
					if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), b[:len(b)-3], 0o600); err != nil {
						t.Error(err)
					}
				}
			}
		}
		r := &Runner{Endpoint: f, Pacer: sleeper, Options: Options{Metering: server.metering(t)}}
		var err error
		if run, err = r.Record(t.Context(), reader(workload(every(time.Second, 10)...)), path); err != nil {
			t.Fatal(err)
		}
		if f, rows := meterRows(t, killed); !f.Unfinished || len(rows) != 5+4*4 || rows[len(rows)-1].AtNS != 3001e6 { // the line of 4 s is cut off
			t.Errorf("after a kill at 5 s: %d rows, %+v", len(rows), f)
		}
	})
	s := run.Server
	if s == nil || s.FromNS != 0 || s.ToNS != int64(9300*time.Millisecond) || s.EveryNS != 1e9 || s.Scraped.Targets[0].Scrapes != 13 {
		t.Fatalf("server %+v", s) // before, at 0 … 10 s, and after
	}
	if m := meterOf(t, s, "vllm:prompt_tokens_total"); *m.First != 0 || *m.Last != 10 || *m.Delta != 10 || m.Mean != nil || m.Kind != scrape.Counter {
		t.Errorf("counter %+v", m)
	}
	// The second scrape, at the start, is the first of the window; that at 10 s is
	// behind its end.
	if m := meterOf(t, s, "vllm:num_requests_running"); *m.First != 2 || *m.Last != 11 || m.Samples != 10 || *m.Mean != 6.5 || *m.Min != 2 || *m.Max != 11 || *m.Delta != 9 {
		t.Errorf("gauge %+v", m)
	}
	for _, m := range s.Metrics {
		if strings.HasSuffix(m.Metric, "_bucket") {
			t.Errorf("a bucket is listed: %+v", m)
		}
	}

	f, rows := meterRows(t, path)
	if f.Unfinished || f.Started != run.Started || int64(len(rows)) != s.Samples || len(rows) != 13*4+2 {
		t.Errorf("%d rows, %+v", len(rows), f)
	}
	first := rows[0]
	if want := (result.Metric{AtNS: first.AtNS, Target: "a", Name: "vllm:h_count", Kind: "counter", Value: 3}); first != want || first.AtNS != -1e6 {
		t.Errorf("first row %+v", first)
	}
	if last := rows[len(rows)-1].AtNS; last != int64(10301*time.Millisecond) {
		t.Errorf("the last scrape is at %d", last)
	}
	if _, err := os.Stat(result.JournalName(result.MetricsName(path))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
	if results, _ := readAll(t, path); !reflect.DeepEqual(results.Run, run) {
		t.Errorf("the file's run %+v", results.Run)
	}
}

// A server that cannot be measured fails nothing.
func TestRecordMetricsBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	server := &meterServer{}
	server.broken.Store(true)
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Endpoint: &fake{}, Pacer: sleeper, Options: Options{Metering: server.metering(t)}}
		run, err := r.Record(t.Context(), reader(workload(0, time.Second)), path)
		if err != nil {
			t.Fatal(err)
		}
		if st := run.Server.Scraped.Targets[0]; st.Scrapes != 0 || st.Failed < 3 || st.Failures[scrape.FailConnect] != st.Failed || run.Server.Samples != 0 {
			t.Errorf("%+v", st)
		}
	})
	if _, rows := meterRows(t, path); len(rows) != 0 {
		t.Errorf("%d rows", len(rows))
	}
}

// Only the measured part counts: a counter from the last scrape before it.
func TestRecordMetricsWindow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	server := &meterServer{}
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Endpoint: &fake{fired: func() { server.fired.Add(1) }}, Pacer: sleeper,
			Options: Options{Metering: server.metering(t), Warmup: Span{Requests: 3}, Cooldown: Span{Requests: 2}}}
		// Requests half way between the scrapes.
		run, err := r.Record(t.Context(), reader(workload(500*time.Millisecond, 1500*time.Millisecond, 2500*time.Millisecond,
			3500*time.Millisecond, 4500*time.Millisecond, 5500*time.Millisecond, 6500*time.Millisecond, 7500*time.Millisecond)), path)
		if err != nil {
			t.Fatal(err)
		}
		s := run.Server
		if s.FromNS != 3500e6 || s.ToNS != 6500e6 {
			t.Errorf("window %d to %d", s.FromNS, s.ToNS)
		}
		if m := meterOf(t, s, "vllm:prompt_tokens_total"); *m.First != 3 || *m.Last != 6 || *m.Delta != 3 {
			t.Errorf("counter %+v", m)
		}
		if m := meterOf(t, s, "vllm:num_requests_running"); m.Samples != 3 || *m.First != 6 || *m.Last != 8 {
			t.Errorf("gauge %+v", m)
		}
	})
}

// A journal of metrics that is there is not replaced, and nothing else is left.
func TestRecordMetricsRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	if err := os.WriteFile(result.JournalName(result.MetricsName(path)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Runner{Endpoint: &fake{}, Options: Options{Metering: (&meterServer{}).metering(t)}}
	if _, err := r.Record(t.Context(), reader(workload(0)), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(result.JournalName(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal of results is left: %v", err)
	}
	if err := os.Remove(result.JournalName(result.MetricsName(path))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(result.JournalName(path), []byte("a run"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Record(t.Context(), reader(workload(0)), path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(result.JournalName(result.MetricsName(path))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a journal of metrics is left: %v", err)
	}
}

// A run that cannot start leaves no journal of metrics.
func TestRecordMetricsOfNoRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	rows := workload(0)
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Endpoint: &fake{}, Options: Options{Metering: (&meterServer{}).metering(t), Causal: lineageOf(t, rows), Thread: &Threading{}}}
		if _, err := r.Record(t.Context(), reader(rows), path); !errors.Is(err, errNoContinuer) {
			t.Errorf("error %v", err)
		}
	})
	for _, name := range []string{result.MetricsName(path), result.JournalName(result.MetricsName(path))} {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", filepath.Base(name), err)
		}
	}
}

// A cancelled run is measured to its end, without the wait.
func TestRecordMetricsInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.parquet")
	server := &meterServer{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		r := &Runner{Endpoint: &fake{fired: func() { server.fired.Add(1) }}, Pacer: sleeper, Options: Options{Metering: server.metering(t)}}
		begin := time.Now()
		run, err := r.Record(ctx, reader(workload(every(time.Second, 300)...)), path)
		if err != nil || time.Since(begin) > 4510*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if m := meterOf(t, run.Server, "vllm:prompt_tokens_total"); *m.Delta != 5 {
			t.Errorf("counter %+v", m)
		}
	})
}
