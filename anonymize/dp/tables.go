package dp

import (
	"fmt"
	"math"
)

// Gaussian is the mechanism of [NoiseSpec.Add], by the name that statements have for it.
const Gaussian = "discrete Gaussian"

// A Measurement is one table of weights to be released.
type Measurement struct {
	Name string
	// L2Squared is the largest sum of the squares of what one unit changes: w² where it
	// adds a weight of w in all.
	L2Squared int64
	// Cells is how many cells there are, empty ones included. It must not depend
	// on the data.
	Cells int
}

// A NoiseSpec is the noise of one measurement.
type NoiseSpec struct {
	Measurement
	Variance uint64  // σ² in 1/1024
	SD       float64 // σ
	Rho      float64 // what it costs
}

// WithRho is the Gaussian noise at which releasing a measurement is ρ-zCDP: σ² is
// the largest sum of squares that one unit changes, over 2ρ, rounded up to the next
// 1/1024 (Bun and Steinke, "Concentrated Differential Privacy", 2016, proposition 1.6;
// for discrete noise Canonne, Kamath and Steinke 2020, theorem 4).
func (m Measurement) WithRho(rho float64) (NoiseSpec, error) {
	if m.L2Squared < 1 || m.Cells < 1 {
		return NoiseSpec{}, fmt.Errorf("measurement %s: its sensitivity or its cells are impossible", m.Name)
	}
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

// Add adds noise to every cell of a measurement, the empty ones included: their
// number must be the measurement's.
func (s NoiseSpec) Add(n *Noise, cells []int64) error {
	if len(cells) != s.Cells {
		return fmt.Errorf("measurement %s: %d cells, and %d were planned", s.Name, len(cells), s.Cells)
	}
	for i := range cells {
		x, err := n.Gaussian(s.Variance)
		if err != nil {
			return err
		}
		cells[i] += x
	}
	return nil
}
