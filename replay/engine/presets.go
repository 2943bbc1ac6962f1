package engine

import "reprise/replay/hardware"

// Presets lists the presets. Their costs are effective ones: they carry
// whatever the source's software and host added, and KVToken much of what each
// further sequence costs.
func Presets() []Preset {
	all := []Preset{l4Qwen(), t4Llama(), rtx5080Llama(), rtx5080Paged(), documentLlama(), rooflineLlama()}
	for i := range all {
		all[i].Warning = all[i].Warn(all[i].Engine.Costs)
	}
	return all
}

// decoding is the hardware of a model whose weights have two bytes a parameter, as it
// decodes one sequence; bandwidth is that of the GPU's data sheet, in bytes per second.
func decoding(params, bandwidth float64, gpus int) Roofline {
	return Roofline{Params: params, BytesPerParam: 2, Bandwidth: bandwidth, GPUs: gpus, Efficiency: 1, Batch: 1}
}

// l4Qwen is a sweep of concurrency. Its KV cache was 1.1 % used with 31 running.
func l4Qwen() Preset {
	p := Preset{Name: "l4-qwen2.5-0.5b", Model: "Qwen2.5-0.5B-Instruct",
		About: "1 × NVIDIA L4, BF16, vLLM 0.23.0, a sweep of concurrency with 256/128 tokens. Step budget: vLLM's " +
			"default of 2,048 tokens was assumed. " +
			"Output tokens/s, TTFT p50 and ITL p50 were fitted; the other figures are shown beside them.",
		Hardware: decoding(0.49e9, 300e9, 1), Cards: "L4", GPU: "l4",
		Engine: DefaultConfig()}
	p.Engine.KVTokens = 1_080_000
	p.Engine.Costs = Costs{Step: 5_160_000_000, KVToken: 183_500, PrefillToken: 22_060_000, DecodeSeq: 957_000,
		Request: 24_140_000_000}
	for _, row := range []struct {
		concurrency int
		want, also  trialResult
	}{
		{1, trialResult{OutputPerS: 168, TTFTP50: 27, ITLP50: 5.1},
			trialResult{TTFTP95: 115.5, ITLP95: 6.1, E2EP50: 679, E2EP95: 765}},
		{2, trialResult{OutputPerS: 367, TTFTP50: 37.8, ITLP50: 5.2},
			trialResult{TTFTP95: 48.2, ITLP95: 6.3, E2EP50: 698, E2EP95: 705}},
		{4, trialResult{OutputPerS: 698, TTFTP50: 50.1, ITLP50: 5.3},
			trialResult{TTFTP95: 85.4, ITLP95: 6.4, E2EP50: 722, E2EP95: 760}},
		{8, trialResult{OutputPerS: 1312, TTFTP50: 60.9, ITLP50: 5.5},
			trialResult{TTFTP95: 88.4, ITLP95: 7.4, E2EP50: 772, E2EP95: 816}},
		{16, trialResult{OutputPerS: 2277, TTFTP50: 103.8, ITLP50: 6},
			trialResult{TTFTP95: 135.7, ITLP95: 8.9, E2EP50: 880, E2EP95: 947}},
		{32, trialResult{OutputPerS: 3773, TTFTP50: 135.3, ITLP50: 7.1},
			trialResult{TTFTP95: 191.8, ITLP95: 12, E2EP50: 1082, E2EP95: 1128}},
	} {
		p.published = append(p.published, published{want: row.want, also: row.also,
			load: closedLoop{Concurrency: row.concurrency, Requests: 10 * row.concurrency, Prompt: exactly(256),
				Output: exactly(128)}})
	}
	return p
}

