package figure

import "slices"

// What a run can be judged by. The most that servers said of themselves is of while what is measured was sent.
var (
	TTFT = &Subject{Name: "ttft", Label: "TTFT", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true,
		also: []string{"time_to_first_token", "first_token"},
		Definition: "Time to first token: to the first event with generated content (content, reasoning, a tool " +
			"call, text), not to a role, an empty delta, a progress report or a comment.",
		Formula: "first_token − sent; first_token − due"}
	TTFO = &Subject{Name: "ttfo", Label: "TTFO", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true,
		also: []string{"time_to_first_output_token", "answer_ttft"},
		Definition: "Time to first output token, as AIPerf names it: to the first event with something else than " +
			"reasoning. It is the TTFT where a model does not reason. An answer that is all reasoning has none.",
		Formula: "first_content − sent; first_content − due"}
	TPOT = &Subject{Name: "tpot", Label: "TPOT", Unit: Milliseconds, Better: Lower, Spread: true,
		also:       []string{"time_per_output_token"},
		Definition: "Time per output token after the first: one value for each request with two output tokens or more.",
		Formula:    "(last_token − first_token) ÷ (output_tokens − 1)"}
	ITL = &Subject{Name: "itl", Label: "ITL", Unit: Milliseconds, Better: Lower, Spread: true,
		defined: []string{"itl_chunk", "itl_token"}, also: []string{"itl_chunk", "chunk_itl", "inter_token_latency"},
		Definition: "Inter-token latency by chunks: the gaps between successive token events, of all requests " +
			"together. An event that carries several tokens ends one gap.", Formula: "event[i] − event[i−1]"}
	TokenITL = &Subject{Name: "itl_token", Label: "token ITL", Unit: Milliseconds, Better: Lower, Spread: true,
		also: []string{"token_itl"},
		Definition: "Inter-token latency by tokens: each of those gaps divided by the tokens of the event that ends " +
			"it, where the server says so with every event, else by the mean tokens per event of its request. One " +
			"value for each gap; requests without a token count have none.",
		Formula: "gap ÷ tokens[i]; gap ÷ (output_tokens ÷ events)"}
	E2E = &Subject{Name: "e2e", Label: "E2E", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true,
		also:       []string{"e2el", "e2e_latency", "request_latency", "latency"},
		Definition: "End to end: to the last token. An embedding has no tokens: to the end of its answer.",
		Formula:    "last_token − sent; last_token − due"}
	Headers = &Subject{Name: "headers", Label: "headers", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true,
		Definition: "To the headers of the response: the server has accepted the request.",
		Formula:    "headers − sent; headers − due"}
	SendLag = &Subject{Name: "send_lag", Label: "send lag", Unit: Milliseconds, Better: Lower, Spread: true,
		also:       []string{"lag"},
		Definition: "How late the client sent, of every request that was sent, failed ones too.", Formula: "sent − due"}

	RequestRate = &Subject{Name: "requests_per_s", Label: "requests/s", Unit: PerSecond, Better: Higher,
		defined: []string{"requests"}, also: []string{"request_throughput"},
		Definition: "Successful requests.", Formula: "succeeded ÷ duration"}
	PromptRate = &Subject{Name: "prompt_tokens_per_s", Label: "prompt tokens/s", Unit: PerSecond, Better: Higher,
		defined: []string{"prompt_tokens"}, also: []string{"input_tokens_per_s", "input_throughput"},
		Definition: "Prompt tokens of successful requests: as the server counted, else as the workload asked.",
		Formula:    "Σ prompt ÷ duration"}
	OutputRate = &Subject{Name: "output_tokens_per_s", Label: "output tokens/s", Unit: PerSecond, Better: Higher,
		defined: []string{"output_tokens"}, also: []string{"output_throughput"},
		Definition: "Output tokens of successful requests: from the server's usage, else counted by a tokenizer; " +
			"output_source_rows says how many of each.", Formula: "Σ output ÷ duration"}
	ErrorRate = &Subject{Name: "error_rate", Label: "errors", Unit: Share, Better: Lower,
		defined: []string{"error_share"}, also: []string{"error_share", "errors"},
		Definition: "Failed requests; unfinished ones count as failed, ones cancelled on purpose do not count.",
		Formula:    "failed ÷ (succeeded + failed)"}
	Goodput = &Subject{Name: "goodput", Label: "goodput", Unit: Share, Better: Higher,
		also: []string{"goodput_share", "attainment"},
		Definition: "Successful requests that meet every objective: TTFT, TPOT, the longest gap between their token " +
			"events (itl), E2E. One token has no TPOT and no gap, and meets both. Errors are in the denominator of " +
			"the share; requests cancelled on purpose are not.",
		Formula: "good ÷ duration; good ÷ (succeeded + failed)"}
	HitRatio = &Subject{Name: "hit_ratio", Label: "cache hits", Unit: Share, Better: Higher,
		defined:    []string{"measured_ratio", "expected_ratio", "servers.prefix_hit_ratio"},
		also:       []string{"cache_hit_ratio", "measured_ratio", "hit_rate", "cache_hit_rate"},
		Definition: "Hit ratio by token: what the server says it found in its prefix cache.",
		Formula:    "Σ cached_tokens ÷ Σ prompt_tokens"}
	InFlight = &Subject{Name: "in_flight", Label: "in flight", Unit: Requests, also: []string{"queue"},
		Definition: "Requests sent and not done. The mean is over the duration.", Formula: "Σ (done − sent) ÷ duration"}
	TokenCost = &Subject{Name: "cost_per_million_output_tokens", Label: "cost per million output tokens",
		Unit: PerMillion, Better: Lower, defined: []string{"contract.cost_per_million_output_tokens"},
		Definition: "What the GPUs cost for the duration of the run, idle or not, for a million output tokens of the " +
			"requests that succeeded.", Formula: "price per GPU-hour · GPUs · duration ÷ 3,600 s ÷ (Σ output ÷ 10⁶)"}

	SessionTime = &Subject{Name: "session_time", Label: "session time", Unit: Milliseconds, Better: Lower, Spread: true,
		Sessions: true, also: []string{"session_duration", "completion_time", "job_latency"},
		Definition: "Completion time of a successful session. A session that had requests left when the run " +
			"ended is censored: it is counted, and has no completion time, so that with many of them the figures are " +
			"too low.", Formula: "max(done) − min(due) over the requests of the session"}
	SessionServerTime = &Subject{Name: "session_server_time", Label: "session server time", Unit: Milliseconds,
		Better: Lower, Spread: true, Sessions: true, defined: []string{"sessions.critical_path"}}
	SessionSlowdown = &Subject{Name: "session_slowdown", Label: "session slowdown", Unit: Times, Better: Lower,
		Spread: true, Sessions: true, also: []string{"slowdown"},
		Definition: "How many times as long as in the source a session took. None of a run at another speed, nor of " +
			"a closed loop.", Formula: "completion ÷ recorded"}
	SessionSuccess = &Subject{Name: "session_success", Label: "session success", Unit: Share, Better: Higher,
		Sessions: true, also: []string{"session_success_share"},
		Definition: "Sessions without a failed request. Censored sessions do not count; a request that was " +
			"cancelled on purpose, as in the trace, is no failure.", Formula: "succeeded ÷ (succeeded + failed)"}
	SessionRate = &Subject{Name: "sessions_per_s", Label: "sessions/s", Unit: PerSecond, Better: Higher, Sessions: true,
		Definition: "Sessions without a failed request, by their end within the duration, whenever they began.",
		Formula:    "sessions ended ÷ duration"}
	SessionCost = &Subject{Name: "cost_per_session", Label: "cost per session", Unit: PerSession, Better: Lower,
		Sessions: true,
		Definition: "What a session that succeeded cost, in the currency of the price of a GPU-hour: its share of " +
			"the work, of the price of all GPUs over the duration. Work is prompt tokens that were not cached, and " +
			"twice the output tokens (weights of Sheng and others 2024), of all requests that succeeded in the " +
			"measured window. None without a price.",
		Formula: "price per GPU-hour · GPUs · duration · (Σ uncached + 2 · output of the session) ÷ (the same of all)"}

	QueueTime = &Subject{Name: "queue_time", Label: "queue time", Unit: Milliseconds, Better: Lower, Spread: true,
		Servers: true, also: []string{"request_queue_time", "server_queue_time"},
		Definition: "How long requests waited at the servers before they were scheduled: as their answers say (vLLM " +
			"with --enable-per-request-metrics, Dynamo, Groq, Cerebras), else by the servers' own histograms (vLLM, " +
			"SGLang), which are scraped before the run and after it, so that a warm-up is in it. A percentile of a " +
			"histogram lies in a bucket, and is taken as if the bucket's requests were spread over it evenly, as " +
			"Prometheus does; beyond the last bound it is that bound.",
		Formula: "lower + (upper − lower) · (p · Δcount − Δbelow) ÷ Δbucket"}
	PrefillTime = &Subject{Name: "prefill_time", Label: "prefill time", Unit: Milliseconds, Better: Lower, Spread: true,
		Servers: true, also: []string{"server_prefill_time", "request_prefill_time"},
		Definition: "How long requests took at the servers from when they were scheduled to their first token, as their " +
			"answers say: with the queue time, the server's part of TTFT. llama-server says it, too.",
		Formula: "first token − scheduled, at the server"}
	MaxRunning = &Subject{Name: "max_running", Label: "running, peak", Unit: Requests, Servers: true,
		defined: []string{"servers.running"}}
	MaxWaiting = &Subject{Name: "max_waiting", Label: "waiting, peak", Unit: Requests, Better: Lower, Servers: true,
		defined: []string{"servers.waiting"}}
	MaxKVCacheUse = &Subject{Name: "max_kv_cache_use", Label: "KV cache, peak", Unit: Share, Servers: true,
		defined: []string{"servers.kv_cache_use"}}
	MaxGPUUse = &Subject{Name: "max_gpu_utilisation", Label: "GPU, peak", Unit: Share, Servers: true,
		defined: []string{"servers.gpu_utilisation"}}
	MaxGPUMemory = &Subject{Name: "max_gpu_memory_mib", Label: "GPU memory, peak", Unit: MiB, Servers: true,
		defined: []string{"servers.gpu_memory"}}
)

