// Package fleet simulates how much of a trace's prefix reuse is left when requests
// are routed over replicas.
//
//  1. A [Simulation] sends every request to one of several replicas, each with a prefix
//     cache of its own, once for each router: [RoundRobin], by session, [Prefix] and
//     [PrefixWeighted]. [Simulation.Summary] compares their hits and how evenly they spread
//     the load with one cache that has the memory of all replicas.
//  2. [Waterfalls] list the steps on which reuse is lost, from what the prompts share to
//     what a server has reported.
//
// A profile.Profiler drives the simulation, since it numbers the blocks of a trace, and
// its summary holds the results.
//
// # Files
//
//   - simulation.go: the simulation for several numbers of replicas at once, and its
//     summary: hit ratios of each router, imbalance of load
//   - router.go: the routers: round-robin, session, prefix and prefix-weighted, with the
//     score that weighs hits against load
//   - caches.go: the prefix caches of several replicas, also for a router of the caller's own
//   - cache.go: the LRU prefix cache of one replica
//   - waterfall.go: the waterfall: what each step, from shared prompts to recorded cached
//     tokens, costs in reuse
//
// Exported names may change in any release.
package fleet
