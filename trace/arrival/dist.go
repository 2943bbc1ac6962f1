package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	maxMean = 30 * 24 * time.Hour  // longest duration that may be asked for
	maxDraw = 365 * 24 * time.Hour // longest that is ever drawn, so that sums of a few stay within a time.Duration
)

const distForms = "constant:3s, exponential:MEAN, lognormal:MEAN,CV, gamma:MEAN,CV or uniform:LO,HI, with durations such as 250ms or 4s in whole microseconds up to 720h and CV from 0.01 to 100"

// A DistSpec is a parsed distribution of durations. The zero DistSpec is
// always 0.
type DistSpec struct {
	kind   string
	lo, hi time.Duration // lo is the mean where there is one
	cv     float64
}

// ParseDist reads one of
//
//	constant:D            always D, which may be 0s
//	exponential:MEAN
//	lognormal:MEAN,CV     CV is the coefficient of variation
//	gamma:MEAN,CV
//	uniform:LO,HI         LO may be 0s
//
// with durations as time.ParseDuration reads them, and otherwise returns an
// error that lists these forms. No draw is longer than a year.
func ParseDist(spec string) (DistSpec, error) {
	kind, args, _ := strings.Cut(spec, ":")
	s := DistSpec{kind: kind}
	first, second, hasSecond := strings.Cut(args, ",")
	ok := parseDuration(first, &s.lo)
	switch kind {
	case "constant":
		ok = ok && !hasSecond
	case "exponential":
		ok = ok && !hasSecond && s.lo > 0
	case "lognormal", "gamma":
		ok = ok && s.lo > 0 && parseWithin(second, minCV, maxCV, &s.cv)
	case "uniform":
		ok = ok && parseDuration(second, &s.hi) && s.lo < s.hi
	default:
		ok = false
	}
	if !ok {
		return DistSpec{}, fmt.Errorf("distribution %q: want %s", spec, distForms)
	}
	return s, nil
}

func parseDuration(s string, d *time.Duration) bool {
	var err error
	*d, err = time.ParseDuration(s)
	return err == nil && *d >= 0 && *d <= maxMean && *d%time.Microsecond == 0
}

// String returns the form that ParseDist reads.
func (s DistSpec) String() string {
	switch s.kind {
	case "":
		return ""
	case "lognormal", "gamma":
		return s.kind + ":" + s.lo.String() + "," + number(s.cv)
	case "uniform":
		return s.kind + ":" + s.lo.String() + "," + s.hi.String()
	}
	return s.kind + ":" + s.lo.String()
}

// New begins draws of the distribution on r.
func (s DistSpec) New(r *rand.Rand) Dist {
	mean := float64(s.lo / time.Microsecond)
	switch s.kind {
	case "exponential":
		return draws{distuv.Exponential{Rate: 1 / mean, Src: r}}
	case "lognormal":
		variance := math.Log1p(s.cv * s.cv)
		return draws{distuv.LogNormal{Mu: math.Log(mean) - variance/2, Sigma: math.Sqrt(variance), Src: r}}
	case "gamma":
		return draws{gammaOf(mean, s.cv, r)}
	case "uniform":
		return draws{distuv.Uniform{Min: mean, Max: float64(s.hi / time.Microsecond), Src: r}}
	}
	return fixed(s.lo)
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
