package dp

import (
	"errors"
	"fmt"
	"math"
)

// A Budget is what a release may cost. The defaults of this field are ε = 1 and
// δ = 1e-6; δ must be well below one over the number of users.
type Budget struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// A Measurement is one histogram of counts to be released.
type Measurement struct {
	Name string `json:"name"`
	// L1 is by how much one user can change the counts in sum, L2Squared the
	// largest sum of the squares of the changes: with at most C records a user,
	// at most m of them in one cell, they are C and C·m.
	L1        int64 `json:"l1"`
	L2Squared int64 `json:"l2_squared"`
	// Cells is how many cells there are, empty ones included. It must not depend
	// on the data.
	Cells int `json:"cells"`
	// Weight is its share of the budget beside the others'. 0 counts as 1.
	Weight float64 `json:"weight"`
}

// The mechanisms that a [Plan] chooses between.
const (
	Laplace  = "discrete Laplace"
	Gaussian = "discrete Gaussian"
)

// A Plan says how much noise each measurement gets.
type Plan struct {
	Budget    Budget      `json:"budget"`
	Mechanism string      `json:"mechanism"` // [Laplace] or [Gaussian], for all of them
	Rho       float64     `json:"rho_zcdp"`  // what the Gaussian releases cost together; 0 for Laplace
	Noise     []NoiseSpec `json:"measurements"`
}

// A NoiseSpec is the noise of one measurement. One of the scales is 0.
type NoiseSpec struct {
	Measurement
	Scale    uint64  `json:"laplace_scale_1024ths,omitempty"`
	Variance uint64  `json:"gaussian_variance_1024ths,omitempty"`
	SD       float64 `json:"sd"`                      // standard deviation of the noise of a cell
	Epsilon  float64 `json:"epsilon_share,omitempty"` // what it costs of ε; 0 for Gaussian noise, which adds up in ρ
	Rho      float64 `json:"rho_share,omitempty"`     // what it costs of ρ; 0 for Laplace noise
}

// NewPlan divides a budget among measurements that are all released. It plans
// both mechanisms, Laplace with the ε of each added up and Gaussian with the ρ of
// each added up and converted once by [Rho], and takes the one with the smaller
// standard deviations (their geometric mean, so that no measurement's unit
// decides). Scales are rounded up to the next 1/1024.
func NewPlan(b Budget, ms []Measurement) (Plan, error) {
	switch {
	case !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 0):
		return Plan{}, errors.New("epsilon must be above 0")
	case !(b.Delta >= 0 && b.Delta < 0.01):
		return Plan{}, errors.New("delta must be at least 0 and below 0.01")
	case len(ms) == 0:
		return Plan{}, errors.New("nothing to measure")
	}
	total := 0.0
	for i := range ms {
		m := &ms[i]
		if m.L1 < 1 || m.L2Squared < 1 || m.Cells < 1 || m.Weight < 0 || m.L2Squared > m.L1*m.L1 {
			return Plan{}, fmt.Errorf("measurement %s: its sensitivities or its cells are impossible", m.Name)
		}
		total += m.weight()
	}
	laplace, err := b.laplace(ms, total)
	if err != nil || b.Delta == 0 {
		return laplace, err
	}
	gaussian, err := b.gaussian(ms, total)
	if err != nil || laplace.spread() <= gaussian.spread() {
		return laplace, nil
	}
	return gaussian, nil
}

func (m *Measurement) weight() float64 {
	if m.Weight == 0 {
		return 1
	}
	return m.Weight
}

func (b Budget) laplace(ms []Measurement, total float64) (Plan, error) {
	p := Plan{Budget: b, Mechanism: Laplace}
	for _, m := range ms {
		share := b.Epsilon * m.weight() / total
		scale := up(float64(m.L1) / share)
		if scale > maxScale*Denominator {
			return Plan{}, fmt.Errorf("measurement %s: its share of epsilon is too small: raise epsilon", m.Name)
		}
		q := math.Exp(-Denominator / float64(scale)) // variance 2q/(1−q)²
		p.Noise = append(p.Noise, NoiseSpec{Measurement: m, Scale: scale, SD: math.Sqrt(2*q) / (1 - q), Epsilon: share})
	}
	return p, nil
}

func (b Budget) gaussian(ms []Measurement, total float64) (Plan, error) {
	p := Plan{Budget: b, Mechanism: Gaussian, Rho: Rho(b.Epsilon, b.Delta)}
	for _, m := range ms {
		s, err := m.WithRho(p.Rho * m.weight() / total)
		if err != nil {
			return Plan{}, err
		}
		p.Noise = append(p.Noise, s)
	}
	return p, nil
}

// WithRho is the Gaussian noise at which releasing a measurement is ρ-zCDP: σ² is
// the largest sum of squares that one user changes, over 2ρ.
func (m Measurement) WithRho(rho float64) (NoiseSpec, error) {
	v := float64(m.L2Squared) / (2 * rho)
	if !(v > 0 && v <= maxScale*maxScale) {
		return NoiseSpec{}, fmt.Errorf("measurement %s: its share of rho is too small: raise epsilon", m.Name)
	}
	return NoiseSpec{Measurement: m, Variance: up(v), SD: math.Sqrt(float64(up(v)) / Denominator), Rho: rho}, nil
}

