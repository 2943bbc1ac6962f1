package report

var guideStats = []string{"mean", "median", "std", "min", "max", "p95", "p99"}

// weighted emits a value as many times as it weighs.
func weighted(value, weight int64, emit func(int64)) {
	for range weight {
		emit(value)
	}
}

var guidellmPreset = preset{
	name:   "guidellm",
	source: "src/guidellm/schemas/request_stats.py and statistics.py of GuideLLM, 2026. Percentiles are the least value whose share reaches p, not interpolated.",
	see:    seeGuideLLM, zeroes: true, stepwise: true,
	measures: []measure{
		{name: "successful requests", unit: "requests", definition: "Requests that ended without an error.", formula: "count", total: figure(completedOf)},
		{name: "errored requests", unit: "requests", definition: "Requests that failed.", formula: "count", total: figure(failedOf)},
		{name: "request_latency", unit: "s", per: 1e9, definition: "To the end of the stream.", formula: "request_end − request_start", stats: guideStats, each: latencyOf},
		{name: "time_to_first_token_ms", unit: "ms", definition: "To the first iteration with a token; 0 for an answer without one.", formula: "first_token_iteration − request_start", stats: guideStats, each: func(v *view, emit func(int64)) { emit(v.ttft) }},
		{name: "time_per_output_token_ms", unit: "ms", definition: "Includes the time to the first token, unlike anybody else's TPOT. Each request weighs as many as its tokens.", formula: "(last_token_iteration − request_start) ÷ output_tokens", stats: guideStats, each: func(v *view, emit func(int64)) {
			if v.out > 0 {
				weighted(round(float64(v.end-v.start)/float64(v.out)), v.out, emit)
			}
		}},
		{name: "inter_token_latency_ms", unit: "ms", definition: "A mean for each request, not gaps: vLLM's TPOT. Each weighs as many as its tokens after the first.", formula: "(last_token_iteration − first_token_iteration) ÷ (output_tokens − 1)", stats: guideStats, each: func(v *view, emit func(int64)) {
			if each, ok := decodePerOutput(v); ok {
				weighted(round(each), v.out-1, emit)
			}
		}},
		{name: "prompt_token_count", unit: "tokens", definition: "Of a request.", formula: "usage.prompt_tokens", stats: guideStats, each: inputsOf},
		{name: "output_token_count", unit: "tokens", definition: "Of a request: from usage, else its chunks.", formula: "usage.completion_tokens", stats: guideStats, each: outputsOf},
		{name: "requests_per_second", unit: "req/s", definition: "The mean of a distribution over time of the rates between completions.", formula: "Σ rate·duration", missing: "it depends on GuideLLM's own measuring window"},
		{name: "request_concurrency", unit: "requests", definition: "A distribution over time.", formula: "Σ level·duration", missing: "it depends on GuideLLM's own measuring window"},
		{name: "output_tokens_per_second", unit: "tok/s", definition: "The mean of a distribution over time of tokens spread evenly over each answer.", formula: "Σ rate·duration", missing: "it depends on GuideLLM's own measuring window"},
	},
}

var genaiStats = []string{"avg", "min", "max", "p99", "p90", "p75"}

var genaiPreset = preset{
	name:   "genai-perf",
	source: "genai_perf/profile_data_parser/llm_profile_data_parser.py of GenAI-Perf, 2025. It counts tokens with its own tokenizer; here they are those of the server's usage.",
	see:    seeContent,
	measures: []measure{
		{name: "Time To First Token", unit: "ms", definition: "To the first response with content.", formula: "response[0] − request", stats: genaiStats, each: ttftOf},
		{name: "Time To Second Token", unit: "ms", definition: "From the first response with content to the second.", formula: "response[1] − response[0]", stats: genaiStats, each: secondOf},
		{name: "Request Latency", unit: "ms", definition: "To the last response with content.", formula: "response[last] − request", stats: genaiStats, each: latencyOf},
		{name: "Inter Token Latency", unit: "ms", definition: "What vLLM calls TPOT: one value for each request with two output tokens or more.", formula: "(request latency − TTFT) ÷ (output tokens − 1)", stats: genaiStats, each: perOutputOf},
		{name: "Output Token Throughput Per Request", unit: "tokens/sec", definition: "Of one request, its first token included.", formula: "output tokens ÷ request latency", stats: genaiStats, each: wholeRateOf},
		{name: "Output Sequence Length", unit: "tokens", definition: "Of a request.", formula: "tokens", stats: genaiStats, each: outputsOf},
		{name: "Input Sequence Length", unit: "tokens", definition: "Of a request.", formula: "tokens", stats: genaiStats, each: inputsOf},
		{name: "Output Token Throughput", unit: "tokens/sec", definition: "Of all requests together, from the first request to the last response.", formula: "Σ output tokens ÷ benchmark duration", total: perOK(outOf)},
		{name: "Request Throughput", unit: "requests/sec", definition: "Requests from the first to the last response.", formula: "requests ÷ benchmark duration", total: perOK(completedOf)},
		{name: "Request Goodput", unit: "requests/sec", definition: "Requests that meet every objective.", formula: "good ÷ benchmark duration", missing: "it pairs lists of different lengths where an answer has one token, so which requests it compares is not defined"},
	},
}

