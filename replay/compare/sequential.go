package compare

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A sequential design asks after some of the rounds whether the verdict is there
// already, and still claims a difference where there is none with a probability of at
// most alpha, over all looks together.
//
// Each look spends a part of alpha: alpha·t² by the look at the share t of all rounds,
// the power family of K. Kim and D. L. DeMets (1987), Design and analysis of group
// sequential tests based on the type I error spending rate function, with the error
// spending of K. K. G. Lan and DeMets (1983). What a look may claim at is found by
// simulation: where nothing differs, the signed ranks after n rounds and after more have one
// joint distribution whatever the differences are like, if only these are
// symmetric, independent and alike (E. A. Parent, 1965, Sequential ranking procedures).
type design struct {
	looks  []int     // after so many rounds
	levels []float64 // the two-sided p that claims a difference at each
}

// spendingPower is the power of the spending function: 1 spends evenly, 3 is near to
// O'Brien and Fleming.
const spendingPower = 2

// maxLooks is how often a design looks at most.
const maxLooks = 4

// designSamples are the simulated comparisons of a design, drawn with a fixed seed. The
// standard error of an alpha of 0.05 is √(0.05·0.95 ÷ 40,000) = 0.1 %.
const designSamples = 40_000

// newDesign makes a design of so many rounds at most. A look that could not claim
// anything is left out.
func newDesign(rounds int, alpha float64) design {
	var looks []int
	for k := 1; k <= maxLooks; k++ {
		if n := (rounds*k + maxLooks - 1) / maxLooks; n >= minRounds &&
			(k == maxLooks || criticalSum(n, spent(n, rounds, alpha)) >= 0) && !slices.Contains(looks, n) {
			looks = append(looks, n)
		}
	}
	if len(looks) < 2 { // the exact test alone
		return design{[]int{rounds}, []float64{alpha}}
	}
	d := design{looks: looks}
	// sums are the smaller sum of ranks at each look; a comparison that ended has none.
	sums := make([][]int32, len(looks))
	rng, values := rand.New(rand.NewPCG(3, uint64(rounds))), make([]float64, rounds)
	sorted := make([]float64, rounds)
	for range designSamples {
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		for k, n := range looks {
			plus := positiveRanks(append(sorted[:0], values[:n]...))
			sums[k] = append(sums[k], int32(min(plus, n*(n+1)/2-plus)))
		}
	}
	ended := make([]bool, designSamples)
	claimed := 0
	for k, n := range looks {
		most := criticalSum(n, alpha)
		at := make([]int, most+1) // comparisons still under way, by their sum
		for i, w := range sums[k] {
			if !ended[i] && int(w) <= most {
				at[w]++
			}
		}
		limit := -1
		for w, allowed := 0, int(spent(n, rounds, alpha)*designSamples)-claimed; w <= most && at[w] <= allowed; w++ {
			limit, allowed = w, allowed-at[w]
		}
		if k == 0 {
			limit = min(limit, criticalSum(n, spent(n, rounds, alpha))) // exactly
		}
		for i, w := range sums[k] {
			if !ended[i] && int(w) <= limit {
				ended[i] = true
				claimed++
			}
		}
		d.levels = append(d.levels, sumP(n, limit))
	}
	return d
}

// spent is the alpha that may be spent by the look after n of so many rounds.
func spent(n, rounds int, alpha float64) float64 {
	return alpha * math.Pow(float64(n)/float64(rounds), spendingPower)
}

// sumP is the exact two-sided p of a smaller sum w of n ranks without ties; 0 below 0.
func sumP(n, w int) float64 {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	tail := 0.0
	for _, p := range rankSums(ranks)[:w+1] {
		tail += p
	}
	return min(1, 2*tail)
}

// power is how often the design claims a shift of so many standard deviations in normal
// differences, by simulation as [simulatedPower].
func (d design) power(shift float64) float64 {
	limits := make([]int, len(d.looks))
	for k, n := range d.looks {
		limits[k] = criticalSum(n, d.levels[k]*(1+1e-9))
	}
	last := d.looks[len(d.looks)-1]
	rng := rand.New(rand.NewPCG(1, uint64(last)))
	values, sorted, found := make([]float64, last), make([]float64, last), 0
	for range powerSamples {
		for i := range values {
			values[i] = rng.NormFloat64() + shift
		}
		for k, n := range d.looks {
			if plus := positiveRanks(append(sorted[:0], values[:n]...)); min(plus, n*(n+1)/2-plus) <= limits[k] {
				found++
				break
			}
		}
	}
	return float64(found) / powerSamples
}

// plannedRounds is the smallest number of rounds, or near to it, in which a design finds a
// shift of so many standard deviations with [power]. The looks cost a round or two beside a
// test that looks once. Beyond [MaxRounds] it is that of one look.
func plannedRounds(shift, alpha float64) (int, design) {
	n := roundsFor(shift, alpha)
	for n <= MaxRounds {
		d := newDesign(n, alpha)
		if d.power(shift) >= power {
			return n, d
		}
		n += max(1, n/20)
	}
	return n, design{}
}
