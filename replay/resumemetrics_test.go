package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/result"
	"reprise/replay/scrape"
)

// promServer is a Prometheus server without a network: one gauge, which is 7 at
// every step.
type promServer struct{}

func (promServer) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	body := fmt.Sprintf(`{"status":"success","data":{"resultType":"scalar","result":[%d,"%.3f"]}}`, time.Now().Unix(), float64(time.Now().UnixMilli())/1e3)
	if strings.HasSuffix(r.URL.Path, "query_range") {
		from, err := strconv.ParseFloat(q.Get("start"), 64)
		to, err2 := strconv.ParseFloat(q.Get("end"), 64)
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		var values []string
		for at := from; at <= to; at++ {
			values = append(values, fmt.Sprintf(`[%.3f,"7"]`, at))
		}
		body = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"vllm:p"},"values":[` + strings.Join(values, ",") + `]}]}}`
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// meteredPart replays 20 rows, one each second, and copies the journals to a new
// directory, as kill -9 would leave them, when so many were sent. Resumed, when set,
// is the path of a run that goes on.
func meteredPart(t *testing.T, server *meterServer, resumed string, killAt int64) (run result.Run, path, killed string) {
	path = resumed
	if path == "" {
		path = filepath.Join(t.TempDir(), "run.parquet")
	}
	killed = filepath.Join(t.TempDir(), "run.parquet")
	rows := workload(every(time.Second, 20)...)
	sent := int64(0)
	f := &fake{hold: func(int32) time.Duration { return 300 * time.Millisecond }, fired: func() {
		server.fired.Add(1)
		if sent++; sent != killAt {
			return
		}
		synctest.Wait()
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.journal*"))
		for _, name := range left {
			b, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(filepath.Join(filepath.Dir(killed), filepath.Base(name)), b, 0o600)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Duration(killAt) * time.Hour) // the wall clock of each part is its own
		p, err := scrape.NewPrometheus(scrape.PrometheusOptions{URL: "http://p", Queries: []scrape.Query{{Expr: "x"}}, Transport: promServer{}})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Metering: server.metering(t)}
		o.Metering.Prometheus = p
		if resumed != "" {
			if o.Resume, err = ReadResumption(path, o, reader(rows)); err != nil {
				t.Fatal(err)
			}
		}
		if run, err = (&Runner{Endpoint: f, Pacer: sleeper, Options: o}).Record(t.Context(), reader(rows), path); err != nil {
			t.Fatal(err)
		}
	})
	return run, path, killed
}

// A run that is measured, killed twice and resumed has one metrics file, on its own
// clock. Counters leave out what the server did while nobody looked.
func TestResumeMetrics(t *testing.T) {
	server := &meterServer{}
	_, _, killed := meteredPart(t, server, "", 6)
	server.fired.Store(100) // others used it meanwhile
	_, _, killed = meteredPart(t, server, killed, 7)
	server.fired.Store(3) // it was started anew
	run, path, _ := meteredPart(t, server, killed, 99)
	if len(run.Resumed) != 2 || run.Requests != 20 || run.NotSent != 0 {
		t.Fatalf("run %+v", run)
	}
	s := run.Server
	if m := meterOf(t, s, "vllm:prompt_tokens_total"); *m.Delta != 20 || m.Resets != 0 || *m.First != 0 {
		t.Errorf("counter %+v", m)
	}
	if st := s.Scraped.Targets[0]; st.Skipped != 0 {
		t.Errorf("the last part skipped %d scrapes", st.Skipped)
	}
	f, rows := meterRows(t, path)
	if f.Unfinished || f.Started != run.Started || int64(len(rows)) != s.Samples {
		t.Errorf("%d rows, %+v", len(rows), f)
	}
	last, atGap, asked := map[string]int64{}, 0, 0
	for _, m := range rows {
		key := m.Target + m.Name + m.Labels
		if at, ok := last[key]; ok && m.AtNS < at {
			t.Errorf("%s at %v behind %v", key, time.Duration(m.AtNS), time.Duration(at))
		} else if ok && m.AtNS-at > 1100e6 && !strings.HasSuffix(m.Name, "_bucket") {
			t.Errorf("%s: nothing from %v to %v", key, time.Duration(at), time.Duration(m.AtNS))
		}
		last[key] = m.AtNS
		for _, gap := range run.Resumed {
			if m.AtNS == gap.AtNS && m.Name == "vllm:num_requests_running" {
				atGap++
			}
		}
		if m.Target == "prometheus" {
			asked++
		}
	}
	// The last answer comes at about 20 s, and a second later all is asked once more.
	if atGap != 2 || asked < 20 || asked > 24 {
		t.Errorf("%d scrapes at the interruptions, %d values of the Prometheus server", atGap, asked)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.journal*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// A run cannot begin to be measured in its middle, nor stop; a journal of metrics of
// another run, or one that is damaged, is not gone on with, and nothing is lost.
func TestResumeMetricsRefuses(t *testing.T) {
	_, _, path := meteredPart(t, &meterServer{}, "", 6)
	rows := workload(every(time.Second, 20)...)
	metered := func() Options { return Options{Metering: (&meterServer{}).metering(t)} }
	var other *Disagreement
	synctest.Test(t, func(t *testing.T) {
		if _, err := ReadResumption(path, Options{}, reader(rows)); !errors.As(err, &other) || !strings.Contains(err.Error(), "metering") {
			t.Errorf("measured before: %v", err)
		}
	})
	journal := result.JournalName(result.MetricsName(path))
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"another run": `{"schema":"metrics/1","started":"2001"}` + "\n", "damaged": string(whole[:len(whole)/2]) + "\n{\n", "empty": "",
	} {
		if err := os.WriteFile(journal, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			o := metered()
			if o.Resume, err = ReadResumption(path, metered(), reader(rows)); err != nil {
				t.Fatal(err)
			}
			if _, err := (&Runner{Endpoint: &fake{}, Pacer: sleeper, Options: o}).Record(t.Context(), reader(rows), path); err == nil {
				t.Errorf("%s: is gone on with", name)
			}
		})
		got, _ := os.ReadFile(journal)
		if left, _ := filepath.Glob(path + ".journal*"); string(got) != content || len(left) != 1 {
			t.Errorf("%s: %q, and %v", name, got, left)
		}
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := ReadResumption(path, metered(), reader(rows)); !errors.As(err, &other) {
			t.Errorf("not measured before: %v", err)
		}
	})
}

// One that is ended before it goes on keeps what was measured.
func TestResumeMetricsEndedAtOnce(t *testing.T) {
	_, _, path := meteredPart(t, &meterServer{}, "", 6)
	rows := workload(every(time.Second, 20)...)
	var run result.Run
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o := Options{Metering: (&meterServer{}).metering(t)}
		var err error
		if o.Resume, err = ReadResumption(path, o, reader(rows)); err != nil {
			t.Fatal(err)
		}
		if run, err = (&Runner{Endpoint: &fake{}, Pacer: sleeper, Options: o}).Record(ctx, reader(rows), path); err != nil {
			t.Fatal(err)
		}
	})
	if m := meterOf(t, run.Server, "vllm:prompt_tokens_total"); *m.Delta != float64(run.Requests) || run.Requests < 3 {
		t.Errorf("%d requests, counter %+v", run.Requests, m)
	}
	if _, rows := meterRows(t, path); len(rows) == 0 {
		t.Error("nothing is left of what was measured")
	}
}
