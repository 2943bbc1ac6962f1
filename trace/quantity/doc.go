// Package quantity reads numbers with units as people type them: in flags, in YAML files
// and in the specifications of other packages.
//
//	Duration  60, 60s, 5min, "5 min", 1h30m     a number without a unit is in seconds
//	Latency   200ms, 1.5s                       the unit is required
//	Rate      5, 5/s, 300/min                   a number without a unit is per second
//	Factor    2, 2x, 0.5x
//	Count     500, 10k, 1M, 1.5M                decimal; Ki, Mi and Gi are binary
//	Share     5%, 0.05
//
// Every parser fails with an [Error], which names the typed value, the kind that is wanted, and
// three good examples:
//
//	"5 parsecs" is not a duration: write 60s, 5min or 1h30m
//
// # Files
//
//   - quantity.go: the parsers of rates, factors, counts and shares, and their error
//   - duration.go: durations, and latencies, which need a unit
//
// Exported names may change in any release.
package quantity
