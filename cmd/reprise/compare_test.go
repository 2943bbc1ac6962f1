package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/compare"
	"reprise/replay/result"
	"reprise/trace"
)

// labArgs compares two engines in virtual time.
func labArgs(more ...string) []string {
	return append([]string{"compare", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "--rate", "poisson:20", "--primary", "p99_ttft", "-o", "rounds", "--json"}, more...)
}

func readComparison(t *testing.T, doc string) (c compare.Comparison) {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), &c); err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return c
}

func TestCompareRounds(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "150", "-o", "w.parquet")
	slower := []string{"--costs-b", "step=7ms,prefill-token=30us,request=30ms", "--rounds", "8"}
	out, errs, code := reprise(t, labArgs(slower...)...)
	c := readComparison(t, out)
	if v := c.Versus[0]; code != cli.Good || v.Decision != compare.Worse || v.Rounds != 8 || v.Metrics[0].Noise.N != 7 || c.Tier != "public" && c.Tier != "" {
		t.Fatalf("code %d, tier %q: %+v\n%s", code, c.Tier, v.Text, errs)
	}
	// The sides of a round have one seed, and take turns.
	first := map[string]int{}
	for _, line := range strings.Split(errs, "\n") {
		if round, side, ok := strings.Cut(line, ", "); ok && len(side) == 1 && first[round] == 0 {
			first[round] = int(side[0])
		}
	}
	begins := map[int]int{}
	for _, side := range first {
		begins[side]++
	}
	if begins['a'] != 4 || begins['b'] != 4 {
		t.Errorf("the sides began %v\n%s", begins, errs)
	}
	for _, w := range c.Warnings {
		if w.Code == "settings_differ" || w.Code == "workloads_differ" {
			t.Errorf("warning: %s", w.Text)
		}
	}
	if stored := readComparison(t, string(read(t, "rounds/compare.json"))); stored.Versus[0].Text != c.Versus[0].Text {
		t.Errorf("stored: %s", stored.Versus[0].Text)
	}

	// What is there is not made again, unless half of a pair is missing.
	before := modified(t, "rounds/round-03-a/results.parquet")
	if err := os.Remove("rounds/round-05-b/results.parquet"); err != nil {
		t.Fatal(err)
	}
	_, errs, _ = reprise(t, labArgs(slower...)...)
	if modified(t, "rounds/round-03-a/results.parquet") != before || strings.Contains(errs, "round 4") ||
		strings.Count(errs, "round 5 of 8, ") != 2 || !strings.Contains(errs, "both are made anew") {
		t.Errorf("resumed:\n%s", errs)
	}
	if _, errs, code := reprise(t, labArgs(append(slower, "--rounds", "12")...)...); code != cli.Usage || !strings.Contains(errs, "rounds was planned with 8 rounds") {
		t.Errorf("more rounds than planned: code %d\n%s", code, errs)
	}
	if _, errs, code := reprise(t, labArgs("--speed", "2", "--rounds", "8")...); code != cli.Usage || !strings.Contains(errs, "other settings, see experiment.json there") {
		t.Errorf("other flags: code %d\n%s", code, errs)
	}

	// The directory is read alone, and gated.
	if out, _, code := reprise(t, "compare", "rounds", "--gate", "--html", "c.html"); code != cli.Check || !strings.HasPrefix(out, "B is slower: TTFT p99 +") || len(read(t, "c.html")) == 0 {
		t.Errorf("gate: code %d\n%s", code, out)
	}
	if _, errs, code := reprise(t, "compare", "rounds", "--gate", "--alpha", "0.001"); code != cli.Usage || !strings.Contains(errs, "needs 11 rounds") {
		t.Errorf("a gate that cannot fail: code %d\n%s", code, errs)
	}
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A gate fails on any latency that users feel, whatever the primary metric is; it passes where
// nothing differs, and where B is the better one.
func TestCompareGateOfLostCache(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "prefix_caching", "-n", "120", "-o", "w.parquet")
	gate := func(dir string, more ...string) (string, int) {
		out, errs, code := reprise(t, append([]string{"compare", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "--rate", "poisson:4", "--set", "noise=speed=2%,drift=1%,late=1ms",
			"--primary", "mean_tpot", "--rounds", "8", "--gate", "-o", dir}, more...)...)
		return out + errs, code
	}
	if out, code := gate("lost", "--set-b", "no-prefix-caching"); code != cli.Check || !strings.Contains(out, "TTFT") || !strings.Contains(out, "gate failed") {
		t.Errorf("prefix caching on against off: code %d\n%s", code, out)
	}
	if out, code := gate("won", "--set-a", "no-prefix-caching"); code != cli.Good {
		t.Errorf("prefix caching off against on: code %d\n%s", code, out)
	}
	for seed := range 5 {
		name := fmt.Sprint(seed)
		out, code := gate("same"+name, "--seed", name)
		if code != cli.Good || !strings.Contains(strings.Join(strings.Fields(out), " "), "would have been found") {
			t.Errorf("nothing differs, seed %d: code %d\n%s", seed, code, out)
		}
	}
}

