// Package dp adds differentially private noise to tables of weights, and accounts for
// the privacy budget that this costs.
//
//  1. A [Measurement] says by how much one unit can change a table. Whoever fills the
//     table keeps to it: without this bound nothing below is private.
//  2. [Rho] turns a budget (ε, δ) into ρ of zero-concentrated privacy, which adds up
//     over the tables, and [Measurement.WithRho] a share of it into Gaussian noise.
//  3. A [Noise] draws the noise: exactly, in integers, from the system's
//     randomness. No sample passes through floating point, whose gaps have given
//     such noise away (Mironov, CCS 2012).
//  4. A [Selection] keeps those keys of an open set that enough units have. A key of one
//     unit alone would give that unit away by being there at all.
//  5. A [Ledger] adds up what the releases of a [Source] have cost so far. It knows a
//     source by the ids of its captures, by its rows, and by what another import of
//     the same log has in common with it; and by the [People] whose requests it has, which
//     other captures may have too.
//
// Two inputs are neighbours if one of them has one more unit (a user, a session or a
// request), with all of that unit's records. Noise is never drawn from a seed: whoever
// knows the seed can take the noise off again.
//
// # Files
//
//   - tables.go: tables and their Gaussian noise; what a model keeps of a trace
//   - selection.go: selection of keys that many units have, by Laplace noise
//   - rho.go: budgets, and from (ε, δ) to ρ and back
//   - noise.go: exact draws of discrete Laplace and Gaussian noise
//   - ledger.go: the files of releases, by what a source is known in them, and what its
//     releases have cost together, in ρ and as ε
//   - lock_unix.go, lock_windows.go: one process at a time adds to a ledger
//   - statement.go: what a release states: tables, noise, selected keys, predicted errors
//
// Exported names may change in any release.
package dp
