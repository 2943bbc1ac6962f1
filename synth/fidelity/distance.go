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
