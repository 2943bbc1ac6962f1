// Package dp adds differentially private noise to counts, and keeps account of
// what that costs.
//
//  1. A [Contribution] bounds what one user can change: so many records, and so
//     many of them in one cell. Nothing else here is private without it.
//  2. [NewPlan] divides a budget (ε, δ) among measurements of known sensitivity,
//     for Laplace and for Gaussian noise, and takes whichever errs less.
//  3. A [Noise] draws the noise: exactly, in integers, from the system's
//     randomness. No sample passes through floating point, whose gaps have given
//     such noise away (Mironov, CCS 2012).
//  4. [Plan.Threshold] says which noisy cells to drop, so that what is unique to
//     one user does not show by being there at all.
//  5. A [Ledger] beside the source adds up what its releases have cost so far.
//
// The neighbouring relation is that of adding or removing one user with all of
// the user's records. Noise is never drawn from a seed: whoever knows the seed
// can take it off again.
package dp
