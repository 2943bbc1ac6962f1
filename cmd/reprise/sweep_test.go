package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/bench"
	"reprise/trace/longtest"
)

// sweepOf runs a sweep of the built-in workload chat, with prompts of 500 and outputs
// of 200 tokens, against an engine in virtual time.
func sweepOf(t *testing.T, want int, args ...string) (r bench.SweepResult) {
	t.Helper()
	out, errs, code := reprise(t, append([]string{"sweep", "chat", "--json", "--quiet"}, args...)...)
	if code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s", args, code, want, errs)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The QPS-latency curve that the preset was fitted to: 500 ms of TTFT p99 are passed
// between 20 and 25 requests per second, a closed loop does not show it, and 100
// requests per second take 5 instances, 40 GPUs, and 48 with headroom.
func TestSweepOf70B(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	const preset, clause = "--preset=document-h100-llama-70b", "--clause=p99 ttft <= 500ms"
	open := sweepOf(t, cli.Good, preset, clause, "--rates=5,20,25", "-o", "s", "--html", "s.html", "--set", "hypothesis=it bends at 20")
	p99 := func(i int) float64 { return *open.Levels[i].TTFTDue.P99 }
	if open.Levels[1].Load != 20 || p99(1) >= 500 || open.Levels[2].Load != 25 || p99(2) <= 500 {
		t.Errorf("p99 is %v ms at %v and %v at %v", p99(1), open.Levels[1].Load, p99(2), open.Levels[2].Load)
	}
	if open.Stopped.Code != "saturated" || open.Knee == nil || open.Knee.Load != 20 || !open.Knee.Found {
		t.Errorf("stopped: %+v, knee: %+v", open.Stopped, open.Knee)
	}
	h := open.Highest
	if h.Load == nil || *h.Load < 20 || *h.Load >= 25 || !h.Sustained {
		t.Errorf("highest: %+v", h)
	}
	bounded := sweepOf(t, cli.Good, preset, clause, "--rates=5,20,25", "--precision=25%", "--set", "level-budget=2000",
		"-o", "b")
	if h := bounded.Highest; h.Low == nil || h.High == nil || *h.Low >= *h.High || *h.Load < .95**h.Low || *h.Load > *h.Low {
		t.Errorf("highest, with bounds: %v of %v to %v", *h.Load, *h.Low, *h.High) // of what was offered at the lower one, so much came out
	}
	closed := sweepOf(t, cli.Good, preset, "--concurrencies=4,32", "--level-duration=5m", "--no-confirm")
	if a, b := *closed.Levels[0].TTFTDue.P50, *closed.Levels[1].TTFTDue.P99; b > 2*a || !closed.Closed {
		t.Errorf("a closed loop goes from %v to %v ms", a, b)
	}
	out, errs, code := reprise(t, "capacity", "s", "--target-rate=100", "--gpus-per-instance=8", "--json")
	var c bench.Capacity
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != cli.Good {
		t.Fatalf("capacity: %v, exit code %d\n%s", err, code, errs)
	}
	if c.Instances != 5 || c.GPUs != 40 || c.GPUsTotal != 48 {
		t.Errorf("capacity: %+v", c)
	}
	out, errs, code = reprise(t, "capacity", "b", "--target-rate=100", "--gpus-per-instance=8", "--json")
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != cli.Good || c.Fewest == nil || c.Most == nil || *c.Fewest > 5 || *c.Most < 5 {
		t.Errorf("capacity with bounds: %v, exit code %d, %+v\n%s", err, code, c, errs)
	}
	if page, err := os.ReadFile("s.html"); err != nil || !strings.Contains(string(page), "it bends at 20") {
		t.Errorf("page: %v", err)
	}
}

// A sweep that was stopped makes the levels that are missing, and comes to the same.
func TestSweepGoesOn(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	args := []string{"--preset=l4-qwen2.5-0.5b", "--level-duration=5s", "--level-requests=0", "--warmup=1s", "--sustain=0s", "-o", "s"}
	first := sweepOf(t, cli.Good, append(args, "--rates=2,4")...)
	kept, gone := filepath.Join("s", "level-rate-2", "results.parquet"), filepath.Join("s", "level-rate-4", "results.parquet")
	before, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	second := sweepOf(t, cli.Good, append(args, "--rates=2,4")...)
	if after, err := os.Stat(kept); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a level that was complete was made again: %v", err)
	}
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(second)
	if string(a) != string(b) {
		t.Errorf("it came to something else:\n%s\n%s", a, b)
	}
	for _, other := range [][]string{{"--max-num-seqs=1"}, {"--seed=9"}, {"--level-duration=6s"}} { // of another engine, seed or trial
		if _, errs, code := reprise(t, append(append([]string{"sweep", "chat", "--rates=2,4"}, args...), other...)...); code != cli.Failure || !strings.Contains(errs, "choose another directory") {
			t.Errorf("%v: exit code %d\n%s", other, code, errs)
		}
	}
}

