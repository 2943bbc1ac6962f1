package report

// The numbers of a summary that are no metrics: what was asked for, and what was
// counted. The name of each is its path in the JSON.

// A numberField is a number that needs no formula beyond how it came to be.
type numberField struct{ path, unit, definition string }

// How the numbers of a field came to be.
const (
	asked    = "as asked for"
	counted  = "counted"
	measured = "as measured"
	given    = "as the server or the system says"
)

func fieldDefinitions() []Definition {
	var out []Definition
	for _, part := range []struct {
		how    string
		fields []numberField
	}{
		{counted, outcomeFields}, {asked, settingFields}, {measured, clientFields}, {counted, sendingFields},
		{counted, oddFields}, {counted, threadFields}, {measured, serverFields}, {given, environmentFields},
	} {
		for _, f := range part.fields {
			out = append(out, Definition{f.path, f.unit, f.definition, part.how})
		}
	}
	return out
}

var outcomeFields = []numberField{
	{"requests.rows", "requests", "Rows of the results within the measured window: succeeded, failed, cancelled and not sent together."},
	{"requests.succeeded", "requests", "Requests with a whole answer. Every latency is of these."},
	{"requests.failed", "requests", "Requests that ended in an error, or whose end was never recorded."},
	{"requests.cancelled", "requests", "Requests that the client hung up on purpose, as in the trace."},
	{"requests.not_sent", "requests", "Rows without an instant of sending and without an error."},
	{"requests.warm_up, requests.cool_down", "requests", "Further rows, sent before and behind the window that is measured."},
	{"requests.unconnected", "requests", "Of the failed, those that found no connection."},
	{"requests.refused", "requests", "Of the failed, those that the server refused with HTTP 429 or 503."},
	{"efficiency.gpus", "GPUs", "GPUs, or where their number is not known instances, that output tokens are divided by."},
	{"run.instances", "engines", "Engines behind the endpoint, where the run knows."},
	{"errors.*.count", "requests", "Failed requests of a class."},
	{"errors.*.share", "share", "Failed requests of a class, of those that succeeded or failed."},
	{"in_flight.max", "requests", "Most requests in flight at once, as the client counted while it sent."},
	{"in_flight.limit", "requests", "Limit of requests in flight; null is none."},
	{"in_flight.held_back", "requests", "Requests that waited for that limit. They keep their due time."},
	{"tokens.prompt_tokens", "tokens", "Prompt tokens of the successful requests: as the server counted, else as the workload asked."},
	{"tokens.prompt_from_usage_rows", "rows", "Successful requests whose prompt tokens are the server's count."},
	{"tokens.output_tokens", "tokens", "Output tokens of the successful requests."},
	{"tokens.output_source_rows.*", "rows", "Successful requests by where their count of output tokens is from: the server's usage, a tokenizer, or none."},
	{"tokens.prompt_error.compared_rows, tokens.output_miss.compared_rows", "rows", "Successful requests whose count could be compared with what was wanted."},
	{"tokens.prompt_error.more_rows, tokens.output_miss.more_rows", "rows", "Of these, those with more tokens than wanted."},
	{"tokens.prompt_error.fewer_rows, tokens.output_miss.fewer_rows", "rows", "Of these, those with fewer."},
	{"tokens.prompt_error.sum_abs_tokens, tokens.output_miss.sum_abs_tokens", "tokens", "Differences of all of them together, each without its sign."},
	{"tokens.prompt_error.max_abs_tokens, tokens.output_miss.max_abs_tokens", "tokens", "The largest difference of one request, without its sign."},
	{"cache.server_block_tokens, by_category.*.cache.server_block_tokens", "tokens", "Block of the server's prefix cache that the expected hit ratio is for."},
	{"cache.rows, by_category.*.cache.rows", "rows", "Successful requests that the hit ratios are over: those that have all that both need."},
	{"cache.left_out_rows, by_category.*.cache.left_out_rows", "rows", "Successful requests without what the hit ratios need."},
	{"cache.prompt_tokens, by_category.*.cache.prompt_tokens", "tokens", "Prompt tokens of the rows that the hit ratios are over."},
	{"by_category.*.rows, by_class.*.rows, by_input_length.*.rows, by_endpoint.*.rows, by_response_header.*.values.*.rows", "rows", "Rows of the results in this part."},
	{"by_category.*.succeeded, by_class.*.succeeded, by_input_length.*.succeeded, by_endpoint.*.succeeded, by_response_header.*.values.*.succeeded", "requests", "Successful requests in this part."},
	{"by_category.*.ttft_count, by_class.*.ttft_count, by_input_length.*.ttft_count, by_endpoint.*.ttft_count, by_response_header.*.values.*.ttft_count", "values", "Times to the first token in this part."},
	{"by_input_length.*.lo_tokens, by_input_length.*.hi_tokens", "tokens", "The bucket holds prompts of lo tokens to one below hi; null has no end."},
	{"by_response_header.*.absent_rows", "rows", "Answers without the header."},
	{"retries.retried_rows", "rows", "Requests that were sent again, once or more."},
	{"retries.retried_succeeded_rows", "rows", "Of these, those that succeeded in the end."},
	{"retries.further_attempts_requests", "requests", "Attempts beyond the first of each request."},
	{"retries.by_endpoint.*.attempts_requests", "requests", "Attempts that went to this endpoint, the first of each request included."},
	{"retries.by_endpoint.*.passed_on_requests", "requests", "Of these, those that failed and were made again at the next endpoint."},
	{"retries.by_endpoint.*.took_over_requests", "requests", "Requests whose last attempt was at this endpoint, and whose first was at another."},
	{"retries.by_endpoint.*.took_over_succeeded_requests", "requests", "Of these, those that succeeded."},
	{"retries.retry_after_rows", "rows", "Answers that asked by Retry-After for a later try, whether it was made or not."},
	{"steady.share", "share", "Share of the peak of requests in flight from which the run counts as steady."},
	{"steady.peak_requests", "requests", "Most requests in flight at the instants that are looked at."},
	{"steady.at_least_requests", "requests", "Requests in flight from which the run counts as steady: the share of the peak, rounded up."},
	{"steady.resolution_s", "s", "From one instant that is looked at to the next."},
	{"steady.inside_requests", "requests", "Measured, successful requests that were sent and finished inside the steady window: those of its latencies."},
	{"steady.finished_requests", "requests", "Requests that finished successfully inside it, whenever they were sent."},
	{"verdict.checks.*.measured, verdict.reasons.*.measured", "as stated beside it", "What a check of the verdict measured."},
	{"verdict.checks.*.allowed, verdict.reasons.*.limit", "as stated beside it", "What the check allows; null is no limit."},
	{"contract.clauses.*.measured", "as stated beside it", "What a clause of the contract is about, in the run; null where it cannot be judged."},
	{"contract.clauses.*.allowed", "as stated beside it", "What the clause allows."},
	{"contract.clauses.*.samples", "values", "Values, or requests, that its measurement rests on."},
	{"contract.clauses.*.estimated_requests", "requests", "Requests whose counts of tokens are estimates, where the measurement rests on them."},
	{"contract.clauses.*.needed_samples", "values", "Values that its percentile p needs: 1/(1−p)."},
	{"peer.metrics.*.count", "values", "Values that a peer's distribution is of; null for a single figure."},
	{"peer.metrics.*.values.*.value", "as stated beside it", "A figure under a peer's definition, which stands beside it."},
}

