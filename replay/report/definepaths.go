package report

import (
	"regexp"
	"slices"
	"strings"
)

// metricPaths says where in the JSON of a [Summary] the metrics are whose name is no
// path. The last * of a path stands for a statistic.
var metricPaths = map[string]string{
	"latency.from_sent, latency.from_due": "",
	"ttft":                                "latency.from_sent.ttft.* latency.from_due.ttft.* steady.ttft.* by_category.*.ttft_* by_class.*.ttft_* by_input_length.*.ttft_* by_endpoint.*.ttft_* by_response_header.*.values.*.ttft_*",
	"itl_chunk":                           "latency.itl_chunk.* steady.itl_chunk.*",
	"itl_token":                           "latency.itl_token.*",
	"tpot":                                "latency.tpot.* steady.tpot.* by_category.*.tpot_* by_class.*.tpot_* by_input_length.*.tpot_* by_endpoint.*.tpot_* by_response_header.*.values.*.tpot_*",
	"e2e":                                 "latency.from_sent.e2e.* latency.from_due.e2e.* steady.e2e.* by_category.*.e2e_* by_class.*.e2e_* by_input_length.*.e2e_* by_endpoint.*.e2e_* by_response_header.*.values.*.e2e_*",
	"headers":                             "latency.from_sent.headers.* latency.from_due.headers.*",
	"send_lag":                            "latency.send_lag.*",
	"lag_drift":                           "lag_drift_ms",
	"p50, p90, p95, p99, p99_9":           "",
	"mean, sd, min, max":                  "",
	"count":                               "",
	"tail_ratio":                          "latency.from_sent.ttft.tail_ratio latency.from_sent.e2e.tail_ratio latency.from_sent.headers.tail_ratio latency.from_due.ttft.tail_ratio latency.from_due.e2e.tail_ratio latency.from_due.headers.tail_ratio latency.itl_chunk.tail_ratio latency.itl_token.tail_ratio latency.tpot.tail_ratio latency.send_lag.tail_ratio steady.ttft.tail_ratio steady.itl_chunk.tail_ratio steady.tpot.tail_ratio steady.e2e.tail_ratio",
	"groups":                              "",

	"rows, succeeded, failed, cancelled, not_sent, warm_up, cool_down, beyond": "",

	"errors":           "",
	"retried":          "",
	"determinism":      "",
	"run.selection":    "",
	"servers.measured": "",
	"checklist":        "",
	"diagnoses":        "",
	"verdict.checks":   "",

	"tokens over time":    "",
	"hit ratio over time": "",
	"arrivals":            "",
	"lengths":             "",

	"tokens_per_s_per_user":       "efficiency.tokens_per_s_per_user",
	"output_tokens_per_s_per_gpu": "efficiency.output_tokens_per_s_per_gpu",

	"duration":         "duration_s",
	"offered_requests": "throughput.offered_requests_per_s",
	"requests":         "throughput.requests_per_s",
	"prompt_tokens":    "throughput.prompt_tokens_per_s",
	"output_tokens":    "throughput.output_tokens_per_s",
	"goodput":          "goodput.from_sent.requests_per_s goodput.from_sent.share goodput.from_sent.requests goodput.from_due.requests_per_s goodput.from_due.share goodput.from_due.requests",
	"run.drift":        "run.drift.*_ns",
	"in_flight":        "in_flight.mean",
	"error_share":      "requests.error_share",

	"steady.window":                 "steady.window.*_s",
	"latencies of the steady state": "",
	"steady throughput":             "steady.requests_per_s steady.prompt_tokens_per_s steady.output_tokens_per_s",

	"prompt_error":     "tokens.prompt_error.*",
	"output_miss":      "tokens.output_miss.*",
	"tokens_per_event": "tokens.tokens_per_event",

	"measured_ratio": "cache.measured_ratio by_category.*.cache.measured_ratio",
	"expected_ratio": "cache.expected_ratio by_category.*.cache.expected_ratio",
	"rounding_loss":  "cache.rounding_loss by_category.*.cache.rounding_loss",
	"difference":     "cache.difference by_category.*.cache.difference",

	"contract.clauses.margin":                 "contract.clauses.*.margin",
	"contract.cost_per_million_output_tokens": "",

	"servers.running, servers.waiting, servers.kv_cache_use, servers.gpu_utilisation, servers.gpu_power, servers.gpu_memory": "servers.running.* servers.waiting.* servers.kv_cache_use.* servers.gpu_utilisation.* servers.gpu_power_w.* servers.gpu_memory_mib.*",
}

// Paths says where in the JSON of a [Summary] the number is, with * for any element
// of a list and any part of a name. What is a statement about other metrics has none.
func (d *Definition) Paths() []string {
	if paths, ok := metricPaths[d.Name]; ok {
		return strings.Fields(paths)
	}
	return strings.Split(d.Name, ", ")
}

// has says whether the definition is of a number of the JSON.
func (d *Definition) has(path string) bool {
	return slices.ContainsFunc(d.Paths(), func(p string) bool { return matches(p, path) })
}

// names are those under which the definition is found.
func (d *Definition) names() []string { return strings.Split(d.Name, ", ") }

// matches says whether a path is of a pattern of [Definition.Paths].
func matches(pattern, path string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == path
	}
	want, got := strings.Split(pattern, "."), strings.Split(path, ".")
	return len(want) == len(got) && !slices.ContainsFunc(want, func(w string) bool {
		g := got[0]
		got = got[1:]
		before, after, any := strings.Cut(w, "*")
		return !any && w != g || any && (len(g) < len(before)+len(after) || !strings.HasPrefix(g, before) || !strings.HasSuffix(g, after))
	})
}

// definitionOf finds what a number of the JSON means. Of several that match, the one
// that says most of its path: errors.*.count stands above errors.*.*.
func definitionOf(all []Definition, path string) (best Definition, ok bool) {
	stars := -1
	for _, d := range all {
		for _, p := range d.Paths() {
			if n := strings.Count(p, "*"); matches(p, path) && (stars < 0 || n < stars) {
				best, stars, ok = d, n, true
			}
		}
	}
	return best, ok
}

// statisticOf is the statistic that a number is, as the last part of its path says:
// p99 of p99_ms and of ttft_p99_ms; "" is none.
func statisticOf(path string) string {
	last := path[strings.LastIndex(path, ".")+1:]
	last = strings.TrimSuffix(strings.TrimSuffix(ofGroup.ReplaceAllString(last, ""), "_ms"), "_ns")
	if slices.Contains(statistics, last) {
		return last
	}
	return ""
}

// ofGroup is what stands before a statistic in a group.
var ofGroup = regexp.MustCompile("^(ttft|tpot|e2e)_")

// statistics are those that metrics have.
var statistics = []string{"count", "mean", "sd", "min", "p50", "p90", "p95", "p99", "p99_9", "max"}
