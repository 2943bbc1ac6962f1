// Package twin plays the requests of a run to a small, fast model of the engine that
// answered them, so that a percentile of the run can be held against what that model says of
// much longer ones.
//
//  1. [Fit] fits an [Engine] to the TTFT and E2E of some requests: the costs of package
//     engine, the places and the step budget that explain them best.
//  2. [Engine.Play] answers requests as package engine does, 60 times as fast: it has its
//     steps, and neither KV blocks nor a prefix cache (BenchmarkPlay).
//
// A run whose arrivals happened to make few queues has few in its twin too, and how many the
// twin has in the long run is known: the twin is a control variate (Lavenberg and Welch, "A
// perspective on the use of control variables to increase the efficiency of Monte Carlo
// simulations", Management Science, 1981). A twin that resembles the engine badly makes an
// interval no narrower, and no less true. See sample.Runs.Controlled.
//
// # Files
//
//   - engine.go: the engine, and requests played to it
//   - fit.go: the engine that explains requests best
//
// Exported names may change in any release.
package twin