var settingFields = []numberField{
	{"goodput.slo.ttft_ns, goodput.slo.tpot_ns, goodput.slo.itl_ns, goodput.slo.e2e_ns", "ns", "Objectives that goodput asks of each request."},
	{"run.speed", "factor", "How many times as fast as recorded the workload was due."},
	{"run.concurrency", "requests", "Requests at once of a closed loop."},
	{"run.block_size", "tokens", "Block that the workload's prefixes are counted in."},
	{"run.server_block_size", "tokens", "Block of the server's prefix cache that expected reuse is counted in."},
	{"run.in_flight_limit", "requests", "Limit of requests in flight; 0 is none."},
	{"run.retries", "requests", "Further attempts that a request may have."},
	{"run.backoff_ns", "ns", "Pause before the first of them; it doubles."},
	{"run.timeout_ns", "ns", "Limit of one request, its retries included."},
	{"run.first_token_timeout_ns", "ns", "Limit from sending to the first token; 0 is none of its own."},
	{"run.idle_timeout_ns", "ns", "Limit between two events of an answer; 0 is none of its own."},
	{"run.plan.duration_ns", "ns", "After how long no more requests become due; 0 is the workload's end."},
	{"run.plan.warmup_ns, run.plan.cooldown_ns", "ns", "Time at the beginning and the end that is not measured."},
	{"run.plan.warmup_requests, run.plan.cooldown_requests", "requests", "Requests at the beginning and the end that are not measured."},
	{"run.window.from.due_ns, run.window.to.due_ns", "ns", "Due time of the first request that is measured, and of the first behind that is not."},
	{"run.window.from.row, run.window.to.row", "row", "Row of the workload of that request."},
	{"run.window.from.round, run.window.to.round", "round", "Round of the workload of that request."},
	{"run.selection.rows", "rows", "Rows of the workload that a round sends."},
	{"run.selection.of_rows", "rows", "Rows of the whole workload."},
	{"run.selection.from_ns, run.selection.to_ns", "ns", "Window of the workload's own time that is sent; 0 has no end."},
	{"run.selection.max_requests", "requests", "Most requests to send."},
	{"run.selection.sample.share", "share", "Share of the sessions that a sample was to hold."},
	{"run.selection.sample.sessions, run.selection.sample.of_sessions", "sessions", "Sessions that the sample holds, and those that it is of."},
	{"run.selection.sample.rows, run.selection.sample.of_rows", "rows", "Rows that the sample holds, and those that it is of."},
	{"run.selection.sample.measures.*.whole, run.selection.sample.measures.*.sample", "as stated beside it", "A figure of the whole and of its sample."},
	{"run.selection.sample.measures.*.distance", "as stated beside it", "How far the two are apart, as a fidelity report counts it."},
	{"run.selection.loop.rounds", "rounds", "How often the workload was to be played; 0 is as often as the duration has."},
	{"run.selection.loop.period_ns", "ns", "From the beginning of one round to that of the next."},
	{"run.cache_discipline.servers", "servers", "Servers that were told to empty their caches."},
	{"run.cache_discipline.warm_requests", "requests", "Requests of the pass that warmed the caches, which are not measured."},
	{"run.cache_discipline.warm_failed", "requests", "Of these, those that failed."},
	{"run.selection.prime.capacity_tokens", "tokens", "Capacity of the cache that was to be primed."},
	{"run.selection.prime.live_tokens", "tokens", "Tokens that such a cache holds when the window begins."},
	{"run.selection.prime.prompts, run.selection.prime.failed", "requests", "Prompts that were sent to prime the cache, and those that failed."},
	{"run.selection.prime.prompt_tokens", "tokens", "Tokens of these prompts; prefixes that prompts share are counted in each."},
	{"run.selection.prime.took_ns", "ns", "How long priming took."},
}

