package engine

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/optimize"
)

// costBound is how far from its start a fitted cost may go, as a natural logarithm.
const costBound = 6

// fitRounds are the starts of the simplex, each at the best costs so far and smaller than
// the one before.
const fitRounds = 3

// Names of the costs, as [ParseCosts] reads them, but for those that only a roofline has.
func (c *Costs) Names() []string {
	var names []string
	fields := c.fields()
	for _, f := range fields[:len(fields)-physical] {
		names = append(names, f.name)
	}
	return names
}

// Of is the cost of a name.
func (c *Costs) Of(name string) *Picos {
	for _, f := range c.fields() {
		if f.name == name {
			return f.value
		}
	}
	panic("simulated engine: no such cost")
}

// Scaled is c with the named costs times the exponentials of x.
func (c Costs) Scaled(names []string, x []float64) Costs {
	for i, name := range names {
		v := c.Of(name)
		*v = Picos(math.Round(min(float64(*v)*math.Exp(max(min(x[i], costBound), -costBound)), float64(maxStep))))
	}
	return c
}

// FitCosts moves the named costs to where miss, which is 0 for costs that explain
// everything, is least, and returns them with what it is there. It is the simplex of Nelder
// and Mead (1965) over the logarithms of the costs, begun three times, each time with so
// many evaluations at most, and the first time of that size. Costs of 0 stay.
func FitCosts(start Costs, names []string, evaluations int, size float64,
	miss func(Costs) float64) (Costs, float64, error) {
	best, least := start, miss(start)
	for round := range fitRounds {
		from := best
		r, err := optimize.Minimize(
			optimize.Problem{Func: func(x []float64) float64 { return miss(from.Scaled(names, x)) }},
			make([]float64, len(names)), &optimize.Settings{FuncEvaluations: evaluations},
			&optimize.NelderMead{SimplexSize: size / float64(1+2*round)})
		if r == nil {
			return best, least, errors.Join(errors.New("simulated engine: the costs could not be fitted"), err)
		}
		if r.F < least {
			best, least = from.Scaled(names, r.X), r.F
		}
	}
	return best, least, nil
}
