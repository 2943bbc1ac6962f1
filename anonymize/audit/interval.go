package audit

import "gonum.org/v1/gonum/stat/distuv"

// clopperPearson is the exact interval for a probability of which hits of n draws
// came true, with so much of the doubt on each side: 0.025 for 95 % in all
// (Clopper and Pearson, Biometrika 1934).
func clopperPearson(hits, n int, side float64) (lo, hi float64) {
	lo, hi = 0, 1
	if n <= 0 {
		return lo, hi
	}
	if hits > 0 {
		lo = distuv.Beta{Alpha: float64(hits), Beta: float64(n - hits + 1)}.Quantile(side)
	}
	if hits < n {
		hi = distuv.Beta{Alpha: float64(hits + 1), Beta: float64(n - hits)}.Quantile(1 - side)
	}
	return lo, hi
}