func TestSweepExitCodes(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	const preset = "--preset=l4-qwen2.5-0.5b --level-duration=2s --warmup=1 "
	const short = preset + "--level-requests=0 --sustain=0s"
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"sweep chat --rates=5 --clause=max~ttft~<=~1ns " + short, cli.Check, "no load meets the contract"},
		{"sweep chat --rates=5 --clause=p99.9~ttft~<=~1h " + short, cli.Untrusted, "longer levels have more requests"},
		{"sweep chat --rates=5,4 " + short, cli.Usage, "ascend"},
		{"sweep chat --rates=5 --concurrencies=1 " + preset, cli.Usage, "--rates and --concurrencies cannot be used together"},
		{"sweep chat --adaptive --rates=5 " + short, cli.Usage, "--adaptive finds"},
		{"sweep chat --set from=5 " + short, cli.Usage, "--set from is where --adaptive begins"},
		{"sweep chat --no-confirm --sustain 9s " + preset, cli.Usage, "--sustain is a longer run"},
		{"sweep chat --rates=5 --no-confirm " + short, cli.Good, ""},
		{"sweep chat --process=gama " + short, cli.Usage, "gama"},
		{"sweep chat --concurrencies=1.5 " + preset, cli.Usage, "whole"},
		{"sweep chat --clause=p99 " + short, cli.Usage, `--clause "p99": no such metric`},
		{"sweep - " + short, cli.Usage, "stdin"},
		{"sweep none.parquet " + short, cli.Failure, "none.parquet"},
		{"capacity chat", cli.Usage, "--target-rate"},
		{"capacity s.json --target-rate=10", cli.Failure, "s.json"},
		{"capacity predict --params=8X --bandwidth=600GB", cli.Usage, "--params"},
		{"capacity predict --params=8B --bandwidth=600GB --efficiency=2", cli.Usage, "efficiency"},
		{"capacity predict . --params=8B --bandwidth=600GB", cli.Usage, "results"},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", " ")
		}
		if _, errs, code := reprise(t, args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d, want %d\n%s", c.args, code, c.code, errs)
		}
	}
}

