package dp

import (
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// fixed is noise that is the same each time.
func fixed(seed byte) *Noise { return NewNoiseFrom(rand.NewChaCha8([32]byte{seed})) }

// TestPMF compares draws with the distribution they are defined by, over scales
// below, at and far above one.
func TestPMF(t *testing.T) {
	const draws = 200_000
	for _, sd := range []uint64{500, 1024, 3*1024 + 77, 40 * 1024} {
		b := float64(sd) / Denominator
		n := fixed(1)
		chi(t, draws, func() (int64, error) { return n.Laplace(sd) }, func(x int64) float64 { return math.Exp(-math.Abs(float64(x)) / b) })
		chi(t, draws, func() (int64, error) { return n.Gaussian(sd * sd / Denominator) }, func(x int64) float64 {
			return math.Exp(-float64(x*x) / 2 / (float64(sd*sd/Denominator) / Denominator))
		})
	}
}

// chi is Pearson's test over the cells that expect 20 draws or more, the rest in
// one, at a level of one in 100,000.
func chi(t *testing.T, draws int, draw func() (int64, error), weight func(int64) float64) {
	t.Helper()
	counts := map[int64]int{}
	for range draws {
		x, err := draw()
		if err != nil {
			t.Fatal(err)
		}
		counts[x]++
	}
	total := 0.0
	for x := int64(-4000); x <= 4000; x++ {
		total += weight(x)
	}
	sum, cells, restWant, restGot := 0.0, 0, float64(draws), draws
	for x := int64(-4000); x <= 4000; x++ {
		want := weight(x) / total * float64(draws)
		if want < 20 {
			continue
		}
		d := float64(counts[x]) - want
		sum, cells = sum+d*d/want, cells+1
		restWant, restGot = restWant-want, restGot-counts[x]
	}
	if restWant > 5 {
		sum, cells = sum+(float64(restGot)-restWant)*(float64(restGot)-restWant)/restWant, cells+1
	}
	if p := (distuv.ChiSquared{K: float64(cells - 1)}).Survival(sum); p < 1e-5 {
		t.Errorf("chi² = %.1f over %d cells, p = %.2g", sum, cells, p)
	}
}

// TestExactExp holds the trials behind all draws to exp(−a/d).
func TestExactExp(t *testing.T) {
	n := fixed(2)
	for _, c := range [][2]uint64{{0, 1}, {1, 7}, {1, 1}, {5, 2}, {1 << 40, 1 << 39}} {
		hits := 0
		for range 100_000 {
			if n.exp(wide{c[0] >> 32, c[0] << 32}, wide{c[1] >> 32, c[1] << 32}) {
				hits++
			}
		}
		want := math.Exp(-float64(c[0]) / float64(c[1]))
		if got := float64(hits) / 100_000; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/100_000) {
			t.Errorf("exp(−%d/%d): %.4f, want %.4f", c[0], c[1], got, want)
		}
	}
}

// TestAccount holds conversions against other ways to the same numbers.
func TestAccount(t *testing.T) {
	if rho := Rho(1, 1e-6); math.Abs(rho-0.0244) > 0.0001 {
		t.Errorf("ρ at (1, 1e-6) is %.5f, want 0.0244", rho)
	}
	for _, eps := range []float64{0.1, 1, 4} {
		rho := Rho(eps, 1e-6)
		if d := zcdpDelta(rho, eps); d > 1e-6 || d < 0.99e-6 {
			t.Errorf("δ at its own ρ: %g", d)
		}
		if bun := rho + 2*math.Sqrt(rho*math.Log(1e6)); bun < eps {
			t.Errorf("ε = %g is above the simple bound %g", eps, bun)
		}
		if e := epsilon(rho, 1e-6); math.Abs(e-eps) > 1e-6 {
			t.Errorf("ε back from ρ: %g, want %g", e, eps)
		}
		// A Gaussian's own δ (Balle and Wang 2018) is below what zCDP says of it.
		sigma := math.Sqrt(1 / (2 * rho))
		phi := distuv.UnitNormal.CDF
		exact := phi(1/(2*sigma)-eps*sigma) - math.Exp(eps)*phi(-1/(2*sigma)-eps*sigma)
		if exact > 1e-6 || exact < 1e-8 {
			t.Errorf("ε = %g: the Gaussian's own δ is %g beside 1e-6", eps, exact)
		}
	}
}

