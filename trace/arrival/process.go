package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"reprise/trace/quantity"
)

// A ProcessSpec is a parsed arrival process. Rates are arrivals per second. The
// zero ProcessSpec lets everything arrive at once.
type ProcessSpec struct {
	kind          string
	rate, cv      float64 // cv is 0 for exponential gaps where there is a choice
	gaps          string  // gamma or weibull where rates change and gaps are not exponential
	rates         [maxSteps]float64
	steps         int // how many of the rates
	first, second time.Duration
}

// ParseProcess reads one of
//
//	poisson:RATE, or RATE gaps are exponential
//	gamma:RATE,CV         gaps are gamma, with their coefficient of variation: above 1 is burstier than Poisson
//	weibull:RATE,CV       gaps are Weibull
//	constant:RATE         gaps are equal
//
// whose rate stays the same, one of
//
//	ramp:R0-R1,D          from R0 to R1 in a straight line over D, then R1
//	step:R0-R1-...,D      each rate for D, the last for ever
//	diurnal:LOW,HIGH,T    a cosine wave of period T that starts at its LOW, in 256 straight lines
//	spikes:RATE,HIGH,EVERY,FOR  RATE, but HIGH in the last FOR of each EVERY
//
// whose rate changes with time, or
//
//	onoff:RATE,ON,OFF     RATE in phases of mean length ON, which alternate with phases of mean length OFF without arrivals
//
// whose phases are exponential, the first an ON: an interrupted Poisson
// process, or with idle=R one of two rates. Otherwise it returns an error that shows
// the form of the kind, or three examples. A rate is per second, or such as 300/min. Every field but the first may bear
// its name: cv, over (of ramp), each (of step), peak, period, to, every, for, on and off. Rates but the last of ramp
// and step, the lower of diurnal and of spikes may be 0.
//
// In place of a gamma's CV there may be burstiness=B, its shape, as in vLLM's
// benchmark: CV is 1/√B, 1 is Poisson, and less is burstier. A Weibull may have
// shape=K.
//
// The rate that changes is exact: a process of unit rate runs on a clock that
// advances by the integral of the rate. Its gaps are exponential, which gives a
// Poisson process, or with cv=CV or burstiness=B gamma, and with gaps=weibull
// too Weibull: ramp:1-10,60s,cv=3 is a ramp with bursts.
func ParseProcess(spec string) (ProcessSpec, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	if _, err := quantity.Rate(spec); err == nil {
		kind, rest = "poisson", spec
	}
	s := ProcessSpec{kind: kind}
	a := parseArgs(rest)
	switch kind {
	case "poisson", "constant":
		s.rate = a.rate("rate", minRate)
	case "gamma", "weibull":
		s.rate = a.rate("rate", minRate)
		s.cv = a.burstiness(kind)
	default:
		s.parseChanging(a)
	}
	if !a.done() {
		return ProcessSpec{}, processes.refuse(spec)
	}
	return s, nil
}

// Rate is how many arrivals there are per second, where that stays the same; else 0.
func (s ProcessSpec) Rate() float64 { return s.rate * float64(min(1, max(0, 1-s.steps))) }

// parseChanging reads the forms whose rate changes.
func (s *ProcessSpec) parseChanging(a *args) {
	switch s.kind {
	case "ramp":
		s.parseRates(a)
		a.bad = a.bad || s.steps != 2
		s.first = a.duration("over", minPhase)
	case "step":
		s.parseRates(a)
		s.first = a.duration("each", minPhase)
	case "diurnal":
		s.rates[0] = a.rate("low", 0)
		s.rates[1] = a.rate("peak", max(minRate, s.rates[0]))
		s.first = a.duration("period", minPhase)
	case "spikes":
		s.rates[0] = a.rate("rate", 0)
		s.rates[1] = a.rate("to", minRate)
		s.first = a.duration("every", 2*minPhase)
		s.second = a.duration("for", minPhase)
		a.bad = a.bad || s.second >= s.first
	case "onoff":
		s.rates[0] = a.rate("rate", minRate)
		s.first, s.second = a.duration("on", minPhase), a.duration("off", minPhase)
		if a.has("idle") {
			s.rates[1] = a.rate("idle", 0)
		}
		a.bad = a.bad || s.rates[0]*s.first.Seconds() < minPerPhase
	default:
		a.bad = true
	}
	switch {
	case a.has("gaps"):
		s.gaps = a.take("gaps")
		a.bad = a.bad || s.gaps != "gamma" && s.gaps != "weibull"
		s.cv = a.burstiness(s.gaps)
	case a.has("cv") || a.has("burstiness"):
		s.gaps = "gamma"
		s.cv = a.burstiness(s.gaps)
	}
}

