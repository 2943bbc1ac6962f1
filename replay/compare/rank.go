package compare

import (
	"cmp"
	"math"
	"slices"
)

// minRounds is how many pairs a verdict needs at least, whatever alpha is: five
// pairs cannot come below p = 1/16.
const minRounds = 6

// MaxRounds is how many rounds are compared at most: up to here the exact
// distribution of the signed ranks takes milliseconds.
const MaxRounds = 200

// A SignedRank is Wilcoxon's signed-rank test of paired differences, two-sided
// and exact: of all 2^n ways to give the ranks their signs, the share that is as
// far from the middle as what was seen, with the tied ranks that were seen.
//
// Source: F. Wilcoxon (1945), Individual comparisons by ranking methods. Equal
// differences share the mean of their ranks. Differences of zero are ranked with
// the others, and their ranks left out of the sums: J. W. Pratt (1959), Remarks
// on zeros and ties in the Wilcoxon signed rank procedures. Wilcoxon dropped them
// before ranking, by which a pair that speaks against a difference can make it
// significant.
type SignedRank struct {
	N     int     `json:"n"`      // differences that are not zero
	Zeros int     `json:"zeros"`  // differences that are
	Plus  float64 `json:"w_plus"` // sum of the ranks of those above zero
	Minus float64 `json:"w_minus"`
	P     float64 `json:"p"` // 1 without a difference that is not zero

	// RankBiserial is the matched-pairs rank-biserial correlation, (W+ − W−) ÷ (W+ + W−):
	// −1 where every pair fell, 1 where every pair rose. D. S. Kerby (2014), The
	// simple difference formula.
	RankBiserial float64 `json:"rank_biserial"`
}

// signedRank tests at most [MaxRounds] differences.
func signedRank(differences []float64) SignedRank {
	order := make([]int, len(differences))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(differences[a]), math.Abs(differences[b]))
	})
	// Twice the ranks of the magnitudes, so that the mean of two neighbours is whole.
	ranks := make([]int, len(differences))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && math.Abs(differences[order[to]]) == math.Abs(differences[order[from]]) {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // twice the mean of from+1 … to
		}
		from = to
	}
	var s SignedRank
	var kept []int
	plus, total := 0, 0
	for i, d := range differences {
		if d == 0 {
			s.Zeros++
			continue
		}
		kept = append(kept, ranks[i])
		total += ranks[i]
		if d > 0 {
			plus += ranks[i]
		}
	}
	s.N, s.P = len(kept), 1
	s.Plus, s.Minus = float64(plus)/2, float64(total-plus)/2
	if total == 0 {
		return s
	}
	s.RankBiserial = (s.Plus - s.Minus) / (s.Plus + s.Minus)
	tail := 0.0
	for _, p := range rankSums(kept)[:min(plus, total-plus)+1] {
		tail += p
	}
	s.P = min(1, 2*tail)
	return s
}

// rankSums is the probability of each sum of the ranks that got a plus, when
// every rank gets one with probability 1/2.
func rankSums(ranks []int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	p := make([]float64, total+1)
	p[0] = 1
	upTo := 0
	for _, r := range ranks {
		upTo += r
		for s := upTo; s >= 0; s-- {
			p[s] /= 2
			if s >= r {
				p[s] += p[s-r] / 2
			}
		}
	}
	return p
}

// criticalSum is the largest W, the smaller sum of n ranks without ties, with a
// two-sided p of at most alpha; −1 where there is none.
func criticalSum(n int, alpha float64) int {
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	tail, w := 0.0, -1
	for s, p := range rankSums(ranks) {
		if tail += p; 2*tail > alpha {
			break
		}
		w = s
	}
	return w
}

// LeastRounds is the smallest number of rounds with which several arms, each against
// one more, can come to a verdict: [minRounds], and as many as the signed ranks take
// to come to a p of alpha, which is 2 ÷ 2^n, after Holm.
func LeastRounds(alpha float64, against int) int {
	n := minRounds
	for math.Ldexp(2, -n) > alpha/float64(against) {
		n++
	}
	return n
}

// An Interval is an estimate between its bounds, which are null where there are
// too few values for the confidence.
type Interval struct {
	Estimate float64  `json:"estimate"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
}

// shift is the Hodges-Lehmann estimate, the median of the means of all pairs of
// differences, each with itself too (Walsh averages), and the interval that the
// exact signed ranks give it: the averages from the place C+1 to the place M−C of
// M, with C the [criticalSum]. The interval is missing where so few differences
// cannot reach the confidence 1 − alpha.
//
// Source: J. L. Hodges, E. L. Lehmann (1963), Estimates of location based on rank
// tests; M. Hollander, D. A. Wolfe, Nonparametric Statistical Methods, section 3.3.
func shift(differences []float64, alpha float64) (estimate float64, low, high *float64) {
	var walsh []float64
	for i, a := range differences {
		for _, b := range differences[i:] {
			walsh = append(walsh, a/2+b/2)
		}
	}
	slices.Sort(walsh)
	estimate = middle(walsh)
	if c := criticalSum(len(differences), alpha); c >= 0 {
		low, high = &walsh[c], &walsh[len(walsh)-1-c]
	}
	return estimate, low, high
}

// middle is the median of sorted values, at least one.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}

// holm corrects the p of a family: the smallest is multiplied by their number, the
// next by one less, and so on, none to less than the one before. S. Holm (1979), A
// simple sequentially rejective multiple test procedure.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted, least := make([]float64, len(p)), 0.0
	for i, of := range order {
		least = max(least, min(1, p[of]*float64(len(p)-i)))
		adjusted[of] = least
	}
	return adjusted
}
