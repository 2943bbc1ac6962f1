package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
	"reprise/replay/calibrate"
	"reprise/replay/engine"
	"reprise/replay/report"
)

// A server with known costs is recorded at two rates, calibrated, and simulated by the file
// that was written: a load between the two comes out as on the server.
func TestCalibratedEngineIsAPreset(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	const server = "--costs step=8ms,kv-token=300ns,prefill-token=40us,decode-seq=500us,request=6ms"
	with := func(line string) string { return must(t, strings.Fields(line)...) }
	with("synth chat -n 90 --seed 3 -o w.parquet")
	for name, rate := range map[string]string{"r1": "1", "r2": "6", "between": "3"} {
		with("simulate w.parquet " + server + " --rate " + rate + " -o " + name + ".parquet")
	}
	out := with("calibrate r1.parquet r2.parquet --max-num-seqs 256 --max-num-batched-tokens 2048 --quiet -o engine.yaml")
	if lines := strings.Count(out, "\n"); lines > 25 {
		t.Errorf("%d lines:\n%s", lines, out)
	}
	for _, want := range []string{"An engine for ", "step ", "poisson:1", "poisson:6", "Held out: the second half of each run"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	c, err := calibrate.Open("engine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known, err := engine.ParseCosts(strings.TrimPrefix(server, "--costs "), engine.Costs{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"step", "prefill-token"} {
		if got, want := float64(*c.Engine.Costs.Of(name)), float64(*known.Of(name)); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}

	with("simulate w.parquet --preset engine.yaml --rate 3 -o s.parquet")
	real, err := bench.Summarise("between.parquet", report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := bench.Summarise("s.parquet", report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *simulated.Latency.FromSent.E2E.Mean, *real.Latency.FromSent.E2E.Mean; math.Abs(got/want-1) > 0.03 {
		t.Errorf("mean E2E by the preset is %g ms, on the server %g", got, want)
	}
	if !strings.HasPrefix(simulated.Run.Simulated, "preset engine.yaml: 1 × ") {
		t.Errorf("the results say %q", simulated.Run.Simulated)
	}

	// A later run of the same server is as predicted, and one of a slower server is not.
	out = with("validate engine.yaml between.parquet")
	if !strings.HasPrefix(out, "The engine predicts these runs within 15 %; the largest error is ") {
		t.Error(out)
	}
	with("simulate w.parquet " + strings.Replace(server, "step=8ms", "step=12ms", 1) + " --rate 3 -o slower.parquet")
	out, errs, code := reprise(t, "validate", "engine.yaml", "slower.parquet")
	if code != cli.Check || !strings.HasPrefix(out, "The engine predicts these runs not within 15 %; ") || !strings.HasPrefix(errs, "reprise: the engine is off by more than 15 %: ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, _, code := reprise(t, "validate", "engine.yaml", "slower.parquet", "--max-error", "90%"); code != cli.Good {
		t.Errorf("within 90 %%: exit code %d", code)
	}
	var v calibrate.Validation
	if err := json.Unmarshal([]byte(with("validate engine.yaml between.parquet --json")), &v); err != nil || len(v.Levels) != 1 || len(v.Levels[0].Figures) < 10 {
		t.Errorf("%+v, %v", v, err)
	}
}

// calibratedFile is the text of an engine's file, with the engine of a preset.
func calibratedFile(t *testing.T) string {
	t.Helper()
	p, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&calibrate.Calibration{Model: "mine", Engine: p.Engine}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An engine's file is taken wherever a preset is, and one that is none is refused by all.
func TestEngineFileIsTakenWhereAPresetIs(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	text := calibratedFile(t)
	writeFiles(t, map[string]string{"engine.yaml": text, "broken.yaml": strings.Replace(text, "costs: step", "costs: stop", 1), "suite.yaml": "name: s\nrows:\n  - {name: a, workload: baseline}\n"})
	must(t, "synth", "chat", "-n", "60", "-o", "w.parquet")
	lines := []string{
		"simulate w.parquet --preset FILE",
		"sweep chat --preset FILE --rates 2 --level-duration 1s --level-requests 20 --no-confirm",
		"compare w.parquet --preset-a FILE --preset-b l4-qwen2.5-0.5b --rate 5 --rounds 2 -o rounds",
		"bench suite.yaml --preset FILE -o bench",
		"bench suite.yaml --model mine=preset:FILE,max-num-seqs=4 -o bench2",
	}
	for _, line := range lines {
		if _, errs, code := reprise(t, strings.Fields(strings.ReplaceAll(line, "FILE", "engine.yaml"))...); code != cli.Good && code != cli.Untrusted && code != cli.Check {
			t.Errorf("%s: exit code %d\n%s", line, code, errs)
		}
		for file, want := range map[string]string{"broken.yaml": "broken.yaml:", "none.yaml": `there is no file "none.yaml": reprise calibrate RESULTS -o FILE writes one`} {
			line := strings.ReplaceAll(strings.ReplaceAll(line, "FILE", file), " rounds", " rounds-"+file)
			if _, errs, code := reprise(t, strings.Fields(line)...); code != cli.Usage || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, %s", line, code, errs)
			}
		}
	}
	runServe(t, "serve --listen 127.0.0.1:0 --preset engine.yaml")
	if _, errs, code := reprise(t, "serve", "--preset", "broken.yaml"); code != cli.Usage || !strings.Contains(errs, "broken.yaml:") {
		t.Errorf("serve: exit code %d, %s", code, errs)
	}
	if _, errs, code := reprise(t, "simulate", "w.parquet", "--preset", "none"); code != cli.Usage || !strings.Contains(errs, "; or the engine.yaml of reprise calibrate") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if _, err := os.Stat("rounds"); err != nil {
		t.Error(err)
	}
}

// What goes beyond the records that an engine was fitted to says so, and by how much, in the
// text, the JSON and the page of every command that takes it.
func TestBeyondWhatACalibrationCovers(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	p, err := engine.OpenPreset("l4-qwen2.5-0.5b")
	if err != nil {
		t.Fatal(err)
	}
	covers := engine.Covers{MaxPromptTokens: 4000, MaxOutputTokens: 2000, MaxInFlight: 8, MaxDecoding: 8, MaxKVTokens: 1 << 20}
	file, err := (&calibrate.Calibration{Model: "mine", Engine: p.Engine, Covers: covers}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string]string{"engine.yaml": string(file), "b.yaml": "name: b\nrows: [{name: one, workload: chat, requests: 60, load: 'concurrency:40'}]\n"})
	must(t, "synth", "chat", "-n", "60", "-o", "w.parquet")
	const says = "the engine extrapolates, beyond the records that it was fitted to: "
	for line, json := range map[string]string{
		"simulate w.parquet --concurrency 40":                                                  "simulate w.parquet --concurrency 40 --json",
		"simulate w.parquet --concurrency 40 -o r.parquet --html r.html":                       "report r.parquet --json",
		"sweep chat --concurrencies 1,40 --level-duration 20s --no-confirm -o s --html s.html": "",
		"sweep --frontier --lengths 8k/32 --concurrencies 1 --html f.html":                     "sweep --frontier --lengths 8k/32 --concurrencies 1 --json",
		"bench b.yaml -o b": "",
		"compare w.parquet --set-b max-num-seqs=8 --rounds 5 --concurrency 40 -o c --html c.html": "",
	} {
		out, errs, code := reprise(t, append(strings.Fields(line), "--preset", "engine.yaml")...)
		if code == cli.Usage || code == cli.Failure || !strings.Contains(strings.Join(strings.Fields(out), " "), says) {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
		}
		if json == "" {
			continue
		}
		args := strings.Fields(json)
		if args[0] != "report" {
			args = append(args, "--preset", "engine.yaml")
		}
		if out, errs, _ := reprise(t, args...); !strings.Contains(out, `"extrapolates"`) || !strings.Contains(out, `"reached"`) {
			t.Errorf("%s: %s%s", json, out, errs)
		}
	}
	for _, page := range []string{"r.html", "s.html", "f.html", "c.html"} {
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "the engine extrapolates") {
			t.Errorf("%s does not say it: %v", page, err)
		}
	}
}
