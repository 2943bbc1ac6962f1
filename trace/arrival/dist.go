package arrival

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/trace/quantity"
)

// Bounds of exponents: below, a bounded Pareto is hardly more than uniform over
// the logarithm; a Zipf needs more than 1 for the standard library's generator.
const (
	minAlpha, minZipf, maxExponent = 0.05, 1.01, 20
	minSigma, maxSigma             = 0.01, 3 // of a lognormal; 3 is a CV of 90
)

// A DistSpec is a parsed distribution of durations. The zero DistSpec is
// always 0.
type DistSpec struct {
	kind         string
	lo, hi       time.Duration // lo is the mean where there is one
	cv, exponent float64
	rows         *empirical
}

// ParseDist reads one of
//
//	constant:D, or D       always D, which may be 0s
//	exponential:MEAN
//	lognormal:MEAN,CV      CV is the coefficient of variation
//	lognormal:MEAN,sigma=S S is the standard deviation of the logarithm
//	gamma:MEAN,CV
//	weibull:MEAN,CV        or shape=K, with K below 1 for a CV above 1
//	normal:MEAN,CV         truncated, as if draws below 0 were made again; so their mean is above MEAN
//	uniform:LO,HI          LO may be 0s
//	pareto:LO,HI,alpha=A   bounded: the density falls as x^(-A-1) from LO to HI
//	zipf:LO,HI,s=S         1, 2, 3... times LO up to HI, k times with a probability that falls as k^-S
//	histogram:LO-HI=COUNT,...  buckets in nanoseconds, as newHistogramDist takes them
//
// with durations as [quantity.Duration] reads them, and otherwise returns an error that
// shows the form of the kind, or three examples. A second or third field may bear its name, as in
// gamma:4s,cv=2. No draw is longer than a year.
func ParseDist(spec string) (DistSpec, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	if _, err := quantity.Duration(spec); err == nil {
		kind, rest = "constant", spec
	}
	if kind == "histogram" {
		if buckets, ok := parseBuckets(rest); ok {
			if s, err := newHistogramDist(buckets); err == nil {
				return s, nil
			}
		}
		return DistSpec{}, dists.refuse(spec)
	}
	s := DistSpec{kind: kind}
	a := parseArgs(rest)
	switch kind {
	case "constant":
		s.lo = a.duration("value", 0)
	case "exponential":
		s.lo = a.duration("mean", time.Microsecond)
	case "lognormal", "gamma", "weibull", "normal":
		s.lo = a.duration("mean", time.Microsecond)
		s.cv = a.spread(kind)
	case "uniform":
		s.lo = a.duration("lo", 0)
		s.hi = a.duration("hi", s.lo+time.Microsecond)
	case "pareto", "zipf":
		s.lo = a.duration("lo", time.Microsecond)
		s.hi = a.duration("hi", s.lo+time.Microsecond)
		s.exponent = a.exponent(kind)
	default:
		a.bad = true
	}
	if !a.done() {
		return DistSpec{}, dists.refuse(spec)
	}
	return s, nil
}

// spread takes the coefficient of variation, or what a kind has in its place.
func (a *args) spread(kind string) float64 {
	switch {
	case kind == "lognormal" && a.has("sigma"):
		sigma := a.number("sigma", minSigma, maxSigma) // of the logarithm
		return math.Sqrt(math.Expm1(sigma * sigma))
	case kind == "weibull" && a.has("shape"):
		return weibullCV(a.number("shape", minShape, maxShape))
	}
	return a.number("cv", minCV, maxCV)
}

func (a *args) exponent(kind string) float64 {
	if kind == "zipf" {
		return a.number("s", minZipf, maxExponent)
	}
	return a.number("alpha", minAlpha, maxExponent)
}

// newHistogramDist is the distribution of a histogram of nanoseconds: a bucket by
// its count, and in it every value alike, cut to whole microseconds. It wants
// ascending buckets that do not overlap, up to a year.
func newHistogramDist(buckets []bucket) (DistSpec, error) {
	rows, err := newEmpirical(buckets, int64(maxDraw))
	return DistSpec{kind: "histogram", rows: rows}, err
}

// String returns the form that ParseDist reads.
func (s DistSpec) String() string {
	switch s.kind {
	case "":
		return ""
	case "lognormal", "gamma", "weibull", "normal":
		return s.kind + ":" + s.lo.String() + "," + number(s.cv)
	case "uniform":
		return s.kind + ":" + s.lo.String() + "," + s.hi.String()
	case "pareto":
		return s.kind + ":" + s.lo.String() + "," + s.hi.String() + ",alpha=" + number(s.exponent)
	case "zipf":
		return s.kind + ":" + s.lo.String() + "," + s.hi.String() + ",s=" + number(s.exponent)
	case "histogram":
		return s.kind + ":" + s.rows.String()
	}
	return s.kind + ":" + s.lo.String()
}

// New begins draws of the distribution on r.
func (s DistSpec) New(r *rand.Rand) Dist {
	us := func(d time.Duration) float64 { return float64(d / time.Microsecond) }
	switch s.kind {
	case "", "constant":
		return fixed(s.lo)
	case "histogram":
		return histogramDist{s.rows, r}
	case "zipf":
		return zipfDist{s.lo, rand.NewZipf(r, s.exponent, 1, uint64(s.hi/s.lo-1))}
	case "uniform", "pareto":
		return draws{family{kind: s.kind, lo: us(s.lo), hi: us(s.hi), exponent: s.exponent}.on(r)}
	}
	return draws{family{kind: s.kind, mean: us(s.lo), cv: s.cv, hi: us(maxDraw)}.on(r)}
}

// draws rounds the draws of a distribution over microseconds.
type draws struct{ distuv.Rander }

// Draw implements [Dist].
func (d draws) Draw() time.Duration {
	us := min(math.Round(d.Rand()), float64(maxDraw/time.Microsecond))
	return time.Duration(us) * time.Microsecond
}

// Next implements [Process].
func (d draws) Next() time.Duration { return d.Draw() }

// fixed is one duration for ever.
type fixed time.Duration

// Draw implements [Dist].
func (f fixed) Draw() time.Duration { return time.Duration(f) }

// Next implements [Process].
func (f fixed) Next() time.Duration { return time.Duration(f) }

type histogramDist struct {
	*empirical
	r *rand.Rand
}

// Draw implements [Dist].
func (d histogramDist) Draw() time.Duration {
	return time.Duration(d.within(d.r)).Truncate(time.Microsecond)
}

type zipfDist struct {
	unit time.Duration
	*rand.Zipf
}

// Draw implements [Dist].
func (d zipfDist) Draw() time.Duration { return d.unit * time.Duration(1+d.Uint64()) }

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
