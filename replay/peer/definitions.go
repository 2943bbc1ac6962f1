package peer

import (
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// A preset is a peer's way of reading a recording.
type preset struct {
	name, source string
	// see reads one sent result as the peer would have; it returns false for
	// what the peer counts as failed.
	see    func(r *result.Result, v *view) bool
	tpot   func(v *view) (ns float64, ok bool) // that an objective per token is compared with; nil is perOutput
	zeroes bool                                // no value reads 0, as numpy's of an empty list in the peer's code
	// percentiles are the least value whose share reaches p, without interpolation
	stepwise bool
	peaks    bool // it prints peaks over time, which take further passes
	measures []measure
}

// A measure is one metric of a preset: a value for each request or gap (each),
// one figure of the run (total), or neither with the reason (missing).
type measure struct {
	name, unit, definition, formula string

	key     string  // its name in vLLM's JSON
	per     float64 // of the emitted integers to one unit; 0 is 1e6, nanoseconds to ms
	stats   []string
	each    func(v *view, emit func(int64))
	total   func(t *totals) *float64
	due     bool // it counts from when requests were due
	missing string
}

// totals are what the single figures are made of.
type totals struct {
	rows, sent, completed, failed, cancelled, good int64
	in, out                                        int64
	latency                                        sample.Moments
	first, last                                    int64 // of every request: first sent, last end
	okFirst, okEnd, okClosed                       int64 // of the successful ones
	slo                                            report.SLO
	peakTokens, peakRequests                       int64
}

func (t *totals) duration() int64   { return max(t.last-t.first, 0) }
func (t *totals) okDuration() int64 { return max(t.okEnd-t.okFirst, 0) }

// The tables of the peers. Names are those that each prints, in its order;
// what a peer prints and a recording cannot give is listed with the reason.

// figure makes a count a figure.
func figure(of func(t *totals) int64) func(*totals) *float64 {
	return func(t *totals) *float64 { return trace.Ptr(float64(of(t))) }
}

// perRun divides a count by the time from the first request to the last end.
func perRun(of func(t *totals) int64) func(*totals) *float64 {
	return func(t *totals) *float64 { return report.PerSecond(of(t), t.duration()) }
}

// perOK divides by the time from the first successful request to the last token.
func perOK(of func(t *totals) int64) func(*totals) *float64 {
	return func(t *totals) *float64 { return report.PerSecond(of(t), t.okDuration()) }
}

func completedOf(t *totals) int64 { return t.completed }
func failedOf(t *totals) int64    { return t.failed }
func inOf(t *totals) int64        { return t.in }
func outOf(t *totals) int64       { return t.out }
func bothOf(t *totals) int64      { return t.in + t.out }
func runSeconds(t *totals) *float64 {
	return report.Seconds(t.duration())
}

// ifAsked leaves a goodput out without objectives, and with one that the peer
// does not know.
func ifAsked(of func(*totals) *float64) func(*totals) *float64 {
	return func(t *totals) *float64 {
		if t.slo.Empty() || t.slo.ITL != nil {
			return nil
		}
		return of(t)
	}
}

var vllmStats = []string{"mean", "median", "std", "p99"}

var vllmPreset = preset{
	name: "vllm",
	source: "vllm/benchmarks/serve.py and lib/endpoint_request_func.py of vLLM, August 2026. Chunks after the last " +
		"token (a finish reason alone) count there as one more gap and are not in a recording.",
	see: seeVLLM, zeroes: true, peaks: true,
	measures: []measure{
		{name: "Successful requests", unit: "requests", definition: "Status 200 and at least one event.",
			formula: "count", total: figure(completedOf)},
		{name: "Failed requests", unit: "requests",
			definition: "All others that were sent. Requests cancelled on purpose have no counterpart and are " +
				"in neither.", formula: "count", total: figure(failedOf)},
		{name: "Benchmark duration", unit: "s", definition: "From the first request to the end of the last.",
			formula: "max(done) − min(sent)", total: runSeconds},
		{name: "Total input tokens", unit: "tokens", definition: "usage.prompt_tokens, else as the workload asks.",
			formula: "Σ prompt", total: figure(inOf)},
		{name: "Total generated tokens", unit: "tokens",
			definition: "usage.completion_tokens, else counted by a tokenizer, else 1.", formula: "Σ output",
			total: figure(outOf)},
		{name: "Request throughput", unit: "req/s", definition: "Successful requests over the duration.",
			formula: "completed ÷ duration", total: perRun(completedOf)},
		{name: "Request goodput", unit: "req/s",
			definition: "Successful requests that meet every objective (ttft, tpot, e2el); an answer of one token " +
				"has a TPOT of 0. Null without objectives.", formula: "good ÷ duration",
			total: ifAsked(perRun(func(t *totals) int64 { return t.good }))},
		{name: "Output token throughput", unit: "tok/s", definition: "Over the duration.",
			formula: "Σ output ÷ duration", total: perRun(outOf)},
		{name: "Peak output token throughput", unit: "tok/s",
			definition: "The most chunks in one second, counted from the first request. A chunk counts as one token, " +
				"whatever it carries.", formula: "max over seconds",
			total: figure(func(t *totals) int64 { return t.peakTokens })},
		{name: "Peak concurrent requests", unit: "requests",
			definition: "The most successful requests open at once, each from its sending to its last token.",
			formula:    "max over instants", total: figure(func(t *totals) int64 { return t.peakRequests })},
		{name: "Total token throughput", unit: "tok/s", definition: "Prompt and output tokens over the duration.",
			formula: "(Σ prompt + Σ output) ÷ duration", total: perRun(bothOf)},
		{name: "TTFT", key: "ttft", unit: "ms",
			definition: "To the first event with choices: one that brings only a role counts.",
			formula:    "first_event − sent", stats: vllmStats, each: ttftOf},
		{name: "TPOT", key: "tpot", unit: "ms", definition: "Of answers with two tokens or more.",
			formula: "(E2EL − TTFT) ÷ (output − 1)", stats: vllmStats, each: perOutputOf},
		{name: "ITL", key: "itl", unit: "ms",
			definition: "The gaps between events, of all requests together; an event with several tokens ends one " +
				"gap, and the gap behind a role-only event is one.", formula: "event[i] − event[i−1]",
			stats: vllmStats, each: gapsOf},
		{name: "E2EL", key: "e2el", unit: "ms", definition: "To the last token.", formula: "last_token − sent",
			stats: vllmStats, each: latencyOf},
		{name: "Client Queue Time", key: "client_queue_time", unit: "ms",
			definition: "From when a request was due to its sending, which vLLM counts from its arrival at the limit " +
				"of concurrency.", formula: "sent − due", stats: vllmStats, each: lagOf, due: true},
		{name: "E2EL incl. Client Queue", key: "e2el_including_client_queue", unit: "ms",
			definition: "From when a request was due to its last token.", formula: "E2EL + client queue time",
			stats: vllmStats, each: func(v *view, emit func(int64)) { emit(v.latency + v.lag) }, due: true},
	},
}

var sglangPreset = preset{
	name: "sglang",
	source: "python/sglang/benchmark/serving.py and metrics.py of SGLang, August 2026: the OpenAI backends, one " +
		"turn a request.",
	// SGLang does not ask the server for usage, so its lengths are those that were
	// asked for. A request ends with its stream, and one without content has a time
	// to the first token of zero.
	see: func(r *result.Result, v *view) bool {
		base(r, v)
		v.in, v.end = int64(r.WantInput), v.closed
		if r.WantOutput != nil {
			v.out = int64(*r.WantOutput)
		}
		v.streamed, v.latency = true, v.end-v.start
		return true
	},
	zeroes: true,
	measures: []measure{
		{name: "Successful requests", unit: "requests", definition: "Status 200 and no exception.", formula: "count",
			total: figure(completedOf)},
		{name: "Benchmark duration", unit: "s", definition: "From the first request to the end of the last.",
			formula: "max(done) − min(sent)", total: runSeconds},
		{name: "Total input tokens", unit: "tokens",
			definition: "As asked for: usage is not requested from the server.", formula: "Σ wanted prompt",
			total: figure(inOf)},
		{name: "Total generated tokens", unit: "tokens",
			definition: "The length that was asked for, not the one that came: usage is not requested from the server.",
			formula:    "Σ wanted output", total: figure(outOf)},
		{name: "Total generated tokens (retokenized)", unit: "tokens",
			definition: "The generated text under the client's tokenizer.", formula: "Σ tokens",
			missing: "the generated text is not kept"},
		{name: "Request throughput", unit: "req/s", definition: "Over the duration.", formula: "completed ÷ duration",
			total: perRun(completedOf)},
		{name: "Input token throughput", unit: "tok/s", definition: "Over the duration.",
			formula: "Σ wanted prompt ÷ duration", total: perRun(inOf)},
		{name: "Output token throughput", unit: "tok/s", definition: "Over the duration.",
			formula: "Σ wanted output ÷ duration", total: perRun(outOf)},
		{name: "Total token throughput", unit: "tok/s", definition: "Over the duration.",
			formula: "(Σ wanted prompt + Σ wanted output) ÷ duration", total: perRun(bothOf)},
		{name: "Concurrency", unit: "requests", definition: "The mean of the requests open at once.",
			formula: "Σ E2E ÷ duration", total: func(t *totals) *float64 {
				if t.latency.N == 0 || t.duration() == 0 {
					return nil
				}
				return report.Rounded(t.latency.Mean()*float64(t.latency.N)/float64(t.duration()), 1e9)
			}},
		{name: "Accept length", unit: "tokens", definition: "Of speculative decoding, from the server's own state.",
			formula: "server_info", missing: "the server's state is not asked for"},
		{name: "E2E Latency", unit: "ms", definition: "To the end of the stream, its end mark included.",
			formula: "done − sent", stats: []string{"mean", "median", "p90", "p99"}, each: latencyOf},
		{name: "TTFT", unit: "ms",
			definition: "To the first event with content or reasoning. The recording does not tell tool calls from " +
				"content, so they count too.", formula: "first_token − sent", stats: []string{"mean", "median",
				"p99"}, each: ttftOf},
		{name: "TPOT", unit: "ms", definition: "Of answers that were asked for two tokens or more.",
			formula: "(E2E − TTFT) ÷ (wanted output − 1)", stats: []string{"mean", "median", "p99"}, each: perOutputOf},
		{name: "ITL", unit: "ms",
			definition: "The gaps between events with content, of all requests together; not divided by their tokens.",
			formula:    "event[i] − event[i−1]", stats: []string{"mean", "median", "p95", "p99", "max"}, each: gapsOf},
	},
}

var aiperfStats = []string{"avg", "min", "max", "p99", "p90", "p50", "std"}

var aiperfPreset = preset{
	name: "aiperf",
	source: "docs/metrics-reference.md of AIPerf, 2026. It counts tokens with its own tokenizer unless " +
		"--use-server-token-count; here the counts are from the server's usage.",
	see: seeContent,
	measures: []measure{
		{name: "Time to First Token (TTFT)", unit: "ms",
			definition: "To the first response with content, reasoning included.", formula: "content[0] − start",
			stats: aiperfStats, each: ttftOf},
		{name: "Time to Second Token (TTST)", unit: "ms",
			definition: "From the first response with content to the second.", formula: "content[1] − content[0]",
			stats: aiperfStats, each: secondOf},
		{name: "Time to First Output Token (TTFO)", unit: "ms",
			definition: "To the first response with content other than reasoning; of answers that have any.",
			formula:    "first non-reasoning − start", stats: aiperfStats, each: contentOf},
		{name: "Request Latency", unit: "ms", definition: "To the last response with content.",
			formula: "content[last] − start", stats: aiperfStats, each: latencyOf},
		{name: "Inter Token Latency (ITL)", unit: "ms",
			definition: "What vLLM calls TPOT: one value for each request with two output tokens or more.",
			formula:    "(request latency − TTFT) ÷ (OSL − 1)", stats: aiperfStats, each: perOutputOf},
		{name: "Inter Chunk Latency (ICL)", unit: "ms",
			definition: "What vLLM calls ITL: the gaps between responses with content.",
			formula:    "content[i] − content[i−1]", stats: aiperfStats, each: gapsOf},
		{name: "Output Token Throughput Per User", unit: "tokens/sec/user",
			definition: "Of one request after its first token.", formula: "1 ÷ ITL", stats: aiperfStats,
			each: func(v *view, emit func(int64)) {
				if each, ok := perOutput(v); ok && each > 0 {
					emit(round(1e9 / each * perMillion))
				}
			}},
		{name: "E2E Output Token Throughput", unit: "tokens/sec/user",
			definition: "Of one request, its first token included.", formula: "OSL ÷ request latency",
			stats: aiperfStats, each: wholeRateOf},
		{name: "Prefill Throughput Per User", unit: "tokens/sec/user",
			definition: "Prompt tokens over the time to the first token.", formula: "ISL ÷ TTFT", stats: aiperfStats,
			each: func(v *view, emit func(int64)) {
				if v.streamed && v.ttft > 0 {
					emit(round(float64(v.in) / float64(v.ttft) * 1e9 * perMillion))
				}
			}},
		{name: "Output Sequence Length (OSL)", unit: "tokens", definition: "Output and reasoning tokens of a request.",
			formula: "tokens", stats: aiperfStats, each: outputsOf},
		{name: "Input Sequence Length (ISL)", unit: "tokens", definition: "Prompt tokens of a request.",
			formula: "tokens", stats: aiperfStats, each: inputsOf},
		{name: "Output Token Throughput", unit: "tokens/sec", definition: "Of all requests together.",
			formula: "Σ OSL ÷ benchmark duration", total: perOK(outOf)},
		{name: "Total Token Throughput", unit: "tokens/sec",
			definition: "Prompt and output tokens of all requests together.",
			formula:    "(Σ ISL + Σ OSL) ÷ benchmark duration", total: perOK(bothOf)},
		{name: "Request Throughput", unit: "requests/sec", definition: "Successful requests.",
			formula: "request count ÷ benchmark duration", total: perOK(completedOf)},
		{name: "Request Count", unit: "requests", definition: "Successful requests.", formula: "count",
			total: figure(completedOf)},
		{name: "Error Request Count", unit: "requests",
			definition: "Failed requests; an answer without content is one. Cancelled ones are in neither.",
			formula:    "count", total: figure(failedOf)},
		{name: "Benchmark Duration", unit: "sec",
			definition: "From the first successful request to the last response with content.",
			formula:    "max(content[last]) − min(start)", total: func(t *totals) *float64 {
				return report.Seconds(t.okDuration())
			}},
		{name: "Good Request Count", unit: "requests",
			definition: "Requests that meet every objective; the one per token is compared with AIPerf's ITL.",
			formula:    "count", total: ifAsked(figure(func(t *totals) int64 { return t.good }))},
		{name: "Good Request Fraction", unit: "ratio", definition: "With errors in the denominator.",
			formula: "good ÷ (request count + error count)",
			total:   ifAsked(func(t *totals) *float64 { return report.Ratio(t.good, t.completed+t.failed) })},
		{name: "Goodput", unit: "requests/sec", definition: "Requests that meet every objective.",
			formula: "good ÷ benchmark duration", total: ifAsked(perOK(func(t *totals) int64 { return t.good }))},
	},
}

var guideStats = []string{"mean", "median", "std", "min", "max", "p95", "p99"}

// weighted emits a value as many times as it weighs.
func weighted(value, weight int64, emit func(int64)) {
	for range weight {
		emit(value)
	}
}

var guidellmPreset = preset{
	name: "guidellm",
	source: "guidellm/schemas/base/request_stats.py and benchmark/schemas/metrics.py of GuideLLM 0.8. Percentiles " +
		"are the least value whose share reaches p, not interpolated.",
	// A request ends with its stream. Where there is no count, each chunk is a token.
	see: func(r *result.Result, v *view) bool {
		base(r, v)
		if v.out < 0 {
			v.out = int64(r.Events)
		}
		v.latency = v.closed - v.start
		return true
	},
	zeroes: true, stepwise: true,
	measures: []measure{
		{name: "successful requests", unit: "requests", definition: "Requests that ended without an error.",
			formula: "count", total: figure(completedOf)},
		{name: "errored requests", unit: "requests", definition: "Requests that failed.", formula: "count",
			total: figure(failedOf)},
		{name: "request_latency", unit: "s", per: 1e9, definition: "To the end of the stream.",
			formula: "request_end − request_start", stats: guideStats, each: latencyOf},
		{name: "time_to_first_token_ms", unit: "ms",
			definition: "To the first iteration with a token; 0 for an answer without one.",
			formula:    "first_token_iteration − request_start", stats: guideStats,
			each: func(v *view, emit func(int64)) {
				emit(v.ttft)
			}},
		{name: "time_to_first_output_token_ms", unit: "ms",
			definition: "To the first iteration with content other than reasoning; 0 for an answer without any.",
			formula:    "first_output_token_iteration − request_start", stats: guideStats,
			each: func(v *view, emit func(int64)) {
				emit(v.content)
			}},
		{name: "time_per_output_token_ms", unit: "ms",
			definition: "Includes the time to the first token, unlike anybody else's TPOT. Each request weighs as " +
				"many as its tokens.", formula: "(last_token_iteration − request_start) ÷ output_tokens",
			stats: guideStats, each: func(v *view, emit func(int64)) {
				if v.out > 0 {
					weighted(round(float64(v.end-v.start)/float64(v.out)), v.out, emit)
				}
			}},
		{name: "inter_token_latency_ms", unit: "ms",
			definition: "A mean for each request, not gaps: vLLM's TPOT. Each weighs as many as its tokens " +
				"after the first.", formula: "(last_token_iteration − first_token_iteration) ÷ (output_tokens − 1)",
			stats: guideStats, each: func(v *view, emit func(int64)) {
				if each, ok := decodePerOutput(v); ok {
					weighted(round(each), v.out-1, emit)
				}
			}},
		{name: "prompt_token_count", unit: "tokens", definition: "Of a request.", formula: "usage.prompt_tokens",
			stats: guideStats, each: inputsOf},
		{name: "output_token_count", unit: "tokens", definition: "Of a request: from usage, else its chunks.",
			formula: "usage.completion_tokens", stats: guideStats, each: outputsOf},
		{name: "requests_per_second", unit: "req/s",
			definition: "The mean of a distribution over time of the rates between completions.",
			formula:    "Σ rate·duration", missing: "it depends on GuideLLM's own measuring window"},
		{name: "request_concurrency", unit: "requests", definition: "A distribution over time.",
			formula: "Σ level·duration", missing: "it depends on GuideLLM's own measuring window"},
		{name: "output_tokens_per_second", unit: "tok/s",
			definition: "The mean of a distribution over time of tokens spread evenly over each answer.",
			formula:    "Σ rate·duration", missing: "it depends on GuideLLM's own measuring window"},
	},
}

var genaiStats = []string{"avg", "min", "max", "p99", "p90", "p75"}

var genaiPreset = preset{
	name: "genai-perf",
	source: "genai_perf/profile_data_parser/llm_profile_data_parser.py of GenAI-Perf, 2025. It counts tokens with " +
		"its own tokenizer; here the counts are from the server's usage.",
	see: seeContent,
	measures: []measure{
		{name: "Time To First Token", unit: "ms", definition: "To the first response with content.",
			formula: "response[0] − request", stats: genaiStats, each: ttftOf},
		{name: "Time To Second Token", unit: "ms", definition: "From the first response with content to the second.",
			formula: "response[1] − response[0]", stats: genaiStats, each: secondOf},
		{name: "Request Latency", unit: "ms", definition: "To the last response with content.",
			formula: "response[last] − request", stats: genaiStats, each: latencyOf},
		{name: "Inter Token Latency", unit: "ms",
			definition: "What vLLM calls TPOT: one value for each request with two output tokens or more.",
			formula:    "(request latency − TTFT) ÷ (output tokens − 1)", stats: genaiStats, each: perOutputOf},
		{name: "Output Token Throughput Per Request", unit: "tokens/sec",
			definition: "Of one request, its first token included.", formula: "output tokens ÷ request latency",
			stats: genaiStats, each: wholeRateOf},
		{name: "Output Sequence Length", unit: "tokens", definition: "Of a request.", formula: "tokens",
			stats: genaiStats, each: outputsOf},
		{name: "Input Sequence Length", unit: "tokens", definition: "Of a request.", formula: "tokens",
			stats: genaiStats, each: inputsOf},
		{name: "Output Token Throughput", unit: "tokens/sec",
			definition: "Of all requests together, from the first request to the last response.",
			formula:    "Σ output tokens ÷ benchmark duration", total: perOK(outOf)},
		{name: "Request Throughput", unit: "requests/sec", definition: "Requests from the first to the last response.",
			formula: "requests ÷ benchmark duration", total: perOK(completedOf)},
		{name: "Request Goodput", unit: "requests/sec", definition: "Requests that meet every objective.",
			formula: "good ÷ benchmark duration", missing: "it pairs lists of different lengths where an answer has " +
				"one token, so which requests it compares is not defined"},
	},
}

var inferenceStats = []string{"mean", "min", "median", "p90", "p95", "p99", "max"}

var inferencePreset = preset{
	name: "inference-perf",
	source: "inference_perf/reportgen/base.py of inference-perf, August 2026, with use_server_output_tokens. " +
		"Latencies are in seconds.",
	see: seeInferencePerf, tpot: decodePerOutput,
	measures: []measure{
		{name: "successes.count", unit: "requests", definition: "Requests without an error.", formula: "count",
			total: figure(completedOf)},
		{name: "failures.count", unit: "requests", definition: "Requests with an error.", formula: "count",
			total: figure(failedOf)},
		{name: "benchmark_time_seconds", unit: "s",
			definition: "From the first start to the last end, failures included.", formula: "max(end) − min(start)",
			total: runSeconds},
		{name: "schedule_delay", unit: "s", per: 1e9,
			definition: "How late requests were sent; here of the successful ones.", formula: "start − scheduled",
			stats: inferenceStats, each: lagOf, due: true},
		{name: "request_latency", unit: "s", per: 1e9, definition: "To the end of the stream.", formula: "end − start",
			stats: inferenceStats, each: latencyOf},
		{name: "normalized_time_per_output_token", unit: "s", per: 1e9,
			definition: "The whole request over its tokens; 0 for an answer without one.",
			formula:    "request_latency ÷ output_tokens", stats: inferenceStats,
			each: func(v *view, emit func(int64)) {
				if v.out <= 0 {
					emit(0)
					return
				}
				emit(round(float64(v.latency) / float64(v.out)))
			}},
		{name: "time_per_output_token", unit: "s", per: 1e9, definition: "Of answers with two tokens or more.",
			formula: "(last token − first token) ÷ (output_tokens − 1)", stats: inferenceStats,
			each: func(v *view, emit func(int64)) {
				if each, ok := decodePerOutput(v); ok {
					emit(round(each))
				}
			}},
		{name: "time_to_first_token", unit: "s", per: 1e9,
			definition: "To the first chunk with content, of answers with two tokens or more.",
			formula:    "first token − start", stats: inferenceStats, each: ttftOf},
		{name: "inter_token_latency", unit: "s", per: 1e9,
			definition: "The gaps between tokens, where tokens of one chunk have gaps of 0; of answers whose tokens " +
				"in each chunk are known, or one.", formula: "token[i] − token[i−1]", stats: inferenceStats,
			each: func(v *view, emit func(int64)) {
				for _, gap := range v.tokenGaps {
					emit(gap)
				}
			}},
		{name: "input_tokens_per_sec", unit: "tok/s", definition: "Of successful requests.",
			formula: "Σ input ÷ benchmark_time", total: perRun(inOf)},
		{name: "output_tokens_per_sec", unit: "tok/s", definition: "Of successful requests.",
			formula: "Σ output ÷ benchmark_time", total: perRun(outOf)},
		{name: "total_tokens_per_sec", unit: "tok/s", definition: "Of successful requests.",
			formula: "(Σ input + Σ output) ÷ benchmark_time", total: perRun(bothOf)},
		{name: "requests_per_sec", unit: "req/s", definition: "Successful requests.", formula: "count ÷ benchmark_time",
			total: perRun(completedOf)},
		{name: "request_size_bytes", unit: "bytes", definition: "Of the request's body.", formula: "bytes",
			missing: "bodies are not kept"},
		{name: "request_goodput", unit: "req/s",
			definition: "Successful requests that meet every objective, over the time from the first of them to the " +
				"last end. Null without objectives.", formula: "good ÷ (max(end) − min(start))",
			total: ifAsked(func(t *totals) *float64 { return report.PerSecond(t.good, t.okClosed-t.okFirst) })},
		{name: "goodput_percentage", unit: "%",
			definition: "Of the successful requests: failures are not in the denominator.", formula: "100·good ÷ count",
			total: ifAsked(func(t *totals) *float64 {
				if t.completed == 0 {
					return nil
				}
				return report.Rounded(100*float64(t.good)/float64(t.completed), 1e9)
			})},
	},
}
