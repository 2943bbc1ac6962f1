// Package decision says whether two workloads lead to the same decisions about an engine.
//
// A trace and a workload that was made of it are played to simulated engines, in virtual
// time:
//
//  1. [Read] takes the rows of each, and [Compare] plays them.
//  2. Capacity is the highest rate of Poisson arrivals within one contract, as a sweep of
//     package bench finds it.
//  3. Each of the [Changes] of the engines has an effect on the p95 of TTFT at one rate, in
//     rounds of arrivals. One that is small, or not the same in every round, is no decision.
//  4. The [Report] holds the difference of the capacities and the signs of the effects
//     against its limits, and is written as text or JSON.
//
// # Files
//
//   - engine.go: the engines, and their changes
//   - play.go: a workload played at a rate, its rows again and again
//   - measure.go: capacity, and the effects of changes
//   - compare.go: both workloads measured, as many plays at once as there are processors
//   - report.go: the report, its limits, text and JSON
//
// Exported names may change in any release.
package decision
