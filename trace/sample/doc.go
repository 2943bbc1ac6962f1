// Package sample has what a large number of values is kept in when not all of them can
// be, and the hash that chooses among them and renames them.
//
//  1. [Mix64] spreads keys evenly over 64 bits, so that a choice depends on the key
//     alone: what is in a sample, which server a session goes to, which fault strikes.
//  2. A [Key] is what one seed gives each of its uses, and a [Permutation] renames dense
//     ids without a table.
//  3. A [Quantiles] keeps values exactly while they are few, and in the bars of a
//     histogram from then on.
package sample
