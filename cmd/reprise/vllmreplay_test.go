package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/peer"
	"reprise/replay/report"
)

// vllmWorkload is a small workload.
func vllmWorkload(t *testing.T, dir string, n int) string {
	t.Helper()
	log, workload := filepath.Join(dir, "log.jsonl"), filepath.Join(dir, "w.parquet")
	if err := os.WriteFile(log, []byte(sharingLog(n)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", log, "-o", filepath.Join(dir, "t.parquet"))
	must(t, "synth", "--mirror", filepath.Join(dir, "t.parquet"), "-o", workload)
	return workload
}

// judged reports results, whatever a busy machine made of their run.
func judged(t *testing.T, results string, args ...string) string {
	t.Helper()
	out, errs, code := reprise(t, append([]string{"report", results}, args...)...)
	if code != cli.Good && code != cli.Untrusted {
		t.Fatalf("report %v: exit code %d\n%s", args, code, errs)
	}
	return out
}

// A command line of vLLM's, but for its data set, gives a document of vLLM's.
func TestReplayAsVLLM(t *testing.T) {
	long(t)
	dir := t.TempDir()
	workload, results := vllmWorkload(t, dir, 40), filepath.Join(dir, "r.parquet")
	must(t, "replay", workload, "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--base-url", simulate(t),
		"--request-rate", "inf", "--max-concurrency", "4", "--num-warmups", "2", "--ignore-eos", "--disable-tqdm", "--ready-check-timeout-sec", "5",
		"--save-result", "--save-detailed", "--result-dir", filepath.Join(dir, "out", "put"), "--result-filename", "x.json",
		"--label", "here", "--metadata", "tp=1", "version=2", "--percentile-metrics", "ttft,e2el", "--metric-percentiles", "50,99.9",
		"--goodput", "ttft:60000", "e2el:60000", "-o", results)
	text, err := os.ReadFile(filepath.Join(dir, "out", "put", "x.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"backend": "openai-chat", "label": "here", "tp": "1", "version": "2", "request_rate": "inf", "max_concurrency": 4.0,
		"completed": 38.0, "failed": 0.0, "num_prompts": 38.0, "max_concurrent_requests": 4.0, "burstiness": 1.0} {
		if doc[key] != want {
			t.Errorf("%s: %v, want %v", key, doc[key], want)
		}
	}
	if doc["request_goodput"] != doc["request_throughput"] || doc["p99.9_e2el_ms"] == nil || doc["mean_itl_ms"] != nil || len(doc["itls"].([]any)) != 38 {
		t.Errorf("%.600s", text)
	}

	// report writes the same document, and lines of it can be appended.
	again := judged(t, results, "--format", "vllm")
	var other map[string]any
	if err := json.Unmarshal([]byte(again), &other); err != nil || other["duration"] != doc["duration"] || other["itls"] != nil || other["p99_itl_ms"] == nil {
		t.Errorf("%v in %s", err, again)
	}
	for range 2 {
		must(t, "replay", workload, "--url", simulate(t), "--request-rate", "500", "--append-result", "--result-dir", dir, "--result-filename", "all.jsonl", "-o", results, "--quiet")
	}
	lines, err := os.ReadFile(filepath.Join(dir, "all.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(lines), "\n") {
		if err := json.Unmarshal([]byte(line), &other); err != nil || i > 1 || other["request_rate"] != 500.0 || other["backend"] != "openai" {
			t.Errorf("line %d: %v, %.300s", i, err, line)
		}
	}
	for _, definitions := range peer.Presets() {
		out := judged(t, results, "--definitions", definitions, "--json")
		var s struct{ Peer report.Peer }
		if err := json.Unmarshal([]byte(out), &s); err != nil || s.Peer.Definitions != definitions {
			t.Errorf("%s: %v", definitions, err)
		}
	}
	// A steady state, which so short a run seldom has, is told in our own words.
	if out := judged(t, results, "--definitions", "aiperf", "--details", "--set",
		"no-steady"); !strings.Contains(out, "Inter Chunk Latency") || strings.Contains(out, "Chunk ITL") {
		t.Error(out)
	}
	if out := judged(t, results, "--set", "no-steady", "--json"); strings.Contains(out, `"steady"`) {
		t.Error("the steady state is looked for")
	}
}
