package flags

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"reprise/trace/arrival"
	"reprise/trace/quantity"
)

// Arrivals as vLLM knows them, beside the processes of package arrival: all at
// once, and a rate that grows with the number of the request.
const (
	allAtOnce  = "inf"
	rampUpKind = "ramp-up"
)

// A rampUp is vLLM's: request i of n comes at a rate between start and end by
// its share i/(n−1), linearly or exponentially. By time, a linear one grows
// exponentially; the process ramp:R0-R1,D grows linearly in time.
type rampUp struct {
	Strategy   string
	Start, End float64
	Burstiness float64 // shape of the gamma distribution of gaps
}

// String is the ramp-up as --rate has it.
func (r rampUp) String() string {
	return fmt.Sprintf("%s:%s,%g-%g,burstiness=%g", rampUpKind, r.Strategy, r.Start, r.End, r.Burstiness)
}

var errRampUp = errors.New("want ramp-up:linear,START-END or ramp-up:exponential,START-END with rates above zero " +
	"that grow, with or without burstiness=B")

// parseRampUp reads a ramp-up as --rate has it.
func parseRampUp(s string) (rampUp, error) {
	_, rest, _ := strings.Cut(s, ":")
	fields := strings.Split(rest, ",")
	r := rampUp{Burstiness: 1}
	if len(fields) < 2 || len(fields) > 3 || fields[0] != "linear" && fields[0] != "exponential" {
		return r, errRampUp
	}
	r.Strategy = fields[0]
	from, to, _ := strings.Cut(fields[1], "-")
	var err, err2, err3 error
	r.Start, err = quantity.Rate(from)
	r.End, err2 = quantity.Rate(to)
	if len(fields) == 3 {
		value, ok := strings.CutPrefix(fields[2], "burstiness=")
		if !ok {
			return r, errRampUp
		}
		r.Burstiness, err3 = quantity.Number(value)
	}
	if err != nil || err2 != nil || err3 != nil ||
		!(r.Start > 0 && r.Start <= r.End && r.End <= 1e5 && r.Burstiness > 0) {
		return r, errRampUp
	}
	return r, nil
}

// process draws gaps of mean 1 and divides them by the rate.
func (r rampUp) process(rng *rand.Rand, requests int64) (arrival.Process, error) {
	unit, err := arrival.ParseProcess(fmt.Sprintf("gamma:1,burstiness=%g", r.Burstiness))
	if err != nil {
		return nil, err
	}
	return &rampUpProcess{rampUp: r, unit: unit.New(rng), requests: requests}, nil
}

type rampUpProcess struct {
	rampUp
	unit        arrival.Process
	i, requests int64
}

// Next returns the gap to the next request; beyond the last the rate stays.
func (p *rampUpProcess) Next() time.Duration {
	share := min(float64(p.i)/float64(max(p.requests-1, 1)), 1)
	p.i++
	rate := p.Start + (p.End-p.Start)*share
	if p.Strategy == "exponential" {
		rate = p.Start * math.Pow(p.End/p.Start, share)
	}
	return time.Duration(float64(p.unit.Next()) / rate).Round(time.Microsecond)
}

// arrivals makes the process that --rate names, for a workload of so many
// requests.
func arrivals(rate string, rng *rand.Rand, requests int64) (arrival.Process, error) {
	switch kind, _, _ := strings.Cut(rate, ":"); {
	case rate == allAtOnce:
		return arrival.ProcessSpec{}.New(rng), nil
	case kind == rampUpKind:
		r, err := parseRampUp(rate)
		if err != nil {
			return nil, err
		}
		return r.process(rng, requests)
	}
	process, err := arrival.ParseProcess(rate)
	if err != nil {
		return nil, err
	}
	return process.From0(rng), nil
}