// A flag of one side is of that side alone; what both are given stays.
func TestCompareSet(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "prefix_caching", "-n", "40", "-o", "w.parquet")
	must(t, labArgs("--set-b", "no-prefix-caching", "--set-b=block-size=32", "--set", "block-size=64", "--rounds", "1", "--loop", "--duration", "10s", "--warmup", "0")...)
	for side, want := range map[string]struct {
		block int
		hits  bool
	}{"a": {64, true}, "b": {32, false}} {
		run, rows := targetResults(t, filepath.Join("rounds", "round-01-"+side, "results.parquet"))
		if len(rows) < 120 || run.ServerBlock != want.block {
			t.Errorf("%s: %d rows, blocks of %d", side, len(rows), run.ServerBlock)
		}
		hits := 0
		for _, r := range rows {
			if r.Cached != nil && *r.Cached > 0 {
				hits++
			}
		}
		if (hits > 0) != want.hits {
			t.Errorf("%s: %d of %d requests found tokens in the cache", side, hits, len(rows))
		}
	}
}

// Two endpoints get the same requests; a run that is not trustworthy gives 4.
func TestCompareEndpoints(t *testing.T) {
	long(t)
	w := targetWorkload(t, 12)
	a, b := targetStart(t, "a", (*httptest.Server).Start), targetStart(t, "b", (*httptest.Server).Start)
	dir := filepath.Join(t.TempDir(), "rounds")
	args := []string{"compare", w, "--url-a", a.URL, "--url-b", b.URL, "-o", dir, "--cache", "cold", "--rounds", "2", "--rest", "0s", "--rate", "constant:100", "--connections", "pooled",
		"--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h", "--max-lag-drift", "1h", "--primary", "p50_ttft", "--json", "--quiet"}
	out, errs, code := reprise(t, args...)
	if c := readComparison(t, out); c.Versus[0].Decision != "undecided" || code != cli.Good && code != cli.Untrusted || (code == cli.Good) != c.Trustworthy() {
		t.Errorf("code %d: %s\n%s", code, c.Versus[0].Text, errs)
	}
	for _, side := range []string{"a", "b"} {
		r, err := result.Open(filepath.Join(dir, "round-02-"+side, "results.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Rows() != 12 || r.Run.Cache == nil || r.Run.Cache.Asked != result.CacheCold || r.Run.Cache.ArrivalSeed != "2" && r.Run.Seed != "2" {
			t.Errorf("%s: %d rows, seed %s, cache %+v", side, r.Rows(), r.Run.Seed, r.Run.Cache)
		}
	}
	if out, _, code := reprise(t, "compare", dir, "--trust", "max-errors=off,max-cpu=0.000001"); code != cli.Untrusted || !strings.Contains(out,
		"runs are not trustworthy") {
		t.Errorf("code %d\n%s", code, out)
	}
}

// The first round is what all others are taken to last, with a pause behind each.
func TestRoundTook(t *testing.T) {
	const want = "estimate: a round took 27s: at most 16 rounds, about 7m12s in all"
	if got := roundTook(27*time.Second, 16); got != want {
		t.Error(got)
	}
}

// Servers that cannot empty their caches get prompts that no run had: in each round the
// same at two servers, and at one server by two names each side its own. They have the
// lengths and the sharing of all others, so that every run finds as much in the cache.
func TestCompareColdWithoutReset(t *testing.T) {
	long(t)
	w := filepath.Join(serverWorkload(t), "w.parquet")
	a, b := newServerSim(t, "/reset_prefix_cache"), newServerSim(t, "/reset_prefix_cache")
	for name, c := range map[string]struct {
		b     string
		seeds int // of four runs
	}{
		"two servers": {b.url, 2},
		"one server":  {strings.Replace(a.url, "127.0.0.1", "localhost", 1) + "/v1", 4},
	} {
		dir := filepath.Join(t.TempDir(), "rounds")
		args := []string{"compare", w, "--url-a", a.url, "--url-b", c.b, "-o", dir, "--cache", "cold", "--rounds", "2", "--rest", "0s", "--concurrency", "1",
			"--max-requests", "40", "--warmup", "0", "--connections", "pooled", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h", "--max-lag-drift", "1h", "--primary", "p50_ttft", "--json"}
		out, errs, code := reprise(t, args...)
		// Of a closed loop the first round says how long the others take.
		expect(t, errs, "estimate: at most 4 runs; how long they send is up to the server, and not known before the first", "rounds begin with A and B in turn, the first with ", "round 1 of 2, ")
		if _, after, ok := strings.Cut(errs, "estimate: a round took "); !ok || !strings.Contains(after, ": at most 2 rounds, about ") || strings.Contains(after, "round 1 of 2") || !strings.Contains(after, "round 2 of 2, ") {
			t.Errorf("%s: %s", name, errs)
		}
		if code != cli.Good && code != cli.Untrusted {
			t.Fatalf("%s: code %d\n%s", name, code, errs)
		}
		seeds, first := map[string]int{}, ""
		for file, arrivals := range map[string]string{"round-01-a": "1", "round-01-b": "1", "round-02-a": "2", "round-02-b": "2"} {
			run, rows := targetResults(t, filepath.Join(dir, file, "results.parquet"))
			if run.Cache.Done != result.CacheNewSeed || run.Cache.ArrivalSeed != arrivals {
				t.Errorf("%s, %s: %+v", name, file, run.Cache)
			}
			seeds[run.Seed]++
			slices.SortFunc(rows, func(x, y result.Result) int { return cmp.Compare(x.RowID, y.RowID) })
			found, lengths := int32(0), ""
			for _, r := range rows {
				found += *r.Cached
				lengths += fmt.Sprint(*r.Input, " of ", *r.Cached, ", ")
			}
			if first == "" {
				first = lengths
			}
			if len(rows) != 40 || found == 0 || lengths != first {
				t.Errorf("%s, %s: tokens and those found in the cache are %s and in another run %s", name, file, lengths, first)
			}
		}
		if len(seeds) != c.seeds || seeds["1"]+seeds["2"] > 0 {
			t.Errorf("%s: seeds %v, want %d", name, seeds, c.seeds)
		}
		compared := readComparison(t, out)
		for _, r := range compared.Runs {
			if seeds[r.Seed] == 0 {
				t.Errorf("%s: the comparison says seed %q of round %d of %s", name, r.Seed, r.Round, r.Arm)
			}
		}
		for _, w := range compared.Warnings {
			if w.Code == "settings_differ" {
				t.Errorf("%s: %s", name, w.Text)
			}
		}
		if _, errs, code := reprise(t, append(args, "-o", dir+"-seed", "--seed", "9")...); code != cli.Failure || !strings.Contains(errs, "--seed forbids other prompts") {
			t.Errorf("%s, with --seed: code %d\n%s", name, code, errs)
		}
	}
}

func TestOneServer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", true},
		{"http://127.0.0.1:8000", "http://localhost:8000", true},
		{"http://[::1]:8000", "http://127.0.0.1:8000", true},
		{"http://10.0.0.1", "http://10.0.0.1:80/v1", true},
		{"http://127.0.0.1:8000", "http://127.0.0.1:8001", false},
		{"http://10.0.0.1:8000", "http://10.0.0.2:8000", false},
		{"unix:///a.sock", "unix:///a.sock:/v1", true},
		{"unix:///a.sock", "unix:///b.sock", false},
		{"unix:///a.sock", "http://127.0.0.1:8000", false},
		{"", "", false}, // engines that take turns
	} {
		if got := oneServer(t.Context(), [2]string{c.a, c.b}); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestCompareUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "20", "-o", "w.parquet")
	for want, args := range map[string]string{
		"one workload":                         "w.parquet x.parquet --preset-a l4-qwen2.5-0.5b --preset-b l4-qwen2.5-0.5b",
		"name both sides":                      "w.parquet --url-a http://localhost:1 -o d",
		"name a directory for the rounds":      "w.parquet --preset l4-qwen2.5-0.5b",
		"cannot be used with presets or costs": "w.parquet --preset l4-qwen2.5-0.5b --url-a http://localhost:1 -o d",
		"unknown flag: --nothing":              "w.parquet --preset l4-qwen2.5-0.5b --set-b nothing -o d",
		"set flags of simulated engines":       "w.parquet --url-a http://localhost:1 --url-b http://localhost:2 --set-b max-num-seqs=8 -o d",
		"until --duration is over":             "w.parquet --preset l4-qwen2.5-0.5b --loop -o d",
		"needs 8 rounds":                       "w.parquet --preset l4-qwen2.5-0.5b --rounds 7 --gate -o d",
		"--rate is about making":               "a b --rate poisson:1",
		"at least two results":                 "w.parquet",
		"in one way":                           "a b --a c",
		"A has 2 runs and B has 1":             "--a a --a b --b c",
		"name two servers":                     "--arm x=a",
		"want NAME=FILE":                       "--arm a",
		"want a change in percent":             "a b --detect 3",
		"--set pilot-rounds: from 3":           "w.parquet --preset l4-qwen2.5-0.5b --set pilot-rounds=0 --detect 3% -o d",
		"write measured, 2% or":                "w.parquet --preset l4-qwen2.5-0.5b --set noise=much -o d",
		"--primary: say which ttft":            "a b --primary ttft",
		"alpha":                                "a b --alpha 0.9",
		"one replay cannot":                    "--production w.parquet r.parquet --gate",
		"takes the results of one":             "--production w.parquet",
	} {
		if _, errs, code := reprise(t, append([]string{"compare"}, strings.Fields(args)...)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, want %q in\n%s", args, code, want, errs)
		}
	}
}