// up rounds to the next 1/1024, with room for the error of the sum before it.
func up(x float64) uint64 {
	if x > 1<<50 {
		return math.MaxUint64
	}
	return uint64(math.Ceil(x * Denominator * (1 + 1e-12)))
}

func (p Plan) spread() float64 {
	sum := 0.0
	for _, s := range p.Noise {
		sum += math.Log(s.SD)
	}
	return sum
}

// Add adds noise to every cell of a measurement, the empty ones included: their
// number must be the measurement's.
func (s NoiseSpec) Add(n *Noise, cells []int64) error {
	if len(cells) != s.Cells {
		return fmt.Errorf("measurement %s: %d cells, and %d were planned", s.Name, len(cells), s.Cells)
	}
	for i := range cells {
		var x int64
		var err error
		if s.Scale > 0 {
			x, err = n.Laplace(s.Scale)
		} else {
			x, err = n.Gaussian(s.Variance)
		}
		if err != nil {
			return err
		}
		cells[i] += x
	}
	return nil
}

// Threshold is the noisy count at and below which a cell is taken for empty. It
// is post-processing and costs nothing: pure noise passes it in about one of all
// cells, so that a wide histogram's tail is not made of noise. For Gaussian noise
// it is σ√(2 ln B) over B cells, for Laplace b ln(B/2).
func (s NoiseSpec) Threshold() int64 {
	b := math.Log(float64(max(2, s.Cells)))
	if s.Scale > 0 {
		return int64(math.Ceil(float64(s.Scale) / Denominator * max(0, b-math.Ln2)))
	}
	return int64(math.Ceil(s.SD * math.Sqrt(2*b)))
}

// A Selection keeps the keys of an open set, such as prefix nodes, that so many
// users have that one user more or less cannot be told. Keys that nobody has are
// never asked, so a key at one user alone must fail almost always: that is what
// δ pays for.
type Selection struct {
	Scale     uint64 `json:"laplace_scale_1024ths"`
	Threshold int64  `json:"threshold_users"` // noisy counts of users at or above it are kept
}

// NewSelection plans for counts of distinct users in which one user is in at
// most keys of them: noise of scale keys/ε, and the threshold at which a key with
// one user passes with a probability of δ/keys at most.
//
// P(1 + noise >= t) = e^(−(t−1)/b) / (1 + e^(−1/b)) for a discrete Laplace of
// scale b.
func NewSelection(b Budget, keys int) (Selection, error) {
	if !(b.Epsilon > 0) || !(b.Delta > 0 && b.Delta < 0.01) || keys < 1 {
		return Selection{}, fmt.Errorf("selecting keys needs epsilon and delta above 0, and at least one key for each user")
	}
	scale := up(float64(keys) / b.Epsilon)
	if scale > maxScale*Denominator {
		return Selection{}, fmt.Errorf("%d public prefixes for each user are too many for this epsilon: raise epsilon", keys)
	}
	width := float64(scale) / Denominator
	t := 1 + width*(math.Log(float64(keys)/b.Delta)-math.Log1p(math.Exp(-1/width)))
	return Selection{Scale: scale, Threshold: max(2, int64(math.Ceil(t)))}, nil
}

// Keep reports whether a key that so many users have is kept, and their noisy count. Each
// key may be asked once.
func (s Selection) Keep(n *Noise, users int64) (noisy int64, kept bool, err error) {
	x, err := n.Laplace(s.Scale)
	return users + x, err == nil && users > 0 && users+x >= s.Threshold, err
}

// Rho is the largest ρ for which every ρ-zCDP mechanism is (ε, δ)-differentially
// private by zcdpDelta. ε and δ must be above 0.
func Rho(eps, delta float64) float64 {
	lo, hi := 0.0, eps // ρ-zCDP is at best (ρ, ·)-private
	for range 60 {
		mid := (lo + hi) / 2
		if zcdpDelta(mid, eps) <= delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// zcdpDelta is the δ that ρ-zCDP gives at ε:
//
//	δ = inf over α>1 of exp((α−1)(αρ−ε))/(α−1) · (1−1/α)^α
//
// (Canonne, Kamath and Steinke 2020, corollary 13). The logarithm is convex
// enough in α for a search by thirds; a point beside the best one only makes the
// answer larger, which is safe.
func zcdpDelta(rho, eps float64) float64 {
	if rho <= 0 {
		return 0
	}
	log := func(alpha float64) float64 {
		return (alpha-1)*(alpha*rho-eps) - math.Log(alpha-1) + alpha*math.Log1p(-1/alpha)
	}
	lo, hi := math.Log(1e-5), math.Log((eps+1)/rho+2) // of α−1
	for range 90 {
		a, b := lo+(hi-lo)/3, hi-(hi-lo)/3
		if log(1+math.Exp(a)) < log(1+math.Exp(b)) {
			hi = b
		} else {
			lo = a
		}
	}
	return min(1, math.Exp(log(1+math.Exp(lo))))
}
