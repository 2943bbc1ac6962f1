// Package dp adds differentially private noise to counts, and accounts for the
// privacy budget that this costs.
//
//  1. A [Contribution] bounds what one user can change: a number of records, and
//     a number of them in one cell. Without this bound nothing below is private.
//  2. [NewPlan] divides a budget (ε, δ) among measurements of known sensitivity,
//     for Laplace and for Gaussian noise, and takes the one with the smaller errors.
//  3. A [Noise] draws the noise: exactly, in integers, from the system's
//     randomness. No sample passes through floating point, whose gaps have given
//     such noise away (Mironov, CCS 2012).
//  4. [NoiseSpec.Threshold] says which noisy cells to drop. Otherwise a cell of one
//     user alone would give that user away by being there at all.
//  5. A [Ledger] adds up what the releases of a [Source] have cost so far. It knows a
//     source by the ids of its captures, by its rows, and by what another import of
//     the same log has in common with it.
//
// Two inputs are neighbours if one of them has one more user, with all of that
// user's records. Noise is never drawn from a seed: whoever knows the seed can
// take the noise off again.
//
// # Files
//
//   - contribution.go: what one user may add to histograms, and the sample of his records
//   - plan.go: a budget divided among measurements; Laplace or Gaussian noise; thresholds
//     of cells; selection of keys that many users have; from (ε, δ) to ρ
//   - noise.go: exact draws of discrete Laplace and Gaussian noise
//   - measured.go: what a model keeps of a trace: noisy tables, and what noise chose
//   - ledger.go: the files of releases, by what a source is known in them, and what its
//     releases have cost together, in ρ and as ε
//   - lock_unix.go, lock_windows.go: one process at a time adds to a ledger
//   - statement.go: what a release states: measurements, noise, selected keys, predicted
//     errors
//
// Exported names may change in any release.
package dp
