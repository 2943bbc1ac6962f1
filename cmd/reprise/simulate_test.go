package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/fleet"
)

// quick is an engine so fast that few requests run at once.
var quick = []string{"--costs", "step=1ms,prefill-token=100ns", "--block-size", "512", "--quiet"}

// mooncakeTrace imports the conversation trace of the Mooncake release.
func mooncakeTrace(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "t.parquet")
	must(t, "import", shared(t, "mooncake_conversation.jsonl"), "-o", out)
	return out
}

func simulateJSON(t *testing.T, args ...string) []engine.FleetSummary {
	t.Helper()
	var all []engine.FleetSummary
	if err := json.Unmarshal([]byte(must(t, append(append([]string{"simulate", "--json"}, args...), quick...)...)),
		&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// With few blocks in use, an engine finds what an LRU cache of its size holds.
func TestSimulateMooncakeReuse(t *testing.T) {
	path := mooncakeTrace(t)
	var p struct {
		Reuse struct {
			Curve []struct {
				Blocks   *int64  `json:"capacity_blocks"`
				HitRatio float64 `json:"hit_ratio_by_token"`
			} `json:"lru_curve"`
		} `json:"reuse"`
	}
	if err := json.Unmarshal([]byte(must(t, "profile", path, "--json", "--quiet")), &p); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, point := range p.Reuse.Curve {
		if point.Blocks == nil || *point.Blocks < 5000 {
			continue
		}
		s := simulateJSON(t, path, "--kv-tokens", strconv.FormatInt(*point.Blocks*512, 10))[0]
		t.Logf("%d blocks, at most %d in use: %.4f by token, the profile's LRU %.4f", s.CapacityBlocks,
			s.MaxUsedBlocks, *s.HitByToken, point.HitRatio)
		if math.Abs(*s.HitByToken-point.HitRatio) > 0.005 {
			t.Errorf("%d blocks: the engine finds %.4f of the tokens, an LRU cache %.4f", *point.Blocks,
				*s.HitByToken, point.HitRatio)
		}
		if s.MaxUsedBlocks < 100 || s.MaxUsedBlocks > 1000 || s.Preemptions != 0 {
			t.Errorf("%d blocks in use and %d preemptions: this is no fast engine", s.MaxUsedBlocks, s.Preemptions)
		}
		compared++
	}
	if compared < 3 {
		t.Errorf("%d points only", compared)
	}
}

// Eight replicas of 10,000 blocks; the figures are those of a reference
// computation that sends each request whole before the next.
func TestSimulateMooncakeRouting(t *testing.T) {
	all := simulateJSON(t, mooncakeTrace(t), "--kv-tokens", "5120000", "--replicas", "8", "--router", "all")
	want := map[string][2]float64{ // hit ratio by block, and the load of the fullest replica
		"round-robin": {0.126, 1.04}, "session": {0.326, 1.09}, fleet.Prefix: {0.212, 8}, fleet.PrefixWeighted: {0.361, 1}}
	for _, s := range all {
		if w, ok := want[s.Router]; ok {
			if math.Abs(*s.HitByBlock-w[0]) > 0.002 || math.Abs(*s.LoadImbalance-w[1]) > 0.01 {
				t.Errorf("%s finds %.4f of the blocks, and its fullest replica has %.2f of the mean; want %v",
					s.Router, *s.HitByBlock, *s.LoadImbalance, w)
			}
			delete(want, s.Router)
		}
		if s.Answered != 12_031 {
			t.Errorf("%s: %d answers", s.Router, s.Answered)
		}
	}
	if len(all) != 6 || len(want) != 0 {
		t.Errorf("%d fleets; without %v", len(all), want)
	}
}

// The results are those of a replay: every row once, in order, and twice the
// same, byte for byte.
func TestSimulateResults(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("log.jsonl", []byte(sharingLog(40)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "log.jsonl", "-o", "t.parquet")
	for _, out := range []string{"a.parquet", "b.parquet"} {
		text := must(t, append([]string{"simulate", "t.parquet", "--speed", "3", "-o", out, "--details"}, quick...)...)
		expect(t, text, "Simulated: a model", "In flight, mean")
		if again := must(t, "report", out, "--details"); again != text {
			t.Error("the report says otherwise")
		}
	}
	a, err := os.ReadFile("a.parquet")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("b.parquet")
	if err != nil || string(a) != string(b) {
		t.Errorf("not twice the same (%v)", err)
	}
	f, err := result.Open("a.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := make([]result.Result, 41)
	n, _ := f.Reader().Read(rows)
	if n != 40 || f.Run.Requests != 40 || f.Run.Simulated == "" || f.Run.ClientCPU != 0 {
		t.Fatalf("%d rows, run %+v", n, f.Run)
	}
	for i, r := range rows[:n] {
		sum := *r.FirstTokenNS
		for _, gap := range r.GapsNS {
			sum += gap
		}
		if r.RowID != int64(i) || *r.Output != *r.WantOutput || sum != *r.LastTokenNS || sum != *r.DoneNS ||
			*r.SentNS != r.DueNS || *r.FirstTokenNS <= r.DueNS {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if left, _ := filepath.Glob("*.journal"); left != nil {
		t.Errorf("%v is left", left)
	}
}

// One request at a time with a queue of none: the others are refused, and that
// is an answer that nobody should trust.
func TestSimulateRefusals(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("log.jsonl", []byte(sharingLog(40)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "log.jsonl", "-o", "t.parquet")
	out, _, code := reprise(t, "simulate", "t.parquet", "--costs", "step=10s", "--max-num-seqs", "1",
		"--set", "max-waiting=0", "-o", "r.parquet", "--quiet")
	if code != cli.Untrusted {
		t.Errorf("exit code %d", code)
	}
	expect(t, out, "Simulated, and not trustworthy", "rate_limited")
	for _, bad := range [][]string{{}, {"--costs", "step"}, {"--costs", "step=1ms", "--router", "fair"},
		{"--costs", "step=1ms", "--speed", "0"},
		{"--costs", "step=1ms", "--router", "all", "-o", "x.parquet"}, {"--costs", "step=1ms", "--replicas", "0"},
		{"--costs", "step=1ms", "--set", "batching=magic"}, {"--costs", "step=1ms", "-o", "-"},
		{"--costs", "step=1ms", "--html", "x.html"}, {"--costs", "step=1ms", "--max-lag", "1s"},
		{"--costs", "step=1ms", "--trust", "max-errors=5%"},
		{"--costs", "step=1ms", "-o", "x.parquet", "--trust", "max-lag=1s"}} {
		if _, _, code := reprise(t, append([]string{"simulate", "t.parquet"}, bad...)...); code != cli.Usage {
			t.Errorf("%v: exit code %d", bad, code)
		}
	}
}

// A preset can be looked up with its errors, and changed.
func TestSimulatePresets(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	expect(t, must(t, "simulate", "--presets", "--details"), "l4-qwen2.5-0.5b", "closed loop of 32, 256/128 tokens",
		"over all 42 figures: 26.7 %", "over all 60 figures: 14.4 %", "Over the 18 that were fitted: 6.5 %",
		"8 req/s, even, 1056–1152/256 tokens",
		"Warning: the preset document-h100-llama-70b decodes 6.9 times slower")
	var all []fittedPreset
	if err := json.Unmarshal([]byte(must(t, "simulate", "--presets", "--json")), &all); err != nil ||
		len(all) != len(flags.PresetNames()) || len(all[0].Fit) == 0 {
		t.Errorf("%d presets, %v", len(all), err)
	}
	if _, _, code := reprise(t, "simulate", "--presets", "t.parquet"); code != cli.Usage {
		t.Errorf("--presets with a workload: exit code %d", code)
	}
	if err := os.WriteFile("log.jsonl", []byte(sharingLog(40)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "log.jsonl", "-o", "t.parquet")
	if _, _, code := reprise(t, "simulate", "t.parquet", "--preset", "none"); code != cli.Usage {
		t.Errorf("a preset that there is not: exit code %d", code)
	}
	hits := func(args ...string) engine.FleetSummary {
		var all []engine.FleetSummary
		out := must(t, append([]string{"simulate", "t.parquet", "--preset", "l4-qwen2.5-0.5b", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	plain := hits()
	if plain.CapacityBlocks != 1_080_000/16 || *plain.HitByToken == 0 {
		t.Errorf("%+v", plain)
	}
	if s := hits("--no-prefix-caching", "--block-size", "32", "--costs", "request=1s"); *s.HitByToken != 0 ||
		s.CapacityBlocks != 1_080_000/32 || *s.TTFTP50MS < 1000 {
		t.Errorf("%+v", s)
	}
}

// A preset that is not of its hardware's speed says so wherever it is used, and in all
// that is made of its results. One that is says nothing.
func TestPresetWarnsEverywhere(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"log.jsonl": sharingLog(40)})
	must(t, "import", "log.jsonl", "-o", "t.parquet")
	const text = "the preset document-h100-llama-70b decodes 6.9 times slower than the memory of its 8 × H100"
	said := func(what, out string) {
		t.Helper()
		if !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
			t.Errorf("%s has no warning:\n%s", what, out)
		}
	}
	const preset = "--preset=document-h100-llama-70b"
	said("simulate", must(t, "simulate", "t.parquet", preset))
	said("simulate --json", must(t, "simulate", "t.parquet", preset, "--json"))
	said("simulate -o", must(t, "simulate", "t.parquet", preset, "-o", "r.parquet", "--html", "r.html"))
	said("its page", string(read(t, "r.html")))
	for _, format := range []string{"", "markdown", "json", "decision"} {
		out, _, _ := reprise(t, "report", "r.parquet", "--format", format)
		said("report --format "+format, out)
	}
	said("report of two", must(t, "report", "r.parquet", "r.parquet"))
	short := []string{preset, "--rates=5", "--level-duration=5s", "--level-requests=0", "--no-confirm", "-o", "s"}
	said("sweep", must(t, append([]string{"sweep", "chat", "--html", "s.html"}, short...)...))
	said("its page", string(read(t, "s.html")))
	said("sweep.json", string(read(t, "s/sweep.json")))
	said("capacity", must(t, "capacity", "s", "--target-rate=10"))
	said("capacity --json", must(t, "capacity", "s", "--target-rate=10", "--json"))
	said("compare", must(t, "compare", "t.parquet", preset, "--costs-b=step=35ms", "--rounds=2", "-o", "rounds",
		"--html", "c.html"))
	said("its page", string(read(t, "c.html")))
	if err := os.WriteFile("b.yaml", []byte("rows:\n- {name: one, workload: t.parquet, load: recorded, primary: p95_ttft}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said("bench", must(t, "bench", "b.yaml", preset, "-o", "b", "--quiet"))
	said("its page", string(read(t, "b/index.html")))
	ctx, stop := context.WithCancel(t.Context())
	serving := &watch{want: "serving", then: stop}
	if code := run(ctx, []string{"serve", "--listen", "127.0.0.1:0", preset}, strings.NewReader(""), io.Discard,
		serving); code != cli.Good {
		t.Errorf("serve: exit code %d", code)
	}
	said("serve", serving.buf.String())
	if out := must(t, "simulate", "t.parquet", "--preset=l4-qwen2.5-0.5b", "-o",
		"l4.parquet"); strings.Contains(out, "times slower") {
		t.Errorf("a preset near its hardware warns:\n%s", out)
	}
	if out := must(t, "simulate", "t.parquet", preset, "--costs=step=6ms"); strings.Contains(out, "times slower") {
		t.Errorf("at costs near the hardware's it warns:\n%s", out)
	}
}

// By the clock, an endpoint with a preset answers a replay, and flags change it.
func TestServePreset(t *testing.T) {
	for _, bad := range []string{"serve --preset none", "serve --preset l4-qwen2.5-0.5b --itl 5ms",
		"serve --preset l4-qwen2.5-0.5b --kv-tokens 1"} {
		if _, _, code := reprise(t, strings.Fields(bad)...); code != cli.Usage {
			t.Errorf("%s: exit code %d", bad, code)
		}
	}
	runServe(t, "serve --listen 127.0.0.1:0 --preset l4-qwen2.5-0.5b --max-num-seqs 4 --block-size 32 --kv-tokens 3200 --set max-waiting=1")
}

// A simulation waits as a replay does: with think times every turn is due when
// those before it are over and the user has thought, in a closed loop the next
// request when one is over.
func TestSimulateSchedules(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("w.yaml"), []byte("requests: 120\narrivals: poisson:2\nlengths: {input: 'constant:300', output: 'constant:40'}\nsessions: {turns: 'constant:4', think: 'lognormal:2s,1', added: 'constant:50'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "synth", file("w.yaml"), "-o", file("w.parquet"))
	type of struct {
		rows []trace.Request
		by   []result.Result
	}
	play := func(flags ...string) (got of, run result.Run) {
		must(t, append(append([]string{"simulate", file("w.parquet"), "-o", file("r.parquet")}, quick...), flags...)...)
		r, err := result.Open(file("r.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := trace.Each(r.Reader(), func(_ int64,
			r *result.Result) error {
			got.by = append(got.by, *r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w, err := trace.Open(file("w.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		rows, err := w.Reader()
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.Each(rows, func(_ int64, r *trace.Request) error {
			one := *r
			one.Parents = slices.Clone(r.Parents)
			got.rows = append(got.rows, one)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got, r.Run
	}
	got, run := play()
	turns := int64(0)
	for i, r := range got.by {
		for _, p := range got.rows[i].Parents {
			turns++
			if want := *got.by[p].DoneNS + *got.rows[i].ThinkNS; r.DueNS != want || *r.SentNS != want {
				t.Errorf("row %d is due at %d, its parent was over and its user had thought by %d", i, r.DueNS, want)
			}
		}
	}
	if run.Timing != result.Causal || len(got.by) != 120 || run.Drift == nil || run.Drift.Turns != turns || turns < 60 {
		t.Errorf("%d results, %d turns, run %+v", len(got.by), turns, run)
	}
	got, run = play("--concurrency", "3")
	ends := []int64{0, 0, 0}
	for i, r := range got.by {
		if !slices.Contains(ends, r.DueNS) {
			t.Errorf("row %d is due at %d, when no request was over", i, r.DueNS)
		}
		ends = append(ends, *r.DoneNS)
	}
	if run.Timing != result.ClosedLoop || run.MaxInFlight != 3 {
		t.Errorf("run %+v", run)
	}
	if _, run = play("--open-loop", "--warmup", "10"); run.Timing != result.OpenLoop || run.Window == nil {
		t.Errorf("run %+v", run)
	}
}
