// Package machines has the commands about a load that several machines send: merge for the
// results of its shards, and job, which prints what a cluster starts.
//
// # Files
//
//   - merge.go: merge: the results of shards into one file
//   - job.go: job replay: the manifest or the script of a replay in shards
//   - plan.go: job --plan: how many machines a rate takes
package machines
