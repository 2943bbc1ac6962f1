package arrival

import (
	"strconv"
	"strings"
	"time"

	"reprise/trace/quantity"
)

// An args holds the fields of a specification after its colon. They are separated
// by commas; some have a name and =. A field without a name is the next that is
// taken. A field of the form LO..HI holds the bounds, at any position.
type args struct {
	unnamed []string
	named   map[string]string
	bounds  string
	bad     bool
}

func parseArgs(s string) *args {
	a := &args{named: make(map[string]string)}
	for field := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(field, "=")
		switch {
		case ok && a.has(name), !ok && strings.Contains(field, "..") && a.bounds != "":
			a.bad = true
		case ok:
			a.named[name] = value
		case strings.Contains(field, ".."):
			a.bounds = field
		default:
			a.unnamed = append(a.unnamed, field)
		}
	}
	return a
}

// has reports whether a field of this name was given.
func (a *args) has(name string) bool {
	_, ok := a.named[name]
	return ok
}

// take removes the field of a name, or the first without one.
func (a *args) take(name string) string {
	value, ok := a.named[name]
	delete(a.named, name)
	if !ok && len(a.unnamed) > 0 {
		value, a.unnamed = a.unnamed[0], a.unnamed[1:]
	}
	return value
}

// done reports whether all fields were valid and none is left.
func (a *args) done() bool {
	return !a.bad && len(a.unnamed) == 0 && len(a.named) == 0 && a.bounds == ""
}

// rate takes a rate per second from lo up to maxRate.
func (a *args) rate(name string, lo float64) float64 {
	return a.parseRate(a.take(name), lo)
}

func (a *args) parseRate(s string, lo float64) float64 {
	v, err := quantity.Rate(s)
	a.bad = a.bad || err != nil || !(v >= lo && v <= maxRate)
	return v
}

// number takes a number from lo to hi.
func (a *args) number(name string, lo, hi float64) float64 {
	v, err := quantity.Number(a.take(name))
	a.bad = a.bad || err != nil || !(v >= lo && v <= hi)
	return v
}

// duration takes whole microseconds from lo up to maxMean.
func (a *args) duration(name string, lo time.Duration) time.Duration {
	d, err := quantity.Duration(a.take(name))
	a.bad = a.bad || err != nil || d < lo || d > maxMean || d%time.Microsecond != 0
	return d
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Bounds of what may be asked for. Above a hundred thousand arrivals a second
// the rounding to microseconds would show in the rate.
const (
	minRate, maxRate   = 1e-6, 1e5 // per second
	minCV, maxCV       = 0.01, 100
	minShape, maxShape = 0.15, 100 // of a Weibull, whose CV is then 46 to 0.013
	minPhase           = time.Millisecond
	maxSteps           = 16
	minPerPhase        = 0.1 // arrivals in an ON of onoff, so that none waits for millions of phases
)

const (
	maxMean = 30 * 24 * time.Hour  // longest duration that may be asked for
	maxDraw = 365 * 24 * time.Hour // longest that is ever drawn, so that sums of a few stay within a time.Duration
)
