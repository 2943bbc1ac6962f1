// Package trace holds the rows that flow through Reprise and the files that keep them.
//
// The rows take these steps:
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
//     synth and replay read both through [Reader] and [Writer], which apply
//     io.Reader's contract to rows.
//
// # Files
//
//   - category.go: the reuse categories and their definitions, by version
//   - request.go: Request, the columns of a row; the closed lists of statuses, finish
//     reasons, kinds and reuse categories
//   - entry.go: Entry, a request as a log has it, with its messages, tools and reply;
//     SourceError, an error by file, line and column
//   - text.go: Text, prompt text that every formatter, encoder and logger prints as a
//     redaction
//   - redaction.go: which texts are redaction markers, such as [REDACTED], *** or a hash;
//     blank texts
//   - stream.go: Reader and Writer of rows, Copy, Each, and readers and writers of slices;
//     the type constraint that keeps text out of files
//   - file.go, file_linux.go, file_other.go: files that appear whole or not at all, under
//     their name only when they are complete; private temporary files without a name
//   - meta.go: Meta, the metadata of a trace file; the tiers and their order, the file mode
//     of a tier, and the note of its tier on pages and tables
//   - parquet.go: writing and reading Parquet: Create, Open, traces from a pipe,
//     compression and page settings, the memory of a writer, errors about files that are
//     not Parquet, damaged, or no trace
//   - parquetpages.go: no page of a Parquet file is read that takes more than it may
//   - manifest.go: a partitioned trace, which is a folder: its manifest, and what it may say
//   - partitionwriter.go: writing partitions, by one process or several, and the manifest of
//     what several wrote
//   - partitionreader.go: reading partitions as one trace; refusing missing ones,
//     cut, repeated or foreign
//   - columnwriter.go: rows written to Parquet column by column, page by page
//   - columnreader.go: the fast reader of columns, page by page; reading only
//     some columns
//   - columnfields.go: the columns of a row type, by its fields
//   - digest.go: the digest over the values of the rows
//   - capture.go: the capture window that an operator declares: its parsing, checks and
//     metadata, and whether an instant is outside
//   - part.go: a part of a trace: rows by window of time, the first rows, rows picked by
//     number, parents within the part; sessions, users and blocks renumbered from 0
//   - merge.go, sidebyside.go, numbers.go: rows of several traces in one order of arrival, read side by side;
//     their ids numbered anew in private files
//   - mergemeta.go: the metadata of a trace of several files, and which files do not
//     fit together
//   - groups.go: rows that belong together, by session and parents
//   - sample.go: a random sample of whole sessions, stratified by tokens and rows
//   - sort.go: sorting rows by arrival in bounded memory, with runs on disk that are
//     merged; parents follow their rows
//   - shelf.go: rows in a private file, given back by their numbers
//   - pass.go: sorted rows read, taken by a function and written, all at once
//   - plain.go: rows that differ in some columns only, by columns
//   - spill.go: private files for what does not fit in memory, and rows read back from them
//
// Exported names of this package are stable, see docs/stability.md.
package trace
