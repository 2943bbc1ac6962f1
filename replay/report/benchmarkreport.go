package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// benchmarkReport is the version of the schema of llm-d-benchmark that [WriteBenchmarkReport] writes.
const benchmarkReport = "0.2.1"

// A brStat is a statistic of a Benchmark Report. Only the mean is required there.
type brStat struct {
	Units string   `json:"units"`
	Mean  *float64 `json:"mean"`
	SD    *float64 `json:"stddev,omitempty"`
	Min   *float64 `json:"min,omitempty"`
	P50   *float64 `json:"p50,omitempty"`
	P90   *float64 `json:"p90,omitempty"`
	P95   *float64 `json:"p95,omitempty"`
	P99   *float64 `json:"p99,omitempty"`
	P999  *float64 `json:"p99p9,omitempty"`
	Max   *float64 `json:"max,omitempty"`
}

// brSeconds is a latency in seconds; nil without values.
func brSeconds(of *Stat, units string) *brStat {
	if of == nil || of.Mean == nil {
		return nil
	}
	in := func(ms *float64) *float64 {
		if ms == nil {
			return nil
		}
		return trace.Ptr(*ms / 1e3)
	}
	return &brStat{units, in(of.Mean), in(of.SD), in(of.Min), in(of.P50), in(of.P90), in(of.P95), in(of.P99),
		in(of.P999), in(of.Max)}
}

// brMean is a figure that has a mean alone; nil without one.
func brMean(mean *float64, units string) *brStat {
	if mean == nil {
		return nil
	}
	return &brStat{Units: units, Mean: mean}
}

func brLevel(of *Level, units string) *brStat {
	if of == nil {
		return nil
	}
	return &brStat{Units: units, Mean: &of.Mean, Max: &of.Max}
}

// A brSection is an object of a Benchmark Report. A figure that is not known is left out, as the schema has it.
type brSection map[string]any

func (b brSection) put(name string, stat *brStat) {
	if stat != nil {
		b[name] = stat
	}
}

// WriteBenchmarkReport writes the summary as a Benchmark Report 0.2.1, as llm-d-benchmark, Prism and inference-perf
// exchange them, in JSON, which is YAML too. Latencies are from when a request was sent, of the requests that
// succeeded. The verdict, which the schema has no place for, is the description of the run.
func WriteBenchmarkReport(w io.Writer, s Summary) error {
	prompt, output := s.MeanLengths()
	load := brSection{"tool": "reprise", "tool_version": s.Run.Version, "source": "random",
		"input_seq_len": brLength(prompt)}
	if s.Run.Prompts == result.PromptsVerbatim {
		load["source"] = "sampled"
	}
	if output != nil {
		load["output_seq_len"] = brLength(output)
	}
	switch rate := s.Throughput.OfferedPerS; {
	case s.Run.Concurrency > 0:
		load["concurrency"] = s.Run.Concurrency
	case s.Run.Timing != result.ClosedLoop && rate != nil:
		load["rate_qps"] = *rate
	}

	results := brSection{"request_performance": brSection{"aggregate": brAggregate(&s)}}
	if v := s.Sessions; v != nil {
		load["multi_turn"] = brSection{"enabled": true}
		sessions := brSection{"total": v.Sessions, "succeeded": v.Succeeded, "failed": v.Failed}
		sessions.put("session_rate", brMean(v.PerS, "queries/s"))
		sessions.put("session_duration", brSeconds(&v.Completion, "s"))
		results["session_performance"] = brSection{"sessions": sessions}
	}
	if v := s.Servers; v != nil {
		seen := brSection{}
		seen.put("running_requests", brLevel(v.Running, "count"))
		seen.put("waiting_requests", brLevel(v.Waiting, "count"))
		seen.put("kv_cache_usage", brLevel(v.KVUsage, "fraction"))
		seen.put("cache_hit_rate", brMean(v.PrefixRatio, "fraction"))
		seen.put("gpu_utilization", brLevel(v.GPUUse, "fraction"))
		seen.put("gpu_memory_usage", brLevel(v.GPUMemoryMiB, "MiB"))
		seen.put("power_consumption", brLevel(v.GPUPowerW, "Watts"))
		seen.put("preemptions", brMean(v.Preemptions, "count"))
		results["observability"] = brSection{"components": []brSection{{"component_label": "servers",
			"aggregate": seen}}}
	}

	run, err := brRun(&s)
	if err != nil {
		return err
	}
	args := brSection{"model": s.Run.Model, "endpoints": s.Run.Endpoints, "workload_digest": s.Run.Workload,
		"timing": s.Run.Timing}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(brSection{"version": benchmarkReport, "run": run, "results": results, "scenario": brSection{
		"load": brSection{"metadata": brSection{}, "standardized": load, "native": brSection{"args": args}}}})
}

// brAggregate is what was asked of the servers and how they answered.
func brAggregate(s *Summary) brSection {
	n := &s.Requests
	requests := brSection{"total": n.Rows, "failures": n.Failed, "incomplete": n.Cancelled + n.NotSent}
	prompt, output := s.MeanLengths()
	requests.put("input_length", brMean(prompt, "count"))
	requests.put("output_length", brMean(output, "count"))

	l := &s.Latency
	latency := brSection{}
	latency.put("time_to_first_token", brSeconds(&l.FromSent.TTFT, "s"))
	latency.put("time_per_output_token", brSeconds(&l.TPOT, "s/token"))
	latency.put("inter_token_latency", brSeconds(&l.ITLChunk, "s/token"))
	latency.put("request_latency", brSeconds(&l.FromSent.E2E, "s"))

	t := &s.Throughput
	throughput := brSection{}
	throughput.put("input_token_rate", brMean(t.PromptTokensPerS, "tokens/s"))
	throughput.put("output_token_rate", brMean(t.OutputTokensPerS, "tokens/s"))
	if t.PromptTokensPerS != nil && t.OutputTokensPerS != nil {
		throughput.put("total_token_rate", brMean(trace.Ptr(*t.PromptTokensPerS+*t.OutputTokensPerS), "tokens/s"))
	}
	throughput.put("request_rate", brMean(t.RequestsPerS, "queries/s"))
	return brSection{"requests": requests, "latency": latency, "throughput": throughput}
}

// brRun names the run by a digest of all that it says of itself, with its times and its verdict.
func brRun(s *Summary) (brSection, error) {
	text, err := json.Marshal(s.Run)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(text)
	run := brSection{"uid": hex.EncodeToString(digest[:16]), "keywords": []string{"reprise", s.Run.Model}}
	verdict := verdictNote(s)
	run["description"] = strings.Join(append([]string{verdict.Word + ": " + verdict.Text}, verdict.Items...), "; ")

	if start, err := time.Parse(time.RFC3339, s.Run.Started); err == nil && s.DurationS != nil {
		end := start.Add(time.Duration(*s.DurationS * 1e9))
		run["time"] = brSection{"start": start.Format(time.RFC3339), "end": end.Format(time.RFC3339),
			"duration": fmt.Sprintf("PT%gS", *s.DurationS)}
	}
	return run, nil
}

// brLength is a mean length, whose distribution the summary does not have. The schema requires a prompt length: it is 0
// where no request succeeded.
func brLength(mean *float64) brSection {
	return brSection{"distribution": "other", "value": *cmp.Or(mean, new(float64))}
}
