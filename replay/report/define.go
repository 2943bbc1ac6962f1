package report

import (
	"regexp"
	"slices"
	"strings"

	"reprise/replay/figure"
	"reprise/trace/doc"
)

// A Definition says what a number of a report means: the same name is another
// number in another tool.
type Definition struct {
	// of the metric; else the path of the number in the JSON of a [Summary], * for any element. Several are separated
	// by commas
	Name       string `json:"name"`
	Unit       string `json:"unit"`
	Definition string `json:"definition"`
	Formula    string `json:"formula"`

	// Where in the JSON it is, with * for any element and GROUP for any of [groupLists]. The last * stands for a
	// statistic. Empty is its name, and [none] a statement about other numbers.
	paths string
	rests string // paths of the counts that it rests on, where none stands beside it
}

// none is in place of paths, for a definition that is about other numbers.
const none = "none"

// ofFigure is the definition of a figure, which package figure has, with where it is in a report.
func ofFigure(of *figure.Subject, paths, rests string) Definition {
	return Definition{of.Definitions()[0], string(of.Unit), of.Definition, of.Formula, paths, rests}
}

// Definitions lists every metric of a report, and after them every other number in
// the JSON of a [Summary]. Instants are of one monotonic clock: due, when the schedule
// wanted the request sent; sent, the entry to its write; headers; first and last
// token; done, the end of its stream or its failure.
func Definitions() []Definition {
	out := append(metricDefinitions(), groupDefinitions...)
	for _, part := range numberFields {
		for _, f := range part.fields {
			out = append(out, Definition{f.path, f.unit, f.definition, part.how, "", ""})
		}
	}
	return out
}

// metricDefinitions are those of the figures that tables and plots show.
func metricDefinitions() []Definition {
	return slices.Concat(latencyDefinitions, loadDefinitions, steadyDefinitions, tokenDefinitions, cacheDefinitions,
		sessionDefinitions, serverDefinitions, saidDefinitions(),
		efficiencyDefinitions, overTimeDefinitions, methodDefinitions, contractDefinitions)
}

// saidDefinitions are the definitions of statistics that servers report.
func saidDefinitions() (out []Definition) {
	for _, of := range figure.All() {
		if of.Servers && of.Spread {
			paths := "latency." + of.Name + ".*"
			if of == figure.QueueTime {
				paths += " servers.queue_time.*"
			}
			out = append(out, ofFigure(of, paths, ""))
		}
	}
	return out
}

