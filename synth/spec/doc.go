// Package spec makes a workload from a description, without a trace.
//
// A description becomes rows in these steps:
//
//  1. [Parse] reads the YAML of a [Spec] within bounds of its size and depth.
//     [Spec.Check] judges every key; an error names its line and column.
//  2. Each [Part] is one kind of request. It draws lengths, think times and
//     prefixes from distributions of its own, each from a stream of its own, so
//     that a change of one moves none of the others.
//  3. [Spec.Rows] lets sessions arrive and plans each next turn when the one
//     before it is made. A prompt begins with the blocks of the global prefix,
//     of a template, or of an earlier turn, and ends with new ones.
//  4. With [Categories] a request repeats, continues or branches from one of the
//     last requests, as its drawn reuse category says.
//  5. The rows get the categories that they turned out to have. Blocks that no later row can
//     have are forgotten on the way.
//
// Draws are rounded, so that the same seed gives the same rows on every machine.
//
// # Files
//
//   - spec.go: the keys of a specification, their defaults and checks: kinds of requests,
//     lengths, prefixes, sessions, categories
//   - yaml.go: a specification read from YAML, and errors by line and column
//   - rows.go: the workload's rows in order of arrival, and its metadata
//   - part.go: the rows of one kind of request: sessions, next turns, prefixes, lengths
//   - agents.go: sessions of agents: calls of a turn, tools, sub-agents, compaction
//   - parameters.go: the keys that are set, with the sources of their values
//   - categories.go: requests that repeat, continue or branch from recent ones, by category
//
// Exported names may change in any release.
package spec