// What a trace recorded is compared with a replay of it.
func TestCompareProduction(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	err := trace.Create("t.parquet", func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		rows := make([]trace.Request, 300)
		for i := range rows {
			rows[i] = trace.Request{ArrivalNS: int64(i) * 1e8, Session: trace.Ptr(int64(i / 3)), InputTokens: int32(50 + i), OutputTokens: trace.Ptr[int32](5), Status: trace.StatusOK,
				TTFTNS: trace.Ptr(int64(20e6)), E2ENS: trace.Ptr(int64(30e6))}
		}
		rows[7].TTFTNS, rows[7].E2ENS = nil, nil
		_, err := w.Write(rows)
		return trace.Meta{Tier: "partner"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	must(t, "simulate", "t.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "r.parquet")
	out, errs, code := reprise(t, "compare", "--production", "t.parquet", "r.parquet", "--json")
	c := readComparison(t, out)
	v := c.Versus[0]
	if code != cli.Good || c.Kind != "production" || v.Decision != "undecided" || c.Tier != "partner" || *v.Metrics[0].A != 20 || *v.Metrics[0].B < 25 {
		t.Errorf("code %d: %s\n%s", code, v.Text, errs)
	}
	if r := v.Metrics[0].Resampled; r == nil || r.Clusters > 100 || r.Clusters < 90 {
		t.Errorf("resampled %+v", r)
	}
	if w := c.Warnings[0]; w.Code != "rows_left_out" || !strings.Contains(w.Text, "299 of 300") {
		t.Errorf("warnings %v", c.Warnings)
	}
	if out := must(t, "compare", "--production", "t.parquet", "r.parquet", "--primary", "mean_e2e"); !strings.Contains(strings.Join(strings.Fields(out), " "), "replayed against recorded, E2E mean +") {
		t.Error(out)
	}
	if _, errs, code := reprise(t, "compare", "--production", "t.parquet", "r.parquet", "--primary", "p99_tpot"); code != cli.Failure || !strings.Contains(errs, "so the primary metric cannot be p99_tpot") {
		t.Errorf("code %d\n%s", code, errs)
	}
}

// Sides are called what the flags say in text, JSON and page; a directory remembers
// what they were called when its rounds were made.
func TestCompareNames(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "60", "-o", "w.parquet")
	args := labArgs("--costs-b", "step=9ms", "--rounds", "6", "--alpha", "0.05", "--name-a", "on", "--name-b", "caching off")
	if c := readComparison(t, must(t, args...)); c.A != "on" || c.Versus[0].B != "caching off" || c.Runs[0].Arm != "on" {
		t.Errorf("%s, %s, %+v", c.A, c.Versus[0].B, c.Runs[0])
	}
	for name, args := range map[string][]string{
		"caching off": {"rounds"},
		"off":         {"rounds", "--name-b", "off"},
		"new":         {"--a", "rounds/round-01-a/results.parquet", "--b", "rounds/round-01-b/results.parquet", "--name-a", "on", "--name-b", "new"},
	} {
		out := must(t, append([]string{"compare", "--alpha", "0.05", "--details", "--html", "c.html"}, args...)...)
		expect(t, out, name+" against on", " on "+name+" change ")
		if html := string(read(t, "c.html")); !strings.Contains(html, name+" against on") || strings.Contains(html, ">B<") {
			t.Errorf("the page does not call B %s", name)
		}
	}
	for want, args := range map[string][]string{
		"both sides are called on":  {"rounds", "--name-b", "on"},
		"names its servers itself":  {"--arm", "x=rounds/round-01-a/results.parquet", "--arm", "y=rounds/round-01-b/results.parquet", "--name-a", "x"},
		"--name-a: want 32 printed": {"rounds", "--name-a", "a\x1b[1m"},
		"--name-b: want 32 printed": {"rounds", "--name-b", strings.Repeat("x", 33)},
	} {
		if _, errs, code := reprise(t, append([]string{"compare"}, args...)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d\n%s", args, code, errs)
		}
	}
}

// Pilot rounds choose the metric and how many rounds there are; noise makes equal engines differ
// without a verdict; a comparison that is decided early stops, and one that was stopped goes on by
// the plan that it has.
func TestComparePlan(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "120", "-o", "w.parquet")
	args := []string{"compare", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "--costs-b", "step=7.5ms,prefill-token=36us,request=36ms", "--rate", "poisson:10", "--set", "noise=speed=4%,drift=1%,late=1ms",
		"--alpha", "0.05", "--detect", "5%", "-o", "rounds", "--json"}
	out, errs, code := reprise(t, args...)
	c := readComparison(t, out)
	v := c.Versus[0]
	if code != cli.Good || v.Decision != compare.Worse || c.Plan == nil || c.Primary != c.Plan.Primary || c.Plan.Pilot != compare.DefaultPilot || c.Plan.Needed != c.Plan.Rounds() || !strings.Contains(errs, "plan: ") {
		t.Fatalf("code %d: %s\n%+v\n%s", code, v.Text, c.Plan, errs)
	}
	if v.Rounds >= c.Plan.Rounds() || v.Rounds != c.Plan.Looks[0] || !strings.Contains(v.Text, fmt.Sprintf("of at most %d", c.Plan.Rounds())) {
		t.Errorf("%d rounds of %d: %s", v.Rounds, c.Plan.Rounds(), v.Text)
	}
	if sd := c.Plan.SD; *sd < 0.01 || *sd > 0.2 {
		t.Errorf("the spread of the pilot rounds is %v, of 4 %% in each run", *sd)
	}
	// The directory is judged by its plan, and a half-made round is made again.
	if again := readComparison(t, must(t, "compare", "rounds", "--json")); again.Versus[0].Text != v.Text || again.Plan == nil {
		t.Errorf("read again: %s", again.Versus[0].Text)
	}
	before := modified(t, "rounds/pilot-02-a/results.parquet")
	if err := os.Remove("rounds/round-02-b/results.parquet"); err != nil {
		t.Fatal(err)
	}
	if again := readComparison(t, must(t, args...)); again.Versus[0].Text != v.Text || modified(t, "rounds/pilot-02-a/results.parquet") != before {
		t.Errorf("gone on: %s, and was %s", again.Versus[0].Text, v.Text)
	}
	if _, errs, code := reprise(t, append(args, "--detect", "2%")...); code != cli.Usage || !strings.Contains(errs, "another change to detect") {
		t.Errorf("code %d\n%s", code, errs)
	}
	writeFiles(t, map[string]string{"rounds/experiment.json": regexp.MustCompile(`"looks": \[[^]]*\]`).ReplaceAllString(string(read(t, "rounds/experiment.json")), `"looks": [0]`)})
	if _, errs, code := reprise(t, "compare", "rounds"); code != cli.Failure || !strings.Contains(errs, "the plan of the rounds cannot be read") {
		t.Errorf("code %d\n%s", code, errs)
	}
}
