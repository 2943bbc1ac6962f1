package report

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/quantity"
)

// DefaultExact is how many values of a metric are kept exactly unless
// [Options] say otherwise: 8 MB for each metric.
const DefaultExact = 1 << 20

// Options say how a run is summarised and judged. The zero value is good.
type Options struct {
	SLO         SLO    // what goodput asks of a request; without objectives there is no goodput
	ServerBlock int    // tokens in a block of the server's prefix cache; 0 takes it from the run
	Limits      Limits // the zero Limits stand for [DefaultLimits]
	GPUs        int    // that the servers have together; 0 is not known
	// PricePerGPUHour, in any currency, makes a cost of each session, where GPUs are given too; 0
	// is not known.
	PricePerGPUHour float64
	Exact           int // values of a metric that are kept exactly; 0 is [DefaultExact]

	// Instants is which instants of token events are taken: [InstantsRead] or
	// [InstantsKernel]. Empty is the first.
	Instants string

	By []string // names of columns by which requests are told apart, see [FindColumn]

	Contract Contract // what the run has to keep to; nil is nothing

	// Steady is the steady state of the run, for clauses of the contract about it; nil was
	// not looked for. [Options.AddSteady] sets it.
	Steady *Steady

	// Metrics, when set, opens what was measured at the servers from its beginning,
	// as result.MetricsFile's Reader does. It is read several times.
	Metrics func() trace.Reader[result.Metric]
}

// Limits are what a trustworthy run stays within: each is the largest value
// that is still allowed, and a negative one is not checked.
//
// Where a run has too few requests for a percentile of its send lag, the
// largest lag stands in for it: with fewer than 100 requests, a single one
// above the limit of p99 is more than one in a hundred.
type Limits struct {
	LagP50   time.Duration // of sent − due
	LagP99   time.Duration
	LagP999  time.Duration
	LagDrift time.Duration // see the definition of lag_drift
	CPU      float64       // share of the client's cores in use; this much is already too much
	GCPause  time.Duration // longest pause of the client's garbage collector
	Errors   float64       // share of the requests that failed

	Stall     time.Duration // longest that the client, or its machine, stood still
	StallTTFT float64       // share of the times to first token in which the client stood still, see [Stalled]
	StallGap  float64       // share of a gap between token events, at p99, in which the client stood still
	ClockJump time.Duration // most that the wall clock jumped
	HeldBack  float64       // share of the requests that waited for the limit in flight
	Connect   float64       // share of the requests that found no connection
	Refused   float64       // share of the requests that the server refused: HTTP 429 or 503

	// What was delivered of what was asked for.
	Prompt    float64 // share of the prompt tokens by which the server's counts are off
	Output    float64 // share of the output tokens by which answers of a forced length are off
	ExtraHits float64 // share of the prompt tokens that the servers' caches had beyond what this run had sent

	Impossible float64 // share of the answers with counts of tokens that cannot be
}

// DefaultLimits are 10 ms at p50 and 100 ms at p99 of the send lag with no
// limit at p99.9, 10 ms of drift, 90 % of the cores, 50 ms of pause, 1 % of
// errors, a second that the client stood still, 1 % of the times to first token and
// 5 % of a token gap at p99 in which it did, 100 ms that the wall clock jumped, no
// request held back, 0.1 % without a connection and 1 % refused; and of what was asked for, 2 % of the
// prompt and of the output tokens, and 5 points of cache hits. A median lag under 10 ms is what inference-perf calls
// good.
func DefaultLimits() Limits {
	return Limits{
		LagP50:   10 * time.Millisecond,
		LagP99:   100 * time.Millisecond,
		LagP999:  -1,
		LagDrift: 10 * time.Millisecond,
		CPU:      0.9,
		GCPause:  50 * time.Millisecond,
		Errors:   0.01,

		Stall:     time.Second,
		StallTTFT: 0.01,
		StallGap:  0.05,
		ClockJump: 100 * time.Millisecond,
		HeldBack:  0,
		Connect:   0.001,
		Refused:   0.01,

		Prompt:    0.02,
		Output:    0.02,
		ExtraHits: 0.05,
	}
}

