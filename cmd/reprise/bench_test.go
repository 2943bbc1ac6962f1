package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
	"reprise/replay/result"
)

// batching are the columns that compare static, continuous and paged batching.
var batching = []string{"--model", "static=preset:rtx5080-llama-3.2-3b,batching=static", "--model",
	"continuous=preset:rtx5080-llama-3.2-3b",
	"--model", "paged=preset:rtx5080-llama-3.2-3b-paged", "--quiet"}

func suiteResult(t *testing.T, args ...string) (r bench.SuiteResult) {
	t.Helper()
	out, errs, code := reprise(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: exit code %d, %v\n%s", args, code, err, errs)
	}
	return r
}

// figureOf is a metric of a row and a model.
func figureOf(t *testing.T, r *bench.SuiteResult, row, model, metric string) float64 {
	t.Helper()
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			if m := &r.Rows[i].Models[j]; r.Rows[i].Row == row && m.Model == model && m.Figure(metric) != nil {
				return m.Figure(metric).V
			}
		}
	}
	t.Fatalf("no %s of %s, %s", metric, row, model)
	return 0
}

// The published comparison of static, continuous and paged batching has these signs:
// with continuous batching, throughput rises, the first token comes sooner, and the
// tail of the gaps between tokens grows, since prefills hold up what decodes; with
// room for 24 in place of 8, more of all three. The costs are fitted to all five workloads at
// once, and have less of the rise in throughput than was published.
func TestBenchServingSigns(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	r := suiteResult(t, append([]string{"bench", "serving", "--details"}, batching...)...)
	if len(r.Rows) != 5 || !slices.Equal(r.Models, []string{"static", "continuous", "paged"}) {
		t.Fatalf("%d rows of %v", len(r.Rows), r.Models)
	}
	for _, want := range []struct {
		row, from, to, metric string
		least, most           float64 // of the ratio
		published             float64
	}{
		{"continuous_batching", "static", "continuous", "output_tokens_per_s", 1.01, 1.5, 1.25},
		{"continuous_batching", "static", "continuous", "p50_ttft", 0.2, 0.7, 0.45},
		{"continuous_batching", "static", "continuous", "p99_ttft", 0.2, 0.9, 0.45},
		{"continuous_batching", "static", "continuous", "p50_itl", 1.02, 1.6, 1.24},
		{"continuous_batching", "static", "continuous", "p99_itl", 1.8, 5, 3.05},
		{"chunked_prefill", "static", "continuous", "output_tokens_per_s", 1.02, 1.5, 1.31},
		{"chunked_prefill", "static", "continuous", "p99_itl", 1.8, 6, 3.9},
		{"paged_attention", "static", "paged", "output_tokens_per_s", 1.05, 1.7, 1.32},
		{"paged_attention", "static", "paged", "p50_ttft", 0.15, 0.5, 0.34},
		{"paged_attention", "static", "paged", "p50_itl", 1.5, 4, 2.6},
		{"paged_attention", "static", "paged", "p99_itl", 1.5, 5, 4.3},
	} {
		ratio := figureOf(t, &r, want.row, want.to, want.metric) / figureOf(t, &r, want.row, want.from, want.metric)
		if ratio < want.least || ratio > want.most {
			t.Errorf("%s: %s of %s is %.2f of that of %s, published %.2f", want.row, want.metric, want.to, ratio,
				want.from, want.published)
		}
	}
	// The floor has no queue: it is the same for all, within what was published of it.
	if v := figureOf(t, &r, "baseline", "static", "output_tokens_per_s"); v < 80 || v > 95 {
		t.Errorf("baseline: %.1f tokens/s, published 88.5", v)
	}
	text, _, code := reprise(t, append([]string{"bench", "serving", "--details"}, batching...)...)
	if code != cli.Good {
		t.Errorf("exit code %d", code)
	}
	expect(t, text, "workload", "tokens/s", "against static",
		"continuous: confirmed: ITL p99 (ms)", "48 of 48", "* the largest value")
	markdown, _, _ := reprise(t, append([]string{"bench", "serving", "--format", "markdown"}, batching...)...)
	expect(t, markdown, "# Suite serving", "| workload | tok/s |",
		"## paged_attention: single burst, moderate lengths (burst)", "- paged: confirmed")
}

