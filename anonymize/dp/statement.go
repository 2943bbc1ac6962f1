package dp

import (
	"fmt"
	"math"
	"math/bits"
)

// A Total is what all releases of a source cost together, as [Spent] adds
// them up.
type Total struct {
	Budget
	Releases int `json:"releases"` // this one and refused attempts included
}

// A SessionStatement says what tables over sessions measured of whom, and with how much
// noise. Package synth/release draws sessions from them. All of it is public, or comes
// from noisy counts.
type SessionStatement struct {
	Unit      string        `json:"unit"`
	Protects  string        `json:"protects"` // the unit in plain words
	Budget    Budget        `json:"budget"`
	Mechanism string        `json:"mechanism"`
	Rho       float64       `json:"rho_zcdp"` // of everything together
	CaptureNS int64         `json:"capture_ns"`
	MaxInput  int64         `json:"max_input_tokens"`
	MaxOutput int64         `json:"max_output_tokens"`
	Public    []string      `json:"public_constants"`
	Trunks    *Trunks       `json:"trunks,omitempty"`
	Tables    []Table       `json:"tables"`
	Predicted SessionErrors `json:"predicted_errors"`
	Ledger    *Total        `json:"ledger_total,omitempty"` // nil where no ledger was kept
}

// Wrong says what of the statement does not add up, and is empty where all does: each
// table must have the noise that its ρ needs, all of them together the ρ of the whole,
// and that must be within the budget. Noise that is otherwise than is stated it cannot tell.
func (s *SessionStatement) Wrong() string {
	const rounding = 1 + 1e-6
	delta, sum := s.Budget.Delta, 0.0
	if t := s.Trunks; t != nil {
		delta -= t.Delta
		epsilon := float64(bits.Len(uint(t.Blocks))) * Denominator / float64(max(1, t.Scale))
		sum = epsilon * epsilon / 2
	}
	for _, t := range s.Tables {
		if t.Sigma*rounding < 1/math.Sqrt(2*t.Rho) {
			return fmt.Sprintf("the card states noise of σ = %.4g for the table %s, and its ρ = %.4g needs %.4g",
				t.Sigma, t.Name, t.Rho, 1/math.Sqrt(2*t.Rho))
		}
		sum += t.Rho
	}
	switch {
	case sum > s.Rho*rounding:
		return fmt.Sprintf("the tables of the card cost ρ = %.4g together, and it states %.4g", sum, s.Rho)
	case s.Rho > 0 && s.Rho > Rho(s.Budget.Epsilon, delta)*rounding:
		return fmt.Sprintf("the card states ρ = %.4g, which is more than ε = %g and δ = %g allow", s.Rho,
			s.Budget.Epsilon, s.Budget.Delta)
	}
	return ""
}

// Trunks is how the prefixes that many units share were selected.
type Trunks struct {
	Selection
	Blocks   int     `json:"blocks_at_most"`
	Delta    float64 `json:"delta"`
	Selected int     `json:"selected"`
}

// A Table is one measurement, to which a unit adds a weight of 1 in all.
type Table struct {
	Name  string  `json:"name"`
	Cells int     `json:"cells"`
	Sigma float64 `json:"sigma"` // of the noise of a cell, in units
	Rho   float64 `json:"rho_share"`
}

// SessionErrors are up to how much a drawing is typically off its source, by noise and by what
// the model loses. What a unit sends beyond others of its kind is not in them: each counts as
// one, and no noisy count tells how much one sends.
type SessionErrors struct {
	Requests float64 `json:"requests"`      // relative
	Input    float64 `json:"input_tokens"`  // in all, relative
	Output   float64 `json:"output_tokens"` // in all, relative
	Hit      float64 `json:"hit_ratio"`     // by block, without limit
	InputKS  float64 `json:"first_input_ks"`
	OutputKS float64 `json:"first_output_ks"`
}
