package release

import (
	"fmt"
	"math"
	"math/rand/v2"

	"reprise/anonymize/dp"
)

// limits are the predicted errors above which no model is made.
var limits = dp.SessionErrors{Requests: 0.2, Input: 0.2, Output: 0.2, Hit: 0.06, InputKS: 0.06, OutputKS: 0.06}

const (
	predictions   = 12
	predictedSize = 1 << 14 // sessions drawn for each
)

// What is said of a model beside its noise, by the errors of releases of some 150 invented logs
// (TestPredictedErrors): noise does more than one more layer of it shows, since what it hides
// is cut off, and the model itself loses something at any ε.
var (
	noiseDoes  = 1.75
	modelLoses = dp.SessionErrors{Requests: 0.02, Input: 0.05, Output: 0.03, Hit: 0.03}
)

// typical are the errors of a model of which noise alone makes these.
func typical(noise dp.SessionErrors) dp.SessionErrors {
	loses := figuresOf(&modelLoses)
	for i, x := range figuresOf(&noise) {
		if *loses[i].at > 0 && *x.at > 0 {
			*x.at = math.Round(1000*math.Hypot(noiseDoes**x.at, *loses[i].at)) / 1000
		}
	}
	return noise
}

func figuresOf(e *dp.SessionErrors) []struct {
	name string
	at   *float64
} {
	return []struct {
		name string
		at   *float64
	}{{"requests", &e.Requests}, {"input tokens", &e.Input}, {"output tokens", &e.Output}, {"the hit ratio", &e.Hit},
		{"the distribution of inputs", &e.InputKS}, {"the distribution of outputs", &e.OutputKS}}
}

// worstOf says which error is the most above its limit, and is empty where none is.
func worstOf(e dp.SessionErrors) (worst string) {
	most, limit := 1.0, figuresOf(&limits)
	for i, x := range figuresOf(&e) {
		if over := *x.at / *limit[i].at; !(over <= most) {
			most = over
			worst = fmt.Sprintf("predicted error of %s %.2g, and at most %.2g is released", x.name, *x.at, *limit[i].at)
		}
	}
	return worst
}

// A TooNoisy error is why [Fit] made no model.
type TooNoisy struct {
	Errors  dp.SessionErrors
	Why     string
	Epsilon float64
	Unit    string
}

// Error implements error.
func (e *TooNoisy) Error() string {
	return fmt.Sprintf("the trace is too small for ε=%g with a %s as the unit of privacy: %s; a longer trace helps, "+
		"or a larger ε", e.Epsilon, e.Unit, e.Why)
}

// predict says what noise does to drawings, in two standard deviations. Noise is added to the
// noisy tables once more, and what that changes is about what it changed before, so the errors
// tell nothing more of the trace. The noise here protects nothing: it comes from a seed.
func (l *layout) predict(base *Model, noisy [tables]noisyTable, known *slopes) (e dp.SessionErrors) {
	r := rand.New(rand.NewPCG(1, 2))
	from := base.figures(base.units)
	for range predictions {
		more := noisy
		for t := range tables {
			more[t].cells = nil
			more[t].sd *= math.Sqrt2 // it has noise twice
			for _, x := range noisy[t].cells {
				more[t].cells = append(more[t].cells, x+r.NormFloat64()*noisy[t].sd)
			}
		}
		m, _ := l.drawable(more, known)
		to := m.figures(base.units)
		to.InputKS, to.OutputKS = distance(base.weights[ofInputFine], m.weights[ofInputFine]),
			distance(base.weights[ofOutputFine], m.weights[ofOutputFine])
		was := figuresOf(&from)
		for i, x := range figuresOf(&to) {
			d := *x.at - *was[i].at
			if i < 3 {
				d /= max(1, *was[i].at)
			}
			*figuresOf(&e)[i].at += d * d / predictions
		}
	}
	for _, x := range figuresOf(&e) {
		*x.at = math.Round(2000*math.Sqrt(*x.at)) / 1000 // two standard deviations
	}
	return e
}

// figures are totals of a drawing for as many sessions as another model has.
func (m *Model) figures(units int64) (f dp.SessionErrors) {
	p := m.draw(1, int(min(units, predictedSize)))
	var blocks, hits float64
	for i := range p.turns {
		t := &p.turns[i]
		f.Input, f.Output = f.Input+float64(t.input), f.Output+float64(t.output)
		if m.size == 0 {
			continue
		}
		n := (int(t.input) + m.size - 1) / m.size
		known := int(t.keep)
		if trunk := p.trunk[t.session]; trunk != none {
			known = max(known, m.trunks[trunk].depth)
		}
		blocks, hits = blocks+float64(n), hits+float64(min(n, known))
	}
	by := float64(m.units) / float64(len(p.trunk))
	f.Requests, f.Input, f.Output = by*float64(len(p.turns)), by*f.Input, by*f.Output
	f.Hit = hits / max(1, blocks)
	return f
}

// distance is the Kolmogorov-Smirnov distance of two tables.
func distance(a, b []int64) (most float64) {
	x, y := newDice(a), newDice(b)
	for i := range x {
		most = max(most, math.Abs(float64(x[i])/float64(max(1, x.total()))-float64(y[i])/float64(max(1, y.total()))))
	}
	return most
}
