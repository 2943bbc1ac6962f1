// Package report says what a replay measured, and whether it can be believed.
//
//  1. [Summarise] reads the results once, in any order, and derives every
//     latency from the instants of each row, both from when the request was
//     sent and from when it was due: a client that falls behind sends late, and
//     only the second kind shows the wait that its users would have seen
//     (coordinated omission). [Definitions] says what each number means.
//  2. It judges the run. A [Verdict] is a list of reasons, each with what was
//     measured and what was allowed; without samples nothing is claimed.
//  3. It holds the run against a [Contract], when there is one: each of its clauses
//     holds, fails, or cannot be judged, with its margin. Package contract reads and
//     judges them.
//  4. It says how far the figures carry: [Summary.Checklist] holds the run
//     against what a claim needs, and each [Diagnosis] names the figures that hint
//     at a cause and the measurement that would confirm it.
//  5. The [Summary] is written by thin writers: [WriteJSON] for programs,
//     [WriteText] for a terminal, [Page] for a browser. None of them computes
//     a number of its own, so they cannot disagree. [Overlay], [WriteTextRuns] and
//     [WriteJSONRuns] put several runs beside each other.
//  6. What needs further passes over the results stands beside the summary:
//     [FindSteady] finds the stretch without ramp and drain, and package peer reads
//     the recording under the definitions of other tools.
//
// # Memory
//
// One pass, with memory that does not grow with the run. A metric keeps up to
// [DefaultExact] values exactly, 8 bytes each; a metric with more of them moves
// to an HdrHistogram of three significant digits, whose quantiles are within
// 0.1 % and whose size is fixed (about 0.3 MB). Mean, standard deviation,
// minimum and maximum are exact always. There are ten metrics, and TTFT, TPOT and
// E2E again for each category, class, length bucket and server, of which a group
// keeps 131,072 values, 1 MB, before it moves: about 100 MB for a million requests,
// and no more than 8 MB for each metric and 3 MB for each group however many
// follow. Clauses of a contract that have a scope keep the latencies that they are
// about apart, once for each scope, within the same 8 MB each; a contract has at
// most 64 clauses. Several runs are summarised one after the other, and
// what is kept of each is what its plots draw. What plots need over time is held in
// at most 1,024 bins that double in width as the run grows, and in a sample of 2,000
// requests chosen by a hash of their row numbers. Every part depends on the set of
// the results and not on their order.
package report
