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
//  4. [NoiseSpec.Threshold] says which noisy cells to drop, so that what is unique to
//     one user does not show by being there at all.
//  5. A [Ledger] beside the source adds up what its releases have cost so far.
//
// Two inputs are neighbours if one of them has one more user, with all of that
// user's records. Noise is never drawn from a seed: whoever knows the seed
// can take it off again.
package dp
