// Package recording keeps what a recorder saw, as it came: files of schema part/1, which are
// on the way to a trace.
//
//  1. A [Row] is a request without text. Its blocks, session, user and names are keyed
//     hashes of 128 bits, so that rows of one capture can be joined, whoever wrote them.
//  2. A [Writer] takes rows and never blocks: what its disk does not take in time is
//     counted as lost. Rows go to a journal at least twice a second, so that kill -9
//     loses one second of them at most.
//  3. From time to time it turns the journal into a Parquet file, NAME.part.parquet,
//     sorted by arrival, with the [Meta] of the capture. It is its owner's alone.
//  4. [Open] reads files, folders of them, and journals that a recorder left behind or
//     still writes. Package anonymize makes a trace of them.
//
// # Files
//
//   - row.go: a row, and the ids in it
//   - meta.go: all that is known of a capture, as metadata and as the first line of a journal
//   - writer.go: rows to the journal, rotation, disks that are full or slow
//   - chains.go: the sessions of requests that go on from an earlier answer
//   - read.go: parts and journals read back
//
// Exported names may change in any release.
package recording