// parseRates takes rates between dashes. The dash of an exponent, as in 1e-5, is
// none of them.
func (s *ProcessSpec) parseRates(a *args) {
	list, lo := a.take("rates"), 0.
	for {
		i := 0
		for i < len(list) && (list[i] != '-' || i > 0 && strings.ContainsRune("eEpP", rune(list[i-1]))) {
			i++
		}
		if i == len(list) {
			lo = minRate // the last goes on for ever
		}
		if s.steps == maxSteps {
			a.bad = true
			return
		}
		s.rates[s.steps] = a.parseRate(list[:i], lo)
		s.steps++
		if i == len(list) {
			a.bad = a.bad || s.steps < 2
			return
		}
		list = list[i+1:]
	}
}

// burstiness takes the coefficient of variation of gaps, or what a kind has in
// its place.
func (a *args) burstiness(kind string) float64 {
	if kind == "gamma" && a.has("burstiness") {
		shape := a.number("burstiness", 1/float64(maxCV*maxCV), 1/(minCV*minCV))
		return min(max(1/math.Sqrt(shape), minCV), maxCV)
	}
	return a.spread(kind)
}

// String returns the form that ParseProcess reads.
func (s ProcessSpec) String() string {
	var tail string
	switch s.kind {
	case "":
		return ""
	case "gamma":
		return s.kind + ":" + number(s.rate) + "," + number(s.cv)
	case "weibull":
		return s.kind + ":" + number(s.rate) + ",cv=" + number(s.cv)
	case "poisson", "constant":
		return s.kind + ":" + number(s.rate)
	case "ramp", "step":
		rates := make([]string, s.steps)
		for i := range rates {
			rates[i] = number(s.rates[i])
		}
		tail = strings.Join(rates, "-") + "," + s.first.String()
	case "diurnal":
		tail = fmt.Sprintf("%s,peak=%s,period=%v", number(s.rates[0]), number(s.rates[1]), s.first)
	case "spikes":
		tail = fmt.Sprintf("%s,to=%s,every=%v,for=%v", number(s.rates[0]), number(s.rates[1]), s.first, s.second)
	case "onoff":
		tail = fmt.Sprintf("%s,on=%v,off=%v", number(s.rates[0]), s.first, s.second)
		if s.rates[1] > 0 {
			tail += ",idle=" + number(s.rates[1])
		}
	}
	switch s.gaps {
	case "gamma":
		tail += ",cv=" + number(s.cv)
	case "weibull":
		tail += ",gaps=weibull,cv=" + number(s.cv)
	}
	return s.kind + ":" + tail
}

// From0 begins the process on r at the instant 0: equal gaps have their first arrival there, so that a span of a
// multiple of them has as many arrivals as the rate says. [ProcessSpec.New] begins after an arrival.
func (s ProcessSpec) From0(r *rand.Rand) Process {
	if s.kind == "constant" {
		return &constantProcess{rate: s.rate, n: -1}
	}
	return s.New(r)
}

// New begins the process on r.
func (s ProcessSpec) New(r *rand.Rand) Process {
	switch s.kind {
	case "":
		return fixed(0)
	case "poisson":
		return draws{family{kind: "exponential", mean: 1e6 / s.rate}.on(r)}
	case "gamma", "weibull":
		return draws{family{kind: s.kind, mean: 1e6 / s.rate, cv: s.cv}.on(r)}
	case "constant":
		return &constantProcess{rate: s.rate}
	}
	unit := family{kind: "exponential", mean: 1}
	if s.gaps != "" {
		unit = family{kind: s.gaps, mean: 1, cv: s.cv}
	}
	return &changingProcess{unit: unit.on(r), clock: s.clock(r)}
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

// clock returns the clock of the forms whose rate changes.
func (s ProcessSpec) clock(r *rand.Rand) clock {
	rate := func(i int) float64 { return s.rates[i] / 1e9 }
	switch s.kind {
	case "diurnal":
		return wave(rate(0), rate(1), s.first)
	case "onoff":
		return &phases{rates: [2]float64{rate(0), rate(1)}, means: [2]time.Duration{s.first, s.second}, now: 1, r: r}
	case "spikes":
		return periodic([]piece{{s.first - s.second, rate(0), rate(0)}, {s.second, rate(1), rate(1)}})
	case "ramp":
		return &pieces{list: []piece{{s.first, rate(0), rate(1)}, {forEver, rate(1), rate(1)}}}
	}
	steps := new(pieces)
	for i := range s.steps {
		steps.list = append(steps.list, piece{s.first, rate(i), rate(i)})
	}
	steps.list[s.steps-1].length = forEver
	return steps
}
