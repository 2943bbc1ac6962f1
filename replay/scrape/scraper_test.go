package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var at0 = time.Unix(1_700_000_000, 0)

// tripper answers requests without a network.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func page(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}
}

func scraper(t *testing.T, o Options) *Scraper {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A target is asked at the start and every interval from there, at absolute
// instants; a sample is in the middle of its request and the headers.
func TestRunKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		asked := 0
		s := scraper(t, Options{Every: time.Second, Targets: []Target{{Name: "a", URL: "http://a"}}, Transport: tripper(func(r *http.Request) (*http.Response, error) {
			asked++
			time.Sleep(100 * time.Millisecond)
			return page(200, fmt.Sprintf("vllm:n %d\n", asked)), nil
		})})
		ctx, stop := context.WithTimeout(t.Context(), 9500*time.Millisecond)
		defer stop()
		var at []time.Duration
		if err := s.Run(ctx, start, func(samples []Sample) error {
			at = append(at, samples[0].At.Sub(start))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{}
		for i := range 10 {
			want = append(want, time.Duration(i)*time.Second+50*time.Millisecond)
		}
		if !slices.Equal(at, want) {
			t.Errorf("sampled at %v", at)
		}
		if got := s.Stats().Targets[0]; got.Scrapes != 10 || got.Skipped != 0 || got.Widest != 100*time.Millisecond {
			t.Errorf("stats %+v", got)
		}
	})
}

// A target that stalls holds up itself alone, is not asked in a burst afterwards,
// and what it missed is counted.
func TestRunSlowTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scraper(t, Options{Every: time.Second, Timeout: 20 * time.Second,
			Targets: []Target{{Name: "slow", URL: "http://slow"}, {Name: "good", URL: "http://good"}},
			Transport: tripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "slow" {
					time.Sleep(3500 * time.Millisecond)
				}
				return page(200, "vllm:n 1\n"), nil
			})})
		ctx, stop := context.WithTimeout(t.Context(), 11*time.Second)
		defer stop()
		if err := s.Run(ctx, time.Now(), func([]Sample) error { return nil }); err != nil {
			t.Fatal(err)
		}
		stats := s.Stats().Targets
		// At 0, 4 and 8 s; the end cuts nothing, since the last would come at 12.
		if slow := stats[0]; slow.Scrapes != 3 || slow.Skipped != 9 {
			t.Errorf("slow: %+v", slow)
		}
		if good := stats[1]; good.Scrapes < 11 || good.Failed != 0 {
			t.Errorf("good: %+v", good)
		}
	})
}

// Every way to fail has its class, fails nothing else, and quotes nothing.
func TestFailures(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/good", http.StatusFound) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		line := strings.Repeat("vllm:n 1 \n", 100_000)
		for range maxBody/len(line) + 1 {
			io.WriteString(w, line)
		}
	})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "vllm:n{") })
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, vllmPage) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	gone := httptest.NewServer(nil)
	gone.Close()

	hangs := scraper(t, Options{Timeout: 100 * time.Millisecond, Targets: []Target{{Name: "hangs", URL: srv.URL + "/hangs"}}})
	if hangs.Once(t.Context()); hangs.Stats().Targets[0].Failures[FailTimeout] != 1 {
		t.Errorf("hangs: %+v", hangs.Stats().Targets[0])
	}
	want := map[string]string{"status": FailStatus, "moved": FailStatus, "large": FailTooLarge, "broken": FailDecode}
	o := Options{Timeout: time.Minute, Targets: []Target{{Name: "gone", URL: gone.URL}, {Name: "good", URL: srv.URL + "/good"}}}
	for name := range want {
		o.Targets = append(o.Targets, Target{Name: name, URL: srv.URL + "/" + name})
	}
	want["gone"] = FailConnect
	s := scraper(t, o)
	if got := s.Once(t.Context()); len(got) != 9 || got[0].Series.Target != "good" {
		t.Errorf("%d samples: the good target did not come through", len(got))
	}
	for _, stats := range s.Stats().Targets {
		class := want[stats.Target]
		switch {
		case class == "" && (stats.Failed != 0 || stats.Scrapes != 1):
			t.Errorf("good: %+v", stats)
		case class != "" && (stats.Failed != 1 || stats.Failures[class] != 1):
			t.Errorf("%s: %+v, want %s", stats.Target, stats, class)
		}
	}
}

