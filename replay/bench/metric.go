package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"reprise/replay/report"
	"reprise/trace/page"
)

// A Metric is one figure of a summary, by a name such as p95_ttft,
// output_tokens_per_s or error_rate. Latencies count from when a request was due.
// The zero Metric is none.
type Metric struct{ name string }

var (
	metricStats   = []string{"mean", "min", "p50", "p90", "p95", "p99", "p99.9", "max"}
	metricTimes   = []string{"ttft", "e2e", "tpot", "itl", "itl_token", "session_time"}
	metricFigures = []string{"requests_per_s", "prompt_tokens_per_s", "output_tokens_per_s", "error_rate", "hit_ratio", "sessions_per_s", "session_success",
		"max_running", "max_waiting", "max_kv_cache_use", "max_gpu_utilisation", "max_gpu_memory_mib"}
)

// parseMetric reads the name of a metric, p99_ttft or, as in a contract, p99 ttft.
func parseMetric(name string) (Metric, error) {
	name = strings.Join(strings.Fields(name), "_")
	stat, of, ok := strings.Cut(name, "_")
	if slices.Contains(metricFigures, name) || ok && slices.Contains(metricStats, stat) && slices.Contains(metricTimes, of) {
		return Metric{name}, nil
	}
	return Metric{}, fmt.Errorf("no such metric: want a statistic (%s) of a time (%s), such as p95_ttft, or %s",
		strings.Join(metricStats, ", "), strings.Join(metricTimes, ", "), strings.Join(metricFigures, ", "))
}

// String is its name.
func (m Metric) String() string { return m.name }

var figureLabels = map[string]string{"requests_per_s": "Requests/s", "prompt_tokens_per_s": "Prompt tokens/s", "output_tokens_per_s": "Output tokens/s",
	"error_rate": "Errors (%)", "hit_ratio": "Cache hits (%)", "sessions_per_s": "Sessions/s", "session_success": "Session success (%)", "max_running": "Running, peak", "max_waiting": "Waiting, peak",
	"max_kv_cache_use": "KV cache, peak (%)", "max_gpu_utilisation": "GPU, peak (%)", "max_gpu_memory_mib": "GPU memory, peak (MiB)"}

// IsShare tells whether its values are between 0 and 1.
func (m Metric) IsShare() bool { return strings.HasSuffix(figureLabels[m.name], "(%)") }

// Label names it for tables, with its unit.
func (m Metric) Label() string {
	if label, ok := figureLabels[m.name]; ok {
		return label
	}
	stat, of, _ := strings.Cut(m.name, "_")
	of = map[string]string{"itl_token": "Token ITL", "session_time": "Session time"}[of] + map[string]string{"ttft": "TTFT", "e2e": "E2E", "tpot": "TPOT", "itl": "ITL"}[of]
	unit := " (ms)"
	if m.inSeconds() {
		unit = " (s)"
	}
	return of + " " + stat + unit
}

// Higher tells whether more of it is better. It is not known of what the servers say of
// themselves.
func (m Metric) Higher() (better, known bool) {
	return strings.HasSuffix(m.name, "_per_s") || m.name == "hit_ratio" || m.name == "session_success", !strings.HasPrefix(m.name, "max_") || m.isTime()
}

func (m Metric) isTime() bool { return m.name != "" && !slices.Contains(metricFigures, m.name) }

// inSeconds is that of a whole answer or session.
func (m Metric) inSeconds() bool {
	return strings.HasSuffix(m.name, "_e2e") || strings.HasSuffix(m.name, "_session_time")
}

// A Value is a metric of one run. Where a run has too few requests for a percentile
// the largest of its values stands in for it, and Largest says so.
type Value struct {
	V       float64
	Largest bool
}

// Of is the metric of a run; not ok is one that the run does not have. Times are in
// milliseconds, rates per second, shares between 0 and 1.
func (m Metric) Of(s *report.Summary) (Value, bool) {
	var v *float64
	sessions := s.Sessions
	if sessions == nil {
		sessions = &report.Sessions{}
	}
	switch m.name {
	case "sessions_per_s":
		v = sessions.PerS
	case "session_success":
		v = sessions.SuccessShare
	case "requests_per_s":
		v = s.Throughput.RequestsPerS
	case "prompt_tokens_per_s":
		v = s.Throughput.PromptTokensPerS
	case "output_tokens_per_s":
		v = s.Throughput.OutputTokensPerS
	case "error_rate":
		v = s.Requests.ErrorShare
	case "hit_ratio":
		v = s.Cache.Measured
	default:
		if slices.Contains(metricFigures, m.name) {
			if s.Servers == nil {
				return Value{}, false
			}
			// The most that the servers said while what is measured was sent.
			level := map[string]*report.Level{"max_running": s.Servers.Running, "max_waiting": s.Servers.Waiting,
				"max_kv_cache_use": s.Servers.KVUsage, "max_gpu_utilisation": s.Servers.GPUUse, "max_gpu_memory_mib": s.Servers.GPUMemoryMiB}[m.name]
			v = level.Peak()
			break
		}
		return m.time(s)
	}
	if v == nil {
		return Value{}, false
	}
	return Value{V: *v}, true
}

func (m Metric) time(s *report.Summary) (Value, bool) {
	name, of, _ := strings.Cut(m.name, "_")
	stats := map[string]report.Stat{"ttft": s.Latency.FromDue.TTFT, "e2e": s.Latency.FromDue.E2E,
		"tpot": s.Latency.TPOT, "itl": s.Latency.ITLChunk, "itl_token": s.Latency.ITLToken}
	if s.Sessions != nil {
		stats["session_time"] = s.Sessions.Completion
	}
	stat, ok := stats[of]
	if !ok || stat.Count == 0 {
		return Value{}, false
	}
	v := map[string]*float64{"mean": stat.Mean, "min": stat.Min, "p50": stat.P50, "p90": stat.P90,
		"p95": stat.P95, "p99": stat.P99, "p99.9": stat.P999, "max": stat.Max}[name]
	if v == nil && stat.Max != nil {
		return Value{*stat.Max, true}, true
	}
	if v == nil {
		return Value{}, false
	}
	return Value{V: *v}, true
}

// figure prints a number for people.
func figure(v float64) string { return page.Number(v) }

// spelled prints a load as it stands in the names of levels and of arrival processes,
// which a sweep that goes on finds again: with four digits, and without zeros behind.
func spelled(v float64) string {
	if v >= 1000 && v < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// A Figure is a metric over the runs of a row: the median, and the ends.
type Figure struct {
	Metric  string  `json:"metric"`
	V       float64 `json:"median"`
	Lo      float64 `json:"min"`
	Hi      float64 `json:"max"`
	Largest bool    `json:"largest,omitempty"` // too few requests for the percentile: it is the largest value
}

// format prints a figure: times in milliseconds, and in seconds where a request is whole;
// a mark follows what stands in for a percentile.
func (m Metric) format(f Figure) string {
	v := f.V
	switch {
	case m.inSeconds():
		v /= 1000
	case m.IsShare():
		v *= 100
	}
	s := figure(v)
	if f.Largest {
		s += "*"
	}
	return s
}

// signed prints a change in percent.
func signed(share float64) string {
	s := strconv.FormatFloat(share*100, 'f', 1, 64)
	if share >= 10 || share <= -10 {
		s = strconv.FormatFloat(share*100, 'f', 0, 64)
	}
	if !strings.HasPrefix(s, "-") {
		s = "+" + s
	}
	return strings.Replace(s, "-", "−", 1) + " %"
}

func cell(v *float64) string { return page.OrDash(v, figure) }

// printable takes control characters out of what names and servers say.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
