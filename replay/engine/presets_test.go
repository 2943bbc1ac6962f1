package engine

import (
	"fmt"
	"strings"
	"testing"
)

// The warning of an engine on hardware: how many times slower it is than the floor, from
// twice on, and of how many of the GPUs that is the speed.
func TestWarningOfSlowEngines(t *testing.T) {
	// 16 GB of weights at 4 × 1 TB/s take 4 ms.
	p := Preset{Name: "slow", Cards: "4 × X", Hardware: Roofline{Params: 8e9, BytesPerParam: 2, Bandwidth: 1e12, GPUs: 4, Efficiency: 1, Batch: 1}}
	want := "the preset slow decodes 2.5 times slower than the memory of its 4 × X allows: a token of one sequence takes 10.0 ms, where reading 16 GB of weights takes 4.00 ms. " +
		"That is the speed of 1.6 of the 4 GPUs. Take no latency, throughput, capacity or cost of that hardware from it"
	for _, c := range []struct {
		costs Costs
		want  string
	}{{Costs{Step: 10e9}, want}, {Costs{Step: 1e9, DecodeSeq: 10e9}, want}, {Costs{Step: 8e9}, ""}, {Costs{Step: 8e9, KVToken: 1e9, PrefillToken: 1e12}, ""}, {Costs{}, ""}} {
		if got := p.Warn(c.costs); got != c.want {
			t.Errorf("%s: got %q, want %q", c.costs, got, c.want)
		}
	}
	p.Hardware.GPUs = 0
	if got := p.Warn(Costs{Step: 1e12}); got != "" {
		t.Errorf("of hardware that is not known: %q", got)
	}
}

// A fit shows each figure of the source, those that it does not say left out, beside the
// simulated one: 2 tokens of prompt take 1 ms and each of 3 tokens 2 ms.
func TestFitShowsWhatTheSourceSays(t *testing.T) {
	c := DefaultConfig()
	c.Costs = Costs{Step: 2e9}
	load := closedLoop{Concurrency: 1, Requests: 2, Prompt: exactly(2), Output: exactly(3)}
	p := Preset{Name: "tiny", Engine: c, published: []published{
		{load: load, want: trialResult{OutputPerS: 250, TTFTP50: 1, TTFTP99: 4, ITLP50: 2, E2EP50: 12}},
		{load: load, want: trialResult{ITLP50: 4}, beyond: true, engine: func(c *Config) { c.Batching, c.Costs.Step = staticBatching, 1e9 }},
	}}
	got, err := p.Fit()
	const name = "closed loop of 1, 2/3 tokens"
	want := []FitPoint{{name, "output tokens/s", true, 250, 500}, {name, "TTFT p50, ms", true, 1, 2}, {name, "TTFT p99, ms", true, 4, 2},
		{name, "ITL p50, ms", true, 2, 2}, {name, "E2E p50, ms", true, 12, 6}, {name + ", static", "ITL p50, ms", false, 4, 1}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, %v\nwant %v", got, err, want)
	}
	if e := want[0].Error(); e != 1 {
		t.Errorf("500 for 250 is an error of %g, want 1", e)
	}
	if f := Fitted(got); fmt.Sprint(f) != fmt.Sprint(want[:5]) || len(got) != 6 {
		t.Errorf("fitted are %v", f)
	}
	// Twice, half and exactly as much: ln 2 twice, and 0.
	if got, want := fmt.Sprintf("%.6f", RMSE([]FitPoint{{Published: 1, Simulated: 2}, {Published: 4, Simulated: 2}, {Published: 3, Simulated: 3}})), "0.565952"; got != want {
		t.Errorf("the root mean square error is %s, want %s", got, want)
	}
	if got := RMSE(nil); got != 0 {
		t.Errorf("of no points it is %g", got)
	}
	p.Engine.MaxSeqs = 0
	if got, err := p.Fit(); got != nil || err == nil || !strings.HasPrefix(err.Error(), "tiny, "+name+": simulated engine: the limits of a step") {
		t.Errorf("of an engine that there cannot be: %v, %v", got, err)
	}
	_, err = OpenPreset("none")
	if want := "unknown preset: want one of l4-qwen2.5-0.5b, t4-llama-3.2-3b, rtx5080-llama-3.2-3b, rtx5080-llama-3.2-3b-paged, document-h100-llama-70b, roofline-8xh100-llama-70b"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
