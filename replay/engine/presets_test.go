package engine

import (
	"fmt"
	"strings"
	"testing"
)

// What the sources of the presets published, and what their engines are, as the tables of
// the sources have it. A line is a load, what the source changed for it, and the figures of
// [trialResult] that were fitted, then those that are shown beside them, each as output
// tokens/s, TTFT p50, p95, p99, ITL p50, p95, p99, E2E p50, p95, p99 in ms; 0 is what a
// source does not say.
func TestPresetsAreWhatTheirSourcesSay(t *testing.T) {
	for name, want := range map[string]string{
		"l4-qwen2.5-0.5b": `
{BlockSize:16 KVTokens:1080000 MaxSeqs:256 MaxBatchTokens:2048 MaxWaiting:100000 ChunkedPrefill:true PrefixCaching:true Batching:continuous Costs:step=5.16ms,kv-token=183.5ns,prefill-token=22.06us,decode-seq=957ns,request=24.14ms Experts:0 ExpertsPerToken:0}
L4: 4.9e+08 parameters of 2 bytes, 3e+11 B/s × 1
closed 1 10 256/128: 168 27 0 0 5.1 0 0 0 0 0 | 0 0 115.5 0 0 6.1 0 679 765 0 |
closed 2 20 256/128: 367 37.8 0 0 5.2 0 0 0 0 0 | 0 0 48.2 0 0 6.3 0 698 705 0 |
closed 4 40 256/128: 698 50.1 0 0 5.3 0 0 0 0 0 | 0 0 85.4 0 0 6.4 0 722 760 0 |
closed 8 80 256/128: 1312 60.9 0 0 5.5 0 0 0 0 0 | 0 0 88.4 0 0 7.4 0 772 816 0 |
closed 16 160 256/128: 2277 103.8 0 0 6 0 0 0 0 0 | 0 0 135.7 0 0 8.9 0 880 947 0 |
closed 32 320 256/128: 3773 135.3 0 0 7.1 0 0 0 0 0 | 0 0 191.8 0 0 12 0 1082 1128 0 |
`,
		"document-h100-llama-70b": `
{BlockSize:16 KVTokens:1300000 MaxSeqs:256 MaxBatchTokens:8192 MaxWaiting:100000 ChunkedPrefill:true PrefixCaching:true Batching:continuous Costs:step=36.21ms,kv-token=52.81ns,prefill-token=26.79us,decode-seq=133.7us,request=40.91ms Experts:0 ExpertsPerToken:0}
8 × H100: 7e+10 parameters of 2 bytes, 3.35e+12 B/s × 8
closed 1 1 500/200, 1 places: 0 0 0 0 42 0 0 0 0 0 | 24 0 0 0 0 0 0 0 0 0 |
closed 4 4 500/200, 4 places: 0 0 0 0 42 0 0 0 0 0 | 95 0 0 0 0 0 0 0 0 0 |
closed 16 16 500/200, 16 places: 0 0 0 0 42 0 0 0 0 0 | 380 0 0 0 0 0 0 0 0 0 |
closed 32 32 500/200, 32 places: 0 0 0 0 43 0 0 0 0 0 | 750 0 0 0 0 0 0 0 0 0 |
closed 64 64 500/200, 64 places: 0 0 0 0 43 0 0 0 0 0 | 1480 0 0 0 0 0 0 0 0 0 |
closed 128 128 500/200, 128 places: 0 0 0 0 44 0 0 0 0 0 | 2900 0 0 0 0 0 0 0 0 0 |
closed 256 256 500/200: 0 0 0 0 53 0 0 0 0 0 | 4800 0 0 0 0 0 0 0 0 0 |
closed 512 512 500/200, 512 places: 0 0 0 0 83 0 0 0 0 0 | 6200 0 0 0 0 0 0 0 0 0 |
open 60 at 1, ~500/~200, seed 1: 0 82 0 95 0 0 0 0 0 0 |
open 300 at 5, ~500/~200, seed 1: 0 85 0 110 0 0 0 0 0 0 |
open 600 at 10, ~500/~200, seed 1: 0 92 0 180 0 0 0 0 0 0 |
open 900 at 15, ~500/~200, seed 1: 0 105 0 280 0 0 0 0 0 0 |
open 1200 at 20, ~500/~200, seed 1: 0 135 0 450 0 0 0 0 0 0 |
open 1500 at 25, ~500/~200, seed 1: 0 220 0 800 0 0 0 0 0 0 |
open 1800 at 30, ~500/~200, seed 1: 0 480 0 2500 0 0 0 0 0 0 |, not fitted
open 2100 at 35, ~500/~200, seed 1: 0 1200 0 8000 0 0 0 0 0 0 |, not fitted
open 2400 at 40, ~500/~200, seed 1: 0 5000 0 30000 0 0 0 0 0 0 |, not fitted
open 60 at 1, ~500/~200, seed 1, second curve: 0 82 0 95 0 0 0 0 0 0 |, not fitted
open 300 at 5, ~500/~200, seed 1, second curve: 0 88 0 120 0 0 0 0 0 0 |, not fitted
open 600 at 10, ~500/~200, seed 1, second curve: 0 105 0 280 0 0 0 0 0 0 |, not fitted
open 1200 at 20, ~500/~200, seed 1, second curve: 0 180 0 800 0 0 0 0 0 0 |, not fitted
open 1800 at 30, ~500/~200, seed 1, second curve: 0 450 0 2500 0 0 0 0 0 0 |, not fitted
open 2400 at 40, ~500/~200, seed 1, second curve: 0 1200 0 8000 0 0 0 0 0 0 |, not fitted
open 3000 at 50, ~500/~200, seed 1, second curve: 0 5000 0 30000 0 0 0 0 0 0 |, not fitted
open 1200 at 20, ~500/~200, seed 1, example report: 3200 92 0 180 35 0 48 0 0 0 |, not fitted
`,
		"t4-llama-3.2-3b": `
{BlockSize:16 KVTokens:61000 MaxSeqs:8 MaxBatchTokens:2048 MaxWaiting:100000 ChunkedPrefill:true PrefixCaching:true Batching:continuous Costs:step=27.49ms,kv-token=4.769us,prefill-token=104.5us,decode-seq=2.555ms,request=0ps Experts:0 ExpertsPerToken:0}
Tesla T4: 3.21e+09 parameters of 2 bytes, 3.2e+11 B/s × 1
closed 1 2 30/100: 37 0 0 0 0 0 0 2700 0 0 | 0 0 0 0 0 0 0 0 2712 2716 |
closed 2 4 30/100: 69 0 0 0 0 0 0 2898 0 0 | 0 0 0 0 0 0 0 0 2905 2906 |
closed 4 8 30/100: 135.6 0 0 0 0 0 0 2949 0 0 | 0 0 0 0 0 0 0 0 2955 2962 |
closed 8 16 30/100: 265.1 0 0 0 0 0 0 3016 0 0 | 0 0 0 0 0 0 0 0 3026 3026 |
closed 5 50 30/100, over HTTP: 132.5 0 0 0 0 0 0 3016 3026 3026 |, not fitted
`,
		"rtx5080-llama-3.2-3b-paged": `
{BlockSize:16 KVTokens:32768 MaxSeqs:24 MaxBatchTokens:4096 MaxWaiting:100000 ChunkedPrefill:false PrefixCaching:false Batching:continuous Costs:step=11.96ms,kv-token=2.333us,prefill-token=103.8us,decode-seq=2.597ms,request=12.12ms Experts:0 ExpertsPerToken:0}
RTX 5080: 3.21e+09 parameters of 2 bytes, 9.6e+11 B/s × 1
closed 1 10 256/256: 84.1 40 0 41 12 0 13 3046 0 0 |
open 32 at 4 even, 64–512/64–256, seed 1: 340.4 133 0 202 35 0 85 6202 0 0 |
open 48 at 0, 128–384/128–256, seed 1: 455.2 3736 0 12278 45 0 90 13528 0 0 |
open 48 at 6, 1024–2048 and 64–128/64–256, seed 7: 22.5 39099 0 285209 1384 0 1562 294249 0 0 |, not fitted
open 48 at 8 even, 1056–1152/256, seed 1: 253.2 10214 0 22173 83 0 208 33739 0 0 |
`,
		"rtx5080-llama-3.2-3b": `
{BlockSize:16 KVTokens:32768 MaxSeqs:8 MaxBatchTokens:4096 MaxWaiting:100000 ChunkedPrefill:false PrefixCaching:false Batching:continuous Costs:step=11.27ms,kv-token=2.07us,prefill-token=70.78us,decode-seq=3.272ms,request=18.18ms Experts:0 ExpertsPerToken:0}
static step=11.3ms,kv-token=1.403us,prefill-token=213.9us,decode-seq=2.484ms,request=32.14ms
RTX 5080: 3.21e+09 parameters of 2 bytes, 9.6e+11 B/s × 1
closed 1 10 256/256: 87.1 35 0 37 11 0 13 2939 0 0 |
closed 1 10 256/256, static: 88.5 86 0 88 11 0 13 2890 0 0 |
open 32 at 4 even, 64–512/64–256, seed 1: 316.9 1825 0 4352 21 0 58 5149 0 0 |
open 32 at 4 even, 64–512/64–256, seed 1, static: 254 4037 0 9678 17 0 19 6491 0 0 |
open 48 at 0, 128–384/128–256, seed 1: 338.2 10934 0 22904 21 0 43 15469 0 0 |
open 48 at 0, 128–384/128–256, seed 1, static: 346.1 10920 0 22014 17 0 21 14346 0 0 |
open 48 at 6, 1024–2048 and 64–128/64–256, seed 7: 197.4 13156 0 25153 36 0 140 17881 0 0 |
open 48 at 6, 1024–2048 and 64–128/64–256, seed 7, static: 150.5 16810 0 35625 29 0 36 23564 0 0 |
open 48 at 8 even, 1056–1152/256, seed 1: 256.4 17139 0 34569 29 0 95 23779 0 0 |
open 48 at 8 even, 1056–1152/256, seed 1, static: 300 14419 0 30405 23 0 26 20704 0 0 |
`,
	} {
		p, err := OpenPreset(name)
		if err != nil {
			t.Fatal(err)
		}
		h := p.Hardware
		static := ""
		if p.Static != nil {
			static = "static " + p.Static.String() + "\n"
		}
		got := fmt.Sprintf("\n%+v\n%s%s: %g parameters of %g bytes, %g B/s × %d\n", p.Engine, static, p.Cards, h.Params, h.BytesPerParam, h.Bandwidth, h.GPUs)
		for _, of := range p.published {
			got += of.line(p.Engine)
		}
		if got != want {
			t.Errorf("%s: got%swant%s", name, got, want)
		}
		if h.Efficiency != 1 || h.Batch != 1 {
			t.Errorf("%s: its hardware decodes %g sequences at an efficiency of %g", name, h.Batch, h.Efficiency)
		}
	}
}

