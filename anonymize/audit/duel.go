package audit

import (
	"math"
	"slices"
)

// A duel is one quantity of what a mechanism publishes, in runs with a unit and in as
// many without.
type duel struct {
	about         string
	with, without []float64
}

// won is the event that tells the two sides of duels apart best. Half of the runs choose
// it, and the other half bound how much it tells, so that the choice costs nothing. told
// is the duel that it is about.
func won(duels []duel, delta float64) (best dpBound, told int) {
	best = dpBound{Lower: math.Inf(-1)}
	for i, d := range duels {
		half := len(d.with) / 2
		sorted, thresholds := slices.Sorted(slices.Values(d.with[:half])), []float64{}
		for j := range 200 { // quantiles
			if v := sorted[j*len(sorted)/200]; !math.IsInf(v, 0) {
				thresholds = append(thresholds, v)
			}
		}
		for _, t := range slices.Compact(thresholds) {
			if lower := lowerBound(share(d.with[:half], t), share(d.without[:half], t), half, delta); lower > best.Lower {
				best, told = dpBound{Lower: lower, Statistic: d.about, Threshold: t}, i
			}
		}
	}
	d := duels[told]
	half := len(d.with) / 2
	best.With, best.Without = share(d.with[half:], best.Threshold), share(d.without[half:], best.Threshold)
	best.Delta, best.Runs = delta, len(d.with)
	best.Lower = lowerBound(best.With, best.Without, len(d.with)-half, delta)
	return best, told
}