func TestPlanTakesTheBetter(t *testing.T) {
	five := func(m int) []Measurement {
		c := Contribution{Records: 8, PerCell: m}
		var ms []Measurement
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			ms = append(ms, c.Measurement(name, 64, 0))
		}
		return ms
	}
	for _, c := range []struct {
		perCell   int
		mechanism string
		sd        float64
	}{{1, Gaussian, 28.7}, {2, Gaussian, 40.5}, {8, Laplace, 56.6}} {
		p, err := NewPlan(Budget{1, 1e-6}, five(c.perCell))
		if err != nil {
			t.Fatal(err)
		}
		if p.Mechanism != c.mechanism || math.Abs(p.Noise[0].SD-c.sd) > 0.1 {
			t.Errorf("m = %d: %s with sd %.2f, want %s with %.1f", c.perCell, p.Mechanism, p.Noise[0].SD, c.mechanism, c.sd)
		}
	}
	if p, err := NewPlan(Budget{1, 0}, five(1)); err != nil || p.Mechanism != Laplace {
		t.Errorf("δ = 0 allows Laplace alone: %v, %v", p.Mechanism, err)
	}
	for _, b := range []Budget{{0, 1e-6}, {-1, 0}, {math.NaN(), 0}, {math.Inf(1), 0}, {1, -1}, {1, 0.5}, {1, math.NaN()}, {1e-9, 0}} {
		if _, err := NewPlan(b, five(1)); err == nil {
			t.Errorf("budget %v is accepted", b)
		}
	}
	if _, err := NewPlan(Budget{1, 0}, nil); err == nil {
		t.Error("a plan of nothing is accepted")
	}
}