var latencyDefinitions = []Definition{
	{"latency.from_sent, latency.from_due", "ms",
		"The origin of a latency. From sent is how long the server took. From schedule adds what the request waited " +
			"in the client, and so has no coordinated omission. Both are of successful requests.",
		"t − sent; t − due", none, ""},
	ofFigure(figure.TTFT, "latency.from_sent.ttft.* latency.from_due.ttft.* steady.ttft.* GROUP.ttft_*", ""),
	ofFigure(figure.TTFO, "latency.from_sent.ttfo.* latency.from_due.ttfo.*", ""),
	ofFigure(figure.ITL, "latency.itl_chunk.* steady.itl_chunk.*", ""),
	ofFigure(figure.TokenITL, "latency.itl_token.*", ""),
	ofFigure(figure.TPOT, "latency.tpot.* steady.tpot.* GROUP.tpot_*", ""),
	ofFigure(figure.E2E, "latency.from_sent.e2e.* latency.from_due.e2e.* steady.e2e.* GROUP.e2e_*", ""),
	ofFigure(figure.Headers, "latency.from_sent.headers.* latency.from_due.headers.*", ""),
	ofFigure(figure.SendLag, "latency.send_lag.*", ""),
	{"lag_drift", "ms",
		"How much later the client got: over at most 2,000 requests sampled by a hash of their rows, in the order of " +
			"their due times, 40 at least.",
		"median lag of the last quarter − of the first quarter", "lag_drift_ms", "latency.send_lag.count"},
	{"stalled.ttft_share", "share",
		"How much of the times to first token, of an embedding to its answer, the client was stalled in, or read " +
			"late by more than 2 ms. Events in a stall are timed at its end. Of the kernel's instants (--set " +
			"instants=kernel) it is the part that is left out.",
		"Σ max(|[sent, first_token] ∩ stalls|, read_delay − 2 ms) ÷ Σ (first_token − sent)", "", ""},
	{"stalled.gap_p99_share", "share",
		"How much of a gap between token events the client was stalled in, or read late by more than 2 ms, at p99: " +
			"at most one gap in a hundred has more. Rounded up to a tenth of a percent. Of the kernel's instants a " +
			"gap that is left out counts whole.",
		"p99 of max(|gap ∩ stalls|, read_delay − 2 ms) ÷ gap", "", ""},
	{"stalled.event_share", "share",
		"How many token events stalls may have delayed: some of a stall, or of a read more than 2 ms late, is " +
			"between them and the event before, or the sending.",
		"events with a stall before them ÷ token events", "", ""},
	{"receipt.read_delay", "ms",
		"How long a token event had been there when the client read it, by the kernel's receive timestamp of its " +
			"last segment. The stamp is a latest bound: events that were read together have the stamp of the last.",
		"read − received", "receipt.read_delay.*", ""},
	{"receipt.stamped_share", "share", "Token events that have a receive timestamp.", "stamped ÷ token events", "", ""},
	{"p50, p90, p95, p99, p99_9", "as the metric",
		"Percentiles by linear interpolation between order statistics. Null below 1/(1−p) values. Exact up to a " +
			"stated number of values (method exact), beyond it within 0.1 % (method hdrhistogram).",
		"x[k] + f·(x[k+1] − x[k]), k + f = p·(n − 1)", none, ""},
	{"tail_ratio", "ratio", "How much longer one request in a hundred takes than the one in the middle.", "p99 ÷ p50",
		strings.Join(slices.DeleteFunc(numberPaths(), func(path string) bool {
			return !strings.HasSuffix(path, ".tail_ratio")
		}), " "), ""},
	{"count", "values", "How many values a statistic is of: one for each request, of ITL one for each gap.", "n",
		none, ""},
	{"groups", "ms", "Requests by a column such as user, class or turn (--by). Latencies are of successful " +
		"requests, from sent: exact up to 131,072 values of a group, or 16,384 where a column may have many, beyond " +
		"within 0.1 %. Values beyond the first 1,024 are one group.", "as above, of the part", none, ""},
	{"mean, sd, min, max", "as the metric", "Exact for any number of values; sd is the population's.",
		"√(Σ(x − mean)² ÷ n)", none, ""},
}

