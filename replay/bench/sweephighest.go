package bench

import (
	"math"

	"reprise/replay/report"
)

// Highest is the highest load that holds.
type Highest struct {
	// Load is the highest that was confirmed, and sustained where that was asked for;
	// null when no run did.
	Load *float64 `json:"load"`
	// Estimate is where the contract breaks between the last level that holds and the
	// first that does not, see [Interpolate]. Null where no level breaks it, or none
	// holds.
	Estimate *float64 `json:"estimate"`
	// Low and High bound the highest load: the highest at which a run held beyond
	// chance below all that failed beyond chance, and the lowest of those. Null where
	// there is none.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// AtLeast tells that no level failed, so that the highest load may be any above.
	AtLeast   bool `json:"at_least"`
	Sustained bool `json:"sustained"` // a longer run at Load held as well

	OutputPerRequest *float64 `json:"output_tokens_per_request"` // at Load
	GoodShare        *float64 `json:"goodput_share"`             // at Load, from due
	E2EMeanMS        *float64 `json:"e2e_from_due_mean_ms"`      // at Load
}

// Interpolate estimates where between two loads a contract breaks that holds at the
// first and fails at the second: for each clause that fails, where the straight line
// through both measurements meets what is allowed, and of these the lowest. The line
// is through logarithms where that can be, since latencies grow by factors as a
// server fills. Without a clause that fails it is the load that holds.
func Interpolate(lo, hi float64, holds, fails *report.ContractResult) float64 {
	best := math.Inf(1)
	if holds == nil || fails == nil {
		return lo
	}
	for i := range fails.Clauses {
		a, b := &holds.Clauses[i], &fails.Clauses[i]
		if b.Outcome != report.Fails || a.Measured == nil {
			continue
		}
		x, y, limit := *a.Measured, *b.Measured, b.Allowed
		if x > 0 && y > 0 && limit > 0 {
			x, y, limit = math.Log(x), math.Log(y), math.Log(limit)
		}
		if x == y {
			continue
		}
		best = min(best, lo+(hi-lo)*max(0, min(1, (limit-x)/(y-x))))
	}
	if math.IsInf(best, 1) {
		return lo
	}
	return best
}

// candidates are the loads to confirm, from the estimate down: halfway to the last
// level that held, that level again, and 5, 10 and 20 % less.
func (l *Ladder) candidates(estimate, lo float64) []float64 {
	var out []float64
	for _, load := range []float64{estimate, (estimate + lo) / 2, lo, 0.95 * lo, 0.9 * lo, 0.8 * lo} {
		load = l.round(load)
		if load > 0 && (len(out) == 0 || load < out[len(out)-1]) {
			out = append(out, load)
		}
	}
	return out
}

// finest is the resolution below which chance decides more than load.
const finest = 0.01

// between is the load halfway from one that holds to one that fails; none when they
// are within the resolution.
func (l *Ladder) between(holds, fails float64) []float64 {
	mid := l.round((holds + fails) / 2)
	if fails/holds <= 1+max(l.Resolution, finest) || mid <= holds || mid >= fails {
		return nil
	}
	return []float64{mid}
}

// interval bounds the highest load by the runs that are beyond chance. Where runs of
// one load differ, as a short and a long one may, it counts as failed.
func (h *Highest) interval(levels []Level) {
	for i := range levels {
		if l := &levels[i]; (l.Outcome == Fails || l.Outcome == Saturated) && l.Sure && (h.High == nil || l.Load < *h.High) {
			h.High = &l.Load
		}
	}
	for i := range levels {
		l := &levels[i]
		if l.Outcome == Holds && l.Sure && (h.High == nil || l.Load < *h.High) && (h.Low == nil || l.Load > *h.Low) {
			h.Low = &l.Load
		}
	}
}
