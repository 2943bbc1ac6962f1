// Package trace holds the rows that flow through Reprise and the files that keep them.
//
// The flow, and where each step's types live:
//
//  1. A reader in package datasets turns one line of a source log into an
//     [Entry]. An Entry may hold prompt text, as [Text], and lives in memory
//     only: no writer takes it and every formatter prints a redaction.
//  2. Package anonymize turns Entries into [Request] rows, which say when a
//     request arrived and how large it was, never what it said. A [Sorter]
//     puts them in order of arrival within bounded memory and remaps the
//     references among them.
//  3. [Create] writes Requests to a Parquet file that appears whole or not at
//     all; [Open] reads it back and refuses a file that is not a trace. [Meta]
//     travels in the file's key-value metadata, with the [Digest] of its rows.
//  4. A real trace and a synthetic workload are the same rows, so profile,
//     synth and replay read both through [Reader] and [Writer], which lift
//     io.Reader's contract to rows.
package trace
