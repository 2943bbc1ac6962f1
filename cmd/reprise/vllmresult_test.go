package main

import (
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/peer"
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
		"report r --format vllm --json":                            "contradict",
		"report r --definitions jmeter":                            "aiperf",
		"report r --steady-share 2":                                "from 0 to 1",
		"replay w.parquet -o r.parquet --save-detailed":            "--save-result",
		"replay w.parquet -o r.parquet --result-dir x":             "--save-result",
		"replay w.parquet -o r.parquet --save-result --metadata x": "KEY=VALUE",
	} {
		if _, errs, code := reprise(t, strings.Fields(args)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}

// vLLM's names of files, and its rate and burstiness of our processes.
func TestVLLMRates(t *testing.T) {
	type is struct {
		rate, burstiness float64
		process          string
	}
	for process, want := range map[string]is{
		"": {}, "inf": {}, "poisson:2.5": {rate: 2.5}, "gamma:5,2": {5, .25, ""}, "gamma:5,cv=0.5": {5, 4, ""}, "gamma:5,burstiness=3": {5, 3, ""},
		"step:1-2,1m": {process: "step:1-2,1m"}, "ramp:1-5,5m": {process: "ramp:1-5,5m"},
	} {
		var o peer.VLLMOptions
		setRate(&o, process)
		if got := (is{o.RequestRate, o.Burstiness, o.Process}); got != want {
			t.Errorf("%q: %+v, want %+v", process, got, want)
		}
	}
	var o peer.VLLMOptions
	if setRate(&o, "ramp-up:linear,1-5,burstiness=2"); o.RampUp == nil || *o.RampUp != (peer.RampUp{Strategy: "linear", Start: 1, End: 5}) || o.Burstiness != 2 {
		t.Errorf("%+v", o)
	}
}
