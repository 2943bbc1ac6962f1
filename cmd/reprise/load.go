package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/replay"
	"reprise/trace"
	"reprise/trace/arrival"
)

// scheduleFlags say when the rows of a replay are due.
type scheduleFlags struct {
	speed         float64
	openLoop      bool
	keepThink     bool
	rate          string
	concurrency   int
	rampUp        time.Duration
	duration      time.Duration
	warmup        string
	cooldown      string
	maxInFlight   int
	includeFailed bool
	requests      int64 // of the workload, for a rate that grows with them
}

func (f *scheduleFlags) register(fl *pflag.FlagSet) {
	fl.Float64Var(&f.speed, "speed", 1, "2 replays twice as fast, and halves think and tool times")
	fl.BoolVar(&f.openLoop, "open-loop", false, "send every request at its recorded time, also a turn whose parents are not over")
	fl.BoolVar(&f.keepThink, "keep-think", false, "--speed leaves think and tool times as they are")
	fl.StringVar(&f.rate, "rate", "", "arrival `process` in place of recorded times, such as poisson:2, constant:10, gamma:5,cv=2, ramp:1-10,60s or inf for all at once; where turns wait for others, of the first turns")
	fl.IntVar(&f.concurrency, "concurrency", 0, "close the loop: so many requests in flight, the next is sent when one ends. It hides saturation")
	fl.DurationVar(&f.rampUp, "ramp-up", 0, "time in which the places of --concurrency come, one after another; 0 is all at once")
	fl.DurationVar(&f.duration, "duration", 0, "send nothing that is due later than this; 0 is the whole workload")
	fl.StringVar(&f.warmup, "warmup", "", "first requests to send and not to measure: a number, or a `span` of time such as 30s")
	fl.StringVar(&f.cooldown, "cooldown", "", "last requests to send and not to measure: a number, or a `span` of time before the last is due")
	fl.BoolVar(&f.includeFailed, "include-failed", false, "send the requests that failed in the source too")
}

// lineage reads which rows wait for which. It is nil for an open loop: when that
// is asked for, or the workload has no turn with a think or tool time.
func (f *scheduleFlags) lineage(cmd *cobra.Command, open func() (trace.Reader[replay.Turn], error)) (*replay.Lineage, error) {
	if f.openLoop || f.concurrency > 0 {
		return nil, f.noSpeedWithRate()
	}
	turns, err := open()
	if err != nil {
		return nil, err
	}
	l, err := replay.ReadLineage(turns)
	if err != nil {
		return nil, err
	}
	if l.Timed() == 0 {
		if f.keepThink {
			return nil, usagef("--keep-think: the workload has no think or tool times")
		}
		return nil, f.noSpeedWithRate()
	}
	notef(cmd, "causal: %d turns wait for those before them and a think or tool time; --open-loop sends at recorded times", l.Timed())
	if n := l.Backward(); n > 0 {
		notef(cmd, "%d parents stand below their turns in the file and are not waited for", n)
	}
	return l, nil
}

// noSpeedWithRate refuses a speed that has nothing to divide.
func (f *scheduleFlags) noSpeedWithRate() error {
	if f.rate != "" && f.speed != 1 {
		return usagef("--rate and --speed contradict each other where no turn waits for another: the rate replaces the recorded times")
	}
	return nil
}

// check refuses flags that contradict each other.
func (f *scheduleFlags) check() error {
	if !(f.speed > 0 && f.speed <= 1e9) {
		return usagef("--speed: a number above 0, up to 1,000,000,000")
	}
	if f.openLoop && f.keepThink {
		return usagef("--keep-think has no meaning with --open-loop, which has no think times")
	}
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"open-loop", f.openLoop}, {"keep-think", f.keepThink}, {"rate", f.rate != ""}, {"speed", f.speed != 1}, {"max-in-flight", f.maxInFlight != 0},
	} {
		if f.concurrency != 0 && other.given {
			return usagef("--concurrency and --%s contradict each other: in a closed loop the end of a request alone says when the next is sent", other.name)
		}
	}
	if f.rampUp < 0 || f.rampUp > 0 && f.concurrency == 0 {
		return usagef("--ramp-up is about the places of --concurrency; an arrival process such as --rate ramp:1-10,60s grows itself")
	}
	if f.concurrency < 0 || f.duration < 0 {
		return usagef("--concurrency and --duration must not be negative")
	}
	_, err := f.schedule(nil, 0)
	return err
}

