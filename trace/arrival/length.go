package arrival

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/trace/quantity"
)

// maxLength is the longest length in tokens.
const maxLength = 1 << 24

// A Length yields independent lengths in tokens.
type Length interface {
	// Draw returns a length of at least 0.
	Draw() int32
}

// A LengthSpec is a parsed distribution of lengths in tokens. The zero
// LengthSpec is always 0.
type LengthSpec struct {
	kind               string
	mean, cv, exponent float64
	lo, hi             int32 // both included
	rows               *empirical
}

// ParseLength reads one of
//
//	constant:N, or N
//	uniform:LO..HI            every whole number from LO to HI alike; or LO-HI
//	exponential:MEAN
//	lognormal:MEAN,sigma=S    S is the standard deviation of the logarithm
//	lognormal:MEAN,CV         CV is the coefficient of variation
//	gamma:MEAN,CV
//	weibull:MEAN,CV           or shape=K
//	normal:MEAN,CV            or sd=D, the standard deviation in tokens; truncated
//	MEAN±D                    normal:MEAN,sd=D
//	pareto:LO..HI,alpha=A     the density falls as x^(-A-1)
//	zipf:LO..HI,s=S           LO-1+k for k from 1, with a probability that falls as k^-S
//	histogram:LO-HI=COUNT,... as newHistogramLength takes it; HI may be left out
//
// and otherwise returns an error that shows the form of the kind, or three examples. Those with a mean may
// end in ,LO..HI, which is 1..16777216 where it is not said.
//
// MEAN and CV are those of the distribution before it is rounded to whole tokens
// and clipped: what falls outside is set to the bound, and MEAN is not corrected
// for that. So lognormal:500,sigma=0.8,50..4000 has a median of 500·exp(-0.32),
// which is 363, puts 0.7 % of its draws on 50 and 0.1 % on 4000, and its draws
// have a mean of 498.5. A normal is truncated instead of clipped: it has the
// shape of draws that are made again until they fall within the bounds. Its MEAN
// must lie within them, and is not that of its draws where a bound is near.
func ParseLength(spec string) (LengthSpec, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	if _, err := quantity.Count(spec); err == nil {
		kind, rest = "constant", spec
	}
	if mean, sd, ok := strings.Cut(spec, "±"); ok {
		kind, rest = "normal", mean+",sd="+sd
	}
	if kind == "uniform" && !strings.Contains(rest, "..") {
		rest = strings.Replace(rest, "-", "..", 1)
	}
	if kind == "histogram" {
		if buckets, ok := parseBuckets(rest); ok {
			if s, err := newHistogramLength(buckets); err == nil {
				return s, nil
			}
		}
		return LengthSpec{}, lengths.refuse(spec)
	}
	s := LengthSpec{kind: kind}
	a := parseArgs(rest)
	switch kind {
	case "constant":
		s.lo = a.integer(a.take("value"))
		s.hi = s.lo
	case "uniform", "pareto", "zipf":
		a.bad = a.bad || a.bounds == ""
		s.lo, s.hi = a.limits(0, 0)
		if kind != "uniform" {
			s.exponent = a.exponent(kind)
			a.bad = a.bad || s.lo == 0
		}
	case "exponential", "lognormal", "gamma", "weibull", "normal":
		s.mean = a.number("mean", 1, maxLength)
		if kind == "normal" && a.has("sd") {
			s.cv = min(max(a.number("sd", minCV*s.mean, maxCV*s.mean)/s.mean, minCV), maxCV)
		} else if kind != "exponential" {
			s.cv = a.spread(kind)
		}
		s.lo, s.hi = a.limits(1, maxLength)
		a.bad = a.bad || kind == "normal" && (s.mean < float64(s.lo) || s.mean > float64(s.hi))
	default:
		a.bad = true
	}
	if !a.done() || s.lo > s.hi {
		return LengthSpec{}, lengths.refuse(spec)
	}
	return s, nil
}

// limits takes the bounds, or returns these.
func (a *args) limits(lo, hi int32) (int32, int32) {
	if a.bounds == "" {
		return lo, hi
	}
	first, second, _ := strings.Cut(a.bounds, "..")
	a.bounds = ""
	return a.integer(first), a.integer(second)
}

func (a *args) integer(s string) int32 {
	v, err := quantity.Count(s)
	a.bad = a.bad || err != nil || v > maxLength
	return int32(v)
}

// newHistogramLength is the distribution of a histogram of tokens: a bucket by its
// count, and in it every length alike. It wants ascending buckets that do not
// overlap, up to 16,777,216 tokens.
func newHistogramLength(buckets []bucket) (LengthSpec, error) {
	rows, err := newEmpirical(buckets, maxLength)
	return LengthSpec{kind: "histogram", rows: rows}, err
}

// String returns the form that ParseLength reads.
func (s LengthSpec) String() string {
	bounds := strconv.Itoa(int(s.lo)) + ".." + strconv.Itoa(int(s.hi))
	switch s.kind {
	case "":
		return ""
	case "constant":
		return "constant:" + strconv.Itoa(int(s.lo))
	case "uniform":
		return s.kind + ":" + bounds
	case "pareto":
		return s.kind + ":" + bounds + ",alpha=" + number(s.exponent)
	case "zipf":
		return s.kind + ":" + bounds + ",s=" + number(s.exponent)
	case "histogram":
		return s.kind + ":" + s.rows.String()
	case "exponential":
		return s.kind + ":" + number(s.mean) + "," + bounds
	}
	return s.kind + ":" + number(s.mean) + ",cv=" + number(s.cv) + "," + bounds
}

// New begins draws of the distribution on r.
func (s LengthSpec) New(r *rand.Rand) Length {
	switch s.kind {
	case "", "constant":
		return sameLength(s.lo)
	case "uniform":
		return uniformLength{s.lo, s.hi, r}
	case "zipf":
		return zipfLength{s.lo, rand.NewZipf(r, s.exponent, 1, uint64(s.hi-s.lo))}
	case "histogram":
		return histogramLength{s.rows, r}
	}
	f := family{kind: s.kind, mean: s.mean, cv: s.cv, exponent: s.exponent, lo: float64(s.lo), hi: float64(s.hi)}
	return clipped{f.on(r), f.lo, f.hi}
}

// clipped rounds the draws of a distribution over tokens.
type clipped struct {
	distuv.Rander
	lo, hi float64
}

// Draw implements [Length].
func (c clipped) Draw() int32 { return int32(min(max(math.Round(c.Rand()), c.lo), c.hi)) }

type sameLength int32

// Draw implements [Length].
func (n sameLength) Draw() int32 { return int32(n) }

type uniformLength struct {
	lo, hi int32
	r      *rand.Rand
}

// Draw implements [Length].
func (u uniformLength) Draw() int32 { return u.lo + u.r.Int32N(u.hi-u.lo+1) }

type zipfLength struct {
	lo int32
	*rand.Zipf
}

// Draw implements [Length].
func (z zipfLength) Draw() int32 { return z.lo + int32(z.Uint64()) }

type histogramLength struct {
	*empirical
	r *rand.Rand
}

// Draw implements [Length].
func (h histogramLength) Draw() int32 { return int32(h.within(h.r)) }
