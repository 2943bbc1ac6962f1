// Package report says what a replay measured, and whether it can be believed.
//
//  1. [Summarise] reads the results once, in any order, and derives every
//     latency from the instants of each row, both from when the request was
//     sent and from when it was due: a client that falls behind sends late, and
//     only the second kind shows the wait that its users would have seen
//     (coordinated omission). [Definitions] says what each number means.
//  2. It judges the run. A [Verdict] is a list of reasons, each with the
//     measured value and its limit; without samples nothing is claimed.
//  3. It holds the run against a [Contract], when there is one: each of its clauses
//     holds, fails, or cannot be judged, with its margin. Package contract reads and
//     judges them.
//  4. It says what may be behind the figures: each [Diagnosis] names figures and a possible
//     cause, and the measurement that would confirm it.
//  5. [Page] lays the [Summary] out, and [Overlay] several of them beside each other, as one document for a terminal,
//     a browser and Markdown. No writer computes a number of its own, so they cannot disagree.
//  6. What needs further passes over the results stands beside the summary:
//     [SummariseSteady] reads two columns for the stretch without ramp and drain, and
//     then all of the results once; package peer reads the recording under the
//     definitions of other tools.
//
// # Memory
//
// One pass, with memory that does not grow with the run. A metric keeps up to
// [DefaultExact] values exactly, 8 bytes each; a metric with more of them moves
// to an HdrHistogram of three significant digits, whose quantiles are within
// 0.1 % and whose size is fixed (about 0.3 MB). Mean, standard deviation,
// minimum and maximum are exact always. There are ten metrics, and TTFT, TPOT and
// E2E again for each group. A group of a category, class, length, turn or depth keeps 131,072 values of each, 1 MB.
// Any other column, such as users, has 1,024 groups and one of all further values, of 16,384 values each,
// 128 KB: 400 MB for a column, and up to 1 GB where each of the 1,024 has more values and moves. All is about 100 MB
// for a million requests. Of sessions up to 262,144 requests are kept, 48 MB, and beyond them whole sessions chosen
// by a hash. Clauses of a contract that have a scope keep the latencies that they are about apart, once for each
// scope, within the same 8 MB each; a contract has at
// most 64 clauses. Several runs are summarised one after the other, and
// only what its plots draw is kept of each. What plots need over time is held in
// at most 1,024 bins that double in width as the run grows, and in a sample of 2,000
// requests chosen by a hash of their row numbers. Every part depends on the set of
// the results and not on their order.
//
// # Files
//
//   - summary.go: the Summary and its JSON: requests, throughput, latencies, tokens,
//     cache, groups, parts, retries, verdict, points, diagnoses, warnings
//   - options.go: how a run is summarised and judged: exact values, server block size,
//     the limits of trust and their defaults; objectives of --slo, such as ttft:200ms
//   - collect.go: Summarise: the one pass over all results, error counts, goodput, tokens
//     per GPU and per user
//   - derive.go: latencies from instants: TTFT, TPOT, ITL, E2E, from sent and from schedule;
//     how a request ended; results that contradict themselves
//   - stat.go: mean, percentiles and distribution curves; rounding, seconds, ratios and
//     rates
//   - tokens.go: prompt and output lengths as served and as asked for; prompts that a
//     server cut; histograms of lengths
//   - counts.go: counts of a server that cannot be, and their numbers
//   - reuse.go: cache hit ratios, measured and expected, and servers that leave zeros out
//   - column.go: the columns that requests are told apart by, in groups and in scopes of a contract
//   - groups.go: the requests of a run by a column: figures of each group, bounds, the table of them
//   - session.go: sessions: columns kept of their requests, their trees, and where the time
//     along the critical path went
//   - sessionsummary.go: figures of sessions: how they ended, how long they took, tokens, depths
//   - sessionshow.go: these as lines, tables and a section; timelines of sessions in lanes
//   - parts.go: retries, at the same server and at the next
//   - stalls.go: how much of the latencies is the client's: its stalls, and its reads after
//     the kernel's receive timestamps; the instants of either
//   - steady.go: the steady part of a run: SummariseSteady, its figures, table and section;
//     requests open at once over time, and intervals of a run for further passes
//   - timeline.go: rates, in flight, largest latencies and hit ratios over time, for
//     plots and for growth; the sample of requests that plots draw, and the drift of the lag
//   - servers.go: the servers' own metrics: their names at vLLM, SGLang, llama.cpp and
//     DCGM, what they sum up to, speculation, series over time
//   - servershow.go: the tables and section about the servers, and how caches were prepared
//     before the run
//   - verdict.go: whether a run can be trusted: each check, its limit, the reason in
//     words
//   - warnings.go: how far numbers can be trusted: too few samples, estimated counts,
//     caches, interruptions, prompts cut, servers
//   - diagnose.go: possible causes: queueing, prefill, interference, cold caches,
//     saturation, the client itself
//   - environment.go: where a run was measured: engine, model, GPUs, host
//   - contract.go: what judges a contract, what it is judged by, and clauses as table,
//     sentence and section; the stamp of a run that was held to published rules
//   - peer.go: figures under another tool's definitions, as tables and notes
//   - define.go, definefields.go: what each number means, its formula, and where in the
//     JSON it is; the numbers that need no formula
//   - figures.go: the figures of package figure, as a summary has them
//   - explain.go, explainvalues.go: report --explain: finding a number by its name, similar
//     names, the list of names; its value in a run, and how many requests it rests on
//   - rows.go: the rows of tables that text, page and Markdown share: schedule, errors,
//     lengths, classes, tokens per GPU
//   - overview.go: the table of the run: the load asked of the server, and its work
//   - page.go: the report as a page: its first screen (verdict, key figures, latencies, the
//     main plot), the order of its sections, provenance, notes
//   - plots.go: the charts of a page, and the sentences above them
//   - overlay.go: several runs in one report: differences,
//     distributions laid over each other, tokens per GPU against tokens per user
//   - limits.go: the limits of a verdict, which of them are loosened, and how that is said
//   - csv.go: the report as CSV
//   - benchmarkreport.go: the Benchmark Report of llm-d-benchmark
//   - junit.go: checks and clauses as JUnit XML
//   - prometheus.go: the report in Prometheus' text format
//   - decision.go: the record of a tuning: settings accepted and rejected, latencies and cost
//   - differing.go: the settings in which runs differ
//
// Exported names may change in any release.
package report
