package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reprise/replay"
	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/trace/arrival"
)

// A Sweep measures a server at one load after another, up to saturation, and finds
// the highest load that holds. The load is the one thing that changes: what else is
// to be swept, such as a flag of the server, has a sweep for each of its values, with
// a Target of its own.
type Sweep struct {
	Target   Target
	Workload string // file that every level sends, again and again where it is short
	Digest   string // of its rows
	About    string // what the target is: levels of another are not taken up

	Process string // arrivals of an open loop, see [ProcessAt]; "" closes the loop
	Ladder  Ladder
	Seed    uint64 // that of each level is made of it and of the level's name

	Duration time.Duration // of the measured part of a level, at least
	Requests int64         // in the measured part of a level of an open loop, at least, as expected
	Warmup   string        // "" is 10 s, and in an open loop 50 requests at least
	Cache    string
	Confirm  bool          // run again at the highest load
	Sustain  time.Duration // and for so long; 0 does not
	StopTTFT time.Duration // p99 of TTFT from due beyond which the server is saturated

	Report report.Options
	Dir    string      // of the results; levels in it that are complete are not repeated
	Told   func(Level) // when set, is told of each level
}

// ProcessAt is an arrival process such as poisson or gamma:cv=2 at a rate, as
// [arrival.ParseProcess] reads it.
func ProcessAt(process string, rate float64) string {
	kind, rest, more := strings.Cut(process, ":")
	out := kind + ":" + figure(rate)
	if more {
		out += "," + rest
	}
	return out
}

// Closed tells whether the sweep is over requests in flight.
func (s *Sweep) Closed() bool { return s.Process == "" }

// Check refuses a sweep that cannot be made.
func (s *Sweep) Check() error {
	if err := s.Ladder.check(); err != nil {
		return err
	}
	if !s.Closed() {
		if _, err := arrival.ParseProcess(ProcessAt(s.Process, 1)); err != nil {
			return err
		}
	}
	if s.Duration <= 0 || s.Sustain < 0 || s.Requests < 0 || s.StopTTFT <= 0 {
		return errors.New("a level lasts some time, and the limit of TTFT is above 0")
	}
	if _, err := replay.ParseSpan(s.Warmup); err != nil {
		return err
	}
	return s.Report.Check()
}

// Run makes the sweep. That a level cannot be trusted is no error: the result says
// so.
func (s *Sweep) Run(ctx context.Context) (SweepResult, error) {
	r := SweepResult{Schema: SweepSchema, Closed: s.Closed(), Process: s.Process, Seed: strconv.FormatUint(s.Seed, 10), Workload: s.Digest}
	if err := s.Check(); err != nil {
		return r, err
	}
	for {
		load := s.Ladder.next(r.Levels)
		if load == 0 {
			break
		}
		if _, err := s.level(ctx, &r, RoleLevel, load, s.Duration); err != nil {
			return r, err
		}
	}
	r.Stopped = r.stopped()
	r.Knee = r.knee()
	return r, s.highest(ctx, &r)
}

// highest finds the highest load that holds, by what was measured and by runs at it.
func (s *Sweep) highest(ctx context.Context, r *SweepResult) error {
	lo, hi := bracket(r.Levels)
	if lo == nil || lo.Outcome == Unjudged {
		r.Highest.interval(r.Levels)
		return nil
	}
	r.Highest.AtLeast = hi == nil
	estimate, best := lo.Load, *lo
	if hi != nil {
		estimate = Interpolate(lo.Load, hi.Load, lo.Contract, hi.Contract)
		r.Highest.Estimate = &estimate
	}
	if !s.Confirm {
		r.Highest.reached(&best)
		r.Highest.interval(r.Levels)
		return nil
	}
	err := s.approach(ctx, r, s.Ladder.candidates(estimate, lo.Load))
	r.Highest.interval(r.Levels)
	return err
}

// approach confirms the first candidate that holds, and then halves what lies between
// it and the one before, that failed, down to the resolution.
func (s *Sweep) approach(ctx context.Context, r *SweepResult, candidates []float64) error {
	failed := 0.0
	for len(candidates) > 0 {
		load := candidates[0]
		holds, err := s.confirm(ctx, r, load)
		if err != nil || r.Levels[len(r.Levels)-1].Outcome == Untrusted {
			return err
		}
		switch {
		case holds:
			r.Highest.Sustained = s.Sustain > 0
			r.Highest.reached(&r.Levels[len(r.Levels)-1])
			candidates = nil
		case r.Highest.Load != nil:
			failed, candidates = load, nil
		default:
			failed, candidates = load, candidates[1:]
		}
		if h := r.Highest.Load; h != nil && failed > 0 {
			candidates = s.Ladder.between(*h, failed)
		}
	}
	return nil
}