// What a command was called with is kept, and no secret of it.
func TestCommandLine(t *testing.T) {
	cmd := sweepCommand()
	if err := cmd.ParseFlags([]string{"--url=http://user:pass@host:1/x?key=hidden", "--header=Authorization=hidden", "--extra-body={\"k\":\"hidden\"}", "--clause=p99 ttft <= 1s", "--rates=1,2", "--set", "engine-flags=--api-key hidden"}); err != nil {
		t.Fatal(err)
	}
	if err := flags.Configure(cmd, nil); err != nil {
		t.Fatal(err)
	}
	const want = "sweep w.parquet --clause='p99 ttft <= 1s' --set=engine-flags='--api-key [redacted]' --extra-body=… --header=… --rates=1 --rates=2 --url=http://host:1/x"
	if got := commandLine(cmd, "w.parquet"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A sweep that was made knows the price of its contract; another file may say another
// price, but not other clauses.
func TestCapacityOfASweepTakesItsContract(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	const clauses = "clauses: [max ttft <= 1h, {clause: p50 e2e <= 1h, from: sent, where: input_tokens < 100000}]\n"
	writeFiles(t, map[string]string{
		"c.yaml":      clauses + "gpus: 2\nprice_per_gpu_hour: 2\n",
		"dearer.yaml": "clauses: [{clause: p50 e2e <= 1h, from: sent, where: input_tokens < 100000}, max ttft <= 1h]\nprice_per_gpu_hour: 5\n",
		"due.yaml":    "clauses: [max ttft <= 1h, {clause: p50 e2e <= 1h, where: input_tokens < 100000}]\n",
		"all.yaml":    "clauses: [max ttft <= 1h, {clause: p50 e2e <= 1h, from: sent}]\n",
	})
	must(t, "sweep", "chat", "--preset", "l4-qwen2.5-0.5b", "--rates", "5", "--level-duration", "10s", "--level-requests", "0", "--no-confirm", "--contract", "c.yaml", "-o", "s", "--quiet")
	for flags, want := range map[string]string{
		"":                            "Cost per hour 4 (2 × 2 a GPU-hour",
		"--price-per-gpu-hour=3":      "Cost per hour 6 (2 × 3 a GPU-hour",
		"--contract=c.yaml":           "Cost per hour 4 ",
		"--contract=dearer.yaml":      "Cost per hour 10 (2 × 5 a GPU-hour",
		"--gpus-per-instance=1":       "Cost per hour 2 (1 × 2 a GPU-hour",
		"--watts=1 --price-per-kwh=1": "2 × 2 a GPU-hour, with energy, idle headroom included",
	} {
		args := append([]string{"capacity", "s", "--target-rate", "4", "--headroom", "0"}, strings.Fields(flags)...)
		if out := strings.Join(strings.Fields(must(t, args...)), " "); !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", flags, want, out)
		}
	}
	// Another contract judges the levels anew, and so does one of a sweep that had none; the answer alone
	// cannot be judged again.
	for _, file := range []string{"due.yaml", "all.yaml"} {
		if out := must(t, "capacity", "s", "--target-rate", "5", "--contract", file); !strings.Contains(out, "An instance holds 4.") || !strings.Contains(out, "within max ttft <= ") {
			t.Errorf("%s:\n%s", file, out)
		}
		_, errs, code := reprise(t, "capacity", "s/sweep.json", "--target-rate", "5", "--contract", file)
		if code != cli.Usage || !strings.Contains(errs, "made under another contract: max ttft <= 1h0m0s; p50 e2e <= 1h0m0s from sent where input_tokens < 100000; this one says: max ttft") {
			t.Errorf("%s: exit code %d\n%s", file, code, errs)
		}
	}
	must(t, "sweep", "chat", "--preset", "l4-qwen2.5-0.5b", "--rates", "5", "--level-duration", "10s", "--level-requests", "0", "--no-confirm", "-o", "bare", "--quiet")
	if out := must(t, "capacity", "bare", "--target-rate", "5", "--contract", "c.yaml"); !strings.Contains(out, "Cost per hour") {
		t.Error(out)
	}
}

// What a GPU costs stands in the contract of a sweep, unless the flag says otherwise.
func TestCapacityTakesThePriceOfTheContract(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"c.yaml": "clauses: [max ttft <= 1h]\ngpus: 1\nprice_per_gpu_hour: 2\n"})
	must(t, "sweep", "chat", "--preset", "l4-qwen2.5-0.5b", "--rates", "5", "--level-duration", "10s", "--level-requests", "0", "--no-confirm", "--contract", "c.yaml", "-o", "s")
	args := []string{"capacity", "s", "--target-rate", "4", "--headroom", "0"}
	for price, flag := range map[string][]string{"2": nil, "3": {"--price-per-gpu-hour", "3"}} {
		if out, errs, code := reprise(t, append(args, flag...)...); code != cli.Good || !strings.Contains(strings.Join(strings.Fields(out), " "), "Cost per hour "+price+" ") {
			t.Errorf("a price of %s: code %d\n%s%s", price, code, out, errs)
		}
	}
}

// A directory that answers one question answers others too; objectives alone are a contract; and without any
// the answer is the knee.
func TestSweepAnswersWhatWasAsked(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	sweep := func(dir string, more ...string) (string, string, int) {
		return reprise(t, append([]string{"sweep", "chat", "--preset", "l4-qwen2.5-0.5b", "--rates", "5,10", "--level-duration", "10s", "--level-requests", "100",
			"--no-confirm", "--quiet", "-o", dir}, more...)...)
	}
	questions := map[string][]string{ // and how the answer to each begins
		"At least ":   {"--clause", "p95 ttft <= 10s"},
		"No load is ": {"--clause", "p95 ttft <= 1ms"},
		"No load":     {"--slo", "ttft:1ms"},
		"10 req/s":    nil,
	}
	for begins, asked := range questions {
		dir := "of " + begins
		out, errs, code := sweep(dir, asked...)
		if !strings.HasPrefix(out, begins) || (code == cli.Good) != (begins == "At least " || begins == "10 req/s") {
			t.Errorf("%v: exit code %d, not %q\n%s%s", asked, code, begins, out, errs)
		}
		if asked == nil && !strings.Contains(out, "knee, without a contract") {
			t.Errorf("without a contract:\n%s", out)
		}
		level := filepath.Join(dir, "level-rate-5", "results.parquet")
		before := modified(t, level)
		for other, more := range questions { // the levels are there, and judged by another
			if out, errs, _ := sweep(dir, more...); !strings.HasPrefix(out, other) || modified(t, level) != before {
				t.Errorf("%v after %v:\n%s%s", more, asked, out, errs)
			}
		}
	}
}

