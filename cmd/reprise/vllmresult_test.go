package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

func TestVLLMResultUsage(t *testing.T) {
	for args, want := range map[string]string{
		"report r --label x":                                       "--format vllm",
		"report r --format vllm --metadata x":                      "KEY=VALUE",
		"report r --format vllm --metadata duration=1":             "vLLM's own",
		"report r --format vllm --metric-percentiles 50,x":         "numbers",
		"report r --format vllm --metric-percentiles 101":          "0 to 100",
		"report r --format vllm --percentile-metrics ttfb":         "ttft, tpot",
		"report r --format vllm --goodput itl:3":                   "ttft, tpot or e2el",
		"report r --format yaml":                                   "text, json, markdown",
		"report r --format vllm --json":                            "cannot be used together",
		"report r --definitions jmeter":                            "aiperf",
		"report r --steady-share 2":                                "MSER-5 finds the steady state: leave the flag out, or give --set no-steady",
		"replay w.parquet -o r.parquet --save-detailed":            "--save-result",
		"replay w.parquet -o r.parquet --result-dir x":             "--save-result",
		"replay w.parquet -o r.parquet --save-result --metadata x": "KEY=VALUE",
	} {
		if _, errs, code := reprise(t, strings.Fields(args)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}

// Results of other tools are reported as such, and what cannot be read is said whole.
func TestReportOfAnotherToolsResults(t *testing.T) {
	dir := t.TempDir()
	results := filepath.Join(dir, "vllm.json")
	head := `{"date": "20261122-101500", "backend": "openai", "model_id": "m", "tokenizer_id": "t", "request_rate": "inf", "max_concurrency": null, "duration": 2.5, "completed": 2`
	if err := os.WriteFile(results, []byte(head+`, "input_lens": [10, 12], "output_lens": [3, 1], "ttfts": [0.1, 0.3], "itls": [[0.02, 0.04], []], "start_times": [1.0, 1.5], "errors": ["", ""]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"report", results}, {"report", dir}, {"compare", results, results}} {
		out, errs, code := reprise(t, args...)
		want := map[string]string{
			"report":  "Read from results of vLLM bench serve: the run is complete. Its client was not watched, so whether\nit kept up is not known.\n2 requests in 0.8 s, as vLLM bench serve sent them, model m.\n",
			"compare": "run 1 of A and of B is one and the same",
		}[args[0]]
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("%v, exit code %d:\n%s%s", args, code, out, errs)
		}
	}
	sums := filepath.Join(dir, "sums.json")
	if err := os.WriteFile(sums, []byte(head+"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := reprise(t, "report", sums)
	if code != cli.Failure || errs != "reprise: "+sums+": results of vLLM: it has sums and no requests, so no figure can be computed again: run it with --save-detailed\n" {
		t.Errorf("exit code %d: %q", code, errs)
	}
}
