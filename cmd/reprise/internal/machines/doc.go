// Package machines has the commands about what several machines do together: merge for the
// results of a load in shards, and job, which prints what a cluster starts for a load or an import.
//
// # Files
//
//   - merge.go: merge: the results of shards into one file
//   - job.go: job replay: the manifest or the script of a replay in shards
//   - jobimport.go: job import: the same of an import in shards
package machines
