package report

import "reprise/trace"

// The tables of the peers. Names are those that each prints, in its order;
// what a peer prints and a recording cannot give is listed with the reason.

// figure makes a count a figure.
func figure(of func(t *totals) int64) func(*totals) *float64 {
	return func(t *totals) *float64 { return trace.Ptr(float64(of(t))) }
}

// perRun divides a count by the time from the first request to the last end.
func perRun(of func(t *totals) int64) func(*totals) *float64 {
	return func(t *totals) *float64 { return perSecond(of(t), t.duration()) }
}

// perOK divides by the time from the first successful request to the last token.
func perOK(of func(t *totals) int64) func(*totals) *float64 {
	return func(t *totals) *float64 { return perSecond(of(t), t.okDuration()) }
}

func completedOf(t *totals) int64 { return t.completed }
func failedOf(t *totals) int64    { return t.failed }
func inOf(t *totals) int64        { return t.in }
func outOf(t *totals) int64       { return t.out }
func bothOf(t *totals) int64      { return t.in + t.out }
func runSeconds(t *totals) *float64 {
	return seconds(t.duration())
}
func okSeconds(t *totals) *float64 { return seconds(t.okDuration()) }

// ifAsked leaves a goodput out without objectives, and with one that the peer
// does not know.
func ifAsked(of func(*totals) *float64) func(*totals) *float64 {
	return func(t *totals) *float64 {
		if t.slo.empty() || t.slo.ITL != nil {
			return nil
		}
		return of(t)
	}
}

var vllmStats = []string{"mean", "median", "std", "p99"}

var vllmPreset = preset{
	name:   "vllm",
	source: "vllm/benchmarks/serve.py and lib/endpoint_request_func.py of vLLM, August 2026. Chunks after the last token (a finish reason alone) count there as one more gap and are not in a recording.",
	see:    seeVLLM, zeroes: true, peaks: true,
	measures: []measure{
		{name: "Successful requests", unit: "requests", definition: "Status 200 and at least one event.", formula: "count", total: figure(completedOf)},
		{name: "Failed requests", unit: "requests", definition: "All others that were sent. Requests cancelled on purpose have no counterpart and are in neither.", formula: "count", total: figure(failedOf)},
		{name: "Benchmark duration", unit: "s", definition: "From the first request to the end of the last.", formula: "max(done) − min(sent)", total: runSeconds},
		{name: "Total input tokens", unit: "tokens", definition: "usage.prompt_tokens, else as the workload asks.", formula: "Σ prompt", total: figure(inOf)},
		{name: "Total generated tokens", unit: "tokens", definition: "usage.completion_tokens, else counted by a tokenizer, else 1.", formula: "Σ output", total: figure(outOf)},
		{name: "Request throughput", unit: "req/s", definition: "Successful requests over the duration.", formula: "completed ÷ duration", total: perRun(completedOf)},
		{name: "Request goodput", unit: "req/s", definition: "Successful requests that meet every objective (ttft, tpot, e2el); an answer of one token has a TPOT of 0. Null without objectives.", formula: "good ÷ duration", total: ifAsked(perRun(func(t *totals) int64 { return t.good }))},
		{name: "Output token throughput", unit: "tok/s", definition: "Over the duration.", formula: "Σ output ÷ duration", total: perRun(outOf)},
		{name: "Peak output token throughput", unit: "tok/s", definition: "The most chunks in one second, counted from the first request. A chunk counts as one token, whatever it carries.", formula: "max over seconds", total: figure(func(t *totals) int64 { return t.peakTokens })},
		{name: "Peak concurrent requests", unit: "requests", definition: "The most successful requests open at once, each from its sending to its last token.", formula: "max over instants", total: figure(func(t *totals) int64 { return t.peakRequests })},
		{name: "Total token throughput", unit: "tok/s", definition: "Prompt and output tokens over the duration.", formula: "(Σ prompt + Σ output) ÷ duration", total: perRun(bothOf)},
		{name: "TTFT", key: "ttft", unit: "ms", definition: "To the first event with choices: one that brings only a role counts.", formula: "first_event − sent", stats: vllmStats, each: ttftOf},
		{name: "TPOT", key: "tpot", unit: "ms", definition: "Of answers with two tokens or more.", formula: "(E2EL − TTFT) ÷ (output − 1)", stats: vllmStats, each: perOutputOf},
		{name: "ITL", key: "itl", unit: "ms", definition: "The gaps between events, of all requests together; an event with several tokens ends one gap, and the gap behind a role-only event is one.", formula: "event[i] − event[i−1]", stats: vllmStats, each: gapsOf},
		{name: "E2EL", key: "e2el", unit: "ms", definition: "To the last token.", formula: "last_token − sent", stats: vllmStats, each: latencyOf},
		{name: "Client Queue Time", key: "client_queue_time", unit: "ms", definition: "From when a request was due to its sending, which vLLM counts from its arrival at the limit of concurrency.", formula: "sent − due", stats: vllmStats, each: lagOf},
		{name: "E2EL incl. Client Queue", key: "e2el_including_client_queue", unit: "ms", definition: "From when a request was due to its last token.", formula: "E2EL + client queue time", stats: vllmStats, each: func(v *view, emit func(int64)) { emit(v.latency + v.lag) }},
	},
}