var loadDefinitions = []Definition{
	{"rows, succeeded, failed, cancelled, not_sent, warm_up, cool_down, beyond", "count",
		"Requests by how they ended. Failed ones have an error or no end; cancelled ones were hung up on purpose, " +
			"as in the trace; warm-up and cool-down are sent before and after the part that is measured, and " +
			"further rows; beyond are those due after the duration that was asked for.",
		"rows = succeeded + failed + cancelled + not sent", none, ""},
	{"errors", "count; share", "Failed requests by their class, from a closed list.", "n ÷ (succeeded + failed)",
		none, ""},
	{"retried", "count", "Requests that were tried more than once. Their latencies include all attempts.",
		"attempts > 1", none, ""},
	{"determinism", "count", "Requests that were sent twice at temperature 0 and answered differently.",
		"answer₁ ≠ answer₂", none, ""},
	{"run.selection", "rows", "Which part of the workload was sent, and which prompts were sent before to prime the " +
		"cache.",
		"rows", none, ""},
	{"duration", "s", "From the first due time to the last end of a request.", "max(done) − min(due)",
		"duration_s", "requests.rows"},
	{"offered_requests", "1/s", "The rate that the schedule asked for.", "(rows − 1) ÷ (max(due) − min(due))",
		"throughput.offered_requests_per_s", "requests.rows"},
	ofFigure(figure.RequestRate, "throughput.requests_per_s", "requests.succeeded"),
	{"uncached_prompt_tokens", "1/s",
		"Prompt tokens of successful requests that the server did not find in its prefix cache, so that it had to " +
			"compute them. None unless it counts both for every request.", "Σ (prompt − cached) ÷ duration",
		"throughput.uncached_prompt_tokens_per_s", "requests.succeeded"},
	ofFigure(figure.PromptRate, "throughput.prompt_tokens_per_s", "requests.succeeded"),
	ofFigure(figure.OutputRate, "throughput.output_tokens_per_s", "requests.succeeded"),
	{"goodput", "1/s; share", figure.Goodput.Definition, figure.Goodput.Formula,
		"goodput.from_sent.requests_per_s goodput.from_sent.share goodput.from_sent.requests " +
			"goodput.from_due.requests_per_s goodput.from_due.share goodput.from_due.requests",
		"requests.succeeded requests.failed"},
	{"run.drift", "ns", "How far a causal run moved the turns that follow others, which wait for the end of these " +
		"and a think or tool time. Below zero, the server was faster than in the source.",
		"due − recorded ÷ speed", "run.drift.*_ns", ""},
	ofFigure(figure.InFlight, "in_flight.mean", "requests.rows"),
	ofFigure(figure.ErrorRate, "requests.error_share GROUP.error_share", ""),
}

var tokenDefinitions = []Definition{
	{"prompt_error", "tokens", "How far the server's count of a prompt is from what the workload asks.",
		"usage.prompt_tokens − wanted", "tokens.prompt_error.*", ""},
	{"output_miss", "tokens", "How far an output is from the length that the workload asks.", "output_tokens − wanted",
		"tokens.output_miss.*", ""},
	{"tokens_per_event", "tokens", "Mean tokens of a token event.", "Σ output_tokens ÷ Σ events",
		"tokens.tokens_per_event", "requests.succeeded"},
}

var cacheDefinitions = []Definition{
	ofFigure(figure.HitRatio, "cache.measured_ratio GROUP.cache.measured_ratio", ""),
	{"expected_ratio", "share",
		"What a server with an endless cache can find of the prefixes that earlier requests have sent: full blocks " +
			"of its size, at most all but one token, over the same requests. What the server generated itself counts " +
			"only in a replay with --thread, whose turns hold it; in a warm run all of the prompts were sent before.",
		"Σ ⌊min(known, prompt − 1) ÷ block⌋·block ÷ Σ prompt", "cache.expected_ratio GROUP.cache.expected_ratio", ""},
	{"rounding_loss", "share", "What rounding to full blocks costs.",
		"Σ (min(known, prompt − 1) mod block) ÷ Σ prompt", "cache.rounding_loss GROUP.cache.rounding_loss", ""},
	{"difference", "share", "Below zero, the server found less than it could have.", "measured − expected",
		"cache.difference GROUP.cache.difference", ""},
}

// groupDefinitions are of numbers that the run has, and each group of its requests.
var groupDefinitions = []Definition{
	{"cache.server_block_tokens", "tokens",
		"Block of the server's prefix cache that the expected hit ratio is counted in.", counted,
		"cache.server_block_tokens GROUP.cache.server_block_tokens", ""},
	{"cache.rows", "rows", "Successful rows that the hit ratios are of.", counted,
		"cache.rows GROUP.cache.rows", ""},
	{"cache.left_out_rows", "rows", "Successful rows without what the ratios need.", counted,
		"cache.left_out_rows GROUP.cache.left_out_rows", ""},
	{"cache.prompt_tokens", "tokens", "Prompt tokens of the rows that the ratios are of.", counted,
		"cache.prompt_tokens GROUP.cache.prompt_tokens", ""},
	{"groups.rows", "rows", "Rows of the results in this group.", counted, "GROUP.rows", ""},
	{"groups.succeeded", "requests", "Of these, requests with a whole answer.", counted, "GROUP.succeeded", ""},
	{"groups.failed", "requests", "Of these, requests that failed.", counted, "GROUP.failed", ""},
	{"groups.tokens", "tokens", "Tokens of a group's successful requests: of the prompts, of them cached and not " +
		"where the server says so of all, and of the output.", counted,
		"GROUP.prompt_tokens GROUP.cached_tokens GROUP.uncached_tokens GROUP.output_tokens", ""},
}

