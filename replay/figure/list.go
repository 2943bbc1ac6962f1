package figure

import "slices"

// What a run can be judged by. The most that servers said of themselves is of while what is measured was sent.
var (
	TTFT = &Subject{Name: "ttft", Label: "TTFT", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true,
		also: []string{"time_to_first_token", "first_token"}}
	TPOT = &Subject{Name: "tpot", Label: "TPOT", Unit: Milliseconds, Better: Lower, Spread: true,
		also: []string{"time_per_output_token"}}
	ITL = &Subject{Name: "itl", Label: "ITL", Unit: Milliseconds, Better: Lower, Spread: true,
		defined: []string{"itl_chunk", "itl_token"},
		also:    []string{"itl_chunk", "chunk_itl", "inter_token_latency"}}
	TokenITL = &Subject{Name: "itl_token", Label: "token ITL", Unit: Milliseconds, Better: Lower, Spread: true,
		also: []string{"token_itl"}}
	E2E = &Subject{Name: "e2e", Label: "E2E", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true,
		also: []string{"e2el", "e2e_latency", "request_latency", "latency"}}
	Headers = &Subject{Name: "headers", Label: "headers", Unit: Milliseconds, Better: Lower, Spread: true, Origin: true}
	SendLag = &Subject{Name: "send_lag", Label: "send lag", Unit: Milliseconds, Better: Lower, Spread: true, also: []string{"lag"}}

	RequestRate = &Subject{Name: "requests_per_s", Label: "requests/s", Unit: PerSecond, Better: Higher, defined: []string{"requests"},
		also: []string{"request_throughput"}}
	PromptRate = &Subject{Name: "prompt_tokens_per_s", Label: "prompt tokens/s", Unit: PerSecond, Better: Higher,
		defined: []string{"prompt_tokens"},
		also:    []string{"input_tokens_per_s", "input_throughput"}}
	OutputRate = &Subject{Name: "output_tokens_per_s", Label: "output tokens/s", Unit: PerSecond, Better: Higher,
		defined: []string{"output_tokens"},
		also:    []string{"output_throughput"}}
	ErrorRate = &Subject{Name: "error_rate", Label: "errors", Unit: Share, Better: Lower, defined: []string{"error_share"},
		also: []string{"error_share", "errors"}}
	Goodput  = &Subject{Name: "goodput", Label: "goodput", Unit: Share, Better: Higher, also: []string{"goodput_share", "attainment"}}
	HitRatio = &Subject{Name: "hit_ratio", Label: "cache hits", Unit: Share, Better: Higher,
		defined: []string{"measured_ratio", "expected_ratio", "servers.prefix_hit_ratio"},
		also:    []string{"cache_hit_ratio", "measured_ratio", "hit_rate", "cache_hit_rate"}}
	InFlight  = &Subject{Name: "in_flight", Label: "in flight", Unit: Requests, also: []string{"queue"}}
	TokenCost = &Subject{Name: "cost_per_million_output_tokens", Label: "cost per million output tokens", Unit: PerMillion, Better: Lower,
		defined: []string{"contract.cost_per_million_output_tokens"}}

	SessionTime = &Subject{Name: "session_time", Label: "session time", Unit: Milliseconds, Better: Lower, Spread: true, Sessions: true,
		also: []string{"session_duration", "completion_time", "job_latency"}}
	SessionServerTime = &Subject{Name: "session_server_time", Label: "session server time", Unit: Milliseconds, Better: Lower,
		Spread: true, Sessions: true,
		defined: []string{"sessions.critical_path"}}
	SessionSlowdown = &Subject{Name: "session_slowdown", Label: "session slowdown", Unit: Times, Better: Lower, Spread: true, Sessions: true,
		also: []string{"slowdown"}}
	SessionSuccess = &Subject{Name: "session_success", Label: "session success", Unit: Share, Better: Higher, Sessions: true,
		also: []string{"session_success_share"}}
	SessionRate = &Subject{Name: "sessions_per_s", Label: "sessions/s", Unit: PerSecond, Better: Higher, Sessions: true}
	SessionCost = &Subject{Name: "cost_per_session", Label: "cost per session", Unit: PerSession, Better: Lower, Sessions: true}

	MaxRunning    = &Subject{Name: "max_running", Label: "running, peak", Unit: Requests, defined: []string{"servers.running"}}
	MaxWaiting    = &Subject{Name: "max_waiting", Label: "waiting, peak", Unit: Requests, defined: []string{"servers.waiting"}}
	MaxKVCacheUse = &Subject{Name: "max_kv_cache_use", Label: "KV cache, peak", Unit: Share, defined: []string{"servers.kv_cache_use"}}
	MaxGPUUse     = &Subject{Name: "max_gpu_utilisation", Label: "GPU, peak", Unit: Share, defined: []string{"servers.gpu_utilisation"}}
	MaxGPUMemory  = &Subject{Name: "max_gpu_memory_mib", Label: "GPU memory, peak", Unit: MiB, defined: []string{"servers.gpu_memory"}}
)

// list has them in the order in which they are shown.
var list = []*Subject{
	TTFT, TPOT, ITL, TokenITL, E2E, Headers, SendLag,
	RequestRate, PromptRate, OutputRate, ErrorRate, Goodput, HitRatio, InFlight, TokenCost,
	SessionTime, SessionServerTime, SessionSlowdown, SessionSuccess, SessionRate, SessionCost,
	MaxRunning, MaxWaiting, MaxKVCacheUse, MaxGPUUse, MaxGPUMemory,
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

// Spellings are the names that a subject is read by, its own first.
func (s *Subject) Spellings() []string { return slices.Concat([]string{s.Name}, s.also) }

// Definitions are the names of the definitions of a subject in a report.
func (s *Subject) Definitions() []string {
	if len(s.defined) > 0 {
		return s.defined
	}
	return []string{s.Name}
}
