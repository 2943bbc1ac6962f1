// Package sample summarises large numbers of values in bounded memory, and holds the
// one hash that chooses samples and renames ids.
//
//  1. [Mix64] spreads keys evenly over 64 bits, so that a choice depends on the key
//     alone: which values are in a sample, which server a session goes to, which
//     request gets a fault.
//  2. [Key] derives a key for each use of one seed, and a [Permutation] renames dense
//     ids without a table.
//  3. [Values] keeps values exactly while they are few, and in a histogram from then on;
//     [Order] gives their quantiles.
//  4. [Runs] are values that depend on each other, in independent runs, and give intervals
//     that hold all the same.
//
// # Files
//
//   - mix.go: the hash of a key, keys of the uses of a seed, and permutations of ids
//   - quantiles.go: values collected exactly or in a histogram, quantiles, mean and
//     standard deviation
//   - interval.go: intervals of quantiles and of shares from runs whose values depend on
//     each other: batch means, design effect, bounds of Korn and Graubard
//
// Exported names may change in any release.
package sample