var sglangPreset = preset{
	name:   "sglang",
	source: "python/sglang/benchmark/serving.py and metrics.py of SGLang, August 2026: the OpenAI backends, one turn a request.",
	see:    seeSGLang, zeroes: true,
	measures: []measure{
		{name: "Successful requests", unit: "requests", definition: "Status 200 and no exception.", formula: "count", total: figure(completedOf)},
		{name: "Benchmark duration", unit: "s", definition: "From the first request to the end of the last.", formula: "max(done) − min(sent)", total: runSeconds},
		{name: "Total input tokens", unit: "tokens", definition: "As asked for: usage is not requested from the server.", formula: "Σ wanted prompt", total: figure(inOf)},
		{name: "Total generated tokens", unit: "tokens", definition: "The length that was asked for, not the one that came: usage is not requested from the server.", formula: "Σ wanted output", total: figure(outOf)},
		{name: "Total generated tokens (retokenized)", unit: "tokens", definition: "The generated text under the client's tokenizer.", formula: "Σ tokens", missing: "the generated text is not kept"},
		{name: "Request throughput", unit: "req/s", definition: "Over the duration.", formula: "completed ÷ duration", total: perRun(completedOf)},
		{name: "Input token throughput", unit: "tok/s", definition: "Over the duration.", formula: "Σ wanted prompt ÷ duration", total: perRun(inOf)},
		{name: "Output token throughput", unit: "tok/s", definition: "Over the duration.", formula: "Σ wanted output ÷ duration", total: perRun(outOf)},
		{name: "Total token throughput", unit: "tok/s", definition: "Over the duration.", formula: "(Σ wanted prompt + Σ wanted output) ÷ duration", total: perRun(bothOf)},
		{name: "Concurrency", unit: "requests", definition: "The mean of the requests open at once.", formula: "Σ E2E ÷ duration", total: func(t *totals) *float64 {
			if t.latency.N == 0 || t.duration() == 0 {
				return nil
			}
			return Rounded(t.latency.Mean()*float64(t.latency.N)/float64(t.duration()), 1e9)
		}},
		{name: "Accept length", unit: "tokens", definition: "Of speculative decoding, from the server's own state.", formula: "server_info", missing: "the server's state is not asked for"},
		{name: "E2E Latency", unit: "ms", definition: "To the end of the stream, its end mark included.", formula: "done − sent", stats: []string{"mean", "median", "p90", "p99"}, each: latencyOf},
		{name: "TTFT", unit: "ms", definition: "To the first event with content or reasoning. The recording does not tell tool calls from content, so they count too.", formula: "first_token − sent", stats: []string{"mean", "median", "p99"}, each: ttftOf},
		{name: "TPOT", unit: "ms", definition: "Of answers that were asked for two tokens or more.", formula: "(E2E − TTFT) ÷ (wanted output − 1)", stats: []string{"mean", "median", "p99"}, each: perOutputOf},
		{name: "ITL", unit: "ms", definition: "The gaps between events with content, of all requests together; not divided by their tokens.", formula: "event[i] − event[i−1]", stats: []string{"mean", "median", "p95", "p99", "max"}, each: gapsOf},
	},
}