var sessionDefinitions = []Definition{
	{"sessions", "sessions",
		"Sessions of the workload that began in the measured window, in each of its rounds and plays: requests that " +
			"share a session, a tree where agents start others. Beyond 262,144 requests of sessions the figures are " +
			"of whole sessions chosen by a hash.",
		"succeeded + failed + censored", "sessions.sessions", ""},
	ofFigure(figure.SessionTime, "sessions.completion.*", ""),
	{"groups.work", "share",
		"What part of the work of a run a group of its requests was: prompt tokens that were not cached, and twice the " +
			"output tokens (weights of Sheng and others 2024).",
		"(Σ uncached + 2 · output of the group) ÷ (the same of all)", "GROUP.cost_share", ""},
	{"sessions.recorded", "ms", "What the sessions that succeeded took in the source. None where the source does not " +
		"say when a request ended that no other follows.", "max(arrival + recorded e2e) − min(arrival)",
		"sessions.recorded.*", ""},
	ofFigure(figure.SessionSlowdown, "sessions.slowdown.*", ""),
	ofFigure(figure.SessionSuccess, "sessions.success_share", "sessions.succeeded sessions.failed"),
	ofFigure(figure.SessionRate, "sessions.sessions_per_s", "sessions.succeeded"),
	{"jobs_per_hour_per_user", "1/h", "What a user gets done who begins a session when the one before is over.",
		"3600 ÷ mean completion time in s", "sessions.jobs_per_hour_per_user", "sessions.completion.count"},
	{"jobs_per_hour_per_gpu", "1/h", "Sessions for each hour and GPU, where the number of GPUs is given.",
		"sessions_per_s · 3600 ÷ GPUs", "sessions.jobs_per_hour_per_gpu", ""},
	{"sessions.critical_path", "s; share",
		"What the time of the sessions that succeeded went to. From the request that ended last the path goes to the " +
			"parent that ended last, and on to a request without one; where the workload has no parents, from turn " +
			"to turn. Until first token is queue and prefill; server is that and decode. Think and tool time are " +
			"what the workload says of the time after the parent, by the speed; wait is the rest of it.",
		"Σ over the path; parts ÷ completion", "sessions.critical_path.*.mean_s sessions.critical_path.*.share", ""},
	{"sessions.requests_per_session", "count",
		"Requests of a session that succeeded, and its input, cached and output tokens. Cached tokens are of " +
			"sessions whose server counts them for every request.", "Σ over the requests of the session",
		"sessions.requests_per_session.* sessions.input_tokens_per_session.* sessions.cached_tokens_per_session.* " +
			"sessions.output_tokens_per_session.*", ""},
	ofFigure(figure.SessionCost, "sessions.cost_per_session.*", ""),
	{"by turn", "turn", "Requests by their turn in their thread, from 0, as the workload says: of lo to one below " +
		"hi; null has no end.", "lo ≤ turn < hi", none, ""},
	{"by depth", "requests", "Requests by how many others come before them on the longest way from the root of their " +
		"session's tree.", "lo ≤ 1 + max(depth of parents) < hi", none, ""},
}