// line writes a published row for [TestPresetsAreWhatTheirSourcesSay].
func (of published) line(c Config) string {
	var text strings.Builder
	switch l := of.load.(type) {
	case closedLoop:
		fmt.Fprintf(&text, "closed %d %d %s/%s", l.Concurrency, l.Requests, l.Prompt, l.Output)
	case openLoop:
		fmt.Fprintf(&text, "open %d at %g", l.Requests, l.Rate)
		if l.Even {
			text.WriteString(" even")
		}
		fmt.Fprintf(&text, ", %s", l.Prompt)
		if l.Fourth != (lengthRange{}) {
			fmt.Fprintf(&text, " and %s", l.Fourth)
		}
		fmt.Fprintf(&text, "/%s, seed %d", l.Output, l.Seed)
	}
	if of.engine != nil {
		changed := c
		of.engine(&changed)
		if changed.MaxSeqs != c.MaxSeqs {
			fmt.Fprintf(&text, ", %d places", changed.MaxSeqs)
		}
		if changed.Batching == staticBatching {
			text.WriteString(", static")
		}
	}
	if of.of != "" {
		fmt.Fprintf(&text, ", %s", of.of)
	}
	text.WriteString(":")
	for _, r := range []trialResult{of.want, of.also} {
		if r != (trialResult{}) {
			text.WriteString(" ")
			for i, f := range r.figures() {
				text.WriteString(strings.Repeat(" ", min(i, 1)) + fmt.Sprint(f.value))
			}
			text.WriteString(" |")
		}
	}
	if of.beyond {
		text.WriteString(", not fitted")
	}
	return text.String() + "\n"
}

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
