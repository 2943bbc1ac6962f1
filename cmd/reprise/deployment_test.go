package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/result"
)

// Results say where they were measured: the host, what the endpoint says of itself,
// and what the flags say of its GPUs, without the keys among an engine's flags.
func TestReplayEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("log.jsonl"), []byte(sharingLog(5)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", file("log.jsonl"), "-o", file("t.parquet"))
	must(t, "synth", "--mirror", file("t.parquet"), "-o", file("w.parquet"))
	text := must(t, "replay", file("w.parquet"), "--url", simulate(t), "-o", file("r.parquet"), "--quiet", "--details", "--set", "hardware=8xH100, 80GB, NVLink", "--set", "model-size=70B",
		"--set", "quantization=fp8", "--set", "tp=8", "--set", "engine=vllm 0.11.0", "--set", "engine-flags=--max-num-seqs 256 --api-key PLANTED")
	for _, want := range []string{"GPUs    8 × H100, 80 GB each, NVLink, as given", "vllm 0.11.0 (as given)", "70B parameters, fp8, TP 8", runtime.GOOS + "/" + runtime.GOARCH} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	doc, err := os.ReadFile(file("r.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(doc)+text, "PLANTED") {
		t.Error("the key is kept")
	}
	e := environmentOf(t, file("r.parquet"))
	if e.Deployment.EngineFlags != "--max-num-seqs 256 --api-key [redacted]" || e.GPUCount() != 8 {
		t.Errorf("%+v", e.Deployment)
	}
	if len(e.Servers) != 1 || len(e.Servers[0].Models) != 1 || e.Servers[0].Models[0].ID == "" {
		t.Errorf("what the endpoint says: %+v", e.Servers)
	}

	must(t, "simulate", file("w.parquet"), "--preset", "l4-qwen2.5-0.5b", "-o", file("s.parquet"))
	if e := environmentOf(t, file("s.parquet")); e.Host.Cores < 1 || e.Servers != nil || e.GPUs != nil {
		t.Errorf("a simulation: %+v", e)
	}
}

func environmentOf(t *testing.T, results string) *result.Environment {
	t.Helper()
	r, err := result.Open(results)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Run.Environment == nil {
		t.Fatalf("%s has no environment", results)
	}
	return r.Run.Environment
}

func TestDeploymentFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--set", "hardware=0xH100"}, {"--set", "model-size=big"}, {"--set", "tp=-1"}, {"--set", "engine-flags=" + strings.Repeat("x", flags.MaxNote+1)},
	} {
		if _, errs, code := reprise(t, append([]string{"replay", "absent.parquet", "-o", "r.parquet"}, args...)...); code != cli.Usage || !strings.Contains(errs, args[0]) {
			t.Errorf("%v: exit code %d, %s", args[0], code, errs)
		}
	}
}