// documentLlama is a document's table of decoding by batch size and its curve of latency
// by rate. The document has another curve of TTFT by rate, and a report at 20 req/s,
// which both contradict the curve that is fitted here. It does not say the
// lengths; those of its own chat profile are taken, 500/200 tokens on average.
func documentLlama() Preset {
	p := Preset{Name: "document-h100-llama-70b", Model: "Llama 70B",
		About: "What a document says of 8 × H100 with vLLM V1, and no such machine: decoding by batch size, and the " +
			"QPS-latency curve over 60 s a level. " +
			"A second curve and an example report of the document contradict it and are not fitted; its closed-loop " +
			"curve names rates without a concurrency and cannot be played. " +
			"Lengths are not said: lognormal of means 500/200, sigma 0.8, were assumed, and a step budget of 8,192 " +
			"tokens, 256 sequences and 1.3 M tokens of KV. " +
			"Above 25 req/s the queue grows for as long as the run lasts, and is not fitted. " +
			"The 42 ms a token of its table are what one H100 needs to read the weights in BF16, the precision that " +
			"was assumed.",
		Hardware: decoding(70e9, 3.35e12, 8), Cards: "8 × H100", GPU: "h100",
		Engine: DefaultConfig()}
	p.Engine.KVTokens, p.Engine.MaxSeqs, p.Engine.MaxBatchTokens = 1_300_000, 256, 8192
	p.Engine.Costs = Costs{Step: 36_210_000_000, KVToken: 52_810, PrefillToken: 26_790_000, DecodeSeq: 133_700_000,
		Request: 40_910_000_000}
	for _, row := range []struct {
		batch     int
		perS, itl float64 // tokens/s are the batch over the latency, without prefill, and say nothing more
	}{{1, 24, 42}, {4, 95, 42}, {16, 380, 42}, {32, 750, 43}, {64, 1480, 43}, {128, 2900, 44}, {256, 4800, 53},
		{512, 6200, 83}} {
		p.published = append(p.published,
			published{load: closedLoop{Concurrency: row.batch, Requests: row.batch, Prompt: exactly(500),
				Output: exactly(200)},
				want: trialResult{ITLP50: row.itl}, also: trialResult{OutputPerS: row.perS}, engine: func(c *Config) {
					c.MaxSeqs = row.batch
				}})
	}
	at := func(rate float64) trial {
		return openLoop{Requests: int(60 * rate), Rate: rate, Seed: 1, Prompt: chatPrompt, Output: chatOutput}
	}
	for _, row := range []struct{ rate, p50, p99 float64 }{{1, 82, 95}, {5, 85, 110}, {10, 92, 180},
		{15, 105, 280}, {20, 135, 450},
		{25, 220, 800}, {30, 480, 2500}, {35, 1200, 8000}, {40, 5000, 30000}} {
		p.published = append(p.published,
			published{load: at(row.rate), want: trialResult{TTFTP50: row.p50, TTFTP99: row.p99}, beyond: row.rate > 25})
	}
	for _, row := range []struct{ rate, p50, p99 float64 }{{1, 82, 95}, {5, 88, 120}, {10, 105, 280}, {20, 180, 800},
		{30, 450, 2500}, {40, 1200, 8000}, {50, 5000, 30000}} {
		p.published = append(p.published, published{load: at(row.rate), of: "second curve",
			want: trialResult{TTFTP50: row.p50, TTFTP99: row.p99}, beyond: true})
	}
	p.published = append(p.published, published{load: at(20), of: "example report", beyond: true,
		want: trialResult{OutputPerS: 3200, TTFTP50: 92, TTFTP99: 180, ITLP50: 35, ITLP99: 48}})
	return p
}

// The chat profile: lognormal and clipped.
var (
	chatPrompt = lengthRange{Min: 50, Max: 4000, Mean: 500, Sigma: 0.8}
	chatOutput = lengthRange{Min: 10, Max: 2000, Mean: 200, Sigma: 0.8}
)

// t4Llama is an offline table of batch sizes.
func t4Llama() Preset {
	p := Preset{Name: "t4-llama-3.2-3b", Model: "Llama-3.2-3B-Instruct",
		About: "1 × Tesla T4, vLLM 0.15.1, offline batches of 100 output tokens. Prompts are not said: 30 tokens " +
			"were assumed. " +
			"Nothing in it tells prefill from the rest: its cost is no better than a guess. " +
			"Output tokens/s and E2E p50 were fitted. A load test over HTTP at concurrency 5 is shown and not " +
			"fitted; the source's first one, " +
			"of a server that took one request at a time and let 56 % time out, is not played.",
		Hardware: decoding(3.21e9, 320e9, 1), Cards: "Tesla T4", GPU: "t4",
		Engine: DefaultConfig()}
	p.Engine.KVTokens, p.Engine.MaxSeqs = 61_000, 8
	p.Engine.Costs = Costs{Step: 27_490_000_000, KVToken: 4_769_000, PrefillToken: 104_500_000,
		DecodeSeq: 2_555_000_000}
	for _, row := range []struct {
		batch               int
		perS, e2e, p95, p99 float64
	}{{1, 37, 2700, 2712, 2716}, {2, 69, 2898, 2905, 2906}, {4, 135.6, 2949, 2955, 2962},
		{8, 265.1, 3016, 3026, 3026}} {
		p.published = append(p.published,
			published{load: closedLoop{Concurrency: row.batch, Requests: 2 * row.batch, Prompt: exactly(30),
				Output: exactly(100)},
				want: trialResult{OutputPerS: row.perS, E2EP50: row.e2e}, also: trialResult{E2EP95: row.p95,
					E2EP99: row.p99}})
	}
	p.published = append(p.published,
		published{load: closedLoop{Concurrency: 5, Requests: 50, Prompt: exactly(30), Output: exactly(100)},
			of: "over HTTP", beyond: true,
			want: trialResult{OutputPerS: 132.5, E2EP50: 3016, E2EP95: 3026, E2EP99: 3026}})
	return p
}

// rooflineLlama is the bound of the hardware that the document names.
func rooflineLlama() Preset {
	gpu, err := hardware.FindGPU("h100")
	if err != nil {
		return Preset{}
	}
	s := hardware.Setup{TP: 8, GPU: gpu, DType: "bf16", KVDType: "auto", Efficiency: 1, Utilization: 0.9,
		Model: hardware.Model{Name: "Llama 70B", Layers: 80, Hidden: 8192, Heads: 64, Intermediate: 28672,
			Vocab: 128256, Attention: hardware.Attention{KVHeads: 8, HeadDim: 128}}}
	like := DefaultConfig()
	like.MaxBatchTokens = 8192 // as in the document's
	p, err := RooflinePreset("roofline-8xh100-llama-70b", s, like)
	if err != nil {
		return Preset{}
	}
	p.About += " Step budget and sequences are as assumed for the document's."
	return p
}
