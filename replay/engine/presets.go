package engine

// Presets lists the presets. Their costs are effective ones: they carry
// whatever the source's software and host added, and KVToken much of what each
// further sequence costs.
func Presets() []Preset {
	all := []Preset{l4Qwen(), h100Llama(), t4Llama(), rtx5080Llama()}
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
		About:    "1 × NVIDIA L4, BF16, vLLM 0.23.0, a sweep of concurrency with 256/128 tokens. Step budget: vLLM's default of 2,048 tokens was assumed.",
		Hardware: decoding(0.49e9, 300e9, 1), Cards: "L4",
		Engine: DefaultConfig()}
	p.Engine.KVTokens = 1_080_000
	p.Engine.Costs = Costs{Step: 5_160_000_000, KVToken: 183_500, PrefillToken: 22_060_000, DecodeSeq: 957_000, Request: 24_140_000_000}
	for _, row := range []struct {
		concurrency     int
		perS, ttft, itl float64
	}{{1, 168, 27, 5.1}, {2, 367, 37.8, 5.2}, {4, 698, 50.1, 5.3}, {8, 1312, 60.9, 5.5}, {16, 2277, 103.8, 6}, {32, 3773, 135.3, 7.1}} {
		p.published = append(p.published, published{load: closedLoop{Concurrency: row.concurrency, Requests: 10 * row.concurrency, Prompt: exactly(256), Output: exactly(128)},
			want: trialResult{OutputPerS: row.perS, TTFTP50: row.ttft, ITLP50: row.itl}})
	}
	return p
}

// h100Llama is a table of decoding by batch size and a curve of latency by
// rate. The source has another curve of TTFT by rate, and a report at 20 req/s,
// which both contradict the curve that is fitted here. It does not say the
// lengths; those of its own chat profile are taken, 500/200 tokens on average.
func h100Llama() Preset {
	p := Preset{Name: "h100-llama-70b", Model: "Llama 70B",
		About: "8 × H100, vLLM V1: decoding by batch size, and the QPS-latency curve over 60 s a level; a second curve of the source contradicts it and is not fitted. " +
			"Lengths are not said: lognormal of means 500/200, sigma 0.8, were assumed, and a step budget of 8,192 tokens, 256 sequences and 1.3 M tokens of KV. " +
			"Above 25 req/s the queue grows for as long as the run lasts, and is not fitted. " +
			"The 42 ms a token of its table are what one H100 needs to read the weights in BF16, the precision that was assumed.",
		Hardware: decoding(70e9, 3.35e12, 8), Cards: "8 × H100",
		Engine: DefaultConfig()}
	p.Engine.KVTokens, p.Engine.MaxSeqs, p.Engine.MaxBatchTokens = 1_300_000, 256, 8192
	p.Engine.Costs = Costs{Step: 36_210_000_000, KVToken: 52_810, PrefillToken: 26_790_000, DecodeSeq: 133_700_000, Request: 40_910_000_000}
	for _, row := range []struct { // its tokens/s are the batch over this, and say nothing more
		batch int
		itl   float64
	}{{1, 42}, {4, 42}, {16, 42}, {32, 43}, {64, 43}, {128, 44}, {256, 53}, {512, 83}} {
		p.published = append(p.published, published{load: closedLoop{Concurrency: row.batch, Requests: row.batch, Prompt: exactly(500), Output: exactly(200)},
			want: trialResult{ITLP50: row.itl}, engine: func(c *Config) { c.MaxSeqs = row.batch }})
	}
	for _, row := range []struct{ rate, p50, p99 float64 }{{1, 82, 95}, {5, 85, 110}, {10, 92, 180}, {15, 105, 280}, {20, 135, 450},
		{25, 220, 800}, {30, 480, 2500}, {35, 1200, 8000}, {40, 5000, 30000}} {
		p.published = append(p.published, published{want: trialResult{TTFTP50: row.p50, TTFTP99: row.p99}, beyond: row.rate > 25,
			load: openLoop{Requests: int(60 * row.rate), Rate: row.rate, Seed: 1,
				Prompt: chatPrompt, Output: chatOutput}})
	}
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
		About: "1 × Tesla T4, vLLM 0.15.1, offline batches of 100 output tokens. Prompts are not said: 30 tokens were assumed. " +
			"Nothing in it tells prefill from the rest: its cost is no better than a guess.",
		Hardware: decoding(3.21e9, 320e9, 1), Cards: "Tesla T4",
		Engine: DefaultConfig()}
	p.Engine.KVTokens, p.Engine.MaxSeqs = 61_000, 8
	p.Engine.Costs = Costs{Step: 27_490_000_000, KVToken: 4_769_000, PrefillToken: 104_500_000, DecodeSeq: 2_555_000_000}
	for _, row := range []struct {
		batch     int
		perS, e2e float64
	}{{1, 37, 2700}, {2, 69, 2898}, {4, 135.6, 2949}, {8, 265.1, 3016}} {
		p.published = append(p.published, published{load: closedLoop{Concurrency: row.batch, Requests: 2 * row.batch, Prompt: exactly(30), Output: exactly(100)},
			want: trialResult{OutputPerS: row.perS, E2EP50: row.e2e}})
	}
	return p
}

