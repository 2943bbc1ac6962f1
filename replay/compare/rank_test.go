package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Critical values of the smaller sum, two-sided: Wilcoxon and Wilcox (1964), Some
// Rapid Approximate Statistical Procedures, table 2.
func TestCriticalSumsOfTheTable(t *testing.T) {
	for _, row := range []struct {
		n                int
		at05, at02, at01 int
	}{
		{6, 0, -1, -1}, {7, 2, 0, -1}, {8, 3, 1, 0}, {9, 5, 3, 1}, {10, 8, 5, 3}, {11, 10, 7, 5}, {12, 13, 9, 7},
		{13, 17, 12, 9}, {14, 21, 15, 12}, {15, 25, 19, 15}, {16, 29, 23, 19}, {20, 52, 43, 37}, {25, 89, 76, 68},
	} {
		for alpha, want := range map[float64]int{0.05: row.at05, 0.02: row.at02, 0.01: row.at01} {
			if got := criticalSum(row.n, alpha); got != want {
				t.Errorf("n = %d, alpha %v: W = %d, the table has %d", row.n, alpha, got, want)
			}
		}
	}
	for alpha, want := range map[float64]int{0.05: 6, 0.01: 8, 0.2: 6, 0.005: 9} {
		if got := LeastRounds(alpha, 1); got != want || LeastRounds(alpha*2, 2) != want {
			t.Errorf("alpha %v needs %d rounds, want %d", alpha, got, want)
		}
	}
}

// A second computation goes through all 2^n signs.
func TestSignedRankAgainstAllSigns(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for n := 1; n <= 11; n++ {
		for range 20 {
			d := make([]float64, n)
			for i := range d {
				d[i] = float64(rng.IntN(9) - 3) // ties and zeros
			}
			if got, want := signedRank(d).P, bruteSigns(d); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%v: p = %v, all signs give %v", d, got, want)
			}
		}
	}
}

func bruteSigns(d []float64) float64 {
	var ranks []float64
	plus := 0.0
	for _, v := range d {
		if v == 0 {
			continue
		}
		below, same := 0, 0
		for _, w := range d {
			if math.Abs(w) < math.Abs(v) {
				below++
			} else if math.Abs(w) == math.Abs(v) {
				same++
			}
		}
		rank := float64(below) + float64(same+1)/2
		ranks = append(ranks, rank)
		if v > 0 {
			plus += rank
		}
	}
	total := 0.0
	for _, r := range ranks {
		total += r
	}
	as := 0
	for signs := range 1 << len(ranks) {
		sum := 0.0
		for i, r := range ranks {
			if signs>>i&1 == 1 {
				sum += r
			}
		}
		if math.Abs(sum-total/2) >= math.Abs(plus-total/2) {
			as++
		}
	}
	return float64(as) / float64(int(1)<<len(ranks))
}

// Hamilton depression scale factor IV of nine patients before and after: Hollander
// and Wolfe, example 3.1, with the published test, estimate and interval.
func TestSignedRankOfAPublishedExample(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = y[i] - x[i]
	}
	s := signedRank(d)
	if s.Plus != 5 || s.Minus != 40 || math.Abs(s.P-0.0390625) > 1e-12 || math.Abs(s.RankBiserial+35.0/45) > 1e-12 {
		t.Errorf("got %+v", s)
	}
	estimate, low, high := shift(d, 0.04)
	if math.Abs(estimate+0.46) > 1e-9 || math.Abs(*low+0.786) > 1e-9 || math.Abs(*high+0.010) > 1e-9 {
		t.Errorf("estimate %v within %v and %v, want -0.460 within -0.786 and -0.010", estimate, *low, *high)
	}
	if _, low, _ := shift(d[:7], 0.01); low != nil {
		t.Error("seven differences have an interval of 99 %")
	}
}

// The sleep of ten patients: Student (1908), with the digits of R's t.test.
func TestPairedTOfAPublishedExample(t *testing.T) {
	d := []float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4}
	got := pairedT(d)
	if math.Abs(got.T-4.0621) > 1e-4 || got.DF != 9 || math.Abs(got.P-0.002833) > 1e-6 {
		t.Errorf("got %+v", got)
	}
	if s := signedRank(d); s.Zeros != 1 || s.N != 9 || s.Minus != 0 || s.P != 2.0/512 {
		t.Errorf("got %+v", s)
	}
	if pairedT([]float64{2, 2, 2}) != nil || pairedT([]float64{2}) != nil {
		t.Error("a t-test without a spread")
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005, 0.9})
	want := []float64{0.04, 0.09, 0.09, 0.025, 0.9}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// Without a shift, the power is the exact level of the test; with one, it is a
// little below that of the t-test, by the relative efficiency.
func TestSimulatedPower(t *testing.T) {
	for _, n := range []int{8, 10, 15} {
		level := 0.0
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = i + 1
		}
		for _, p := range rankSums(ranks)[:criticalSum(n, 0.05)+1] {
			level += 2 * p
		}
		if got := simulatedPower(n, 0, 0.05); math.Abs(got-level) > 4*math.Sqrt(level/powerSamples) {
			t.Errorf("%d rounds: level %v, exactly %v", n, got, level)
		}
	}
	// The t-test has 0.803 at n = 10, a shift of one and alpha 0.05 (Cohen 1988).
	if got := simulatedPower(10, 1, 0.05); got < 0.75 || got > 0.81 {
		t.Errorf("power %v", got)
	}
	for _, size := range []float64{0.25, 0.5, 1.5} {
		z := distuv.UnitNormal.Quantile(0.995) + distuv.UnitNormal.Quantile(power)
		n, about := roundsFor(size, 0.01), z*z/(size*size)*math.Pi/3
		if n > MaxRounds || float64(n) < 0.95*about || float64(n) > 1.15*about+4 {
			t.Errorf("a shift of %v needs %d rounds, about %v", size, n, about)
		}
		if back := detectable(n, 0.01); back > size*1.001 || back < size*0.85 {
			t.Errorf("%d rounds detect %v, for a shift of %v", n, back, size)
		}
	}
	if n := roundsFor(0.01, 0.01); n < 100000 || n > 150000 {
		t.Errorf("a hundredth of a standard deviation needs %d rounds", n)
	}
}

func TestPositiveRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 12 {
		d := make([]float64, n)
		for i := range d {
			d[i] = rng.NormFloat64()
		}
		want := signedRank(d).Plus
		if got := positiveRanks(slices.Clone(d)); float64(got) != want {
			t.Errorf("%v: W+ %d, want %v", d, got, want)
		}
	}
}
