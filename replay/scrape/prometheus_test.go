package scrape

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A prometheus answers as the server does: it has a clock, and one series whose
// value is its time, and it remembers what it was asked.
type prometheus struct {
	ahead time.Duration
	asked []string
	fails string // a query that is refused
}

func (p *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.asked = append(p.asked, q.Get("query"))
	switch {
	case strings.TrimPrefix(r.URL.Path, "/prom") == "/api/v1/query" && q.Get("query") == "time()":
		now := float64(time.Now().Add(p.ahead).UnixMilli()) / 1e3
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[%.3f,"%.3f"]}}`, now, now)
	case q.Get("query") == p.fails:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"SECRET"}`)
	case strings.TrimPrefix(r.URL.Path, "/prom") == "/api/v1/query_range":
		from, _ := strconv.ParseFloat(q.Get("start"), 64)
		to, _ := strconv.ParseFloat(q.Get("end"), 64)
		step, _ := strconv.ParseFloat(q.Get("step"), 64)
		if (to-from)/step > 11_000 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var values []string
		for i := 0; from+float64(i)*step <= to+1e-6; i++ {
			at := from + float64(i)*step
			values = append(values, fmt.Sprintf(`[%.3f,"%.3f"]`, at, at))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"vllm:num_requests_running","instance":"10.0.0.7:8000","engine":"0"},"values":[%s]}]}}`, strings.Join(values, ","))
	default:
		http.NotFound(w, r)
	}
}

// A server's clock is measured and taken out, and a long run is asked for in
// pieces that join without a hole.
func TestCollect(t *testing.T) {
	fake := &prometheus{ahead: 90 * time.Minute}
	srv := httptest.NewServer(fake)
	defer srv.Close()
	p, err := NewPrometheus(PrometheusOptions{URL: srv.URL + "/prom", Queries: DefaultQueries([]string{"vllm:"})})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(-600 * time.Second)
	var got []Sample
	err = p.Collect(t.Context(), from, from.Add(600*time.Second), func(s []Sample) error { got = append(got, s...); return nil })
	if err != nil {
		t.Fatal(err)
	}
	stats := p.Stats()
	if len(got) != 601 || stats.Answers != 3 || stats.Failed != 0 || stats.Series != 1 {
		t.Fatalf("%d values, %+v", len(got), stats)
	}
	if c := stats.Clock; c == nil || (c.Offset-fake.ahead).Abs() > c.Within+2*time.Millisecond || c.Within > time.Second {
		t.Errorf("clock %+v", c)
	}
	for i, s := range got {
		if want := from.Add(time.Duration(i) * time.Second); s.At.Sub(want).Abs() > 2*time.Millisecond {
			t.Fatalf("value %d is at %v", i, s.At.Sub(from))
		}
		if server := float64(s.At.Add(stats.Clock.Offset).UnixMilli()) / 1e3; math.Abs(s.Value-server) > 0.002 {
			t.Fatalf("value %d is %f, at %f of the server's clock", i, s.Value, server)
		}
	}
	if s := got[0].Series; s.Metric != "vllm:num_requests_running" || s.Labels != "engine=0" || s.Kind != Gauge || s.Target != "prometheus" {
		t.Errorf("series %+v", s)
	}
	if want := `{__name__=~"vllm:.+",__name__!~".+_(bucket|created)"}`; fake.asked[1] != want {
		t.Errorf("asked %q, want %q", fake.asked[1], want)
	}
}

// A query that fails is counted, and the others are asked; a name stands in place
// of the metric's own.
func TestCollectFailures(t *testing.T) {
	for _, base := range []string{"", "/", "/prom", "/prom/"} {
		collectFailures(t, base)
	}
}

func collectFailures(t *testing.T, base string) {
	fake := &prometheus{fails: "bad("}
	srv := httptest.NewServer(fake)
	defer srv.Close()
	p, err := NewPrometheus(PrometheusOptions{URL: srv.URL + base, Queries: []Query{{"x", "bad("}, {"vllm:prompt_tokens_total", "sum(a)"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []Sample
	now := time.Now()
	if err := p.Collect(t.Context(), now.Add(-2*time.Second), now, func(s []Sample) error { got = append(got, s...); return nil }); err != nil {
		t.Fatal(err)
	}
	st := p.Stats()
	if len(got) != 3 || got[0].Series.Metric != "vllm:prompt_tokens_total" || got[0].Series.Kind != Counter || st.Failed != 1 || st.Failures[FailStatus] != 1 {
		t.Errorf("%d values, %+v", len(got), st)
	}

	srv.Close()
	if err := p.Collect(t.Context(), now, now, func([]Sample) error { return nil }); err != nil || p.Stats().Failures[FailConnect] != 2 {
		t.Errorf("nobody there: %v, %+v", err, p.Stats())
	}
}

func TestNewPrometheus(t *testing.T) {
	q := []Query{{Expr: "a"}}
	for _, o := range []PrometheusOptions{{}, {URL: "http://u:SECRET@h", Queries: q}, {URL: "SECRET", Queries: q}, {URL: "http://h"}, {URL: "http://h", Queries: []Query{{Name: "a"}}}, {URL: "http://h", Queries: q, Step: 1}} {
		if _, err := NewPrometheus(o); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
	// A prefix is no regular expression.
	if got := DefaultQueries([]string{`a.b"`})[0].Expr; got != `{__name__=~"a\\.b\".+",__name__!~".+_(bucket|created)"}` {
		t.Error(got)
	}
}

func FuzzMatrix(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a","engine":"0"},"values":[[1.5,"2"],[2.5,"+Inf"]]}]}}`))
	f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1.5,"1.5"]}}`))
	f.Add([]byte(`{"status":"error","errorType":"bad_data","error":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if at, err := decodeTime(body); err == nil && !(at >= 0 && at < maxAt) {
			t.Fatalf("time %v", at)
		}
		lines, err := decodeMatrix(body)
		if err != nil {
			if _, known := err.(*failure); !known {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatal("decoded what is no JSON")
		}
		for _, l := range lines {
			for _, v := range l.values {
				if !(v.at >= 0 && v.at < maxAt) {
					t.Fatalf("instant %v", v.at)
				}
			}
		}
	})
}