// One is the smallest sensitivity and the smallest number of cells, and the square
// of L1 the largest L2Squared.
func TestPlanBounds(t *testing.T) {
	for _, m := range []Measurement{{L1: 1, L2Squared: 1, Cells: 1}, {L1: 3, L2Squared: 9, Cells: 1}, {L1: 3, L2Squared: 1, Cells: 1}} {
		if _, err := NewPlan(Budget{1, 1e-6}, []Measurement{m}); err != nil {
			t.Errorf("%+v is refused: %v", m, err)
		}
	}
	for _, m := range []Measurement{
		{L1: 0, L2Squared: 1, Cells: 1}, {L1: 1, L2Squared: 0, Cells: 1}, {L1: 1, L2Squared: 1, Cells: 0},
		{L1: 1, L2Squared: 2, Cells: 1}, {L1: 3, L2Squared: 10, Cells: 1}, {L1: 1, L2Squared: 1, Cells: 1, Weight: -0.5},
	} {
		if _, err := NewPlan(Budget{1, 1e-6}, []Measurement{m}); err == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
}

// TestLoss measures the privacy loss of one cell with and without one user, and
// holds it to what was promised.
func TestLoss(t *testing.T) {
	c := Contribution{Records: 4, PerCell: 4}
	p, err := NewPlan(Budget{1, 0}, []Measurement{c.Measurement("x", 1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	const draws = 400_000
	seen := func(seed byte, count int64) (over int) {
		n := fixed(seed)
		for range draws {
			cells := []int64{count}
			if err := p.Noise[0].Add(n, cells); err != nil {
				t.Fatal(err)
			}
			if cells[0] >= 4 {
				over++
			}
		}
		return over
	}
	loss := math.Log(float64(seen(3, 4)) / float64(seen(4, 0)))
	if loss < 0.97 || loss > 1.03 {
		t.Errorf("the loss at the best cut is %.3f, want ε = 1", loss)
	}
}

func TestThresholdHoldsNoiseBack(t *testing.T) {
	for _, perCell := range []int{1, 8} {
		p, err := NewPlan(Budget{1, 1e-6}, []Measurement{Contribution{8, perCell}.Measurement("x", 1000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		passed, n := 0, fixed(5)
		for range 100 {
			cells := make([]int64, 1000)
			if err := p.Noise[0].Add(n, cells); err != nil {
				t.Fatal(err)
			}
			for _, x := range cells {
				if x > p.Noise[0].Threshold() {
					passed++
				}
			}
		}
		if passed > 200 {
			t.Errorf("%s: %d of 100,000 empty cells pass the threshold", p.Mechanism, passed)
		}
	}
}

func TestSelection(t *testing.T) {
	s, err := NewSelection(Budget{0.3, 5e-7}, 1)
	if err != nil {
		t.Fatal(err)
	}
	// One user alone: e^(−(t−1)/b)/(1+e^(−1/b)) <= δ, and not by a wide margin.
	b := float64(s.Scale) / Denominator
	alone := math.Exp(-float64(s.Threshold-1)/b) / (1 + math.Exp(-1/b))
	if alone > 5e-7 || alone < 5e-7*math.Exp(-1/b)*0.99 {
		t.Errorf("one user alone passes with %g", alone)
	}
	kept, n := 0, fixed(6)
	for range 10_000 {
		if _, ok, err := s.Keep(n, s.Threshold); err != nil {
			t.Fatal(err)
		} else if ok {
			kept++
		}
		if _, ok, _ := s.Keep(n, 0); ok {
			t.Fatal("a key that nobody has is kept")
		}
	}
	if kept < 5_000 || kept > 6_500 {
		t.Errorf("%d of 10,000 keys at the threshold are kept", kept)
	}
}

func TestContribution(t *testing.T) {
	c, n := DefaultContribution, fixed(7)
	kept := make([]int, 100)
	for range 10_000 {
		var s Sample[int]
		for i := range 100 {
			s.Offer(n, c, i)
		}
		if len(s.Kept) != c.Records {
			t.Fatal("too many records of one user")
		}
		for _, i := range s.Kept {
			kept[i]++
		}
	}
	for i, k := range kept { // mean 800, sd 27
		if k < 650 || k > 950 {
			t.Errorf("record %d of 100 was kept %d times of 10,000, want about 800", i, k)
		}
	}
	s := Sample[int]{Kept: []int{1, 1, 1, 2, 2, 3}}
	cells := map[int]int{}
	dropped := Bounded(c, &s, func(i int) int { return i }, func(i int) { cells[i]++ })
	if dropped != 1 || cells[1] != 2 || cells[2] != 2 || cells[3] != 1 {
		t.Errorf("cells %v, dropped %d", cells, dropped)
	}
}

// TestNoRandomness: when the source fails nothing must look like a draw.
func TestNoRandomness(t *testing.T) {
	n := NewNoiseFrom(io.LimitReader(rand.NewChaCha8([32]byte{}), 100))
	for range 100 {
		if _, err := n.Laplace(10 * Denominator); err != nil {
			if n.Err() == nil {
				t.Error("the failure is forgotten")
			}
			return
		}
	}
	t.Error("draws without randomness")
}

func TestScales(t *testing.T) {
	n := NewNoise()
	for _, b := range []uint64{0, maxScale*Denominator + 1, math.MaxUint64} {
		if _, err := n.Laplace(b); err == nil {
			t.Errorf("Laplace scale %d is accepted", b)
		}
	}
	for _, v := range []uint64{0, math.MaxUint64} {
		if _, err := n.Gaussian(v); err == nil {
			t.Errorf("variance %d is accepted", v)
		}
	}
	if _, err := n.Gaussian(maxScale * maxScale * Denominator); err != nil {
		t.Error(err)
	}
}

func BenchmarkLaplace(b *testing.B) {
	n := NewNoise()
	for b.Loop() {
		n.Laplace(40 * Denominator)
	}
}

func BenchmarkGaussian(b *testing.B) {
	n := NewNoise()
	for b.Loop() {
		n.Gaussian(1600 * Denominator)
	}
}

// Noise comes from the system: no two sources draw the same.
func TestNoiseIsFresh(t *testing.T) {
	var drawn [2][8]int64
	for i := range drawn {
		n := NewNoise()
		for j := range drawn[i] {
			var err error
			if drawn[i][j], err = n.Gaussian(1 << 40); err != nil {
				t.Fatal(err)
			}
		}
	}
	if drawn[0] == drawn[1] {
		t.Errorf("two sources of noise both draw %v", drawn[0])
	}
}

// The noise that cells get has the variance that the plan states.
func TestNoiseOfAPlan(t *testing.T) {
	s, err := Measurement{Name: "cells", L1: 840, L2Squared: 840 * 840, Cells: 50_000, Weight: 1}.WithRho(0.5)
	if err != nil {
		t.Fatal(err)
	}
	cells := make([]int64, s.Cells)
	if err := s.Add(NewNoiseFrom(rand.NewChaCha8([32]byte{7})), cells); err != nil {
		t.Fatal(err)
	}
	squares := 0.0
	for _, x := range cells {
		squares += float64(x) * float64(x)
	}
	if sd := math.Sqrt(squares / float64(s.Cells)); math.Abs(sd/s.SD-1) > 0.02 || math.Abs(s.SD/840-1) > 1e-3 {
		t.Errorf("σ is %.1f, stated as %.1f, and ρ = 0.5 needs 840", sd, s.SD)
	}
}
