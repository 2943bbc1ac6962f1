// Package arrival draws arrival times, durations and lengths for sources and
// workloads that have none of their own.
//
//  1. [ParseProcess] and [ParseDist] parse a specification from the command
//     line, such as "poisson:2.5" or "lognormal:4s,1.2".
//  2. [Stream], in doc.go, makes the random stream of one purpose from the seed of
//     the run and the name of the purpose.
//  3. The specification and the stream make a [Process] of gaps, a [Dist] of
//     durations or, from [ParseLength], a [Length] in tokens.
//  4. [FitCascade] learns the bursts of recorded arrivals at every scale of time,
//     and [Cascade.Times] draws new arrivals that resemble them.
//
// The same seed gives the same draws on every machine. Math functions differ
// in their last bits between processors, so each draw is rounded to a whole
// microsecond or token before it is used.
//
// # Files
//
//   - process.go: arrival processes: poisson, gamma, weibull, constant, and ramp, step,
//     diurnal, spikes and onoff, whose rate changes; their syntax on the command line
//   - clock.go: how a changing rate becomes arrivals: straight pieces, periods, the wave of
//     a day, random on-off phases
//   - dist.go: durations such as think times: constant, exponential, lognormal, gamma,
//     weibull, normal, uniform, pareto, zipf and histogram; their syntax; the coefficient
//     of variation of each family
//   - length.go: lengths in tokens: the same forms, clipped to LO..HI; their syntax
//   - histogram.go: histograms as distributions: LO-HI=COUNT buckets, and drawing from them
//   - forms.go: the forms of specifications, for help and errors
//   - args.go: the fields of a specification, named or in order, with their bounds
//   - cascade.go: the cascade: bursty arrivals drawn at every scale of time
//   - dispersion.go: the indices of dispersion of its source, which the draw that counts has about
//   - cascadefit.go: the cascade fitted to recorded arrivals
//   - cascaderows.go: the cascade as table rows in a model file, read back and checked;
//     sparse classes pooled
//
// Exported names may change in any release.
package arrival

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// A Process yields the gaps between arrivals.
type Process interface {
	// Next returns the gap to the next arrival, in whole microseconds.
	Next() time.Duration
}

// A Dist yields independent durations of one distribution.
type Dist interface {
	// Draw returns a duration of at least 0, in whole microseconds.
	Draw() time.Duration
}

// Stream returns the random stream of one purpose: a PCG seeded by the SHA-256
// of the seed and the name. Each purpose has a stream of its own, so that a new
// purpose, or one more draw for another, does not change its numbers.
func Stream(seed uint64, name string) *rand.Rand {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])))
}
