// Package fidelity says how close a workload is to a trace.
//
// Two traces are compared in these steps:
//
//  1. A [Signature] of each takes all its rows. The columns that count are kept,
//     since categories, sessions and a warm-up are found by reading them twice.
//  2. [CommonBlockSize] says by which blocks the two can be measured.
//  3. [Compare] measures how far apart they are: hit ratios, lengths and what goes
//     with what, arrivals, categories, sessions, what routers and queues would make of
//     them, what repeats, and amounts. Each [Measure] stands by itself, since a score would hide which of
//     them is off. A measure that cannot be computed says why.
//  4. [Report.Gate] holds the measures against [Thresholds], each with its own
//     limit. A measure that the reference lacks does not apply; one that only the
//     candidate lacks fails.
//  5. The [Report] is written as text, JSON or a page.
//
// # Files
//
//   - signature.go: the figures of each trace: its rows kept, its block size, warm-up, and
//     hit-ratio curve
//   - tally.go: counts of the requests: values, windows of arrivals, turns, pairs
//     of lengths, samples
//   - kept.go: the first requests in memory, with the links between them
//   - compare.go: the comparison of two signatures, and its warnings
//   - measures.go: the measures: hit ratios, lengths, correlations, arrivals, categories,
//     sessions, amounts
//   - routing.go: hit ratios behind routers over several replicas
//   - queue.go: a queue of one server
//   - rate.go: rates of tokens and requests across time scales, and the ticks of the clock
//   - links.go: long sessions, growth over the parent, fan-out, the most used block
//   - copies.go: repeated pairs of lengths, linkage, chains of turns
//   - distance.go: distances of distributions: Kolmogorov-Smirnov in one and two
//     dimensions, Wasserstein, rank correlation
//   - judge.go: workloads held against one trace: which is closer, and the figures that are off, in a sentence
//   - attempts.go: workloads made of a trace until one is within the limits
//   - gate.go: the list of measures with their descriptions, thresholds and their defaults,
//     and which checks fail
//   - report.go: the report as JSON (fidelity/1): its fields
//   - text.go: the report as text
//   - page.go: the report as a page with plots
//
// Exported names may change in any release.
package fidelity