// list has them in the order in which they are shown.
var list = []*Subject{
	TTFT, TTFO, TPOT, ITL, TokenITL, E2E, Headers, SendLag,
	RequestRate, PromptRate, OutputRate, ErrorRate, Goodput, HitRatio, InFlight, TokenCost,
	SessionTime, SessionServerTime, SessionSlowdown, SessionSuccess, SessionRate, SessionCost,
	QueueTime, PrefillTime, MaxRunning, MaxWaiting, MaxKVCacheUse, MaxGPUUse, MaxGPUMemory,
}

// All are the subjects, in the order in which they are shown.
func All() []*Subject { return slices.Clone(list) }

// Names are the names of some subjects: those with a statistic apart, then the others.
func Names(some func(*Subject) bool) (spread, single []string) {
	for _, s := range All() {
		switch {
		case !some(s):
		case s.Spread:
			spread = append(spread, s.Name)
		default:
			single = append(single, s.Name)
		}
	}
	return spread, single
}

// Offered are the printed names of figures that a reader can tell, for tables and shells to list.
func Offered(readable func(Figure) bool) (names []string) {
	for _, s := range list {
		of := []Statistic{0}
		if s.Spread {
			of = []Statistic{Mean, P50, P95, P99}
		}
		for _, statistic := range of {
			if f := (Figure{s, statistic}); readable(f) {
				names = append(names, f.String())
			}
		}
	}
	return names
}

// Spellings are the names that a subject is read by, its own first.
func (s *Subject) Spellings() []string { return slices.Concat([]string{s.Name}, s.also) }

// Definitions are the names of the definitions of a subject in a report.
func (s *Subject) Definitions() []string {
	if len(s.defined) > 0 {
		return s.defined
	}
	return []string{s.Name}
}
