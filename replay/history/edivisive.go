package history

import (
	"math"
	"math/rand/v2"
)

// leastSide is how many runs a change has on either side at least: one run alone is an
// outlier.
const leastSide = 2

// judgedRuns is how many runs of a series are judged, the newest of them. The test takes
// time by the square of their number.
const judgedRuns = 250

// A place is where a series may have changed: before the value at index.
type place struct {
	index     int
	statistic float64
}

// energy is the place with the largest E-divisive statistic,
//
//	mn/(m+n) × (2 × mean|x−y| − mean|x−x'| − mean|y−y'|)
//
// over the m values x before it and the n values y from it on. Means within a side are
// over all of its pairs, so that a side of equal values has 0.
func energy(values []float64) (best place) {
	n := len(values)
	rows := make([]float64, n)    // distances of a value to all others
	earlier := make([]float64, n) // and to those before it
	total := 0.0
	for i, v := range values {
		for j, w := range values[:i] {
			d := math.Abs(v - w)
			rows[j] += d
			earlier[i] += d
		}
		rows[i] += earlier[i]
		total += earlier[i]
	}
	within, beyond := 0.0, total // distances before the place, and from it on
	for i := range n - leastSide {
		within += earlier[i]
		beyond -= rows[i] - earlier[i]
		m, k := float64(i+1), float64(n-i-1)
		if i+1 < leastSide {
			continue
		}
		across := (total - within - beyond) / (m * k)
		s := m * k / float64(n) * (2*across - within/(m*(m-1)/2) - beyond/(k*(k-1)/2))
		if best.index == 0 || s > best.statistic {
			best = place{i + 1, s}
		}
	}
	return best
}

// changeIn is the place at which values changed, and the probability that chance alone
// gives a statistic as large: the share of random orders that have one, the given order
// included. It is not ok where that is above alpha, and then stops early.
func changeIn(values []float64, alpha float64, rng *rand.Rand) (at place, p float64, ok bool) {
	if len(values) < 2*leastSide {
		return at, 1, false
	}
	at = energy(values)
	n := int(min(max(math.Ceil(5/alpha), 1999), 199_999)) // random orders: enough for a p of a fifth of alpha
	allowed := alpha * float64(n+1)
	shuffled := append([]float64(nil), values...)
	reached := 1
	for range n {
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if energy(shuffled).statistic >= at.statistic*(1-1e-9) {
			if reached++; float64(reached) > allowed {
				return at, 1, false
			}
		}
	}
	return at, float64(reached) / float64(n+1), at.statistic > 0
}

// changesIn are the places at which values changed, ascending: the first that the test
// finds, and those on either side of it.
func changesIn(values []float64, alpha float64, rng *rand.Rand) (places []int, p []float64) {
	at, probability, ok := changeIn(values, alpha, rng)
	if !ok {
		return nil, nil
	}
	places, p = changesIn(values[:at.index], alpha, rng)
	places, p = append(places, at.index), append(p, probability)
	after, pAfter := changesIn(values[at.index:], alpha, rng)
	for i, x := range after {
		places, p = append(places, at.index+x), append(p, pAfter[i])
	}
	return places, p
}

// leastRuns is how many runs a test at alpha needs: of fewer, not even two halves that
// are wholly apart are rarer than alpha among all orders. Of n runs they are
// 2 × (n/2)! × (n/2)! of n! orders.
func leastRuns(alpha float64) int {
	for n, p := 4, 1.0/3; ; n += 2 {
		if p <= alpha || n >= judgedRuns {
			return n
		}
		// From n to n+2 runs: C(n+2, n/2+1) is C(n, n/2) × (n+1)(n+2) ÷ (n/2+1)².
		half := float64(n/2 + 1)
		p *= half * half / (float64(n+1) * float64(n+2))
	}
}
