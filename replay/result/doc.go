// Package result holds the results of a replay, the files that keep them, and the
// interfaces between the runner and an endpoint.
//
//  1. A [Result] is one request: when it was due, sent and answered, what was counted,
//     and how it ended. Every row that was due has one, also when the request failed.
//  2. A [Run] describes the run as a whole: what was asked for, where it was measured,
//     what was done to the servers, and what the client found out about itself.
//  3. A [Journal] takes results as they come, so that a run that is killed keeps them.
//     [Finish] turns it, with the journals of the run's further parts, into a results
//     file: Parquet, in the order of rounds and rows, with the Run as JSON in its
//     metadata. [Open] reads either.
//  4. A [MetricsJournal] does the same for what was measured at the servers, and ends as
//     a metrics file beside the results, which [OpenMetrics] reads.
//  5. A [Prompter] makes the prompt of a row, and an [Endpoint] sends it as a [Call]. The
//     runner knows both only by these interfaces.
//
// The package sends nothing and judges nothing: package replay runs, replay/client
// sends, replay/report and replay/compare read.
package result
