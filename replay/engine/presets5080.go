package engine

// rtx5080 is a workload of the log of a small server, and what came of it under each of
// the three ways in which the server was run.
type rtx5080 struct {
	load                      trial
	static, continuous, paged trialResult
}

// rtx5080Log is the log of Llama-3.2-3B: its five workloads, in its order. Lengths are
// those that it gives, drawn anew.
func rtx5080Log() []rtx5080 {
	return []rtx5080{
		{closedLoop{Concurrency: 1, Requests: 10, Prompt: exactly(256), Output: exactly(256)},
			trialResult{OutputPerS: 88.5, TTFTP50: 86, TTFTP99: 88, ITLP50: 11, ITLP99: 13, E2EP50: 2890},
			trialResult{OutputPerS: 87.1, TTFTP50: 35, TTFTP99: 37, ITLP50: 11, ITLP99: 13, E2EP50: 2939},
			trialResult{OutputPerS: 84.1, TTFTP50: 40, TTFTP99: 41, ITLP50: 12, ITLP99: 13, E2EP50: 3046}},
		{openLoop{Requests: 32, Rate: 4, Even: true, Prompt: lengthRange{Min: 64, Max: 512},
			Output: lengthRange{Min: 64, Max: 256}, Seed: 1},
			trialResult{OutputPerS: 254, TTFTP50: 4037, TTFTP99: 9678, ITLP50: 17, ITLP99: 19, E2EP50: 6491},
			trialResult{OutputPerS: 316.9, TTFTP50: 1825, TTFTP99: 4352, ITLP50: 21, ITLP99: 58, E2EP50: 5149},
			trialResult{OutputPerS: 340.4, TTFTP50: 133, TTFTP99: 202, ITLP50: 35, ITLP99: 85, E2EP50: 6202}},
		{openLoop{Requests: 48, Prompt: lengthRange{Min: 128, Max: 384},
			Output: lengthRange{Min: 128, Max: 256}, Seed: 1},
			trialResult{OutputPerS: 346.1, TTFTP50: 10920, TTFTP99: 22014, ITLP50: 17, ITLP99: 21, E2EP50: 14346},
			trialResult{OutputPerS: 338.2, TTFTP50: 10934, TTFTP99: 22904, ITLP50: 21, ITLP99: 43, E2EP50: 15469},
			trialResult{OutputPerS: 455.2, TTFTP50: 3736, TTFTP99: 12278, ITLP50: 45, ITLP99: 90, E2EP50: 13528}},
		{openLoop{Requests: 48, Rate: 6, Prompt: lengthRange{Min: 1024, Max: 2048},
			Fourth: lengthRange{Min: 64, Max: 128}, Output: lengthRange{Min: 64, Max: 256}, Seed: 7},
			trialResult{OutputPerS: 150.5, TTFTP50: 16810, TTFTP99: 35625, ITLP50: 29, ITLP99: 36, E2EP50: 23564},
			trialResult{OutputPerS: 197.4, TTFTP50: 13156, TTFTP99: 25153, ITLP50: 36, ITLP99: 140, E2EP50: 17881},
			trialResult{OutputPerS: 22.5, TTFTP50: 39099, TTFTP99: 285209, ITLP50: 1384, ITLP99: 1562, E2EP50: 294249}},
		// no cache: the shared prefix is computed like the rest
		{openLoop{Requests: 48, Rate: 8, Even: true, Prompt: lengthRange{Min: 1056, Max: 1152},
			Output: exactly(256), Seed: 1},
			trialResult{OutputPerS: 300, TTFTP50: 14419, TTFTP99: 30405, ITLP50: 23, ITLP99: 26, E2EP50: 20704},
			trialResult{OutputPerS: 256.4, TTFTP50: 17139, TTFTP99: 34569, ITLP50: 29, ITLP99: 95, E2EP50: 23779},
			trialResult{OutputPerS: 253.2, TTFTP50: 10214, TTFTP99: 22173, ITLP50: 83, ITLP99: 208, E2EP50: 33739}},
	}
}

// rtx5080Llama is a small server of its author's before and after continuous
// batching, each with its own costs: its author pads the prompts of a step to the longest,
// and static batches were run by other code.
func rtx5080Llama() Preset {
	p := rtx5080Server("rtx5080-llama-3.2-3b", 8,
		"under static and continuous batching, each with costs of its own (--set batching=static takes the static "+
			"ones)")
	p.Engine.Costs = Costs{Step: 11_270_000_000, KVToken: 2_070_000, PrefillToken: 70_780_000, DecodeSeq: 3_272_000_000,
		Request: 18_180_000_000}
	p.Static = &Costs{Step: 11_300_000_000, KVToken: 1_403_000, PrefillToken: 213_900_000, DecodeSeq: 2_484_000_000,
		Request: 32_140_000_000}
	for _, row := range rtx5080Log() {
		p.published = append(p.published, published{load: row.load, want: row.continuous},
			published{load: row.load, want: row.static, engine: func(c *Config) { c.Batching = staticBatching }})
	}
	return p
}

// rtx5080Paged is the same server with paged memory and 24 sequences.
func rtx5080Paged() Preset {
	p := rtx5080Server("rtx5080-llama-3.2-3b-paged", 24,
		"with paged memory of 2,048 blocks, 24 sequences and a kernel of its own. "+
			"Long prompts at 6 req/s were not fitted: there the source ran out of GPU memory and was 9 times slower "+
			"than before, which this model does not know")
	p.Engine.Costs = Costs{Step: 11_960_000_000, KVToken: 2_333_000, PrefillToken: 103_800_000,
		DecodeSeq: 2_597_000_000, Request: 12_120_000_000}
	for i, row := range rtx5080Log() {
		p.published = append(p.published, published{load: row.load, want: row.paged, beyond: i == 3})
	}
	return p
}

func rtx5080Server(name string, seqs int, how string) Preset {
	p := Preset{Name: name, Model: "Llama-3.2-3B-Instruct",
		About: "1 × RTX 5080, a small server with whole prompts and no prefix cache, " + how + ". Five workloads: " +
			"one request at a time, 4 req/s, a burst of 48, long prompts at 6 req/s, a shared prefix at 8 req/s. " +
			"Lengths were drawn anew, so the figures rest on other requests; other draws come up to 6 points " +
			"farther from the source, draws of the paged engine up to 38. The source also has Qwen3-4B and " +
			"Gemma3-1B, which are no part of this.",
		Hardware: decoding(3.21e9, 960e9, 1), Cards: "RTX 5080", GPU: "rtx5080",
		Engine: DefaultConfig()}
	p.Engine.KVTokens, p.Engine.MaxSeqs, p.Engine.MaxBatchTokens = 32_768, seqs, 4096
	p.Engine.ChunkedPrefill, p.Engine.PrefixCaching = false, false
	return p
}