// Beyond the limit no series is taken up; those that are followed go on.
func TestSeriesAreBounded(t *testing.T) {
	calls := 0
	s := scraper(t, Options{MaxSeries: 3, Targets: []Target{{Name: "a", URL: "http://a"}}, Transport: tripper(func(*http.Request) (*http.Response, error) {
		var b strings.Builder
		for i := range 5 {
			fmt.Fprintf(&b, "vllm:n{engine=\"%d\"} 1\n", i+calls*2)
		}
		calls++
		return page(200, b.String()), nil
	})})
	if n := len(s.Once(t.Context())); n != 3 {
		t.Errorf("%d samples at first", n)
	}
	if n := len(s.Once(t.Context())); n != 1 { // of 2 … 6 only the 2 is known
		t.Errorf("%d samples then", n)
	}
	if st := s.Stats(); st.Series != 3 || st.Dropped != 6 || st.Limit != 3 {
		t.Errorf("stats %+v", st)
	}
}

// What emit fails of ends the scraping.
func TestRunEmitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		s := scraper(t, Options{Targets: []Target{{Name: "a", URL: "http://a"}, {Name: "b", URL: "http://b"}},
			Transport: tripper(func(*http.Request) (*http.Response, error) { return page(200, "vllm:n 1\n"), nil })})
		calls := 0
		if err := s.Run(t.Context(), time.Now(), func([]Sample) error { calls++; return full }); err != full || calls != 1 {
			t.Errorf("%d calls, error %v", calls, err)
		}
	})
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"no target", Options{}},
		{"a password", Options{Targets: []Target{{Name: "a", URL: "http://u:SECRET@h"}}}},
		{"no URL", Options{Targets: []Target{{Name: "a", URL: "SECRET"}}}},
		{"no name", Options{Targets: []Target{{URL: "http://a"}}}},
		{"an address as a name", Options{Targets: []Target{{Name: "http://SECRET", URL: "http://a"}}}},
		{"one name twice", Options{Targets: []Target{{Name: "a", URL: "http://a"}, {Name: "a", URL: "http://b"}}}},
		{"no interval", Options{Targets: []Target{{Name: "a", URL: "http://a"}}, Every: time.Microsecond}},
	} {
		if _, err := New(c.o); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
	s := scraper(t, Options{Targets: []Target{{Name: "a", URL: "http://h:9400/"}, {Name: "b", URL: "http://h/x?y=1"}}})
	if a, b := s.targets[0].url.String(), s.targets[1].url.String(); a != "http://h:9400/metrics" || b != "http://h/x?y=1" {
		t.Errorf("pages %s and %s", a, b)
	}
}

// A page without a metric that is kept says some of those that it has, those of the
// server first; one that has kept metrics at any time says nothing.
func TestPageWithoutKeptMetrics(t *testing.T) {
	body := "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1\n# TYPE go_goroutines gauge\ngo_goroutines 3\n" +
		"# TYPE tgi_queue_size gauge\ntgi_queue_size 2\n# TYPE bad\x1bname gauge\n# TYPE tgi_request_count counter\ntgi_request_count{user=\"SECRET\"} 2\n"
	s := scraper(t, Options{Targets: []Target{{Name: "a", URL: "http://a"}}, Transport: tripper(func(*http.Request) (*http.Response, error) { return page(200, body), nil })})
	s.Once(t.Context())
	if got := s.Stats().Targets[0]; got.Unkept() != "no metric that is kept, but others such as tgi_queue_size, tgi_request_count, process_cpu_seconds_total, go_goroutines" {
		t.Errorf("%+v: %s", got, got.Unkept())
	}
	body = `[{"iter": 1}]`
	s.Once(t.Context())
	if got := s.Stats().Targets[0]; got.Empty != 2 || got.Unkept() != "no metrics in Prometheus' text form" {
		t.Errorf("%+v: %s", got, got.Unkept())
	}
	body = "vllm:n 1\n"
	s.Once(t.Context())
	if got := s.Stats().Targets[0]; got.Scrapes != 3 || got.Unkept() != "" {
		t.Errorf("%+v", got)
	}
}
