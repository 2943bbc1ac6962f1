package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// A PairedT is Student's t-test of paired differences, two-sided: what the signed
// ranks say if the differences were normal. It stands beside them and decides
// nothing.
type PairedT struct {
	T  float64 `json:"t"`
	DF int     `json:"df"`
	P  float64 `json:"p"`

	// CohenDz is the mean of the differences over their standard deviation.
	CohenDz float64 `json:"cohen_dz"`
}

// pairedT is nil below two differences, and where all are the same.
func pairedT(differences []float64) *PairedT {
	n := len(differences)
	if n < 2 {
		return nil
	}
	mean, sd := stat.MeanStdDev(differences, nil)
	if sd == 0 {
		return nil
	}
	t := mean / sd * math.Sqrt(float64(n))
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
	return &PairedT{T: t, DF: n - 1, P: 2 * student.Survival(math.Abs(t)), CohenDz: mean / sd}
}

// power is the probability with which a difference of the size that is called
// detectable would be found.
const power = 0.8

// Samples of the simulation of power: the standard error of a power of 0.8 is
// √(0.8·0.2 ÷ 2,000) = 0.9 %.
const powerSamples = 2000

// simulatedPower is how often the exact two-sided signed ranks find a shift of so
// many standard deviations in n normal differences. The samples are the same for
// every shift, so that it grows with the shift.
func simulatedPower(n int, shift, alpha float64) float64 {
	limit, most := criticalSum(n, alpha), n*(n+1)/2
	if limit < 0 {
		return 0
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	d, found := make([]float64, n), 0
	for range powerSamples {
		for i := range d {
			d[i] = rng.NormFloat64() + shift
		}
		if plus := positiveRanks(d); min(plus, most-plus) <= limit {
			found++
		}
	}
	return float64(found) / powerSamples
}

// positiveRanks is W+ of differences without ties, which it sorts: the number of
// Walsh averages above zero (J. W. Tukey, 1949).
func positiveRanks(d []float64) (plus int) {
	slices.Sort(d)
	for i, j := 0, len(d)-1; i <= j; {
		if d[i]+d[j] > 0 {
			plus += j - i + 1
			j--
		} else {
			i++
		}
	}
	return plus
}

// areSigned is the asymptotic relative efficiency of the signed ranks to the
// t-test for normal differences. Hodges and Lehmann (1956), The efficiency of some
// nonparametric competitors of the t-test.
const areSigned = 3 / math.Pi

// roundsFor is the smallest number of rounds in which a shift of so many standard
// deviations is found with [power]: by simulation up to [MaxRounds], beyond by
// the normal approximation, ((z[1−α/2] + z[power]) ÷ shift)² ÷ (3/π).
func roundsFor(shift, alpha float64) int {
	z := distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(power)
	about := z * z / (shift * shift) / areSigned
	if about > MaxRounds {
		return int(math.Ceil(min(about, 1e9)))
	}
	least := LeastRounds(alpha, 1)
	most := min(MaxRounds, least+2*int(about)+10) // the approximation is never so far off
	return least + sort.Search(most-least, func(i int) bool { return simulatedPower(least+i, shift, alpha) >= power })
}

// detectable is the shift, in standard deviations, that n rounds find with
// [power]; +Inf where they cannot find any.
func detectable(n int, alpha float64) float64 {
	if criticalSum(n, alpha) < 0 {
		return math.Inf(1)
	}
	low, high := 0.0, 1.0
	for simulatedPower(n, high, alpha) < power {
		low, high = high, 2*high
	}
	for range 10 {
		if at := (low + high) / 2; simulatedPower(n, at, alpha) < power {
			low = at
		} else {
			high = at
		}
	}
	return high
}
