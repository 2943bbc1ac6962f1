package main

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
)

// modeFlags say which part of a workload is replayed, how often, and whether at
// all.
type modeFlags struct {
	start, end       time.Duration
	prime            string
	primeTokens      int64
	primeConcurrency int
	sample           string
	maxRequests      int64
	loop             string
	loopSame         bool
	loopUnsaid       bool // of a trial, which is one of many
	dry              dryFlags
}

// Values of --prime.
const (
	primeLRU  = "lru"
	primeNone = "none"
)

// defaultPrimeTokens is about what the KV cache of one node of eight large
// accelerators holds for a 70-billion-parameter model.
const defaultPrimeTokens = 1_000_000

const defaultPrimeConcurrency = 8

func (f *modeFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.DurationVar(&f.start, "start", 0, "begin of the window of the workload to replay, from its start, that of its declared capture; 0s waits for the first request as long as the capture did; what was in a prefix cache by then is sent first, see --prime")
	fl.DurationVar(&f.end, "end", 0, "end of the window; 0 is the end of the workload")
	fl.StringVar(&f.prime, "prime", primeLRU, "what is in the server's cache at --start: lru (the prefixes that a cache of --prime-tokens would hold, sent before the run and not measured) or none")
	fl.Int64Var(&f.primeTokens, "prime-tokens", defaultPrimeTokens, "tokens of the cache that --prime fills")
	fl.IntVar(&f.primeConcurrency, "prime-concurrency", defaultPrimeConcurrency, "requests at once that prime the cache")
	fl.StringVar(&f.sample, "sample", "", "`share` of the sessions to replay, such as 10% or 0.1, whole and at their recorded times, so that the rate falls with it")
	fl.Int64Var(&f.maxRequests, "max-requests", 0, "replay only so many rows, the first; 0 is all")
	fl.StringVar(&f.loop, "loop", "", "play the workload again and again: a number of `rounds`, or for as long as a duration such as 2h")
	fl.BoolVar(&f.loopSame, "loop-same", false, "every round of --loop sends the prompts of the first, and finds them in the server's cache")
	f.dry.register(fl)
}

// check refuses flags that have no meaning, alone or together.
func (f *modeFlags) check() error {
	switch {
	case f.start < 0 || f.end < 0 || f.end > 0 && f.end <= f.start:
		return usagef("the window from %v to %v is empty", f.start, f.end)
	case f.prime != primeLRU && f.prime != primeNone:
		return usagef("--prime: want %s or %s", primeLRU, primeNone)
	case f.primeTokens < 1 || f.primeConcurrency < 1:
		return usagef("--prime-tokens and --prime-concurrency: want a number above 0; --prime none sends nothing before the run")
	case (f.prime != primeLRU || f.primeTokens != defaultPrimeTokens || f.primeConcurrency != defaultPrimeConcurrency) && f.start == 0:
		return usagef("--prime is for a window that begins in the workload: give --start")
	case f.maxRequests < 0:
		return usagef("--max-requests: want a number above 0")
	case f.loopSame && f.loop == "":
		return usagef("--loop-same is about the rounds of --loop")
	}
	if _, err := f.share(); err != nil {
		return err
	}
	if _, err := f.rounds(); err != nil {
		return err
	}
	return f.dry.check()
}

// share reads --sample; 1 is everything.
func (f *modeFlags) share() (float64, error) {
	if f.sample == "" {
		return 1, nil
	}
	digits, percent := strings.CutSuffix(f.sample, "%")
	share, err := strconv.ParseFloat(digits, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, usagef("--sample: want a share above 0, up to 1, such as 0.1 or 10%%")
	}
	return share, nil
}

// rounds reads --loop. The zero Span is one round.
func (f *modeFlags) rounds() (replay.Span, error) {
	s, err := replay.ParseSpan(f.loop)
	if err != nil || f.loop != "" && s == (replay.Span{}) || s.Requests > math.MaxInt32 {
		return s, usagef("--loop: want a number of rounds, such as 3, or a duration, such as 2h")
	}
	return s, nil
}

// settle has a loop for a duration end with it.
func (f *replayFlags) settle() error {
	if err := f.modeFlags.check(); err != nil {
		return err
	}
	loop, err := f.rounds()
	if loop.Time > 0 && (f.duration == 0 || loop.Time < f.duration) {
		f.duration = loop.Time
	}
	return err
}
