// Package arrival says when requests come and how long things last, for
// sources and workloads that do not say so themselves.
//
//  1. [ParseProcess] and [ParseDist] read a specification as it is typed on
//     the command line, such as "poisson:2.5" or "lognormal:4s,1.2".
//  2. [Stream] gives a random stream for one purpose, from the run's seed and
//     the purpose's name.
//  3. The specification and the stream make a [Process] of gaps, a [Dist] of
//     durations or, from [ParseLength], a [Length] in tokens.
//  4. [FitCascade] learns the bursts of recorded arrivals at every scale of time,
//     and [Cascade.Times] makes new arrivals of the kind.
//
// The same seed gives the same draws on every machine. Math functions differ
// in their last bits between processors, so each draw is rounded to a whole
// microsecond or token before anything is made of it.
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
// one, or one more draw in another, does not move its numbers.
func Stream(seed uint64, name string) *rand.Rand {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])))
}