var serverDefinitions = []Definition{
	{"servers.measured", "s", "The part of the run over which the servers' figures are taken, and how many scrapes " +
		"or answers of Prometheus they rest on.", "from_s to to_s", none, ""},
	{"servers.running, servers.waiting, servers.kv_cache_use, servers.gpu_utilisation, servers.gpu_power, " +
		"servers.gpu_memory", "as the metric",
		"Gauges of the servers, over the measured part of the run. Dynamo's frontend counts as running what has " +
			"arrived, and as waiting what has no token yet. Requests, watts and memory are of all engines or GPUs " +
			"together, shares are the mean of them; the maximum is of any one scrape interval.",
		"Σ samples ÷ n",
		"servers.running.* servers.waiting.* servers.kv_cache_use.* servers.gpu_utilisation.* servers.gpu_power_w.* " +
			"servers.gpu_memory_mib.*", ""},
	{"servers.prefix_hit_ratio", "share",
		"Hit ratio by token, from the servers' counters: tokens found, of the tokens looked up. A request that is " +
			"preempted and scheduled again looks up again.", "Δhits ÷ Δqueries", "", ""},
	{"servers.joules_per_output_token", "J",
		"Energy of all GPUs that were scraped, by their counters of energy from the first request to the end of the " +
			"last, or else mean power times that time, for each generated token: by the servers' counters, or else " +
			"by the answers. GPUs that served something else count too. The reciprocal is tokens per second per watt.",
		"Δenergy ÷ Δgenerated",
		"servers.joules_per_output_token servers.output_tokens_per_s_per_watt servers.gpu_energy_j", ""},
	{"servers.preemptions, servers.prompt_tokens, servers.generated_tokens", "count",
		"What counters grew by: from the last scrape before the measured part to the last in it; without a warm-up " +
			"and a cool-down, from before the first request to behind the last.", "Δcounter", "", ""},
	{"servers.speculation.acceptance_rate", "share", "Draft tokens that the model accepted.", "Δaccepted ÷ Δdrafted",
		"", ""},
	{"servers.speculation.mean_accepted_length", "tokens",
		"Tokens that a step of speculative decoding gave, with the one that the model adds itself. SGLang and " +
			"TensorRT-LLM give the mean directly.", "1 + Δaccepted ÷ Δdrafts", "", ""},
}

var steadyDefinitions = []Definition{
	{"steady.in_flight_mean", "requests", "Mean requests in flight in the steady window.", "∫ in flight ÷ window",
		"", ""},
	{"steady.in_flight_change_share", "share",
		"How much the requests in flight grew over what MSER-5 left, by the median slope of its twenty parts (Theil " +
			"and Sen). With a significant trend (Mann and Kendall) beyond a tenth there is no steady state.",
		"slope · 20 ÷ mean", "", ""},
	{"steady.little_ratio", "share",
		"Mean requests in flight over what Little's law gives for the requests that were sent in the window. Beyond " +
			"a quarter from 1 there is no steady state.", "in flight ÷ (Σ (done − sent) ÷ window)", "", ""},
	{"steady.window", "s", "Between the first and the last request that was sent, what MSER-5 leaves of the requests " +
		"in flight: it cuts off the begin, and then the end, so that the standard error of the mean of the rest is " +
		"smallest, half of it at most. In flight are all that were sent and ended, a warm-up included.",
		"argmin of Σ (x − mean)² ÷ n² over the means x of five observations that are left", "steady.window.*_s", ""},
	{"latencies of the steady state", "ms",
		"As above, of the measured, successful requests that were sent and finished inside the window; at least 100.",
		"window.from ≤ sent, done < window.to", none, ""},
	{"steady throughput", "1/s",
		"What happened inside: successful requests by their end, output tokens by the instants of their events, " +
			"prompt tokens by the first token.", "Σ inside ÷ window",
		"steady.requests_per_s steady.prompt_tokens_per_s steady.output_tokens_per_s", "steady.finished_requests"},
}

var efficiencyDefinitions = []Definition{
	{"tokens_per_s_per_user", "1/s", "How fast a user sees tokens come, once they do: the mean TPOT turned over.",
		"1000 ÷ mean TPOT in ms", "efficiency.tokens_per_s_per_user", ""},
	{"output_tokens_per_s_per_gpu", "1/s",
		"Output tokens of successful requests per second and GPU. Where the number of GPUs is not known it is per " +
			"instance, an engine or an endpoint, and says so: --gpus gives the number.", "output_tokens ÷ GPUs",
		"efficiency.output_tokens_per_s_per_gpu", ""},
}