// confirm runs again at a load, and longer.
func (s *Sweep) confirm(ctx context.Context, r *SweepResult, load float64) (bool, error) {
	l, err := s.level(ctx, r, RoleConfirm, load, s.Duration)
	if err == nil && l.Outcome == Holds && s.Sustain > 0 {
		l, err = s.level(ctx, r, RoleSustain, load, max(s.Sustain, s.Duration))
	}
	return l.Outcome == Holds, err
}

func (h *Highest) reached(l *Level) {
	load := l.Load
	h.Load, h.OutputPerRequest, h.GoodShare, h.E2EMeanMS = &load, l.OutputMean, l.GoodShare, l.E2EMean
}

// level measures one load for so long.
func (s *Sweep) level(ctx context.Context, r *SweepResult, role string, load float64, measured time.Duration) (Level, error) {
	t, err := s.trial(role, load, measured)
	if err != nil {
		return Level{}, err
	}
	summary, err := s.measure(ctx, t)
	if err != nil {
		return Level{}, err
	}
	if err := ctx.Err(); err != nil { // a replay that is interrupted ends in results
		return Level{}, err
	}
	l := Level{Name: t.Name, Role: role, Load: load, Seed: t.Seed, Warmup: t.Warmup, DurationS: t.Duration.Seconds()}
	l.take(&summary)
	if l.Flow, err = flowIn(t.Results); err != nil {
		return l, err
	}
	l.judge(&summary, s.Closed(), s.StopTTFT)
	if l.Sure, err = s.sure(t, &l); err != nil {
		return l, err
	}
	r.about(&summary.Run)
	r.Levels = append(r.Levels, l)
	if s.Told != nil {
		s.Told(l)
	}
	return l, nil
}

// sure tells whether the outcome of a level is beyond chance.
func (s *Sweep) sure(t Trial, l *Level) (bool, error) {
	switch {
	case l.Outcome == Saturated:
		return true, nil
	case l.Outcome != Holds && l.Outcome != Fails:
		return false, nil
	case l.Contract == nil:
		return true, nil
	}
	return Sure(contract.Of(s.Report), l.Contract, func(c *contract.Contract) (*report.ContractResult, error) {
		o := s.Report
		o.Contract = c
		summary, err := Summarise(t.Results, o)
		return summary.Contract, err
	})
}

// trial is the run at a load. Warming up is not measured, and comes on top.
func (s *Sweep) trial(role string, load float64, measured time.Duration) (Trial, error) {
	what := "rate-"
	if s.Closed() {
		what = "concurrency-"
	}
	t := Trial{Name: role + "-" + what + figure(load), Workload: s.Workload, Loop: true, Cache: s.Cache, Warmup: s.Warmup}
	if s.Closed() {
		t.Load.Concurrency = int(load)
	} else {
		t.Load.Rate = ProcessAt(s.Process, load)
		measured = max(measured, time.Duration(float64(s.Requests)/load*1e9))
	}
	if t.Warmup == "" {
		t.Warmup = s.warmup(load).String()
	}
	span, err := replay.ParseSpan(t.Warmup)
	if err != nil {
		return t, err
	}
	warm := span.Time
	if span.Requests > 0 && !s.Closed() {
		warm = time.Duration(float64(span.Requests) / load * 1e9)
	}
	t.Duration = (measured + warm).Round(time.Millisecond)
	t.Seed = s.seed(t.Name)
	t.Results = filepath.Join(s.Dir, t.Name, "results.parquet")
	return t, os.MkdirAll(filepath.Dir(t.Results), 0o755)
}

const (
	warmupTime     = 10 * time.Second
	warmupRequests = 50
)

// warmup is how long the server is brought to its steady state, in whole seconds.
func (s *Sweep) warmup(load float64) time.Duration {
	if s.Closed() {
		return warmupTime
	}
	fifty := time.Duration(warmupRequests / load * 1e9)
	return max(warmupTime, (fifty + time.Second - 1).Truncate(time.Second))
}

// seed is that of a level: the first 53 bits of a hash, so that any program that
// reads the JSON reads it whole.
func (s *Sweep) seed(name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "sweep %d %s", s.Seed, name))
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:])>>11, 10)
}
