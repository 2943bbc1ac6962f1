package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
)

// A sweep of each setting of an engine that is started, one after another.
func TestSweepServeCmd(t *testing.T) {
	long(t)
	t.Setenv(asCommand, "1")
	t.Chdir(t.TempDir())
	engine := bench.QuoteWords([]string{os.Args[0], "serve", "--listen", "127.0.0.1:{port}", "--costs", "step={itl}"})
	must(t, "synth", "concurrency_sweep", "-n", "20", "-o", "w.parquet")
	args := []string{"sweep", "w.parquet", "--serve-cmd", engine, "--concurrencies", "1,2", "--level-duration",
		"300ms", "--warmup", "1", "--no-confirm", "-o", "s", "--json",
		"--max-stall-ttft", "-1", "--max-stall-gap", "-1"}
	out, errs, code := reprise(t, append(args, "--vary", "itl=0ms,1us")...)
	var all []variedSweep
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 2 || all[1].Setting != "itl=1us" || len(all[1].Sweep.Levels) != 2 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	if strings.Count(errs, "engine: started") != 2 || strings.Count(errs, "engine: stopped") != 2 ||
		strings.Index(errs, "itl=0ms: engine: stopped") > strings.Index(errs, "itl=1us: engine: started") {
		t.Errorf("%s", errs)
	}
	if log, err := os.ReadFile("s/itl-0ms/engine.log"); err != nil || !strings.Contains(string(log), "serving") {
		t.Errorf("%q, %v", log, err)
	}
	// All of a setting is in one folder, which a value with a slash could else lead out of.
	for _, name := range []string{"s/itl-0ms/sweep.json", "s/itl-1us/sweep.json", "s/itl-0ms/level-concurrency-1/results.parquet", "s/itl-1us/level-concurrency-2/results.parquet"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if names := matches(t, "s/*"); len(names) != 3 || !strings.Contains(contents(t, "s/experiment.json"), `"server": "engine"`) {
		t.Errorf("%v\n%s", names, contents(t, "s/experiment.json"))
	}
	for want, more := range map[string][]string{"--html writes the page of one": {"--vary", "itl=1ms,2ms", "--html", "x.html"}, "--preset is of a simulated one": {"--set", "itl=1ms", "--preset", "l4-qwen2.5-0.5b"},
		"has {itl}, but no value is given for it": nil} {
		if _, errs, code := reprise(t, append(args, more...)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d\n%s", more, code, errs)
		}
	}
}