var overTimeDefinitions = []Definition{
	{"tokens over time", "1/s", "Tokens of successful requests in each bin of time: prompt tokens at the first " +
		"token, output tokens at the instants of their events.", "Σ tokens ÷ width of the bin", none, ""},
	{"hit ratio over time", "share",
		"Measured and expected hit ratio of the requests that were sent in each bin of time.",
		"Σ cached ÷ Σ prompt; Σ ⌊min(known, prompt − 1) ÷ block⌋·block ÷ Σ prompt", none, ""},
	{"arrivals", "1/s", "Requests that the schedule wanted sent, and that were sent, in each bin of time.",
		"n ÷ width of the bin", none, ""},
	{"lengths", "tokens", "Successful requests by the length of prompt or output, eight buckets to each doubling.",
		"n in 2^(k÷8) ≤ length < 2^((k+1)÷8)", none, ""},
}

var methodDefinitions = []Definition{
	{"diagnoses", "as the figures",
		"What may be behind the figures, with the figures that it rests on, and the measurement that would confirm " +
			"it or rule it out. They are leads by rules of thumb, no findings.",
		"p99 ÷ p50 of TTFT ≥ 4, p99 ÷ p50 of ITL ≥ 3, measured < expected − 5 %, …", none, ""},
	{"verdict.checks", "as the check",
		"The measured value beside the most, or for some the least, that a trustworthy run may have. --trust " +
			"changes that bound.", "measured ≤ allowed", none, ""},
}

var contractDefinitions = []Definition{
	{"contract.clauses.margin", "share",
		"How far a measurement is within what its clause of the contract allows, as a share of that; below zero it " +
			"is beyond. Latencies are of the measured requests that succeeded; failed ones count for error_rate and " +
			"goodput alone.",
		"(allowed − measured) ÷ allowed; (measured − allowed) ÷ allowed", "contract.clauses.*.margin", ""},
	ofFigure(figure.TokenCost, none, ""),
}

// Paths says where in the JSON of a [Summary] the number is, with * for any element
// of a list and any part of a name. What is a statement about other metrics has none.
func (d *Definition) Paths() []string {
	switch d.paths {
	case "":
		return strings.Split(d.Name, ", ")
	case none:
		return nil
	}
	var out []string
	for _, path := range strings.Fields(d.paths) {
		below, ok := strings.CutPrefix(path, "GROUP.")
		if !ok {
			out = append(out, path)
			continue
		}
		for _, list := range groupLists {
			out = append(out, list+"."+below)
		}
	}
	return out
}

// groupLists are where in the JSON groups of requests are, which GROUP stands for in [Definition].
var groupLists = []string{"by_category.*", "by_class.*", "by_input_length.*", "by_turn.*", "by_depth.*",
	"tenants.each.*", "by_endpoint.*", "by_response_header.*.values.*", "groups.*.each.*"}

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
		return !any && w != g ||
			any && (len(g) < len(before)+len(after) || !strings.HasPrefix(g, before) || !strings.HasSuffix(g, after))
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

// termOf is the whole name of the definition that has this name among its own,
// as the page knows it; "" for "". A name without a definition comes back as it
// is, and the page refuses it.
func termOf(name string) string {
	if name == "" {
		return ""
	}
	if d := metricNamed(name); d != nil {
		return d.Name
	}
	return name
}

// metricNamed is the definition of a metric that has this name among its own, nil where none has.
func metricNamed(name string) *Definition {
	all := metricDefinitions()
	if i := slices.IndexFunc(all, func(d Definition) bool { return slices.Contains(d.names(), name) }); i >= 0 {
		return &all[i]
	}
	return nil
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
func pageTerms() []doc.Term {
	var out []doc.Term
	for _, d := range metricDefinitions() {
		out = append(out, doc.Term{Name: d.Name, Unit: d.Unit, Text: d.Definition, Formula: d.Formula})
	}
	return out
}
