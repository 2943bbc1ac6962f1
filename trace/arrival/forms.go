package arrival

import (
	"fmt"
	"strings"

	"reprise/trace/quantity"
)

// A syntax is what a specification may be: the forms by their kind, what their letters
// mean, and three examples.
type syntax struct {
	want     string // such as "an arrival process"
	examples [3]string
	forms    []string // KIND:FIELDS, separated by " or " where a kind has several
	letters  string
	also     string // for the list
}

// refuse is the error of a specification that was not understood. It shows the form of
// its kind, or good examples where it has no kind that there is.
func (s *syntax) refuse(spec string) error {
	kind, _, _ := strings.Cut(spec, ":")
	for _, form := range s.forms {
		if of, _, _ := strings.Cut(form, ":"); of == kind {
			return fmt.Errorf("%s is not %s: write %s, with %s", quantity.Quote(spec), s.want, form, s.letters)
		}
	}
	return &quantity.Error{Text: spec, Want: s.want, Examples: s.examples}
}

// list is all forms, for help.
func (s *syntax) list() string { return strings.Join(s.forms, ", ") + ", with " + s.letters + s.also }

// ProcessForms lists what [ParseProcess] reads, for help.
func ProcessForms() string { return "RATE, which is poisson:RATE, " + processes.list() }

// DistForms lists what [ParseDist] reads, for help.
func DistForms() string { return "D, which is constant:D, " + dists.list() }

var processes = syntax{
	want:     "an arrival process",
	examples: [3]string{"5", "300/min", "gamma:5,cv=2"},
	forms: []string{"poisson:RATE", "gamma:RATE,cv=CV or gamma:RATE,burstiness=B",
		"weibull:RATE,cv=CV or weibull:RATE,shape=K", "constant:RATE",
		"ramp:R0-R1,60s", "step:R0-R1-...,60s", "diurnal:LOW,peak=HIGH,period=24h",
		"spikes:RATE,to=HIGH,every=5m,for=10s",
		"onoff:RATE,on=5s,off=20s or onoff:RATE,on=5s,off=20s,idle=RATE"},
	letters: "RATE from 1e-6 to 100000 per second or as 300/min, and CV from 0.01 to 100",
	also:    "; ramp, step, diurnal, spikes and onoff also take cv=CV, burstiness=B or gaps=weibull,cv=CV",
}

var dists = syntax{
	want:     "a distribution of times",
	examples: [3]string{"4s", "exponential:4s", "lognormal:4s,cv=1.5"},
	forms: []string{"constant:3s", "exponential:MEAN", "lognormal:MEAN,cv=CV or lognormal:MEAN,sigma=S",
		"gamma:MEAN,cv=CV", "weibull:MEAN,cv=CV or weibull:MEAN,shape=K",
		"normal:MEAN,cv=CV", "uniform:LO,HI", "pareto:LO,HI,alpha=A", "zipf:LO,HI,s=S", "histogram:LO-HI=COUNT,..."},
	letters: "times such as 250ms or 4s in whole microseconds up to 720h (nanoseconds without a unit in a " +
		"histogram), CV from 0.01 to 100, S of a lognormal to 3, A from 0.05 to 20 and s from 1.01 to 20",
}

var lengths = syntax{
	want:     "a length in tokens",
	examples: [3]string{"500", "uniform:50..4000", "lognormal:500,0.8"},
	forms: []string{"constant:N", "uniform:LO..HI", "exponential:MEAN",
		"lognormal:MEAN,sigma=S or lognormal:MEAN,cv=CV", "gamma:MEAN,cv=CV", "weibull:MEAN,cv=CV",
		"normal:MEAN,sd=D or normal:MEAN,cv=CV", "pareto:LO..HI,alpha=A", "zipf:LO..HI,s=S",
		"histogram:LO-HI=COUNT,..."},
	letters: "lengths up to 16777216 tokens (,LO..HI behind a mean clips them), CV from 0.01 to 100, S of a " +
		"lognormal from 0.01 to 3, A from 0.05 to 20 and s from 1.01 to 20",
}