// The page of a suite has its tables, what became of each hypothesis and where it was
// made, and leads to the page of every run.
func TestBenchPage(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	args := append([]string{"bench", "serving", "--row", "baseline", "--row", "continuous_batching", "--repeats",
		"2", "-o", "out"}, batching...)
	must(t, args...)
	index := string(read(t, "out/index.html"))
	for _, want := range []string{"<h1>Suite serving</h1>", "every one is trustworthy", "TTFT p95 (ms) ←",
		"against static", "Hypothesis: requests that wait",
		"continuous: confirmed: TTFT p95", "Where it was made", "batching: static", "max num seqs: 24"} {
		if !strings.Contains(index, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	links := regexp.MustCompile(`<a href="([^"#]+)">`).FindAllStringSubmatch(index, -1)
	if len(links) != 12 {
		t.Errorf("%d links: %v", len(links), links)
	}
	for _, link := range links {
		if html := string(read(t, filepath.Join("out", link[1]))); !strings.Contains(html, "Simulation report") {
			t.Errorf("%s is no report", link[1])
		}
	}
	// A page that is gone is not led to, and what is wrong stands on top.
	if err := os.Remove("out/paged/baseline/repeat-2/report.html"); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string]string{"c.yaml": "name: fast\nclauses: [p50 ttft <= 1ms]\n"})
	if _, errs, code := reprise(t, append(args, "--contract", "c.yaml")...); code != cli.Check {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	index = string(read(t, "out/index.html"))
	if strings.Contains(index, "paged/baseline/repeat-2") || !strings.Contains(index, "A contract is not met") {
		t.Error("the page is not that of the last command")
	}
}

// A suite that is stopped goes on where it was, and comes to the same.
func TestBenchResumes(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	args := append([]string{"bench", "serving", "--json", "-o", "out"},
		batching[:len(batching)-1]...) // said aloud: without --quiet
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := &watch{want: "continuous, paged_attention: burst", then: stop}
	if code := run(ctx, args, strings.NewReader(""), io.Discard, said); code != cli.Failure {
		t.Fatalf("exit code %d\n%s", code, said.buf.String())
	}
	expect(t, said.buf.String(), "interrupted: run the same command again")
	// What a run that was killed leaves behind does not stop the next.
	if err := os.WriteFile("out/continuous/paged_attention/results.parquet.journal", []byte("half a run"),
		0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := reprise(t, args...)
	if n := strings.Count(errs, "complete, and not run again"); code != cli.Good || n < 6 || n > 8 {
		t.Errorf("exit code %d, %d runs were complete\n%s", code, n, errs)
	}
	whole := append([]string{"bench", "serving", "--json", "-o", "whole"}, batching...)
	if _, errs, _ := reprise(t, append(whole, "--row", "baseline", "-o", "few")...); errs != "" {
		t.Errorf("--quiet says %q", errs)
	}
	if want := must(t, whole...); out != want {
		t.Errorf("another result than without an interruption:\n%s", out)
	}
	// What is complete is the same suite's, against the same targets.
	for want, more := range map[string][]string{"other settings, see experiment.json": {"--row", "baseline"},
		"another trial": {"--set", "block-size=32"}} {
		if _, errs, code := reprise(t, append(slices.Clone(args), more...)...); code != cli.Failure ||
			!strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d\n%s", more, code, errs)
		}
	}
	if err := os.WriteFile("mine.yaml", []byte("rows: [{name: baseline, workload: baseline}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := reprise(t, "bench", "mine.yaml", "-o", "out", "--preset",
		"l4-qwen2.5-0.5b"); code != cli.Failure || !strings.Contains(errs, "choose another directory") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

func TestBenchBaseline(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("contract.yaml", []byte("clauses: [error_rate <= 1%]"), 0o600); err != nil {
		t.Fatal(err)
	}
	suite := "contract: contract.yaml\nrows: [{name: paged_attention, workload: paged_attention, load: burst, primary: p90_ttft}]"
	if err := os.WriteFile("s.yaml", []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "s.yaml", "--preset", "t4-llama-3.2-3b", "--quiet"}
	must(t, append(args, "-o", "a")...)
	must(t, append(args, "-o", "b", "--max-num-seqs", "16")...)
	r := suiteResult(t, append(args, "-o", "b", "--max-num-seqs", "16", "--baseline", "a")...)
	changes := r.Rows[0].Models[0].Changes
	i := slices.IndexFunc(changes, func(c bench.Change) bool { return c.Metric == "output_tokens_per_s" })
	if i < 0 || changes[i].Change < 0.1 || changes[i].Is != figureOf(t, &r, "paged_attention", "t4-llama-3.2-3b",
		"output_tokens_per_s") {
		t.Errorf("%+v", changes)
	}
	text := must(t, append(args, "-o", "c", "--baseline", "a", "--details")...)
	expect(t, text, "TTFT p90 (ms) ← 38,400 38,400 +0.0 %", "the contract is met", "baseline change", "+0.0 %",
		"reprise compare decides")
	// From 16 places in the batch back to 8 is a regression, in text, as Markdown and as JSON.
	for format, want := range map[string]string{"text": "REGRESSION: TTFT p90 (ms) is 38,400, in the baseline",
		"markdown": "\n- Problem: t4-llama-3.2-3b: REGRESSION: TTFT p90 (ms) is 38,400", "json": `"regression": {`} {
		out, errs, code := reprise(t, append(args, "-o", "c", "--baseline", "b", "--max-regression", "10%",
			"--format", format)...)
		if code != cli.Check || !strings.Contains(strings.Join(strings.Fields(out), " "),
			strings.TrimSpace(want)) || errs != "reprise: a regression: a row is worse than the baseline by more than --max-regression; the tables say by how much\n" {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
	}
	expect(t, must(t, append(args, "-o", "b", "--max-num-seqs", "16", "--baseline", "a", "--max-regression", "10%",
		"--details")...), "no regression: TTFT p90 (ms) is")
	if _, errs, code := reprise(t, append(args, "-o", "d", "--max-regression", "10%")...); code != cli.Usage ||
		!strings.HasPrefix(errs, "reprise: --max-regression needs --baseline DIRECTORY, an earlier run of the suite\n") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if _, errs, code := reprise(t, append(args, "-o", "d", "--baseline", "none")...); code != cli.Failure ||
		!strings.Contains(errs, "--baseline") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if _, err := os.Stat("d"); err == nil {
		t.Error("runs were made for a baseline that there is not")
	}
}

// A contract that does not hold is exit code 3, a run that is not to be trusted 4.
func TestBenchExitCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	suite := `rows:
  - name: slow
    workload: baseline
    load: sequential
    requests: 30
    contract: {name: fast, clauses: [p50 ttft <= 1ms]}
  - name: refused
    workload: {requests: 20, arrivals: burst, lengths: {input: "constant:20", output: "constant:20"}}
    timeout: 800ms
`
	if err := os.WriteFile("s.yaml", []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "s.yaml", "--preset", "rtx5080-llama-3.2-3b", "--quiet", "--details"}
	out, _, code := reprise(t, append(args, "--row", "slow", "-o", "slow")...)
	if code != cli.Check {
		t.Errorf("exit code %d", code)
	}
	expect(t, out, `the contract "fast" is not met: p50 ttft`)
	out, _, code = reprise(t, append(args, "-o", "both")...)
	if code != cli.Untrusted {
		t.Errorf("exit code %d", code)
	}
	expect(t, out, "NOT TRUSTWORTHY", "12 timeout, 60 % of the requests", "8 of 20")
}

// Servers are scraped where their page has metrics, by bench and by sweep; not where it
// has none, nor when that is not wanted.
func TestSuitesScrape(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	url := simulate(t)
	var asked atomic.Int32
	to, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			asked.Add(1)
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer bare.Close()
	writeFiles(t, map[string]string{"s.yaml": "rows: [{name: one, workload: baseline, requests: 2, output: \"constant:2\", load: sequential}]"})
	must(t, "synth", "concurrency_sweep", "-n", "5", "-o", "w.parquet")
	for name, c := range map[string]struct {
		args    []string
		scraped bool
	}{
		"answers":  {[]string{"--url", url}, true},
		"unwanted": {[]string{"--url", url, "--scrape", "none"}, false},
		"bare":     {[]string{"--url", bare.URL}, false},
	} {
		limits := append(c.args, "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1",
			"--max-lag-p50", "1h", "--max-lag-drift", "1h", "--quiet", "-o")
		reprise(t, append(append([]string{"bench", "s.yaml"}, limits...), name)...)
		reprise(t, append(append([]string{"sweep", "w.parquet", "--concurrencies", "1", "--level-duration", "100ms",
			"--warmup", "1", "--no-confirm"}, limits...), name+"-sweep")...)
		for _, results := range []string{filepath.Join(name, "endpoint", "one", "results.parquet"),
			filepath.Join(name+"-sweep", "level-concurrency-1", "results.parquet")} {
			read(t, results)
			if _, err := os.Stat(result.MetricsName(results)); (err == nil) != c.scraped {
				t.Errorf("%s: scraped %v, want %v", results, err == nil, c.scraped)
			}
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("the server without metrics was asked for them %d times, want twice a run: for what to measure, and for what it states", n)
	}
	if _, errs, code := reprise(t, "replay", "w.parquet", "--url", url, "-o", "r.parquet", "--scrape", "none",
		"--scrape", "auto"); code != cli.Usage || !strings.Contains(errs, "--scrape none cannot be used with another") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// Engines are started one after another, for each value of what varies.
func TestBenchServeCmd(t *testing.T) {
	long(t)
	t.Setenv(asCommand, "1")
	t.Chdir(t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	suite := "rows:\n  - {name: one, workload: baseline, requests: 4, output: \"constant:4\", load: sequential}\n  - {name: two, workload: baseline, requests: 4, output: \"constant:4\", load: burst}\n"
	if err := os.WriteFile("s.yaml", []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	engine := bench.QuoteWords([]string{self, "serve", "--listen", "127.0.0.1:{port}", "--costs", "step={itl}"})
	out, errs, _ := reprise(t, "bench", "s.yaml", "--serve-cmd", engine, "--vary", "itl=1ms,2ms", "-o", "out",
		"--details")
	expect(t, out, "itl-1ms", "itl-2ms", "against itl-1ms")
	if strings.Count(errs, "engine: started") != 2 || strings.Count(errs, "engine: stopped") != 2 ||
		strings.Index(errs, "itl=1ms: engine: stopped") > strings.Index(errs, "itl=2ms: engine: started") {
		t.Errorf("%s", errs)
	}
	log, err := os.ReadFile("out/itl-2ms/engine.log")
	if err != nil || !strings.Contains(string(log), "serving") {
		t.Errorf("%q, %v", log, err)
	}
	// Nothing is started for what is complete.
	_, errs, _ = reprise(t, "bench", "s.yaml", "--serve-cmd", engine, "--vary", "itl=1ms,2ms", "-o", "out")
	if strings.Contains(errs, "engine: started") {
		t.Errorf("%s", errs)
	}
}

func TestBenchUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"bad.yaml":  "rows:\n  - name: a\n    workload: chat\n    load: fast\n",
		"none.yaml": "rows: [{name: a, workload: nothing}]",
		"spec.yaml": "rows:\n  - name: a\n    workload:\n      requests: 3\n      arrivals: burst\n      lengths:\n        input: many\n        output: constant:3\n",
		"warm.yaml": "rows: [{name: a, workload: chat, cache: warm}]",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const preset = "--preset l4-qwen2.5-0.5b"
	for args, want := range map[string]string{
		"nothing " + preset:                                                         "there is no suite nothing: name a YAML file",
		"bad.yaml " + preset:                                                        "bad.yaml:4:11: load: \"fast\" is not a load",
		"none.yaml " + preset:                                                       "there is no workload nothing",
		"spec.yaml " + preset:                                                       "spec.yaml:7:9: lengths.input:",
		"warm.yaml " + preset:                                                       "begins each run with an empty one",
		"serving " + preset + " --row x":                                            "no row x",
		"serving " + preset + " --repeats 0":                                        "--repeats: want 1",
		"serving " + preset + " --load fast":                                        `--load: "fast" is not a load: write recorded, concurrency:8 or 300/min`,
		"serving " + preset + " --format x":                                         "--format: want",
		"serving " + preset + " --set hardware=8xH100":                              "say what serves",
		"serving " + preset + " --slo x":                                            "--slo:",
		"serving " + preset + " --model a=preset:t4":                                "no --url, --preset or --costs",
		"serving --model a=preset:none":                                             "unknown preset: want one of l4-",
		"serving --model a=preset:t4-llama-3.2-3b,colour=x":                         "no such flag",
		"serving --model a/b=preset:t4-llama-3.2-3b":                                "cannot be the name of a model",
		"serving --model a=preset:t4-llama-3.2-3b --model a=preset:t4-llama-3.2-3b": "two models are named a",
		"serving --serve-cmd e{port} --max-num-seqs 3":                              "--max-num-seqs is of a simulated one",
		"serving --serve-cmd e":                                                     "has no {port}",
		"serving --serve-cmd e{port} --model a=http://h":                            "no --model NAME=…",
		"serving " + preset + " --serve-cmd e{port}":                                "--serve-cmd starts the engine",
		"matrix " + preset + " --row f":                                             "replays a trace, but none is given",
		"--show nothing":                                                            "there is no such suite",
	} {
		if _, errs, code := reprise(t, append([]string{"bench"}, strings.Fields(args)...)...); code != cli.Usage ||
			!strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, want %q in\n%s", args, code, want, errs)
		}
	}
	if left, _ := filepath.Glob("results"); left != nil {
		t.Error("a directory was made")
	}
	text, _ := bench.SuiteText("serving")
	if out := must(t, "bench", "--show", "serving"); out != string(text) {
		t.Errorf("%s", out)
	}
	if must(t, "bench", "list") != must(t, "bench", "--list") {
		t.Error("list is not --list")
	}
	expect(t, must(t, "bench", "--list", "--details"), "serving Five workloads",
		"Workloads: baseline, continuous_batching", "single-stream One request at a time")
	expect(t, must(t, "bench", "matrix", "--preset", "l4-qwen2.5-0.5b", "--dry-run", "--details"),
		"e-warm concurrency:16 matrix-e results/l4-qwen2.5-0.5b/e-warm")

	// Of a server a dry run says how long it takes; workloads that it makes for that are gone.
	for load, want := range map[string]string{"poisson:6": "estimate: at most 5 runs, about 32s: 31s of sending",
		"burst": "how long they send is up to the server"} {
		_, errs, code := reprise(t, "bench", "serving", "--url", "http://127.0.0.1:1", "--load", load, "--dry-run")
		if left, _ := filepath.Glob("results"); code != 0 || left != nil || !strings.Contains(errs, want) {
			t.Errorf("--load %s: exit code %d, left %q, want %q in\n%s", load, code, left, want, errs)
		}
	}
}

// What the page shows is read as it stands.
func TestBenchDocs(t *testing.T) {
	long(t)
	page, err := os.ReadFile("../../docs/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	contract := "clauses: [p95 ttft <= 1s]"
	if err := os.WriteFile("chat.yaml", []byte(contract), 0o600); err != nil {
		t.Fatal(err)
	}
	suites := 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if !strings.Contains(text, "\nrows:") {
			continue
		}
		suites++
		if err := os.WriteFile("page.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, "bench", "page.yaml", "--preset", "document-h100-llama-70b", "--dry-run")
	}
	if suites != 3 {
		t.Errorf("%d suites on the page", suites)
	}
	// The gate, where there is no GPU.
	out := must(t, "bench", "page.yaml", "--preset", "l4-qwen2.5-0.5b", "--quiet", "--format", "markdown")
	expect(t, out, `the contract "chat in production" is met`)
}
