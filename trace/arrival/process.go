package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Bounds of what may be asked for. Above a hundred thousand arrivals a second
// the rounding to microseconds would show in the rate.
const (
	minRate, maxRate = 1e-6, 1e5 // per second
	minCV, maxCV     = 0.01, 100
)

const processForms = "poisson:RATE, gamma:RATE,CV or constant:RATE, with RATE per second from 1e-6 to 100000 and CV from 0.01 to 100"

// A ProcessSpec is a parsed arrival process. Rates are arrivals per second. The
// zero ProcessSpec lets everything arrive at once.
type ProcessSpec struct {
	kind     string
	rate, cv float64
}

// ParseProcess reads one of
//
//	poisson:RATE    gaps are exponential
//	gamma:RATE,CV   gaps are gamma, with their coefficient of variation: above 1 is burstier than Poisson
//	constant:RATE   gaps are equal
//
// and otherwise returns an error that lists these forms.
func ParseProcess(spec string) (ProcessSpec, error) {
	kind, args, _ := strings.Cut(spec, ":")
	s := ProcessSpec{kind: kind}
	rate, cv, hasCV := strings.Cut(args, ",")
	ok := parseWithin(rate, minRate, maxRate, &s.rate)
	switch kind {
	case "poisson", "constant":
		ok = ok && !hasCV
	case "gamma":
		ok = ok && parseWithin(cv, minCV, maxCV, &s.cv)
	default:
		ok = false
	}
	if !ok {
		return ProcessSpec{}, fmt.Errorf("arrival process %q: want %s", spec, processForms)
	}
	return s, nil
}

// parseWithin reads a number from lo to hi; NaN lies nowhere.
func parseWithin(s string, lo, hi float64, v *float64) bool {
	var err error
	*v, err = strconv.ParseFloat(s, 64)
	return err == nil && *v >= lo && *v <= hi
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// String returns the form that ParseProcess reads.
func (s ProcessSpec) String() string {
	switch s.kind {
	case "":
		return ""
	case "gamma":
		return s.kind + ":" + number(s.rate) + "," + number(s.cv)
	}
	return s.kind + ":" + number(s.rate)
}

// New begins the process on r.
func (s ProcessSpec) New(r *rand.Rand) Process {
	switch s.kind {
	case "poisson":
		return draws{distuv.Exponential{Rate: s.rate / 1e6, Src: r}}
	case "gamma":
		return draws{gammaOf(1e6/s.rate, s.cv, r)}
	case "constant":
		return &constantProcess{rate: s.rate}
	}
	return fixed(0)
}

// gammaOf is the gamma distribution of a mean and a coefficient of variation.
func gammaOf(mean, cv float64, r *rand.Rand) distuv.Gamma {
	shape := 1 / (cv * cv)
	return distuv.Gamma{Alpha: shape, Beta: shape / mean, Src: r}
}

// A constantProcess rounds each arrival rather than each gap, so that the
// errors do not add up and the rate is exact in the long run.
type constantProcess struct {
	rate float64
	n    float64 // arrivals so far
	last time.Duration
}

// Next implements [Process].
func (p *constantProcess) Next() time.Duration {
	p.n++
	at := time.Duration(math.Round(p.n*1e6/p.rate)) * time.Microsecond
	gap := at - p.last
	p.last = at
	return gap
}
