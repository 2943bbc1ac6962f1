// Package result holds the results of a replay, the files that keep them, and the
// interfaces between the runner and an endpoint.
//
//  1. A [Result] is one request: when it was due, sent and answered, its tokens,
//     and how it ended. Every row that was due has one, also when the request failed.
//  2. A [Run] describes the run as a whole: the load asked for, where it was measured,
//     how the servers were prepared, and the client's findings about itself.
//  3. A [Journal] takes results as they come, so that a run that is killed keeps them.
//     [Finish] turns it, with the journals of the run's further parts, into a results
//     file: Parquet, in the order of rounds and rows, with the Run as JSON in its
//     metadata. [Open] reads either.
//  4. A [MetricsJournal] does the same for the servers' own metrics, and ends as
//     a metrics file beside the results, which [OpenMetrics] reads.
//  5. A [Prompter] makes the prompt of a row, and an [Endpoint] sends it as a [Call]. The
//     runner knows both only by these interfaces.
//
// The package sends nothing and judges nothing: package replay runs, replay/client
// sends, replay/report and replay/compare read.
//
// # Files
//
//   - result.go: a Result, one row of a results file, and its columns; names of APIs and
//     of error classes
//   - run.go: the Run: what a results file says about the run, by part: load, source,
//     sending, client, servers, transport, oddities
//   - extrapolate.go: bounds of what a simulated engine was fitted to that runs passed
//   - schedule.go: parts of the Run about the schedule: drift, interruptions, measured
//     windows, threads, priming, samples, rounds; the order in which requests are due
//   - shard.go: shares of a load that several processes send, and the digest of what they
//     must agree on
//   - sessions.go: the part of the Run about session trees as the unit of load
//   - scenario.go: the published benchmark whose rules a run was held to, and the stamp
//   - server.go: parts of the Run about the servers: metrics summed up over the window,
//     cache discipline
//   - environment.go: where a run was measured: hardware, GPUs, servers, deployment;
//     removing secrets from it
//   - stalls.go: when the client stood still
//   - endpoint.go: the interfaces between runner, prompter and endpoint; Replies that no
//     printer shows
//   - file.go: writing, finishing and opening results files
//   - journal.go: the Journal: rows kept as they come
//   - columns.go: the columns of a journal
//   - counts.go: counts of a server that cannot be, taken out of a result, also of older files
//   - openjournal.go: reading a journal, also one that is cut off or damaged
//   - metrics.go: the metrics file beside the results: its name, rows, writing and
//     opening
//   - metricsjournal.go: the journal of metrics during a run
//   - lock_unix.go: the lock that keeps a journal to one process
//
// Exported names of this package are stable, see docs/stability.md.
package result
