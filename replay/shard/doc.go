// Package shard joins what several processes sent of one load, each a share of its sessions,
// and tells their clocks apart.
//
//  1. A [Clock] tells other shards the time, and [MeasureClock] asks one, or any NTP server,
//     before the start.
//  2. [Open] reads the results of shards, or folders of them, and refuses a broken
//     set: a shard that is missing, that is there twice, that did not finish, or that is of
//     another load, each by name.
//  3. [Set.Merge] reads all of them side by side and writes one results file, with its metrics
//     beside it. Its report equals the report of one run with the same rows.
//
// The share itself is [reprise/replay/result.Share].
//
// # Files
//
//   - clock.go: exchanges of time stamps, as NTP has them
//   - set.go: which shards there are, and whether they are a set
//   - merge.go: rows and metrics, read side by side
//   - run.go: what the runs say of themselves, put together
//   - apart.go: how far apart starts and clocks were, in words
package shard
