// Package compare tells two servers, or several, apart by runs of one workload on
// each of them.
//
//  1. [Arms] pairs the runs of each arm with the runs of the first, round by round,
//     so that whatever moves both sides of a round is not in the change. Wilcoxon's
//     exact signed ranks test one primary metric, and with Holm's correction all
//     others; the Hodges-Lehmann estimate and its interval say how large a change is.
//     With a [Plan], made from pilot rounds that are not in the test, it is known
//     before the first round which metric decides, how many rounds there are at most, and
//     after which of them the verdict may come.
//  2. [Clusters] keep the latencies of single requests by session. Resampling whole
//     sessions gives intervals for percentiles, also where there is one run a side.
//  3. [Production] compares what a trace recorded of its requests with a replay of
//     them, row by row.
//  4. A [Comparison] holds the decision, the figures that it rests on, and the smallest
//     difference that so many rounds could have found. A [report.Warning] names each
//     thing besides the servers that may have caused a difference. [Comparison.Document]
//     only lays it out, for a terminal as for a browser.
//
// # Files
//
//   - compare.go: pairing runs round by round into a Comparison, its JSON, options and
//     checks; noise, and corrected probabilities
//   - metric.go: which metrics are compared, which may decide (primary), and how a
//     difference becomes a change
//   - rank.go: Wilcoxon's signed ranks, the Hodges-Lehmann estimate, Holm's correction,
//     the least number of rounds
//   - power.go: the smallest difference that so many rounds can find, how many rounds a
//     change needs, and the t-test beside
//   - guard.go: the metrics that users feel, where a slowdown in any decides, tested together
//   - sequential.go: designs that look at a comparison several times and keep its alpha
//   - plan.go: pilot rounds: the metric that varies least, the rounds that a change needs
//   - cluster.go: resampling whole sessions: intervals of percentiles within runs
//   - production.go: a trace's recorded latencies against a replay of it, row by row
//   - decision.go: the decision in words: worse, better, not found, undecided; changes
//     and probabilities printed
//   - warn.go: warnings on what else may be in a difference: other workloads, settings,
//     clients, the order of runs, too few sessions
//   - page.go: the comparison as a document: the decision, what A and B are, the distributions
//   - tables.go: the tables of the document, and how to read them
//
// Exported names may change in any release.
package compare
