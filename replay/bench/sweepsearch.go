package bench

import (
	"context"
	"math"
	"slices"
)

// mostSearched is how many loads a search measures at most.
const mostSearched = 12

// search finds the highest load with an interval: by a bisection with noisy answers, in which
// a load counts as held or failed only when its runs say so at [searchConfidence]. A load
// that they cannot tell within the budget is close to the highest one, and is left between
// the two ends.
//
// Each end is wrong with at most one hundredth for each load, so that both hold the truth
// in more than 90 of 100 searches (Bonferroni); loads that are far from it are hardly ever
// wrong. See Waeber, Frazier and Henderson, "Bisection search with noisy responses" (SIAM
// Journal on Control and Optimization, 2013), for such tests in a bisection.
func (s *Sweep) search(ctx context.Context, r *SweepResult) error {
	for range mostSearched {
		load := s.Ladder.nextSearched(r.Levels)
		if load == 0 {
			break
		}
		l, err := s.measureLevel(ctx, r, roleConfirm, load, s.Duration)
		if err != nil {
			return err
		}
		if l.Outcome == outcomeUntrusted {
			break
		}
	}
	r.Highest.interval(r.Levels)
	best, hi := holding(r.Levels)
	if best == nil {
		return nil
	}
	if r.Highest.AtLeast = hi == nil; hi != nil {
		r.Highest.Estimate = new(interpolate(best.Load, hi.Load, best.Contract, hi.Contract))
	}
	for _, l := range byLoad(r.Levels) {
		if r.Highest.Low != nil && l.Load == *r.Highest.Low && l.Outcome == outcomeHolds {
			best = l
		}
	}
	r.reached(best)
	return nil
}

// nextSearched is the load to measure next, 0 where the ends are within the resolution, or as
// close to what cannot be told.
func (l *Ladder) nextSearched(levels []Level) float64 {
	var ends Highest
	ends.interval(levels)
	low, high := leastLoad, mostLoad*1.0
	if ends.Low != nil {
		low = *ends.Low
	}
	if ends.High != nil {
		high = *ends.High
	}
	sorted := byLoad(levels)
	var between []float64 // what was measured and cannot be told
	for _, v := range sorted {
		if v.Load > low && v.Load < high {
			between = append(between, v.Load)
		}
	}
	resolution := 1 + max(l.Resolution, finest)
	switch {
	case ends.High == nil && len(between) == 0:
		return 0 // nothing fails: at least the highest load
	case ends.High == nil:
		high = 2 * between[len(between)-1]
	case ends.Low == nil && len(between) == 0:
		return l.unmeasured(high/2, levels)
	case ends.Low == nil:
		low = between[0] / 2
	}
	if high/low <= resolution {
		return 0
	}
	if len(between) == 0 {
		at := (low + high) / 2
		if lo, hi := bracket(levels); lo != nil && hi != nil && lo.Load < hi.Load {
			at = interpolate(lo.Load, hi.Load, lo.Contract, hi.Contract)
		}
		margin := 0.15 * (high - low)
		return l.unmeasured(min(max(at, low+margin), high-margin), levels)
	}
	first, last := between[0], between[len(between)-1]
	below, above := first/low, high/last
	if max(below, above) <= math.Sqrt(resolution) {
		return 0
	}
	if below >= above {
		return l.unmeasured((low+first)/2, levels)
	}
	return l.unmeasured((last+high)/2, levels)
}

// unmeasured is the load, rounded; 0 where that was measured or is out of range.
func (l *Ladder) unmeasured(load float64, levels []Level) float64 {
	load = l.round(load)
	if load < leastLoad || load > mostLoad ||
		slices.ContainsFunc(levels, func(v Level) bool { return v.Load == load }) {
		return 0
	}
	return load
}
