package fidelity

import (
	"cmp"
	"math"
	"slices"
)

// eachStep calls f for every value of either list, in ascending order, with the
// shares of each list that are at most that value.
func eachStep(a, b valueList, f func(v int64, shareA, shareB float64)) {
	na, nb := float64(a.total()), float64(b.total())
	var sumA, sumB int64
	for len(a) > 0 || len(b) > 0 {
		v := int64(math.MaxInt64)
		if len(a) > 0 {
			v = a[0].v
		}
		if len(b) > 0 {
			v = min(v, b[0].v)
		}
		if len(a) > 0 && a[0].v == v {
			sumA += a[0].n
			a = a[1:]
		}
		if len(b) > 0 && b[0].v == v {
			sumB += b[0].n
			b = b[1:]
		}
		f(v, float64(sumA)/na, float64(sumB)/nb)
	}
}

// ksDistance is the Kolmogorov-Smirnov distance: the largest difference between the
// cumulative shares.
func ksDistance(a, b valueList) (d float64) {
	eachStep(a, b, func(_ int64, fa, fb float64) { d = max(d, math.Abs(fa-fb)) })
	return d
}

// wassersteinDistance is the first Wasserstein distance: the area between the
// cumulative shares, in the unit of the values.
func wassersteinDistance(a, b valueList) (area float64) {
	var before int64
	var apart float64
	eachStep(a, b, func(v int64, fa, fb float64) {
		area += apart * float64(v-before)
		before, apart = v, math.Abs(fa-fb)
	})
	return area
}

// rankCorrelation is Spearman's correlation of n pairs: Pearson's of the ranks, where
// equal values share their mean rank. It is nil when either side is constant.
func rankCorrelation(n int, pair func(i int) (x, y int32)) *float64 {
	xs, ys := make([]int32, n), make([]int32, n)
	for i := range n {
		xs[i], ys[i] = pair(i)
	}
	rx, ry := centredRanks(xs), centredRanks(ys)
	var xx, yy, xy float64
	for i := range rx {
		xx += rx[i] * rx[i]
		yy += ry[i] * ry[i]
		xy += rx[i] * ry[i]
	}
	if xx == 0 || yy == 0 {
		return nil
	}
	rho := xy / math.Sqrt(xx) / math.Sqrt(yy)
	return &rho
}

// centredRanks returns the rank of each value less the mean of all ranks.
func centredRanks(values []int32) []float64 {
	order := make([]int32, len(values))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(values[a], values[b]) })
	ranks := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j-len(order)) / 2 // the ranks i+1 to j, less (n+1)/2
		}
		i = j
	}
	return ranks
}

// ksDistance2D is the two-dimensional Kolmogorov-Smirnov distance of Fasano and
// Franceschini (MNRAS 225, 1987), as Numerical Recipes has it: with each point
// of one sample as an origin, the largest difference between the samples'
// shares in any of the four quadrants; the same with the points of the other;
// and the mean of the two. A quadrant holds what is equal to its origin on the
// lower side, so each point lies in one and the distance of a sample to itself
// is 0. Peacock's original takes all pairs of coordinates as origins, which is
// quadratic; this takes n log n, with a Fenwick tree over one coordinate while
// the other one sweeps.
func ksDistance2D(a, b []lengthPair) float64 {
	sweep := quadrants{n: [2]float64{float64(len(a)), float64(len(b))}}
	var ys []int32
	for of, sample := range [2][]lengthPair{a, b} {
		for _, p := range sample {
			sweep.points = append(sweep.points, quadrantPoint{p.in, p.out, uint8(of)})
			ys = append(ys, p.out)
		}
	}
	slices.SortFunc(sweep.points, func(a, b quadrantPoint) int { return cmp.Compare(a.x, b.x) })
	slices.Sort(ys)
	ys = slices.Compact(ys)
	for of := range sweep.below {
		sweep.below[of] = make([]float64, len(ys))
		sweep.tree[of] = make([]int32, len(ys)+1)
	}
	for i := range sweep.points {
		p := &sweep.points[i]
		rank, _ := slices.BinarySearch(ys, p.y)
		p.y = int32(rank)
		sweep.below[p.of][rank]++
	}
	for _, below := range sweep.below {
		for i := 1; i < len(below); i++ {
			below[i] += below[i-1]
		}
	}

	var d [2]float64 // by the sample of the origin
	for i := 0; i < len(sweep.points); {
		j := i
		for j < len(sweep.points) && sweep.points[j].x == sweep.points[i].x {
			p := sweep.points[j]
			sweep.passed[p.of]++
			for k := p.y + 1; int(k) < len(sweep.tree[p.of]); k += k & -k {
				sweep.tree[p.of][k]++
			}
			j++
		}
		for _, p := range sweep.points[i:j] {
			d[p.of] = max(d[p.of], sweep.apart(p.y))
		}
		i = j
	}
	return (d[0] + d[1]) / 2
}

// A quadrantPoint is a point of one of two samples, its y as a rank.
type quadrantPoint struct {
	x, y int32
	of   uint8
}

// quadrants counts the points of two samples that are left of a line that
// sweeps to the right, by y.
type quadrants struct {
	points []quadrantPoint // by x
	n      [2]float64
	passed [2]float64
	below  [2][]float64 // by rank: points of all x with at most this y
	tree   [2][]int32   // Fenwick trees of the points passed, by rank from 1
}

// apart is the largest difference between the quadrants around the sweep's
// place and rank y.
func (q *quadrants) apart(y int32) float64 {
	var shares [2][4]float64
	for of := range shares {
		var corner float64 // points passed, with at most this y
		for i := y + 1; i > 0; i &= i - 1 {
			corner += float64(q.tree[of][i])
		}
		left, below := q.passed[of], q.below[of][y]
		shares[of] = [4]float64{corner / q.n[of], (left - corner) / q.n[of], (below - corner) / q.n[of],
			(q.n[of] - left - below + corner) / q.n[of]}
	}
	var d float64
	for i := range shares[0] {
		d = max(d, math.Abs(shares[0][i]-shares[1][i]))
	}
	return d
}
