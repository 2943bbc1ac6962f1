package bench

import (
	"strings"
	"testing"
	"time"

	"reprise/replay/report"
)

func TestBuiltInSuites(t *testing.T) {
	names := Suites()
	if got := strings.Join(names, " "); got != "concurrency-sweep load-test matrix offline server serving single-stream soak" {
		t.Errorf("%s", got)
	}
	for _, name := range names {
		text, _ := SuiteText(name)
		s, err := ParseSuite(name+".yaml", text)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name || s.About == "" || s.Digest == "" || s.Seed != 42 {
			t.Errorf("%s: %+v", name, s)
		}
		for _, row := range s.Rows {
			if row.Hypothesis == nil || row.Hypothesis.String() == "" || row.Repeats != 1 || row.Warmup == 0 {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
}

const wholeSuite = `# what a suite may have
name: mine
about: a suite
seed: 7
repeats: 3
primary: p95_ttft
rows:
  - name: one
    workload: chat
    load: poisson:6
    requests: 100
    input: constant:10
    output: uniform:1..20
    warmup: 5
    settle: 10s
    cooldown: 3
    cache: cold
    duration: 90s
    timeout: 2m
    contract:
      clauses:
        - p95 ttft <= 1s
  - name: two
    hypothesis: {says: slower, metric: p95_ttft, moves: up, against: one, by: 10%}
    workload:
      # of its own
      requests: 10
      arrivals: burst

      lengths:
        input: constant:5
        output: constant:5
    load: concurrency:8,ramp-up=30s
    repeats: 1
  - {name: three, workload: {requests: 1, arrivals: burst}, load: sequential}
  - {name: four, workload: w.parquet, load: "recorded,speed=2"}
`

func TestParseSuite(t *testing.T) {
	s, err := ParseSuite("dir/s.yaml", []byte(wholeSuite))
	if err != nil {
		t.Fatal(err)
	}
	one := s.Rows[0]
	if s.Seed != 7 || len(s.Rows) != 4 || one.Requests != 100 || one.Input != "constant:10" || one.Warmup != 5 || one.Settle != "10s" || one.Cooldown != "3" ||
		one.Cache != "cold" || one.Duration != 90*time.Second || one.Timeout != 2*time.Minute || one.Repeats != 3 || one.Load != (Load{Rate: "poisson:6"}) ||
		one.Contract == nil || len(one.Contract.Clauses) != 1 || one.Primary.String() != "p95_ttft" || one.Workload.Name != "chat" {
		t.Errorf("%+v", one)
	}
	two := s.Rows[1]
	if h := two.Hypothesis; two.Load != (Load{Concurrency: 8, RampUp: 30 * time.Second}) || h.String() != "slower: p95_ttft is above that of one, by 10 % or more" || two.Repeats != 1 || two.Cache != "salted" {
		t.Errorf("%+v, %s", two, h)
	}
	// A specification keeps its lines and columns.
	lines := strings.Split(two.Workload.Spec, "\n")
	whole := strings.Split(wholeSuite, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) != "" && line != whole[i] {
			t.Errorf("line %d is %q, in the suite %q", i+1, line, whole[i])
		}
	}
	if !strings.HasSuffix(strings.TrimSpace(two.Workload.Spec), "output: constant:5") || !strings.Contains(two.Workload.Spec, "requests: 10") {
		t.Errorf("%q", two.Workload.Spec)
	}
	if spec := s.Rows[2].Workload.Spec; strings.Count(spec, "\n") < 34 || !strings.Contains(spec, "{requests: 1, arrivals: burst}") {
		t.Errorf("%q", spec)
	}
	if s.Rows[3].Workload.File != "dir/w.parquet" || s.Rows[3].Load.Speed != 2 {
		t.Errorf("%+v", s.Rows[3])
	}
}

// Numbers are taken as people type them.
func TestParseSuiteNumbers(t *testing.T) {
	s, err := ParseSuite("s.yaml", []byte("rows:\n  - {name: a, workload: chat, requests: 10k, input: 1k, output: 16, duration: 5 min, timeout: 90, settle: 1k, load: 300/min}\n"+
		"  - {name: b, workload: chat, load: 'recorded,speed=2x'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := s.Rows[0]
	if a.Requests != 10_000 || a.Input != "1k" || a.Output != "16" || a.Duration != 5*time.Minute || a.Timeout != 90*time.Second || a.Settle != "1k" ||
		a.Load.Rate != "poisson:5" || s.Rows[1].Load.Speed != 2 {
		t.Errorf("%+v", s.Rows)
	}
}

func TestParseSuiteFaults(t *testing.T) {
	const row = "rows:\n  - name: a\n    workload: chat\n    "
	for text, want := range map[string]string{
		"":                          "s.yaml: it is empty",
		"name: x":                   "s.yaml:1:1: the suite has no rows",
		"rows: 3":                   "s.yaml:1:7: rows: want a list",
		"rows: []":                  "s.yaml:1:7: rows: want a list",
		"rows:\n  - workload: chat": "the row has no name",
		"rows:\n  - name: a":        "the row has no workload",
		"rows:\n  - name: a/b":      "s.yaml:2:11: name: want at most 64 letters",
		row + "colour: red":         `s.yaml:4:5: unknown key "colour"`,
		row + "load: fast":          "s.yaml:4:11: load: \"",
		row + "load: concurrency:0": "s.yaml:4:11: load: \"",
		row + "requests: 1.5":       "s.yaml:4:15: requests: want a whole number from 0 to",
		row + "requests: -1":        "s.yaml:4:15: requests: want a whole number from 0 to",
		row + "repeats: 0":          "s.yaml:4:14: repeats: want a whole number from 1 to 999",
		row + "duration: soon":      "s.yaml:4:15: duration: \"soon\" is not a duration: write 60s, 5min or 1h30m",
		row + "settle: soon":        "s.yaml:4:13: settle: \"soon\" is not a number of requests or a duration: write 100, 10k or 30s",
		row + "cache: hot":          "s.yaml:4:12: cache: want one of salted, cold, warm, as-is",
		row + "primary: p97_ttft":   "s.yaml:4:14: primary: p97_ttft cannot be told",
		row + "input: many":         "s.yaml:4:12: input:",
		row + "input:":              "s.yaml:4:5: input has no value",
		row + "contract: {clauses: [p95 ttfx <= 1s]}":                          "s.yaml:4:",
		row + "contract:\n      clauses:\n        - p95 ttft <= 1":             "s.yaml:6:",
		row + "hypothesis: {moves: up}":                                        "names a metric",
		row + "hypothesis: {metric: p50_ttft, moves: up, against: b}":          "s.yaml:4:17: against: there is no row",
		row + "hypothesis: {metric: p50_ttft, moves: sideways, against: a}":    "moves: want up",
		row + "hypothesis: {metric: p50_ttft, against: a}":                     "say how the metric should move",
		row + "hypothesis: {metric: p50_ttft, moves: up, against: a, by: ten}": "want a percentage",
		row + "\n  - name: a\n    workload: chat":                              "s.yaml:5:11: a row before it has that name",
		"rows:\n  - {name: a, workload: trace, requests: 5}":                   "a trace is sent as it is",
		"hypothesis: x\nrows: []": "s.yaml:1:13: a hypothesis " +
			"belongs to a row",
		row + "contract: none.yaml": "s.yaml:4:15: contract: open none.yaml: ",
		"a: b\n---\nc: d":           "more than one document",
		strings.Repeat("[", 40):     "more than 32 nested lists",
	} {
		if _, err := ParseSuite("s.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What is read as a load prints as one that is read the same.
func FuzzParseLoad(f *testing.F) {
	for _, s := range []string{"recorded", "recorded,speed=1", "recorded,speed=2", "sequential", "burst",
		"concurrency:8,ramp-up=30s", "poisson:6", "gamma:5,cv=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLoad(s)
		if err != nil {
			return
		}
		if again, err := ParseLoad(l.String()); err != nil || again != l {
			t.Errorf("%q is %+v, which prints as %q and is %+v (%v)", s, l, l.String(), again, err)
		}
	})
}

func FuzzParseSuite(f *testing.F) {
	f.Add([]byte(wholeSuite))
	for _, name := range Suites() {
		text, _ := SuiteText(name)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSuite("s.yaml", text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, row := range s.Rows {
			if seen[row.Name] || !rowName.MatchString(row.Name) || row.Workload == (WorkloadRef{}) || row.Repeats < 1 {
				t.Errorf("%+v", row)
			}
			seen[row.Name] = true
		}
	})
}

// Every metric has a label and is found in a summary; a percentile that a run is too
// small for is the largest value.
func TestMetrics(t *testing.T) {
	one := 7.0
	stat := report.Stat{Count: 3, Mean: &one, Max: &one, P50: &one}
	s := report.Summary{}
	s.Latency.FromDue.TTFT, s.Throughput.RequestsPerS = stat, &one
	s.Servers = &report.Servers{KVUsage: &report.Level{Mean: 0.1, Max: 0.5, Scrapes: 100}}
	for name, want := range map[string]value{"p50_ttft": {7, false}, "p99_ttft": {7, true}, "requests_per_s": {7, false}, "max_kv_cache_use": {0.5, false}} {
		m, err := parseMetric(name)
		got, ok := valueOf(m, &s)
		if err != nil || !ok || got != want || heading(m) == "" {
			t.Errorf("%s: %v, %v, %v", name, got, ok, err)
		}
	}
	if m, err := parseMetric("p99.9_itl_token"); err != nil || heading(m) != "Token ITL p99.9 (ms)" {
		t.Errorf("%s, %v", m, err)
	}
	for _, bad := range []string{"", "ttft", "p97_ttft", "p50_delay", "p50"} {
		if _, err := parseMetric(bad); err == nil {
			t.Errorf("%q is a metric", bad)
		}
	}
}
