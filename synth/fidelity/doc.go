// Package fidelity says how close a workload is to a trace.
//
// The way of two traces to a verdict:
//
//  1. A [Signature] of each takes all its rows. The columns that count are kept,
//     since categories, sessions and a warm-up are found by reading them twice.
//  2. [CommonBlockSize] says by which blocks the two can be measured.
//  3. [Compare] measures how far apart they are: hit ratios, lengths and what goes
//     with what, arrivals, categories, sessions, pairs of lengths that repeat, and
//     amounts. Each [Measure] stands by itself, since a score would hide which of
//     them is off. What cannot be computed says why.
//  4. [Report.Gate] holds the measures against [Thresholds], each with its own
//     limit. A measure that the reference lacks does not apply; one that only the
//     candidate lacks fails.
//  5. The [Report] is written as text, JSON or a page.
package fidelity
