// Package twin plays the requests of a run to a small, fast model of the engine that
// answered them, so that a percentile of the run can be held against what that model says of
// much longer ones.
//
//  1. [Fit] fits an [Engine] to the TTFT and E2E of some requests: the costs of package
//     engine, the places and the step budget that explain them best.
//  2. [Engine.Answer] and [Engine.Play] answer requests as package engine does, 60 times as
//     fast: the twin has its steps, and neither KV blocks nor a prefix cache (BenchmarkPlay).
//
// A run whose arrivals happened to make few queues has few in its twin too, and how many the
// twin has in the long run is known: the twin is a control variate (Lavenberg and Welch, "A
// perspective on the use of control variables to increase the efficiency of Monte Carlo
// simulations", Management Science, 1981; see sample.Runs.Controlled). How far the engine follows
// its twin is measured. What the requests do not show is not: a limit of places beyond those
// that were ever taken, of which Fit tells.
//
// # Files
//
//   - engine.go: the engine, and requests played to it
//   - fit.go: the engine that explains requests best
//
// Exported names may change in any release.
package twin