var clientFields = []numberField{
	{"run.client_cpu_cores", "cores", "Mean cores that the client used from its first to its last request."},
	{"run.cores", "cores", "Cores that the client was let use."},
	{"run.gc_pause_max_ns", "ns", "Longest pause of the client's garbage collector."},
	{"run.clock_jump_ns", "ns", "Most that the wall clock was off from where the monotonic clock had it, looked at each second."},
	{"run.stalls.count", "stalls", "Times that the client stood still: a goroutine that is to wake each millisecond woke much later."},
	{"run.stalls.above_ns", "ns", "So much later."},
	{"run.stalls.total_ns, run.stalls.longest_ns", "ns", "How long the client stood still, in all and at most at a time: from when it was to wake until it did."},
	{"stalled.stalled_requests", "requests", "Successful requests with some of a stall between sent and first token."},
	{"run.stalled_ns", "ns", "Longest that such a look was overdue: the process, or the machine, stood still."},
	{"run.template_overhead_tokens, run.template_overhead_tokens_by_api.*", "tokens", "Tokens that the server's template adds to a prompt, which the prompts are that much shorter for; 0 where the server counts nothing, see run.template_overhead_unknown."},
	{"run.wire.dials", "connections", "Connections that were opened, those that nobody needed included."},
	{"run.wire.dials_max_minute", "connections", "The most of them in any one minute to one server."},
	{"run.wire.waited", "requests", "Requests for which no connection was ready, so that they dialled between released and sent."},
	{"run.wire.reused", "requests", "Requests on a connection that had served another."},
	{"run.wire.replaced", "connections", "Connections that the server closed while nobody used them."},
	{"run.wire.stale", "requests", "Requests lost to a connection that the server was closing."},
	{"run.wire.local_ports", "ports", "Connections to one address that the system's local ports allow."},
}

