package dp

import (
	"math"
	"testing"
)

// The figures of this file are those of two other programs, Google's dp-accounting 0.6.0 and
// SciPy 1.x (pip install dp-accounting scipy). Each table says by which calls.

// ρ of several releases becomes ε. dp-accounting's RdpAccountant composes the same Rényi bound
// over a grid of orders, and its privacy loss distribution has what is exact for Gaussian
// noise: ε must be the first, and above the second.
//
//	a = RdpAccountant(orders=[1+x/200 for x in range(1, 4000)]+list(range(22, 2000)))
//	a.compose(GaussianDpEvent(math.sqrt(1/(2*rho))), n); a.get_epsilon(delta)
//	from_gaussian_mechanism(math.sqrt(1/(2*rho*n)), value_discretization_interval=1e-4).get_epsilon_for_delta(delta)
func TestSpentAsOthersCompute(t *testing.T) {
	for _, c := range []struct {
		rho, delta   float64
		n            int
		exact, renyi float64
	}{
		{0.001, 1e-06, 1, 0.16794, 0.18290}, {0.024, 1e-06, 1, 0.92007, 0.99217}, {0.1, 1e-06, 1, 1.99453, 2.14194},
		{0.5, 1e-06, 1, 4.88655, 5.22153}, {0.02, 1e-09, 1, 1.10404, 1.16341}, {2, 1e-05, 1, 9.99726, 10.72483},
		{0.001, 1e-06, 2, 0.24322, 0.26426}, {0.024, 1e-06, 2, 1.33765, 1.43957}, {0.1, 1e-06, 2, 2.92160, 3.13106},
		{0.5, 1e-06, 2, 7.28608, 7.76622}, {0.02, 1e-09, 2, 1.58937, 1.67311}, {2, 1e-05, 2, 15.45616, 16.51141},
		{0.001, 1e-06, 4, 0.35224, 0.38187}, {0.024, 1e-06, 4, 1.95048, 2.09489}, {0.1, 1e-06, 4, 4.30584, 4.60444},
		{0.5, 1e-06, 4, 10.99715, 11.68860}, {0.02, 1e-09, 4, 2.29364, 2.41217}, {2, 1e-05, 4, 24.38161, 25.91936},
	} {
		var list []Release
		for range c.n {
			list = append(list, Release{Budget: Budget{100, c.delta}, Rho: c.rho})
		}
		got := Spent(list).Epsilon
		if got < c.exact || math.Abs(got/c.renyi-1) > 2e-4 {
			t.Errorf("%d releases of ρ = %g at δ = %g: ε = %.5f, and others say %.5f, at least %.5f", c.n, c.rho, c.delta, got, c.renyi, c.exact)
		}
		if rho := Rho(c.renyi, c.delta); math.Abs(rho/(c.rho*float64(c.n))-1) > 5e-4 {
			t.Errorf("ε = %g at δ = %g allows ρ = %.6g, and %.6g has it", c.renyi, c.delta, rho, c.rho*float64(c.n))
		}
	}
}

// Discrete Gaussian noise keeps its budget by the exact loss of dp-accounting:
//
//	from_discrete_gaussian_mechanism(math.sqrt(variance/1024), sensitivity=s,
//	    value_discretization_interval=1e-4).get_delta_for_epsilon(epsilon)
func TestGaussianAsOthersCompute(t *testing.T) {
	for _, c := range []struct {
		epsilon, delta float64
		s              int64
		variance       uint64
		exact          float64 // δ of this variance
	}{
		{1, 1e-06, 1, 21022, 1.988e-07}, {1, 1e-06, 8, 1345381, 2.161e-07}, {4, 1e-06, 4, 26336, 2.039e-07},
		{8, 1e-06, 2, 1947, 2.602e-07}, {0.5, 1e-07, 8, 6037652, 2.063e-08}, {2, 1e-09, 1, 9122, 1.686e-10},
	} {
		s, err := Measurement{L2Squared: c.s * c.s, Cells: 1}.WithRho(Rho(c.epsilon, c.delta))
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Variance; c.exact > c.delta || v < c.variance-2 || float64(v) > float64(c.variance)*1.0002 {
			t.Errorf("ε = %g, δ = %g, sensitivity %d: variance %d/1024, and others find δ = %g at %d/1024", c.epsilon, c.delta, c.s, v, c.exact, c.variance)
		}
	}
}

// Discrete Laplace noise of keys spends its ε and no more:
//
//	from_discrete_laplace_mechanism(1024/scale, sensitivity=keys,
//	    value_discretization_interval=1e-4).get_epsilon_for_delta(0)
func TestLaplaceAsOthersCompute(t *testing.T) {
	for _, c := range []struct {
		epsilon float64
		keys    int
		scale   uint64
	}{{1, 8, 8193}, {0.5, 8, 16385}, {4, 1, 257}, {0.1, 3, 30721}} {
		s, err := NewSelection(Budget{c.epsilon, 1e-6}, c.keys)
		if err != nil {
			t.Fatal(err)
		}
		if s.Scale != c.scale {
			t.Errorf("ε = %g, %d keys: scale %d/1024, and others find %d/1024", c.epsilon, c.keys, s.Scale, c.scale)
		}
	}
}

// The threshold of a selection is the least at which a key of one user passes as rarely as δ
// allows: the least t with scipy.stats.dlaplace(epsilon/keys).sf(t-2) <= delta/keys.
func TestSelectionAsOthersCompute(t *testing.T) {
	for _, c := range []struct {
		epsilon, delta float64
		keys           int
		threshold      int64
	}{{0.3, 5e-7, 1, 48}, {0.3, 5e-7, 8, 426}, {0.3, 5e-7, 80, 4855}, {1, 1e-6, 8, 124}, {2.4, 5e-7, 8, 55}} {
		s, err := NewSelection(Budget{c.epsilon, c.delta}, c.keys)
		if err != nil {
			t.Fatal(err)
		}
		if s.Threshold < c.threshold || s.Threshold > c.threshold+1 { // the scale is rounded up
			t.Errorf("ε = %g, δ = %g, %d keys: threshold %d, and others find %d", c.epsilon, c.delta, c.keys, s.Threshold, c.threshold)
		}
	}
}
