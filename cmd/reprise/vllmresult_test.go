package main

import (
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
		"report r --steady-share 2":                                "from 0% to 100%",
		"replay w.parquet -o r.parquet --save-detailed":            "--save-result",
		"replay w.parquet -o r.parquet --result-dir x":             "--save-result",
		"replay w.parquet -o r.parquet --save-result --metadata x": "KEY=VALUE",
	} {
		if _, errs, code := reprise(t, strings.Fields(args)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}