var sendingFields = []numberField{
	{"run.requests", "requests", "Requests that were sent, those outside the measured window included."},
	{"run.excluded", "rows", "Rows of the workload that were left out since they failed in the source."},
	{"run.unprepared", "rows", "Rows for which no prompt could be made."},
	{"run.not_sent", "requests", "Requests that were due after an early end."},
	{"run.beyond", "requests", "Requests that were due after the duration that was asked for."},
	{"run.skipped", "turns", "Turns that were not sent since a turn before failed or was skipped."},
	{"run.read_late", "rows", "Rows that were due before they could be read, since too many waited for their parents."},
	{"run.short_tails", "blocks", "Partial blocks too short to be told apart."},
	{"run.max_in_flight", "requests", "Most requests in flight at once."},
	{"run.held_back", "requests", "Requests that waited at the limit of requests in flight."},
	{"run.planned_ns", "ns", "From the first to the last due time."},
	{"run.drift.turns", "turns", "Later turns of a causal run that were sent."},
	{"run.drift.sample", "turns", "Turns that the percentiles of the drift are of."},
	{"run.resumed.*.at_ns", "ns", "Where on the run's clock it went on after an interruption."},
	{"run.resumed.*.down_ns", "ns", "Wall clock from the last write to the resumption."},
	{"run.resumed.*.shift_ns", "ns", "By how much the times behind it were moved, by this interruption and those before."},
	{"run.resumed.*.kept", "rows", "Rows that had a result and kept it."},
	{"run.resumed.*.sent_again", "rows", "Rows that were due by then and had no result."},
	{"run.determinism.sampled_rows", "rows", "Rows that were sent twice at temperature 0."},
	{"run.determinism.compared_rows", "rows", "Of these, those whose answers both came whole."},
	{"run.determinism.differing_rows", "rows", "Of these, those whose answers differ."},
}

var oddFields = []numberField{
	{"run.odd_answers.retry_after", "answers", "Errors that asked to be repeated later."},
	{"run.odd_answers.no_done", "answers", "Streams that finished without [DONE]."},
	{"run.odd_answers.done_again", "answers", "Streams with more than one [DONE]."},
	{"run.odd_answers.no_finish_reason", "answers", "Streams with [DONE] whose choices did not say that they had finished."},
	{"run.odd_answers.keep_alives", "answers", "Streams with comments, or with data events without data."},
	{"run.odd_answers.malformed_events", "answers", "Streams with data that is no JSON object; it was skipped."},
	{"run.odd_answers.several_choices", "answers", "Streams with several choices; gaps are between events of any of them."},
	{"run.odd_answers.no_usage", "answers", "Streams in which the server counted nothing."},
	{"run.odd_answers.uncounted_events", "answers", "Streams whose usage has more or fewer tokens than there were events, without a running count."},
}

var threadFields = []numberField{
	{"run.thread.threaded", "turns", "Turns whose prompt holds the server's own reply."},
	{"run.thread.assumed", "turns", "Of these, those for which only lengths say that the reply stands there."},
	{"run.thread.apart", "turns", "Turns that do not go on from a parent's reply."},
	{"run.thread.no_reply", "turns", "Turns whose parent has no reply to repeat."},
	{"run.thread.no_room", "turns", "Turns whose parent's text did not fit in memory."},
	{"run.thread.joined", "turns", "Further parents of threaded turns, whose replies are not in the prompt."},
	{"run.thread.recoded", "replies", "Replies in prompts that may not encode to the tokens that were generated; their reuse is not expected."},
	{"run.thread.longer", "prompts", "Prompts that are longer than recorded, since the reply left no room."},
	{"run.thread.longer_by", "tokens", "By so many tokens in all."},
	{"run.thread.reply_tokens", "tokens", "Tokens of the server's replies, each counted in the first prompts that hold it."},
	{"run.thread.lost_tokens", "tokens", "Prompt tokens that other rows would find known if every reply were the one recorded."},
	{"run.thread.peak_bytes", "bytes", "Most memory that prompts and replies took."},
}

