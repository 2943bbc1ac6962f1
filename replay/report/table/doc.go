// Package table turns the results of runs into a flat table for pandas, Polars, DuckDB
// or a spreadsheet: one row for each request.
//
//  1. A row says which request it was, how it ended, when things happened in seconds,
//     latencies in milliseconds, and tokens. It has no lists, so CSV holds it too.
//     docs/data.md has the columns.
//  2. [WriteParquet] and [WriteCSV] read the results of one or several [Run]s, row by
//     row, in memory that grows only with the sessions of a run.
//
// Latencies are those of package report, by the same code: over the requests of phase
// "measured", means and counts are those of its summary.
//
// # Files
//
//   - request.go: a row, its columns, and how it is derived from a result
//   - write.go: the rows of several runs, as Parquet and as CSV
//
// Exported names may change in any release.
package table
