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
	if want := "the variable REPRISE_MAX_REQESTS sets no flag of any command; did you mean REPRISE_MAX_REQUESTS?\n"; errs != want {
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
		"capacity": "url: [\"http://h:8000\"]", "compare": "url-a: http://h:8000",
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
		"qqq: 5":          `bad.yaml:1:1: unknown key "qqq": the keys of a run file for reprise replay are names of its flags, see --help-all`,
		"rate: fast":      `bad.yaml:1:7: rate: "fast" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2`,
		"rate: [1, 2]":    "bad.yaml:1:7: rate takes one value",
		"speed: 2\nrate:": "bad.yaml:2:1: rate has no value",
		"- a":             "bad.yaml:1:1: want keys and values",
	} {
		writeFiles(t, map[string]string{"bad.yaml": text})
		if _, errs, code := reprise(t, "replay", "w.parquet", "--config", "bad.yaml"); code != cli.Usage || errs != "reprise: "+want+"\nRun with --help for how to use it.\n" {
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
