package arrival

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// A family names a continuous distribution in some unit. Where gonum has it, it
// is gonum's.
type family struct {
	kind     string
	mean, cv float64 // of those that have a mean
	lo, hi   float64 // of uniform, pareto and normal
	exponent float64 // of pareto
}

func (f family) on(r *rand.Rand) distuv.Rander {
	switch f.kind {
	case "exponential":
		return distuv.Exponential{Rate: 1 / f.mean, Src: r}
	case "lognormal":
		variance := math.Log1p(f.cv * f.cv)
		return distuv.LogNormal{Mu: math.Log(f.mean) - variance/2, Sigma: math.Sqrt(variance), Src: r}
	case "gamma":
		shape := 1 / (f.cv * f.cv)
		return distuv.Gamma{Alpha: shape, Beta: shape / f.mean, Src: r}
	case "weibull":
		k := weibullShape(f.cv)
		return distuv.Weibull{K: k, Lambda: f.mean / math.Gamma(1+1/k), Src: r}
	case "uniform":
		return distuv.Uniform{Min: f.lo, Max: f.hi, Src: r}
	case "pareto":
		return paretoWithin{f, r}
	case "normal":
		n := distuv.Normal{Mu: f.mean, Sigma: f.cv * f.mean}
		return normalWithin{n, n.CDF(f.lo), n.CDF(f.hi), r}
	}
	return nil
}

// sigmaCV is the coefficient of variation of a lognormal whose logarithm has
// the standard deviation sigma.
func sigmaCV(sigma float64) float64 { return math.Sqrt(math.Expm1(sigma * sigma)) }

// weibullCV is the coefficient of variation of a Weibull of a shape.
func weibullCV(shape float64) float64 {
	first, _ := math.Lgamma(1 + 1/shape)
	second, _ := math.Lgamma(1 + 2/shape)
	return math.Sqrt(math.Expm1(second - 2*first))
}

// weibullShape inverts weibullCV, which falls, by bisection.
func weibullShape(cv float64) float64 {
	lo, hi := math.Log(minShape/2), math.Log(maxShape*2)
	for range 60 {
		if mid := (lo + hi) / 2; weibullCV(math.Exp(mid)) > cv {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp((lo + hi) / 2)
}

// paretoWithin draws from the bounded Pareto distribution, with density
// proportional to x^(-exponent-1) from lo to hi, by its inverse.
type paretoWithin struct {
	family
	r *rand.Rand
}

// Rand implements [distuv.Rander].
func (p paretoWithin) Rand() float64 {
	tail := math.Pow(p.lo/p.hi, p.exponent)
	x := p.lo * math.Pow(1-p.r.Float64()*(1-tail), -1/p.exponent)
	return min(max(x, p.lo), p.hi)
}

// normalWithin draws from a normal distribution between two of its quantiles.
type normalWithin struct {
	distuv.Normal
	from, to float64
	r        *rand.Rand
}

// Rand implements [distuv.Rander].
func (n normalWithin) Rand() float64 {
	return n.Quantile(n.from + n.r.Float64()*(n.to-n.from))
}