// stopGrace is how long requests in flight may take to end after an interrupt.
const stopGrace = 5 * time.Second

// schedule says when rows are due.
func (f *scheduleFlags) schedule(lineage *replay.Lineage, seed uint64) (o replay.Options, err error) {
	o = replay.Options{Grace: stopGrace, Speed: f.speed, MaxInFlight: f.maxInFlight, IncludeFailed: f.includeFailed,
		Causal: lineage, KeepThink: f.keepThink, Concurrency: f.concurrency, RampUp: f.rampUp, Duration: f.duration}
	if f.rate != "" {
		if o.Arrivals, err = arrivals(f.rate, arrival.Stream(seed, "replay arrivals"), f.requests); err != nil {
			return o, usagef("--rate: %v", err)
		}
	}
	if o.Warmup, err = replay.ParseSpan(f.warmup); err != nil {
		return o, usagef("--warmup: %v", err)
	}
	if o.Cooldown, err = replay.ParseSpan(f.cooldown); err != nil {
		return o, usagef("--cooldown: %v", err)
	}
	return o, nil
}

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
	strategy   string
	start, end float64
	burstiness float64 // shape of the gamma distribution of gaps
}

func (r rampUp) String() string {
	return fmt.Sprintf("%s:%s,%g-%g,burstiness=%g", rampUpKind, r.strategy, r.start, r.end, r.burstiness)
}

var errRampUp = errors.New("want ramp-up:linear,START-END or ramp-up:exponential,START-END with rates above zero that grow, with or without burstiness=B")

func parseRampUp(s string) (rampUp, error) {
	_, rest, _ := strings.Cut(s, ":")
	fields := strings.Split(rest, ",")
	r := rampUp{burstiness: 1}
	if len(fields) < 2 || len(fields) > 3 || fields[0] != "linear" && fields[0] != "exponential" {
		return r, errRampUp
	}
	r.strategy = fields[0]
	from, to, _ := strings.Cut(fields[1], "-")
	var err, err2, err3 error
	r.start, err = strconv.ParseFloat(from, 64)
	r.end, err2 = strconv.ParseFloat(to, 64)
	if len(fields) == 3 {
		value, ok := strings.CutPrefix(fields[2], "burstiness=")
		if !ok {
			return r, errRampUp
		}
		r.burstiness, err3 = strconv.ParseFloat(value, 64)
	}
	if err != nil || err2 != nil || err3 != nil || !(r.start > 0 && r.start <= r.end && r.end <= 1e5 && r.burstiness > 0) {
		return r, errRampUp
	}
	return r, nil
}

// process draws gaps of mean 1 and divides them by the rate.
func (r rampUp) process(rng *rand.Rand, requests int64) (arrival.Process, error) {
	unit, err := arrival.ParseProcess(fmt.Sprintf("gamma:1,burstiness=%g", r.burstiness))
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
	rate := p.start + (p.end-p.start)*share
	if p.strategy == "exponential" {
		rate = p.start * math.Pow(p.end/p.start, share)
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
	return process.New(rng), nil
}

// abortFlags say what ends a replay early.
type abortFlags struct{ abortOn string }

func (f *abortFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.abortOn, "abort-on", "", "`conditions`, any of which ends the sending when it holds over 10 s with 20 requests, such as errors>5%,queue>100,ttft-p99>10s; queue is the requests in flight")
}

func (f *abortFlags) check() error {
	_, err := f.conditions()
	return err
}

func (f *abortFlags) conditions() ([]replay.Condition, error) {
	if f.abortOn == "" {
		return nil, nil
	}
	c, err := replay.ParseConditions(f.abortOn)
	if err != nil {
		return nil, usagef("--abort-on: %v", err)
	}
	return c, nil
}
