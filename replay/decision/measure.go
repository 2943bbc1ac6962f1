package decision

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"time"

	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/contract"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// errNoLoad says that a contract is beyond an engine.
var errNoLoad = errors.New("no rate holds the contract")

// Capacity is the highest rate in requests per second within a contract, of arrivals that
// seed selects: levels as long as the workload, to within 1 %.
func Capacity(ctx context.Context, w *Workload, terms *contract.Contract, ladder bench.Ladder, seed uint64) (float64, error) {
	dir, err := os.MkdirTemp("", "reprise-decision-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ladder.Resolution = 0.01
	s := bench.Sweep{Target: target{w}, About: "engine", Process: "poisson", Seed: seed, Dir: dir,
		Duration: time.Minute, Requests: int64(len(w.Rows)), Confirm: true, StopTTFT: time.Minute,
		Ladder: ladder, Report: report.Options{Contract: terms}}
	r, err := s.Run(ctx)
	switch {
	case err != nil:
		return 0, err
	case r.Highest.Load == nil:
		return 0, errNoLoad
	}
	return *r.Highest.Load, nil
}

// A target makes the trials of a sweep.
type target struct{ w *Workload }

// Run implements [bench.Target].
func (t target) Run(ctx context.Context, trial bench.Trial) error {
	seed, err := strconv.ParseUint(trial.Seed, 10, 64)
	if err != nil {
		return err
	}
	o := replay.Options{Duration: trial.Duration, Endless: true}
	if o.Warmup, err = replay.ParseSpan(trial.Warmup); err != nil {
		return err
	}
	var k kept
	run, err := t.w.play(ctx, BaseFleet(), seed, o, trial.Load.Rate, &k)
	if err != nil {
		return err
	}
	return result.Write(trial.Results, run, &trace.SliceReader[result.Result]{Rows: k.rows})
}

// P95 is the p95 of TTFT from schedule in ms, of arrivals that seed selects.
func P95(ctx context.Context, w *Workload, f engine.FleetConfig, rate float64, seed uint64) (float64, error) {
	var k kept
	run, err := w.play(ctx, f, seed, replay.Options{}, poisson(rate), &k)
	if err != nil {
		return 0, err
	}
	s, err := report.Summarise(run, &trace.SliceReader[result.Result]{Rows: k.rows}, report.Options{})
	if err != nil {
		return 0, err
	}
	if s.Latency.FromDue.TTFT.P95 == nil {
		return 0, errors.New("too few requests were answered for a p95 of TTFT")
	}
	return *s.Latency.FromDue.TTFT.P95, nil
}

// An Effect is what a change does to the p95 of TTFT: ln(changed ÷ base) of each round.
type Effect []float64

func (e Effect) mean() (m float64) {
	for _, x := range e {
		m += x / float64(len(e))
	}
	return m
}

// Percent is the mean effect.
func (e Effect) Percent() float64 { return 100 * math.Expm1(e.mean()) }

// leastEffect is what an effect must be to decide something, in percent.
const leastEffect = 2

// Decides tells whether an effect is large enough and the same in all rounds.
func (e Effect) Decides() bool {
	for _, x := range e {
		if x > 0 != (e[0] > 0) {
			return false
		}
	}
	return math.Abs(e.Percent()) >= leastEffect
}

// SameSign tells whether two effects are in one direction.
func (e Effect) SameSign(o Effect) bool { return e.mean() > 0 == (o.mean() > 0) }
