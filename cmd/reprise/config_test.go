package main

import (
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

const runFile = `rate: 300/min
duration: 5 min
header:
  - X-Team=hidden
trust: [max-lag=1s, max-errors=5%]
force-output: false
max-requests: 10k
`

// A flag goes before a variable, that before the run file, that before the target.
func TestPrecedence(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"run.yaml": runFile, "target.yaml": "url: http://user:hidden@10.0.0.1:8000\nmodel: llama\nhardware: 8xH100\ntimeout: 90\n"})
	t.Setenv("REPRISE_RATE", "7")
	t.Setenv("REPRISE_MODEL", "qwen")
	t.Setenv("REPRISE_MAX_BAD", "5%") // of import alone
	t.Setenv("REPRISE_TEST_ANYTHING", "1")
	t.Setenv("REPRISE_MAX_REQESTS", "3")
	out, errs, code := reprise(t, "replay", "--config", "run.yaml", "--target", "target.yaml", "--max-requests", "5", "--print-config")
	want := `url: ["http://[redacted]10.0.0.1:8000"]  # target.yaml
model: qwen  # REPRISE_MODEL
force-output: false  # run.yaml
timeout: 1m30s  # target.yaml
header: ["X-Team=[redacted]"]  # run.yaml
rate: poisson:7  # REPRISE_RATE
duration: 5m0s  # run.yaml
max-requests: 5  # --max-requests
hardware: 8xH100  # target.yaml
trust: ["max-lag=1s,max-errors=5%"]  # run.yaml
`
	if code != cli.Good || out != want {
		t.Errorf("exit code %d\n%s\nwant\n%s", code, out, want)
	}
	if want := "the variable REPRISE_MAX_REQESTS sets nothing of any command; did you mean REPRISE_MAX_REQUESTS?\n"; errs != want {
		t.Errorf("%q, want %q", errs, want)
	}
	// What is printed is a run file.
	if err := os.WriteFile("again.yaml", []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REPRISE_MAX_REQESTS", "")
	again, errs, code := reprise(t, "replay", "--config", "again.yaml", "--print-config")
	values := func(s string) string {
		var b strings.Builder
		for line := range strings.SplitSeq(s, "\n") {
			value, _, _ := strings.Cut(line, "  #")
			b.WriteString(value + "\n")
		}
		return b.String()
	}
	if code != cli.Good || values(again) != values(out) {
		t.Errorf("exit code %d, %s\n%s", code, errs, again)
	}
}

// A target is for every command that talks to an endpoint; the one URL of a comparison's
// is that of A.
func TestTargetIsShared(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"target.yaml": "url: http://h:8000\napi: chat\nhardware: 8xH100\n"})
	for command, want := range map[string]string{
		"replay": "url: [\"http://h:8000\"]", "sweep": "url: [\"http://h:8000\"]", "bench": "url: [\"http://h:8000\"]",
		"compare": "url-a: http://h:8000",
	} {
		out := must(t, command, "--target", "target.yaml", "--print-config")
		if !strings.Contains(out, "api: chat  # target.yaml\n") || !strings.Contains(strings.ReplaceAll(out, `"`, ""), strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("%s: %s", command, out)
		}
	}
}

