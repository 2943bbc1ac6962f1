package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
)

// serverSim is the simulated engine with what real ones have beside it, a version, or without what they may lack.
type serverSim struct {
	url    string
	lacks  string // a path that it does not have
	mu     sync.Mutex
	called []string // beside requests, with the key that came along
}

func newServerSim(t *testing.T, lacks string) *serverSim {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &serverSim{lacks: lacks}
	handler := sim.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/completions") {
			s.mu.Lock()
			s.called = append(s.called, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
			s.mu.Unlock()
		}
		switch r.URL.Path {
		case s.lacks:
			http.NotFound(w, r)
		case "/version":
			fmt.Fprint(w, `{"version":"0.11.0"}`)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *serverSim) calls(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.called {
		if strings.HasPrefix(c, what) {
			n++
		}
	}
	return n
}

// counter reads a counter from the simulator's own page.
func (s *serverSim) counter(t *testing.T, name string) float64 {
	t.Helper()
	resp, err := http.Get(s.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(name + `\{[^}]*\} (\d+)`).FindSubmatch(body)
	if found == nil {
		t.Fatalf("the simulator has no %s", name)
	}
	v, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// serverSummary is the part of the report's JSON that these tests look at.
type serverSummary struct {
	Run struct {
		Note    string
		Seed    string
		Text    string `json:"prompt_text"`
		Version string `json:"server_version"`
		MaxLen  int    `json:"max_model_len"`
		Cache   struct {
			Asked, Done, Call string
			ArrivalSeed       string `json:"arrival_seed"`
			WarmRequests      int64  `json:"warm_requests"`
			WarmFailed        int64  `json:"warm_failed"`
		} `json:"cache_discipline"`
		Server *struct{ Samples int64 }
	}
	Requests struct{ Succeeded int64 }
	Tokens   struct {
		Prompt float64 `json:"prompt_tokens"`
		Output float64 `json:"output_tokens"`
	}
	Cache struct {
		Measured float64 `json:"measured_ratio"`
		Expected float64 `json:"expected_ratio"`
	}
	Servers *struct {
		Hits      float64 `json:"prefix_hit_tokens"`
		Queries   float64 `json:"prefix_query_tokens"`
		Ratio     float64 `json:"prefix_hit_ratio"`
		Prompt    float64 `json:"prompt_tokens"`
		Generated float64 `json:"generated_tokens"`
	}
	Warnings []struct{ Code, Text string }
}

func (s *serverSummary) warns(code string) bool {
	for _, w := range s.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// serverWorkload is a mirrored workload of 200 requests that share prefixes.
func serverWorkload(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(sharingLog(200)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", filepath.Join(dir, "log.jsonl"), "-o", filepath.Join(dir, "t.parquet"))
	must(t, "synth", "--mirror", filepath.Join(dir, "t.parquet"), "-o", filepath.Join(dir, "w.parquet"), "--seed", "3")
	return dir
}

func serverReplay(t *testing.T, dir string, url string, how ...string) serverSummary {
	t.Helper()
	args := append([]string{"replay", filepath.Join(dir, "w.parquet"), "--url", url, "--speed", "8", "-o",
		filepath.Join(dir, "r.parquet"),
		"--json", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--quiet"}, how...)
	var s serverSummary
	if err := json.Unmarshal([]byte(must(t, args...)), &s); err != nil {
		t.Fatal(err)
	}
	if s.Requests.Succeeded != 200 {
		t.Fatalf("%d requests succeeded", s.Requests.Succeeded)
	}
	return s
}

// What is in the metrics file is what the server counted, and what the client did
// of the same requests: hits, lookups and tokens to the last one.
func TestServerMetricsAreTrue(t *testing.T) {
	long(t)
	dir, sim := serverWorkload(t), newServerSim(t, "")
	serverReplay(t, dir, sim.url) // so that the counters do not begin at zero
	before := map[string]float64{}
	names := []string{"vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total", "vllm:generation_tokens_total"}
	for _, n := range names {
		before[n] = sim.counter(t, n)
	}
	s := serverReplay(t, dir, sim.url, "--scrape", "auto", "--set", "scrape-interval=50ms", "--cache", "cold", "--note",
		"a note")
	// Before the first scrape, a text of one token shows the template and one of 64 the
	// tokenizer: 48 of them are in cache since the replay before, all blocks but the last.
	const queries, hits, generated = 1 + 64, 48, 2
	grown := func(n string, asked float64) float64 { return sim.counter(t, n) - before[n] - asked }
	if v := s.Servers; v == nil || v.Hits != grown(names[0], hits) || v.Queries != grown(names[1], queries) ||
		v.Generated != grown(names[2], generated) {
		t.Fatalf("servers %+v; in truth %v, %v and %v", v, grown(names[0], hits), grown(names[1], queries),
			grown(names[2], generated))
	}
	if v := s.Servers; v.Queries != s.Tokens.Prompt || v.Generated != s.Tokens.Output ||
		v.Ratio-s.Cache.Measured > 1e-6 || s.Cache.Measured-v.Ratio > 1e-6 || v.Ratio < 0.2 {
		t.Errorf("servers %+v, the client %+v and %+v", v, s.Tokens, s.Cache)
	}
	r := &s.Run
	if r.Note != "a note" || r.Text != "stable" || r.Version != "0.11.0" || r.MaxLen != 1<<20 || r.Server.Samples == 0 {
		t.Errorf("run %+v", r)
	}
	if r.Cache.Asked != "cold" || r.Cache.Done != "reset" || r.Cache.Call != "/reset_prefix_cache" {
		t.Errorf("cache %+v", r.Cache)
	}

	// The report finds the file, and does without one that is of another run.
	text, _, _ := reprise(t, "report", filepath.Join(dir, "r.parquet"), "--html", filepath.Join(dir, "r.html"),
		"--details")
	if !strings.Contains(text, "Prefix cache hits") || !strings.Contains(text, "a note") ||
		!strings.Contains(text, "emptied") {
		t.Errorf("the report:\n%s", text)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "r.html")); err != nil ||
		!strings.Contains(string(page), "Tokens generated at the servers") {
		t.Errorf("the page lacks a plot of the servers: %v", err)
	}
	if s := serverReplay(t, dir, sim.url); s.Servers != nil {
		t.Errorf("a run that was not measured has metrics: %+v", s.Servers)
	}
}

// The caches hold what --cache says, and the results say what was done.
func TestCacheDiscipline(t *testing.T) {
	long(t)
	dir := serverWorkload(t)
	sim := newServerSim(t, "")
	asIs := []string{"--cache", "as-is", "--trust", "max-extra-hits=off"}
	first := serverReplay(t, dir, sim.url, asIs...)
	same := func(s serverSummary) bool {
		d := s.Cache.Measured - first.Cache.Measured
		return d < 0.005 && d > -0.005
	}
	if first.Run.Cache.Done != "nothing" || first.Run.Cache.Asked != "as-is" ||
		first.warns("cache_held_more_than_was_sent") {
		t.Errorf("the first run: %+v, %+v", first.Run.Cache, first.Warnings)
	}
	// What the first run left makes the second one faster, and it is said.
	if s := serverReplay(t, dir, sim.url, asIs...); s.Cache.Measured < 0.95 || !s.warns("cache_held_more_than_was_sent") {
		t.Errorf("a second run: %+v, %+v", s.Cache, s.Warnings)
	}
	if s := serverReplay(t, dir, sim.url, "--cache", "cold"); !same(s) || s.warns("cache_held_more_than_was_sent") {
		t.Errorf("cold: %+v", s.Cache)
	}
	warm := serverReplay(t, dir, newServerSim(t, "").url, "--cache", "warm")
	if d := warm.Cache.Measured - warm.Cache.Expected; d > 1e-6 || d < -0.005 || warm.Cache.Measured < 0.95 {
		t.Errorf("warm: %+v", warm.Cache)
	}
	if c := warm.Run.Cache; c.Done != "warm-up-pass" || c.WarmRequests != 200 || c.WarmFailed != 0 ||
		warm.warns("cache_held_more_than_was_sent") {
		t.Errorf("warm: %+v", c)
	}

	// Without the call, the prompts are others than ever before; unless they must not be.
	lacking := newServerSim(t, "/reset_prefix_cache")
	serverReplay(t, dir, lacking.url, asIs...)
	seeds := map[string]bool{}
	for range 2 {
		s := serverReplay(t, dir, lacking.url, "--cache", "cold")
		if !same(s) || s.Run.Cache.Done != "new-seed" || s.Run.Cache.ArrivalSeed != "3" {
			t.Errorf("without the call: %+v, %+v", s.Cache, s.Run.Cache)
		}
		seeds[s.Run.Seed] = true
	}
	if len(seeds) != 2 || seeds["3"] {
		t.Errorf("the seeds %v", seeds)
	}
	for _, how := range [][]string{{"--seed", "3"}, {"--set", "reset-cache=/reset_prefix_cache"}} {
		_, errs, code := reprise(t, append([]string{"replay", filepath.Join(dir, "w.parquet"), "--url", lacking.url,
			"-o", filepath.Join(dir, "x.parquet"), "--cache", "cold"}, how...)...)
		if code != cli.Failure || !strings.Contains(errs, "server 1 has no call that empties its cache") {
			t.Errorf("%v: exit code %d, %s", how, code, errs)
		}
	}
}

// Calls go to every server behind a balancer, with the key; a page elsewhere is
// measured without it.
func TestServersBehindBalancer(t *testing.T) {
	long(t)
	dir := serverWorkload(t)
	balancer, a, b, other := newServerSim(t, ""), newServerSim(t, ""), newServerSim(t, ""), newServerSim(t, "")
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serverReplay(t, dir, balancer.url, "--set", "admin-url="+a.url, "--set", "admin-url="+b.url+"/v1", "--cache", "cold",
		"--scrape", "auto",
		"--scrape", "gpu="+other.url, "--set", "scrape-metric=vllm:num_*", "--set", "api-key-file="+key)
	for _, sim := range []*serverSim{a, b} {
		for _, call := range []string{"POST /reset_prefix_cache Bearer SECRET", "GET /version Bearer SECRET",
			"GET /metrics Bearer SECRET"} {
			if sim.calls(call) == 0 {
				t.Errorf("%s was not called", call)
			}
		}
	}
	if balancer.calls("POST") != 0 || balancer.calls("GET /metrics") != 0 {
		t.Errorf("the balancer was called: %q", balancer.called)
	}
	if other.calls("GET /metrics") == 0 || other.calls("GET /metrics Bearer") != 0 {
		t.Errorf("elsewhere: %q", other.called)
	}
	for _, name := range []string{"r.parquet", "r.metrics.parquet"} {
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all := string(decoded(t, file))
		if strings.Contains(all, "SECRET") || strings.Contains(all, strings.TrimPrefix(a.url, "http://")) {
			t.Errorf("%s holds the key or an address", name)
		}
	}
	if s.Servers == nil || s.Servers.Queries != 0 {
		t.Errorf("only gauges were asked for: %+v", s.Servers)
	}
}

// A Prometheus server that answers nothing sensible fails nothing, and is said.
func TestPrometheusThatFails(t *testing.T) {
	long(t)
	dir, sim := serverWorkload(t), newServerSim(t, "")
	s := serverReplay(t, dir, sim.url, "--set", "prometheus="+sim.url, "--scrape", "gone=http://127.0.0.1:1",
		"--set", "scrape-interval=100ms")
	if s.Servers != nil || !s.warns("server_metrics_failed") {
		t.Errorf("%+v, %+v", s.Servers, s.Warnings)
	}
}

// A Prometheus server that has watched the engine gives what a scrape would, under
// the names of the queries, and its clock is taken out.
func TestPrometheusThatWatched(t *testing.T) {
	long(t)
	dir, sim := serverWorkload(t), newServerSim(t, "")
	const ahead = 7200.0 // seconds
	type sample struct{ at, value float64 }
	var mu sync.Mutex
	var kept []sample // by its clock
	done := make(chan struct{})
	var watching sync.WaitGroup
	now := func() float64 { return float64(time.Now().UnixMicro())/1e6 + ahead }
	watching.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			v := sample{now(), sim.counter(t, "vllm:generation_tokens_total")}
			mu.Lock()
			kept = append(kept, v)
			mu.Unlock()
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("query") == "time()" {
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[%f,"%f"]}}`, now(), now())
			return
		}
		mu.Lock()
		defer mu.Unlock()
		var values []string
		from, _ := strconv.ParseFloat(q.Get("start"), 64)
		to, _ := strconv.ParseFloat(q.Get("end"), 64)
		step, _ := strconv.ParseFloat(q.Get("step"), 64)
		for at := from; at <= to; at += step {
			last := -1.0
			for _, k := range kept {
				if k.at <= at {
					last = k.value
				}
			}
			if last >= 0 {
				values = append(values, fmt.Sprintf(`[%.3f,"%.0f"]`, at, last))
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance":"10.0.0.7"},"values":[%s]}]}}`, strings.Join(values, ","))
	}))
	defer prometheus.Close()
	s := serverReplay(t, dir, sim.url, "--set", "prometheus="+prometheus.URL, "--set",
		"prometheus-query=vllm:generation_tokens_total=sum(x)", "--set", "scrape-interval=20ms")
	close(done)
	watching.Wait()
	// Its values are older than the beginning and the end of the run, on a busy machine by
	// much: the tokens of the checks before the run may be among them, but no others.
	all := kept[len(kept)-1].value
	if v := s.Servers; v == nil || v.Generated <= 0 || v.Generated > all || s.warns("server_metrics_failed") {
		t.Errorf("%+v of %v tokens, of %v that the server counted, %+v", v, s.Tokens.Output, all, s.Warnings)
	}
}

func TestServerFlags(t *testing.T) {
	dir := serverWorkload(t)
	for _, how := range [][]string{
		{"--cache", "lukewarm"}, {"--set", "reset-cache=/x"}, {"--cache", "cold", "--set", "reset-cache=x"},
		{"--set", "prometheus-query=a=b"},
		{"--set", "prometheus=http://h", "--set", "prometheus-query=SECRET"}, {"--set", "prometheus=SECRET"},
		{"--scrape", "SECRET"}, {"--scrape", "http://u:SECRET@h"},
		{"--scrape", "a=http://h", "--scrape", "a=http://h"}, {"--set", "scrape-metric=*"},
		{"--scrape", "auto", "--set", "scrape-interval=1us"}, {"--set", "admin-url=SECRET"},
		{"--note", strings.Repeat("x", 5000)},
	} {
		_, errs, code := reprise(t, append([]string{"replay", filepath.Join(dir, "w.parquet"), "--url",
			"http://127.0.0.1:1", "-o", filepath.Join(dir, "x.parquet")}, how...)...)
		if code != cli.Usage || strings.Contains(errs, "SECRET") {
			t.Errorf("%v: exit code %d, %s", how, code, errs)
		}
	}
}
