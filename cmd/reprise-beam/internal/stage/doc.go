// Package stage has the steps of an import on a cluster, free of any engine: each takes names
// of files or groups of bytes, and what it returns can be merged.
//
//  1. [Job.Import] imports a share of the files of a log into a shard, as import --shard does: a
//     file of rows without text in the work folder.
//  2. [Job.Read] reads a shard and hands on what a profile needs: sums and distributions of its
//     rows, their arrivals by minute, references to blocks by the hash of the block.
//  3. [MeasureMinute] orders the arrivals of a minute, [MeasurePart] the references of one part of
//     the blocks. [Figures] of all of them merge in any order.
//  4. [Job.Finish] makes the trace of all shards, by the code of merge --finish.
//  5. [Figures.Summary] is the profile.
//
// # Files
//
//   - job.go: the files to import, and how; a shard, and the trace of all
//   - read.go: rows of a shard, and the parts of them that are sent on
//   - values.go: sums and distribution of a length or a gap, exact whatever the order
//   - arrivals.go: arrivals by minute, the gaps in it, and those between minutes
//   - references.go: references to blocks by part, in bytes, and put in order
//   - curve.go: the LRU curve of a part, the curve of all, and how far it may be off
//   - figures.go: all figures, and how they merge
//   - summary.go: the profile as data and as text
package stage