var serverFields = []numberField{
	{"servers.from_s, servers.to_s", "s", "The time of the run that the servers' figures are of."},
	{"servers.prefix_hit_tokens, servers.prefix_query_tokens", "tokens", "What the servers' prefix caches were asked for, and what they had: how much their counters grew."},
	{"servers.generated_tokens_per_s", "1/s", "Generated tokens of the servers' counters, per second of that time."},
	{"servers.counter_resets", "counters", "Counters that fell: a server started anew."},
	{"servers.speculation.steps", "steps", "Drafts of speculative decoding that were verified."},
	{"servers.speculation.draft_tokens, servers.speculation.accepted_tokens", "tokens", "Draft tokens, and those that the model accepted."},
	{"servers.speculation.acceptance_by_position.*", "share", "Accepted share of the draft tokens at each position of a draft."},
	{"run.server_profile.from_ns, run.server_profile.to_ns", "ns", "When all servers' profilers had started, and when they were told to stop."},
	{"run.server.from_ns, run.server.to_ns", "ns", "The time of the run that the servers' figures are of."},
	{"run.server.every_ns", "ns", "From one scrape to the next."},
	{"run.server.samples", "samples", "Samples in the metrics file."},
	{"run.server.unlisted", "series", "Series beyond the first thousand, which are not listed."},
	{"run.server.metrics.*.samples", "samples", "Samples of a series that its figures are of."},
	{"run.server.metrics.*.first, run.server.metrics.*.last", "as the series", "First and last sample."},
	{"run.server.metrics.*.delta", "as the series", "Last less first; of a counter what it grew by, also where its server started anew."},
	{"run.server.metrics.*.min, run.server.metrics.*.mean, run.server.metrics.*.max", "as the series", "Of the samples of a gauge, each counting the same."},
	{"run.server.metrics.*.resets", "resets", "How often a counter fell."},
	{"run.server.scraped.targets.*.scrapes", "scrapes", "Scrapes that gave samples."},
	{"run.server.scraped.targets.*.failed, run.server.scraped.targets.*.failures.*", "scrapes", "Scrapes that failed, in all and by class."},
	{"run.server.scraped.targets.*.skipped", "scrapes", "Instants at which the scrape before was still under way."},
	{"run.server.scraped.targets.*.widest_ns", "ns", "Longest from a scrape's request to its headers: twice the largest error of a sample's instant."},
	{"run.server.scraped.series, run.server.prometheus.series", "series", "Series that were followed."},
	{"run.server.scraped.dropped_samples, run.server.prometheus.dropped_samples", "samples", "Samples of series beyond the limit."},
	{"run.server.scraped.max_series", "series", "That limit."},
	{"run.server.prometheus.step_ns", "ns", "From one sample of a query to the next."},
	{"run.server.prometheus.answers", "answers", "Answers of the Prometheus server, each of a query over a part of the run."},
	{"run.server.prometheus.failed, run.server.prometheus.failures.*", "answers", "Queries that failed, in all and by class."},
	{"run.server.prometheus.clock.offset_ns", "ns", "How far the Prometheus server's clock is ahead."},
	{"run.server.prometheus.clock.within_ns", "ns", "Largest error of that: half of the time that the asking took."},
}

var environmentFields = []numberField{
	{"run.max_model_len", "tokens", "Smallest context length that the servers list for the model."},
	{"run.environment.host.cores", "cores", "Logical cores of the client's host that its process may run on."},
	{"run.environment.host.memory_bytes", "bytes", "Memory of the client's host."},
	{"run.environment.host.limit_cores", "cores", "What the control group of the client, such as a container, allows."},
	{"run.environment.host.limit_memory_bytes", "bytes", "What the control group of the client allows, when less than the host has."},
	{"run.environment.servers.*.models.*.max_model_len", "tokens", "Context length that a server lists for a model."},
	{"run.environment.servers.*.models.*.parameters", "parameters", "Parameters of a model, as its server lists."},
	{"run.environment.servers.*.models.*.weight_bytes", "bytes", "Size of a model's weights, as its server lists."},
	{"run.environment.servers.*.unlisted_models", "models", "Models of a server beyond the twenty that are kept."},
	{"run.environment.gpus.*.count", "GPUs", "GPUs of one kind in the client's host, where the servers are too."},
	{"run.environment.gpus.*.memory_mib", "MiB", "Memory of each."},
	{"run.environment.gpus.*.power_limit_w", "W", "Power limit of each."},
	{"run.environment.deployment.gpus", "GPUs", "GPUs that serve, as who started the run says."},
	{"run.environment.deployment.gpu_memory_gb", "GB", "Memory of each, as who started the run says."},
	{"run.environment.deployment.model_parameters", "parameters", "Parameters of the model, as who started the run says."},
	{"run.environment.deployment.tensor_parallel", "GPUs", "GPUs that each layer is spread over, as who started the run says."},
	{"run.environment.deployment.pipeline_parallel", "stages", "Stages that the layers are spread over, as who started the run says."},
}