// What every run of a sweep finds at the endpoint is said once.
func TestSweepSaysFindingsOnce(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "10", "-o", "w.parquet")
	_, errs, code := reprise(t, "sweep", "w.parquet", "--url", simulate(t), "--rates", "20,40", "--level-duration", "500ms", "--level-requests", "0",
		"--warmup", "1", "--no-confirm", "--max-lag", "1h", "--max-lag-p50", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1")
	if strings.Count(errs, "endpoint: http") != 1 || strings.Count(errs, "level-rate-") != 2 {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// A level measures as many requests as were asked for, at least, whatever chance does to its arrivals; and of a level
// whose length alone was asked for, as many as its contract takes.
func TestLevelsMeasureWhatWasAskedFor(t *testing.T) {
	seeds := []string{"1"}
	if longtest.On() {
		seeds = []string{"1", "2", "3"}
	}
	for _, c := range []struct {
		args  string
		least int64
	}{
		{"--level-requests 100", 100},
		{"--level-requests 100 --warmup 30", 100},
		{"--level-requests 100 --process gamma:cv=3 --warmup 0", 100},
		{"--level-requests 40 --set causal", 40},
		{"--clause p99~ttft~<=~1h", 100},
		{"--clause p95~e2e~<=~1h", 20},
		{"--clause mean~ttft~<=~1h", 20},
		{"", 20},
		{"--slo ttft:1h", 20},
	} {
		for _, seed := range seeds {
			args := strings.Fields("--preset l4-qwen2.5-0.5b --rates 3,6 --level-duration 1s --no-confirm --seed " + seed +
				" " + c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "~", " ")
			}
			for _, l := range sweepOf(t, cli.Good, args...).Levels {
				if l.TTFTDue.Count < c.least || l.TTFTDue.Count > 2*c.least || l.Outcome == "unjudged" {
					t.Errorf("%s, seed %s: %s measured %d requests and is %s, want %d and not twice as many",
						c.args, seed, l.Name, l.TTFTDue.Count, l.Outcome, c.least)
				}
			}
		}
	}
}

// Before each run of a server a sweep says what it measures and how long that takes, and before the first how long
// all take; --quiet says nothing.
func TestSweepSaysWhatComes(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "10", "-o", "w.parquet")
	url := simulate(t)
	const trust = " --max-lag 1h --max-lag-p50 1h --max-stall-ttft -1 --max-stall-gap -1"
	for args, says := range map[string]string{
		"--rates 20,40 --level-duration 500ms --level-requests 0 --warmup 1 --no-confirm": "level 40 req/s: 21 " +
			"requests, about 1s (1 of warm-up, --warmup; 20 measured, --level-duration 500ms)",
		"--rates 40 --level-duration 100ms --level-requests 60 --warmup 0 --no-confirm": "level 40 req/s: 60 " +
			"requests, about 2s (0 of warm-up, --warmup; 60 measured, --level-requests, " +
			"which takes longer than --level-duration 100ms)",
		"--rates 80 --level-duration 100ms --warmup 0 --no-confirm --clause p99~ttft~<=~9s": "100 measured, which p99 ttft <= 9s takes, longer than --level-duration 100ms: --level-requests allows fewer)",
		"--adaptive --set from=0.03 --level-duration 100ms --level-requests 0 --warmup 0 --no-confirm --clause " +
			"max~ttft~<=~1ns": "estimate: at most 0s for the first level (--set from=LOAD begins elsewhere); how many follow",
		"--concurrencies 2 --level-duration 300ms --warmup 0 --no-confirm": "level 2 in flight: about 0s (a warm-up of 0, --warmup; --level-duration 300ms measured)",
		"--rates 40 --level-duration 500ms --warmup 0 --sustain 600ms":     "sustaining 40 req/s: ",
	} {
		words := append([]string{"sweep", "w.parquet", "--url", url}, strings.Fields(args+trust)...)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "~", " ")
		}
		if _, errs, _ := reprise(t, words...); !strings.Contains(strings.Join(strings.Fields(errs), " "), says) {
			t.Errorf("%s: no %q in\n%s", args, says, errs)
		}
		if !strings.Contains(args, "--concurrencies") { // one is enough
			continue
		}
		_, errs, _ := reprise(t, append(words, "--quiet")...)
		if strings.Contains(errs, "level ") || strings.Contains(errs, "estimate") {
			t.Errorf("%s --quiet:\n%s", args, errs)
		}
	}
}
