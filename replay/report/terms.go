package report

import (
	"strings"

	"reprise/trace/page"
)

// termOf is the whole name of the definition that has this name among its own,
// as the page knows it; "" for "". A name without a definition comes back as it
// is, and the page refuses it.
func termOf(name string) string {
	if name == "" {
		return ""
	}
	for _, d := range metricDefinitions() {
		for _, one := range strings.Split(d.Name, ", ") {
			if one == name {
				return d.Name
			}
		}
	}
	return name
}

// repeat is one term for each of the columns but the first, which names the rows.
func repeat(term string, columns int) []string {
	out := make([]string, columns)
	for i := 1; i < columns; i++ {
		out[i] = term
	}
	return out
}

// pageTerms are the definitions, as the page links to them.
func pageTerms() []page.Term {
	var out []page.Term
	for _, d := range metricDefinitions() {
		out = append(out, page.Term{Name: d.Name, Unit: d.Unit, Text: d.Definition, Formula: d.Formula})
	}
	return out
}

// overviewTerms name what defines each line of the overview.
var overviewTerms = map[string]string{
	"Requests": "rows", "Duration": "duration", "Offered": "offered_requests", "Throughput": "requests",
	"Prompt tokens": "prompt_tokens", "Output tokens": "output_tokens",
	"Goodput from sent": "goodput", "Goodput from due": "goodput", "Not measured": "warm_up", "Beyond": "beyond",
	"Drift of turns": "run.drift", "Determinism": "determinism", "Retried": "retried", "Part": "run.selection", "Primed": "run.selection",
	"In flight": "in_flight", "Prompt error": "prompt_error", "Output miss": "output_miss", "Prefix cache": "measured_ratio",
	"Per user": "tokens_per_s_per_user", "Per GPU": "output_tokens_per_s_per_gpu", "Per instance": "output_tokens_per_s_per_gpu",
}

// serverTerms do for the lines of what the servers say.
var serverTerms = map[string]string{
	"Running": "servers.running", "Waiting": "servers.waiting", "KV cache in use": "servers.kv_cache_use",
	"Prefix cache hits": "servers.prefix_hit_ratio", "Preemptions": "servers.preemptions", "Generated": "servers.generated_tokens",
	"GPU utilisation": "servers.gpu_utilisation", "GPU power": "servers.gpu_power", "GPU memory": "servers.gpu_memory",
	"Speculation": "servers.speculation.acceptance_rate", "Measured": "servers.measured",
}