// rtx5080Llama is a small server of its author's before and after continuous
// batching, under the five workloads of its log. Three of them were fitted, and one
// request at a time only as it was after. Its own kernels for paged memory are another
// engine: they were slower, and are left out.
func rtx5080Llama() Preset {
	p := Preset{Name: "rtx5080-llama-3.2-3b", Model: "Llama-3.2-3B-Instruct",
		About: "1 × RTX 5080, a small server of 8 sequences with whole prompts and no prefix cache, under static and continuous batching: one request at a time, 4 req/s, a burst of 48, long prompts at 6 req/s, a shared prefix at 8 req/s. " +
			"The two with prompts of 1,000 tokens and more were not fitted: the costs are far off there. " +
			"Lengths were drawn anew, so the figures rest on other requests.",
		Hardware: decoding(3.21e9, 960e9, 1), Cards: "RTX 5080",
		Engine: DefaultConfig()}
	p.Engine.KVTokens, p.Engine.MaxSeqs, p.Engine.MaxBatchTokens = 32_768, 8, 4096
	p.Engine.ChunkedPrefill, p.Engine.PrefixCaching = false, false
	p.Engine.Costs = Costs{Step: 9_179_000_000, KVToken: 4_606_000, PrefillToken: 130_100_000, DecodeSeq: 1_887_000_000, Request: 3_618_000_000}
	static := func(c *Config) { c.Batching = staticBatching }
	for _, row := range []struct {
		load               trial
		continuous, static trialResult
		beyond, alone      bool // neither was fitted; static was not
	}{
		{load: closedLoop{Concurrency: 1, Requests: 10, Prompt: exactly(256), Output: exactly(256)}, alone: true,
			continuous: trialResult{OutputPerS: 87.1, TTFTP50: 35, ITLP50: 11, E2EP50: 2939},
			static:     trialResult{OutputPerS: 88.5, TTFTP50: 86, ITLP50: 11, E2EP50: 2890}},
		{load: openLoop{Requests: 32, Rate: 4, Even: true, Prompt: lengthRange{Min: 64, Max: 512}, Output: lengthRange{Min: 64, Max: 256}, Seed: 1},
			continuous: trialResult{OutputPerS: 316.9, TTFTP50: 1825, TTFTP99: 4352, ITLP50: 21, E2EP50: 5149},
			static:     trialResult{OutputPerS: 254, TTFTP50: 4037, TTFTP99: 9678, ITLP50: 17, E2EP50: 6491}},
		{load: openLoop{Requests: 48, Prompt: lengthRange{Min: 128, Max: 384}, Output: lengthRange{Min: 128, Max: 256}, Seed: 1},
			continuous: trialResult{OutputPerS: 338.2, TTFTP50: 10934, TTFTP99: 22904, ITLP50: 21, E2EP50: 15469},
			static:     trialResult{OutputPerS: 346.1, TTFTP50: 10920, TTFTP99: 22014, ITLP50: 17, E2EP50: 14346}},
		{load: openLoop{Requests: 48, Rate: 6, Prompt: lengthRange{Min: 1024, Max: 2048}, Fourth: lengthRange{Min: 64, Max: 128}, Output: lengthRange{Min: 64, Max: 256}, Seed: 7}, beyond: true, // a draw that suits it less than 1 does
			continuous: trialResult{OutputPerS: 197.4, TTFTP50: 13156, TTFTP99: 25153, ITLP50: 36, E2EP50: 17881},
			static:     trialResult{OutputPerS: 150.5, TTFTP50: 16810, TTFTP99: 35625, ITLP50: 29, E2EP50: 23564}},
		{load: openLoop{Requests: 48, Rate: 8, Even: true, Prompt: lengthRange{Min: 1056, Max: 1152}, Output: exactly(256), Seed: 1}, beyond: true, // no cache: the shared prefix is computed like the rest
			continuous: trialResult{OutputPerS: 256.4, TTFTP50: 17139, TTFTP99: 34569, ITLP50: 29, E2EP50: 23779},
			static:     trialResult{OutputPerS: 300, TTFTP50: 14419, TTFTP99: 30405, ITLP50: 23, E2EP50: 20704}},
	} {
		p.published = append(p.published, published{load: row.load, want: row.continuous, beyond: row.beyond},
			published{load: row.load, want: row.static, engine: static, beyond: row.beyond || row.alone})
	}
	return p
}
