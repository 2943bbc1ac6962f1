// Package calibrate fits the engine model of package engine to recorded requests of one
// server, and says how far the fit can be relied on.
//
//  1. [Read] takes the requests of a results file, ours or another tool's: when each was
//     sent, its lengths, what the server found in its cache, and when its tokens came.
//  2. [Fit] plays them again in virtual time, each when it was sent, or as long after the
//     requests that it waited for as then. The logarithms of predicted over measured TTFT,
//     E2E, TPOT and median gap between tokens are the misses of a request; the costs are
//     moved by the simplex of engine.FitCosts until their mean square is least, over loads
//     of equal weight.
//  3. Limits that made requests wait (places, KV memory) and the step budget are taken
//     where they explain the records better than chance. Costs whose 95 % interval is wider
//     than a factor of 2, and that the records are explained without, are set to 0.
//  4. Held-out errors come from further fits, to other requests than the ones
//     they predict.
//  5. Loads that were not recorded are played to the fitted engine, and the loads that would
//     narrow the intervals most are proposed.
//
// [Calibration.Marshal] writes the engine as YAML, [Open] reads it, and
// [Calibration.Validate] holds later runs against it.
//
// # Files
//
//   - record.go: a results file as requests to play again; what they had at once
//   - play.go: the requests of a record played to an engine, open, closed or by session
//   - steps.go: costs by what each recorded gap says of its step, where a fit starts
//   - fit.go: misses, and the costs where they are least
//   - limits.go: the limits of an engine; what its operator or server states
//   - parameters.go: intervals, and costs that the records do not tell
//   - figures.go: mean and percentiles of measured and predicted latencies, by load
//   - calibrate.go: a whole calibration, with its held-out errors
//   - design.go: the loads that are missing
//   - file.go: the file of an engine
//   - validate.go: later runs held against an engine
//   - document.go: a calibration and a validation as documents
//
// Exported names may change in any release.
package calibrate
