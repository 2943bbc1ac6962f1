package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/bench"
)

// serveCmdSettings reads the flags of a command that has them.
func serveCmdSettings(t *testing.T, args ...string) ([]flags.ServeSetting, error) {
	var live runs.Replay
	var f flags.ServeCmd
	var settings []flags.ServeSetting
	cmd := &cobra.Command{Use: "sweep", SilenceErrors: true, SilenceUsage: true, PreRunE: func(cmd *cobra.Command, _ []string) error { return flags.Configure(cmd, nil) }, RunE: func(cmd *cobra.Command, _ []string) (err error) {
		settings, err = f.Settings(cmd)
		return err
	}}
	live.Defaults()
	live.RegisterEndpoint(cmd)
	f.Register(cmd)
	cmd.SetArgs(args)
	return settings, cmd.ExecuteContext(t.Context())
}

func TestServeCmdSettings(t *testing.T) {
	got, err := serveCmdSettings(t, "--serve-cmd", "vllm serve {m} --port {port} --max-num-seqs {x}", "--set",
		"m=a b", "--vary", "x=32,64")
	if err != nil || len(got) != 2 || got[0].Name != "x=32" ||
		got[1].Command.String() != "vllm serve 'a b' --port '{port}' --max-num-seqs 64" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := serveCmdSettings(t); got != nil || err != nil {
		t.Errorf("without an engine: %+v, %v", got, err)
	}
	if got, err := serveCmdSettings(t, "--serve-cmd", "e", "--url", "http://127.0.0.1:1"); len(got) != 1 || err != nil {
		t.Errorf("at a known place: %+v, %v", got, err)
	}
	const engine = "--serve-cmd=e {port} {x}"
	for want, args := range map[string][]string{
		"needs --serve-cmd":         {"--vary", "x=1,2"},
		"has {x}, but no value":     {engine},
		"no {y}":                    {engine, "--set", "x=1", "--set", "y=1"},
		"takes one setting":         {engine, "--vary", "x=1,2", "--vary", "y=1,2"},
		"fix the others with --set": {engine, "--vary", "x=1,y=2"},
		"two values or more":        {engine, "--vary", "x=1"},
		"is given twice":            {engine, "--vary", "x=1,1"},
		"both give x a value":       {engine, "--vary", "x=1,2", "--set", "x=1"},
		"has no {port}":             {"--serve-cmd", "e"},
		"has an unclosed '":         {"--serve-cmd", "e 'a"},
		"must be above zero":        {"--serve-cmd", "e {port}", "--set", "ready-timeout=0s"},
		"want NAME=VALUE":           {engine, "--set", "x"},
		"--set: the same name is":   {engine, "--set", "x=1", "--set", "x=2"},
	} {
		if _, err := serveCmdSettings(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// An engine is started for a trial, measured, and stopped.
func TestServeCmdServed(t *testing.T) {
	t.Setenv(asCommand, "1")
	w, dir := targetWorkload(t, 4), t.TempDir()
	var live runs.Replay
	var f flags.ServeCmd
	var errs bytes.Buffer
	cmd := &cobra.Command{Use: "sweep", SilenceErrors: true, SilenceUsage: true, PreRunE: func(cmd *cobra.Command, _ []string) error { return flags.Configure(cmd, nil) }, RunE: func(cmd *cobra.Command, _ []string) (err error) {
		settings, err := f.Settings(cmd)
		if err != nil {
			return err
		}
		target, err := runs.Started(cmd, &f, settings[0], live, "")
		if err != nil {
			return err
		}
		defer target.Close()
		s, err := measureTrial(cmd.Context(), target,
			bench.Trial{Workload: w, Load: bench.Load{Concurrency: 2}, Results: filepath.Join(dir, "r.parquet")})
		if s.Requests.Succeeded != 4 {
			t.Errorf("%+v", s.Requests)
		}
		return err
	}}
	live.Defaults()
	live.RegisterEndpoint(cmd)
	f.Register(cmd)
	cmd.Flags().Bool("quiet", false, "")
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"--serve-cmd", bench.QuoteWords([]string{os.Args[0], "serve", "--listen",
		"127.0.0.1:{port}", "--costs", "step=1ms", "--model", "{name}"}), "--set", "name=the model"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	expect(t, errs.String(), "engine: started", "engine: ready at http://127.0.0.1:", "model the model", "engine: stopped")
	log, err := os.ReadFile(filepath.Join(dir, "r.engine.log"))
	if err != nil || !strings.Contains(string(log), "serving the model") {
		t.Errorf("%q, %v", log, err)
	}
}

// What would only say something of a simulated engine is refused beside one that is
// started, by every command that starts one, and both flags are named.
func TestServeCmdNotSimulated(t *testing.T) {
	long(t)
	w := targetWorkload(t, 4)
	t.Chdir(t.TempDir())
	for _, command := range [][]string{{"bench", "serving"}, {"sweep", w}, {"sweep", w, "--vary", "x=1,2"},
		{"compare", w, "--vary", "x=1,2", "-o", "rounds"}} {
		for _, flag := range []string{"--preset=l4-qwen2.5-0.5b", "--costs=step=1ms", "--max-num-seqs=4",
			"--no-prefix-caching", "--replicas=2", "--router=random"} {
			name, _, _ := strings.Cut(strings.Replace(flag, "--set=", "--set ", 1), "=")
			_, errs, code := reprise(t, append(command, "--serve-cmd", "no-such-engine {port}", flag)...)
			if code != cli.Usage || !strings.Contains(errs, "--serve-cmd starts") ||
				!strings.Contains(errs, name+" is of a simulated one") {
				t.Errorf("%v %s: exit code %d\n%s", command, flag, code, errs)
			}
		}
	}
	if left, _ := filepath.Glob("*"); left != nil {
		t.Errorf("%v was made", left)
	}
}

// Two settings of an engine take turns: never do both run.
func TestCompareServeCmd(t *testing.T) {
	long(t)
	t.Setenv(asCommand, "1")
	w, dir := targetWorkload(t, 4), t.TempDir()
	engine := bench.QuoteWords([]string{os.Args[0], "serve", "--listen", "127.0.0.1:{port}", "--costs",
		"step={itl}", "--model", "{m}"})
	args := []string{"compare", w, "--serve-cmd", engine, "--set", "m=sk-0123456789abcdef", "--vary", "itl=1ms,3ms",
		"--concurrency", "2", "--primary", "mean_ttft", "--rounds", "2", "--rest", "0s", "-o", dir}
	out, errs, code := reprise(t, args...)
	if code != cli.Good && code != cli.Untrusted {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	running := 0
	for _, line := range strings.Split(errs, "\n") {
		switch {
		case strings.HasSuffix(line, "engine: stopped"):
			running--
		case strings.Contains(line, "engine: started"):
			running++
		}
		if running > 1 {
			t.Fatalf("two engines at once:\n%s", errs)
		}
	}
	if running != 0 || strings.Count(errs, "itl=3ms: engine: ready") < 1 {
		t.Errorf("%d left\n%s", running, errs)
	}
	for _, name := range []string{"a.engine.log", "b.engine.log", "round-02-b/results.parquet"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if plan, err := os.ReadFile(filepath.Join(dir, "experiment.json")); err != nil ||
		strings.Contains(string(plan), "sk-0123") {
		t.Errorf("%s, %v", plan, err)
	}
	for want, more := range map[string][]string{"in which the two servers differ": {"--vary", "itl=1ms,2ms,3ms"},
		"no --url-a":        {"--vary", "itl=1ms,2ms", "--url-a", "http://127.0.0.1:1"},
		"or --set-a beside": {"--vary", "itl=1ms,2ms", "--set-b", "no-prefix-caching"}} {
		if _, errs, code := reprise(t, append([]string{"compare", w, "--serve-cmd", engine, "--set", "m=x", "-o",
			t.TempDir()}, more...)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d\n%s", more, code, errs)
		}
	}
}
