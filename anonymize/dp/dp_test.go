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

// One is the smallest sensitivity and the smallest number of cells, and noise too large
// to be drawn exactly is refused.
func TestMeasurementBounds(t *testing.T) {
	if s, err := (Measurement{L2Squared: 1, Cells: 1}).WithRho(0.5); err != nil || s.SD < 1 || s.SD > 1.001 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, m := range []Measurement{{L2Squared: 0, Cells: 1}, {L2Squared: 1, Cells: 0}, {L2Squared: -1, Cells: 1}} {
		if _, err := m.WithRho(1); err == nil {
			t.Errorf("%+v is accepted", m)
		}
	}
	for _, rho := range []float64{0, -1, 1e-13, math.NaN(), math.Inf(1)} {
		if s, err := (Measurement{L2Squared: 1, Cells: 1}).WithRho(rho); err == nil {
			t.Errorf("ρ = %g is accepted: %+v", rho, s)
		}
	}
	s, err := Measurement{Name: "x", L2Squared: 1, Cells: 2}.WithRho(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(fixed(1), make([]int64, 3)); err == nil {
		t.Error("a cell more than was measured is accepted")
	}
}

// TestLoss measures the privacy loss with and without one unit, in a table and in
// selected keys, and holds it to what the distributions say.
func TestLoss(t *testing.T) {
	const draws = 400_000
	over := func(draw func() (int64, error), least int64) float64 {
		n := 0
		for range draws {
			x, err := draw()
			if err != nil {
				t.Fatal(err)
			}
			if x >= least {
				n++
			}
		}
		return float64(n) / draws
	}
	// Laplace noise of one key: the whole ε, at the best cut.
	s, err := NewSelection(Budget{1, 1e-6}, 1)
	if err != nil {
		t.Fatal(err)
	}
	users := 2 * s.Threshold
	key := func(seed byte, users int64) func() (int64, error) {
		n := fixed(seed)
		return func() (int64, error) { x, _, err := s.Keep(n, users); return x, err }
	}
	if loss := math.Log(over(key(3, users+1), users+1) / over(key(4, users), users+1)); loss < 0.97 || loss > 1.03 {
		t.Errorf("the loss of a key at the best cut is %.3f, want ε = 1", loss)
	}
	// Gaussian noise of a cell, that without the unit is empty.
	spec, err := Measurement{L2Squared: 840 * 840, Cells: 1}.WithRho(0.5)
	if err != nil {
		t.Fatal(err)
	}
	cell := func(seed byte, weight int64) func() (int64, error) {
		n := fixed(seed)
		return func() (int64, error) {
			cells := []int64{weight}
			err := spec.Add(n, cells)
			return cells[0], err
		}
	}
	unit := distuv.UnitNormal
	want := math.Log(unit.Survival(0.5) / unit.Survival(1.5)) // σ is 840
	if loss := math.Log(over(cell(5, 840), 1260) / over(cell(6, 0), 1260)); math.Abs(loss-want) > 0.04 {
		t.Errorf("the loss of a cell is %.3f, want %.3f", loss, want)
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

// The noise that cells get has the variance that is stated.
func TestNoiseOfATable(t *testing.T) {
	s, err := Measurement{Name: "cells", L2Squared: 840 * 840, Cells: 50_000}.WithRho(0.5)
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