// What a person gets for a fault in a run file, in a target, or in a variable.
func TestConfigFaults(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"rat: 5":          `bad.yaml:1:1: unknown key "rat": did you mean rate?`,
		"max_requests: 5": `bad.yaml:1:1: unknown key "max_requests": did you mean max-requests?`,
		"qqq: 5":          `bad.yaml:1:1: unknown key "qqq": the keys of a run file for reprise replay are names of its flags and settings, see --help-all`,
		"rate: fast":      `bad.yaml:1:7: rate: "fast" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2`,
		"rate: [1, 2]":    "bad.yaml:1:7: rate takes one value",
		"speed: 2\nrate:": "bad.yaml:2:1: rate has no value",
		"- a":             "bad.yaml:1:1: want keys and values",
	} {
		writeFiles(t, map[string]string{"bad.yaml": text})
		_, errs, code := reprise(t, "replay", "w.parquet", "--config", "bad.yaml")
		if code != cli.Usage || errs != "reprise: "+want+"\n" {
			t.Errorf("%q: exit code %d, %s\nwant %s", text, code, errs, want)
		}
	}
	writeFiles(t, map[string]string{"bad.yaml": "rate: 5\n"})
	if _, errs, code := reprise(t, "sweep", "w.parquet", "--target", "bad.yaml"); code != cli.Usage || !strings.Contains(errs, `bad.yaml:1:1: unknown key "rate": the keys of a target for reprise sweep`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if _, errs, code := reprise(t, "replay", "w.parquet", "--config", "none.yaml"); code != cli.Usage || !strings.Contains(errs, "a run file that was asked for does not exist: none.yaml") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	t.Setenv("REPRISE_DURATION", "soon")
	if _, errs, code := reprise(t, "replay", "w.parquet"); code != cli.Usage || !strings.Contains(errs, `the variable REPRISE_DURATION: --duration: "soon" is not a duration: write 60s, 5min or 1h30m`) {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// A setting is no flag: it is set by --set, by its variable or in a run file, in this order, and what is wrong is said
// with its name and never with its value.
func TestSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{
		"run.yaml":   "gap-cap: 3s\nidle-cap: 4s\nsalt: file\n",
		"serve.yaml": "serve-cmd: engine {x} {block-size}\nset: [x=64, gap-cap=3s]\n",
		"bad.yaml":   "gap-cap: soon\n",
		"near.yaml":  "gap-cp: 3s\n",
	})
	t.Setenv("REPRISE_SALT", "variable")
	t.Setenv("REPRISE_IDLE_CAP", "5s")
	for args, want := range map[string]string{
		"replay --config run.yaml --set gap-cap=1s --print-config":                    "salt: variable  # REPRISE_SALT\ngap-cap: 1s  # --set gap-cap\nidle-cap: 5s  # REPRISE_IDLE_CAP\n",
		"replay --set gap-cap=1s --set gap-cap=2s --set loop-same --print-config":     "salt: variable  # REPRISE_SALT\ngap-cap: 2s  # --set gap-cap\nidle-cap: 5s  # REPRISE_IDLE_CAP\nloop-same: true  # --set loop-same\n",
		"sweep --config serve.yaml --set x=8 --set block-size=16 --print-config":      "salt: variable  # REPRISE_SALT\nserve-cmd: engine {x} {block-size}  # serve.yaml\nset: [x=8, block-size=16]  # --set\ngap-cap: 3s  # serve.yaml\nidle-cap: 5s  # REPRISE_IDLE_CAP\n",
		"replay --set scrape-metric=vllm: --set scrape-metric=sglang: --print-config": "scrape-metric: [\"vllm:\", \"sglang:\"]  # --set scrape-metric\nsalt: variable  # REPRISE_SALT\nidle-cap: 5s  # REPRISE_IDLE_CAP\n",
		"replay w --gap-cap 3s":                                "--gap-cap is a setting: type --set gap-cap=DURATION, or write gap-cap: … in the run file",
		"replay w --gap-cap=soon":                              `--set gap-cap: "soon" is not a duration: write 60s, 5min or 1h30m`,
		"replay w --gap-cap":                                   "--gap-cap is a setting: type --set gap-cap=DURATION, or write gap-cap: … in the run file",
		"replay w --loop-same":                                 "--loop-same is a setting: type --set loop-same, or write loop-same: … in the run file",
		"replay --gap-cp 3s":                                   "unknown flag: --gap-cp: did you mean --set gap-cap?",
		"replay w --set gap-cp=SECRET":                         "--set: there is no setting gap-cp: did you mean gap-cap? --help-all lists them",
		"replay w --set zzzzzz=SECRET":                         "--set: there is no setting zzzzzz: --help-all lists them",
		"replay w --set speed=2":                               "--set: speed is a flag: type --speed FACTOR",
		"replay w --set gap-cap":                               "--set: want NAME=VALUE",
		"replay w --set gap-cap=soon":                          `--set gap-cap: "soon" is not a duration: write 60s, 5min or 1h30m`,
		"replay --set":                                         "--set needs a value: --set NAME=VALUE",
		"replay w --config bad.yaml":                           `bad.yaml:1:10: gap-cap: "soon" is not a duration: write 60s, 5min or 1h30m`,
		"replay w --config near.yaml":                          `near.yaml:1:1: unknown key "gap-cp": did you mean gap-cap?`,
		"sweep chat --set x=8 --preset l4-qwen2.5-0.5b":        "--set: there is no setting x: --help-all lists them; the value of a placeholder needs --serve-cmd",
		"bench serving --set zzz=SECRET --serve-cmd {x}{port}": "--serve-cmd: the command has {x}, but no value is given for it; --set NAME=VALUE gives one",
	} {
		out, errs, code := reprise(t, strings.Fields(args)...)
		if strings.Contains(args, "--print-config") {
			if code != cli.Good || out != want {
				t.Errorf("%s: exit code %d, %s\n%s\nwant\n%s", args, code, errs, out, want)
			}
			continue
		}
		if code != cli.Usage || errs != "reprise: "+want+"\n" {
			t.Errorf("%s: exit code %d\n%s\nwant %s", args, code, errs, want)
		}
	}
}