var inferenceStats = []string{"mean", "min", "median", "p90", "p95", "p99", "max"}

var inferencePreset = preset{
	name:   "inference-perf",
	source: "inference_perf/reportgen/base.py of inference-perf, August 2026, with use_server_output_tokens. Latencies are in seconds.",
	see:    seeInferencePerf, tpot: decodePerOutput,
	measures: []measure{
		{name: "successes.count", unit: "requests", definition: "Requests without an error.", formula: "count", total: figure(completedOf)},
		{name: "failures.count", unit: "requests", definition: "Requests with an error.", formula: "count", total: figure(failedOf)},
		{name: "benchmark_time_seconds", unit: "s", definition: "From the first start to the last end, failures included.", formula: "max(end) − min(start)", total: runSeconds},
		{name: "schedule_delay", unit: "s", per: 1e9, definition: "How late requests were sent; here of the successful ones.", formula: "start − scheduled", stats: inferenceStats, each: lagOf},
		{name: "request_latency", unit: "s", per: 1e9, definition: "To the end of the stream.", formula: "end − start", stats: inferenceStats, each: latencyOf},
		{name: "normalized_time_per_output_token", unit: "s", per: 1e9, definition: "The whole request over its tokens; 0 for an answer without one.", formula: "request_latency ÷ output_tokens", stats: inferenceStats, each: func(v *view, emit func(int64)) {
			if v.out <= 0 {
				emit(0)
				return
			}
			emit(round(float64(v.latency) / float64(v.out)))
		}},
		{name: "time_per_output_token", unit: "s", per: 1e9, definition: "Of answers with two tokens or more.", formula: "(last token − first token) ÷ (output_tokens − 1)", stats: inferenceStats, each: decodePerOutputOf},
		{name: "time_to_first_token", unit: "s", per: 1e9, definition: "To the first chunk with content, of answers with two tokens or more.", formula: "first token − start", stats: inferenceStats, each: ttftOf},
		{name: "inter_token_latency", unit: "s", per: 1e9, definition: "The gaps between tokens, where those of one chunk have gaps of 0; of answers whose tokens in each chunk are known, or one.", formula: "token[i] − token[i−1]", stats: inferenceStats, each: tokenGapsOf},
		{name: "input_tokens_per_sec", unit: "tok/s", definition: "Of successful requests.", formula: "Σ input ÷ benchmark_time", total: perRun(inOf)},
		{name: "output_tokens_per_sec", unit: "tok/s", definition: "Of successful requests.", formula: "Σ output ÷ benchmark_time", total: perRun(outOf)},
		{name: "total_tokens_per_sec", unit: "tok/s", definition: "Of successful requests.", formula: "(Σ input + Σ output) ÷ benchmark_time", total: perRun(bothOf)},
		{name: "requests_per_sec", unit: "req/s", definition: "Successful requests.", formula: "count ÷ benchmark_time", total: perRun(completedOf)},
		{name: "request_size_bytes", unit: "bytes", definition: "Of the request's body.", formula: "bytes", missing: "bodies are not kept"},
		{name: "request_goodput", unit: "req/s", definition: "Successful requests that meet every objective, over the time from the first of them to the last end. Null without objectives.", formula: "good ÷ (max(end) − min(start))", total: ifAsked(func(t *totals) *float64 { return perSecond(t.good, t.okClosed-t.okFirst) })},
		{name: "goodput_percentage", unit: "%", definition: "Of the successful requests: failures are not in the denominator.", formula: "100·good ÷ count", total: ifAsked(func(t *totals) *float64 {
			if t.completed == 0 {
				return nil
			}
			return Rounded(100*float64(t.good)/float64(t.completed), 1e9)
		})},
	},
}
