// Package shard keeps what one process of several imported of a log: a file of schema shard/1,
// which is on the way to a trace.
//
//  1. A [Row] is a request without text. Its blocks, session, user and names are keyed hashes
//     of 128 bits, under one key for all shards, so that their rows can be joined.
//  2. [Write] writes the rows of a shard in the order of its files and lines, with the
//     [Meta] that says what it is a shard of. The file appears whole or not at all.
//  3. [Open] takes the shards of one import, each once, and refuses all else by name. A
//     [Set] reads their rows in the order of the source's files, whatever the
//     number of shards. Package anonymize makes a trace of them.
//
// # Files
//
//   - row.go: a row, and writing a shard
//   - meta.go: what a shard says of itself, and in what two of them may not differ
//   - set.go: the shards of an import, complete and of one kind; their rows
//
// Exported names may change in any release.
package shard