var aiperfStats = []string{"avg", "min", "max", "p99", "p90", "p50", "std"}

var aiperfPreset = preset{
	name:   "aiperf",
	source: "docs/metrics-reference.md of AIPerf, 2026. It counts tokens with its own tokenizer unless --use-server-token-count; here they are those of the server's usage.",
	see:    seeContent,
	measures: []measure{
		{name: "Time to First Token (TTFT)", unit: "ms", definition: "To the first response with content, reasoning included.", formula: "content[0] − start", stats: aiperfStats, each: ttftOf},
		{name: "Time to Second Token (TTST)", unit: "ms", definition: "From the first response with content to the second.", formula: "content[1] − content[0]", stats: aiperfStats, each: secondOf},
		{name: "Time to First Output Token (TTFO)", unit: "ms", definition: "To the first response with content other than reasoning.", formula: "first non-reasoning − start", missing: "reasoning is not told from content"},
		{name: "Request Latency", unit: "ms", definition: "To the last response with content.", formula: "content[last] − start", stats: aiperfStats, each: latencyOf},
		{name: "Inter Token Latency (ITL)", unit: "ms", definition: "What vLLM calls TPOT: one value for each request with two output tokens or more.", formula: "(request latency − TTFT) ÷ (OSL − 1)", stats: aiperfStats, each: perOutputOf},
		{name: "Inter Chunk Latency (ICL)", unit: "ms", definition: "What vLLM calls ITL: the gaps between responses with content.", formula: "content[i] − content[i−1]", stats: aiperfStats, each: gapsOf},
		{name: "Output Token Throughput Per User", unit: "tokens/sec/user", definition: "Of one request after its first token.", formula: "1 ÷ ITL", stats: aiperfStats, each: perUserOf},
		{name: "E2E Output Token Throughput", unit: "tokens/sec/user", definition: "Of one request, its first token included.", formula: "OSL ÷ request latency", stats: aiperfStats, each: wholeRateOf},
		{name: "Prefill Throughput Per User", unit: "tokens/sec/user", definition: "Prompt tokens over the time to the first token.", formula: "ISL ÷ TTFT", stats: aiperfStats, each: prefillOf},
		{name: "Output Sequence Length (OSL)", unit: "tokens", definition: "Output and reasoning tokens of a request.", formula: "tokens", stats: aiperfStats, each: outputsOf},
		{name: "Input Sequence Length (ISL)", unit: "tokens", definition: "Prompt tokens of a request.", formula: "tokens", stats: aiperfStats, each: inputsOf},
		{name: "Output Token Throughput", unit: "tokens/sec", definition: "Of all requests together.", formula: "Σ OSL ÷ benchmark duration", total: perOK(outOf)},
		{name: "Total Token Throughput", unit: "tokens/sec", definition: "Prompt and output tokens of all requests together.", formula: "(Σ ISL + Σ OSL) ÷ benchmark duration", total: perOK(bothOf)},
		{name: "Request Throughput", unit: "requests/sec", definition: "Successful requests.", formula: "request count ÷ benchmark duration", total: perOK(completedOf)},
		{name: "Request Count", unit: "requests", definition: "Successful requests.", formula: "count", total: figure(completedOf)},
		{name: "Error Request Count", unit: "requests", definition: "Failed requests; an answer without content is one. Cancelled ones are in neither.", formula: "count", total: figure(failedOf)},
		{name: "Benchmark Duration", unit: "sec", definition: "From the first successful request to the last response with content.", formula: "max(content[last]) − min(start)", total: okSeconds},
		{name: "Good Request Count", unit: "requests", definition: "Requests that meet every objective; the one per token is compared with AIPerf's ITL.", formula: "count", total: ifAsked(figure(func(t *totals) int64 { return t.good }))},
		{name: "Good Request Fraction", unit: "ratio", definition: "With errors in the denominator.", formula: "good ÷ (request count + error count)", total: ifAsked(func(t *totals) *float64 { return ratio(t.good, t.completed+t.failed) })},
		{name: "Goodput", unit: "requests/sec", definition: "Requests that meet every objective.", formula: "good ÷ benchmark duration", total: ifAsked(perOK(func(t *totals) int64 { return t.good }))},
	},
}