// complete fills in the defaults and refuses what makes no sense.
func (o Options) complete() (Options, error) {
	if o.ServerBlock < 0 {
		return o, errors.New("report: the server's block size is negative")
	}
	if o.GPUs < 0 {
		return o, errors.New("report: the number of GPUs is negative")
	}
	if o.Exact < 0 {
		return o, errors.New("report: the number of exact values is negative")
	}
	for _, name := range o.By {
		if _, err := FindColumn(name); err != nil {
			return o, err
		}
	}
	o.Exact = cmp.Or(o.Exact, DefaultExact)
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if err := o.SLO.check(); err != nil || o.Contract == nil {
		return o, err
	}
	return o, o.Contract.Check(o.SLO)
}

// Check refuses what [Summarise] would, before there are results.
func (o Options) Check() error {
	_, err := o.complete()
	return err
}

// An SLO is what one request has to meet to count as good. Objectives that are
// nil are not asked for. A request that has no TPOT or no gaps, because it
// answered with one token, meets those objectives; one that failed meets none.
type SLO struct {
	TTFT *time.Duration `json:"ttft_ns,omitempty"` // to the first token
	TPOT *time.Duration `json:"tpot_ns,omitempty"` // per output token
	ITL  *time.Duration `json:"itl_ns,omitempty"`  // the longest gap between token events of the request
	E2E  *time.Duration `json:"e2e_ns,omitempty"`  // to the last token
}

// objective is a named part of an SLO, for the loops over all of them.
type objective struct {
	of    *figure.Subject
	limit **time.Duration
}

// Latencies are those that it has objectives for.
func (s *SLO) Latencies() (of []*figure.Subject) {
	for _, o := range s.objectives() {
		if *o.limit != nil {
			of = append(of, o.of)
		}
	}
	return of
}

func (s *SLO) objectives() []objective {
	return []objective{{figure.TTFT, &s.TTFT}, {figure.TPOT, &s.TPOT}, {figure.ITL, &s.ITL}, {figure.E2E, &s.E2E}}
}

// ParseSLO reads objectives such as "ttft:200ms,tpot:50ms,e2e:5s": names out of
// ttft, tpot, itl and e2e in any spelling of package figure, each once, with a
// duration above zero. The unit is required, because the tools that leave it
// out disagree on it: vLLM means milliseconds, inference-perf seconds.
func ParseSLO(s string) (SLO, error) {
	var out SLO
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	if len(parts) == 0 {
		return out, errors.New("an SLO names at least one objective, such as ttft:200ms")
	}
	for i, part := range parts {
		if err := out.Set(part); err != nil {
			return SLO{}, fmt.Errorf("objective %d of the SLO: %w", i+1, err)
		}
	}
	return out, nil
}

// Set adds one objective, written as name:duration as for [ParseSLO]. It refuses a
// metric that has an objective already.
func (s *SLO) Set(part string) error {
	name, value, ok := strings.Cut(part, ":")
	if !ok {
		return errors.New("write it as name:duration, such as ttft:200ms")
	}
	of := figure.Find(name)
	for _, o := range s.objectives() {
		if o.of != of {
			continue
		}
		d, err := quantity.Latency(value)
		switch {
		case err != nil:
			return errors.New("write the duration with its unit, such as 200ms or 5s")
		case d <= 0:
			return errors.New("the duration must be above zero")
		case *o.limit != nil:
			return errors.New("this metric has an objective already")
		}
		*o.limit = &d
		return nil
	}
	if f, err := figure.Parse(name, func(f figure.Figure) bool { return f.Spread && !f.Sessions }); err == nil {
		return fmt.Errorf("a request has no %s: give --clause '%s <= 500ms' to sweep, or that clause in the file of "+
			"--contract", f.Statistic, f.Words())
	}
	return errors.New("the metric is not one of ttft, tpot, itl, e2e")
}

// String writes the objectives as [ParseSLO] reads them; empty without any.
func (s SLO) String() string {
	var parts []string
	for _, o := range s.objectives() {
		if *o.limit != nil {
			parts = append(parts, o.of.Name+":"+(*o.limit).String())
		}
	}
	return strings.Join(parts, ",")
}

// Empty tells whether there is no objective.
func (s SLO) Empty() bool { return s == SLO{} }

func (s SLO) check() error {
	for _, o := range s.objectives() {
		if *o.limit != nil && **o.limit <= 0 {
			return fmt.Errorf("report: the objective for %s must be above zero", o.of.Name)
		}
	}
	return nil
}
