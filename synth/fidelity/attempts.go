package fidelity

import (
	"context"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/sample"
)

// An attempt is one way to make a workload of a trace.
type attempt struct {
	fit    bool // with a swap of its own; else with another seed
	halfK  bool // among half as many requests
	chance bool // it helps only where another draw may
}

// attempts are made in this order, until the figures of one are within their limits. The closest
// one counts, which tells at most three bits about the swaps. Another seed takes the least time.
var attempts = []attempt{{fit: true}, {chance: true}, {fit: true, chance: true}, {chance: true},
	{fit: true, chance: true}, {fit: true, chance: true}, {fit: true, halfK: true}, {chance: true}}

// forAttempts is the first of the streams of a seed that give the seeds of other attempts.
const forAttempts = 100

// attemptedRequests is up to how many requests a trace has of which several workloads are tried. Two
// of a longer trace hardly differ, and each takes minutes.
const attemptedRequests = 1 << 18

// An Attempted is a trace of which workloads are made.
type Attempted struct {
	Meta     trace.Meta
	Requests int64
	// Rows read the trace, and Fit fits a model to it, swapping among so many. Both are called more
	// than once.
	Rows func() (trace.Reader[trace.Request], error)
	Fit  func(kSwap int) (*synth.Model, error)
	// KSwap is swapped among first. GivenK is never made smaller.
	KSwap  int
	GivenK bool
	Seed   uint64
	// Step is told which step begins, of so many rows, and Watch sees rows that are measured being read.
	Step  func(step string, rows int64)
	Watch func(src trace.Reader[trace.Request]) trace.Reader[trace.Request]
}

// A Made is a model of a trace, its workload as long as the trace, and what was measured of it.
type Made struct {
	Model    *synth.Model
	Seed     uint64
	Workload *synth.Workload
	Checks   []Check
}

// Closest fits models until one makes a workload within the limits, and returns the closest.
func (a Attempted) Closest(ctx context.Context) (best Made, err error) {
	var held *judge
	one := Made{}
	for i, way := range attempts {
		if i > 0 && !a.worth(way, best.Checks) {
			continue
		}
		k := a.KSwap
		if way.halfK {
			k /= 2
		}
		if one.Seed = a.Seed; !way.fit {
			one.Seed = sample.Key(a.Seed, forAttempts+uint64(i))
		}
		if way.fit {
			if one.Model, err = a.Fit(k); err != nil {
				return best, err
			}
		}
		if held == nil {
			src, err := a.Rows()
			if err != nil {
				return best, err
			}
			a.Step("measure the trace", a.Requests)
			if held, err = newJudge(a.Meta, a.Watch(src)); err != nil {
				return best, err
			}
		}
		a.Step("generate", 0)
		if one.Workload, err = one.Model.Generate(ctx, synth.Options{Seed: one.Seed}); err != nil {
			return best, err
		}
		a.Step("measure", one.Workload.Rows())
		rows, read := a.Watch(one.Workload.Uncategorised()), func() { a.Step("compare", 0) }
		if one.Checks, err = held.measure(one.Workload.Meta(), rows, a.KSwap == 1, read); err != nil {
			return best, err
		}
		if best.Model == nil || closer(one.Checks, best.Checks) {
			best = one
		}
		if len(Failures(best.Checks)) == 0 {
			break
		}
	}
	return best, nil
}

// worth tells whether an attempt may be closer than one with these checks.
func (a Attempted) worth(way attempt, best []Check) bool {
	switch {
	case a.Requests > attemptedRequests, way.chance && !byChance(best):
		return false
	case way.fit && a.KSwap == 1: // it would be the same
		return false
	}
	return !way.halfK || !a.GivenK
}
