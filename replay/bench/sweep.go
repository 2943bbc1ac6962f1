package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/replay"
	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
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

	Process string // arrivals of an open loop, see [processAt]; "" closes the loop
	// Sessions, when set, makes the session tree what arrives or is live; nil is requests.
	Sessions *SessionSweep
	Ladder   Ladder
	Seed     uint64 // that of each level is made of it and of the level's name

	Duration time.Duration // of the measured part of a level, at least
	Requests int64         // in the measured part of a level of an open loop, at least
	For      string        // what takes so many Requests, such as a clause; "" where they were asked for
	Warmup   string        // "" is 10 s, and in an open loop 50 requests at least
	Cache    string
	// Precision is how narrow the interval of what the contract is about is wanted at each
	// level, as half of its width and a share, such as 0.05 for ±5 %: runs are added until it
	// is, or the level has Budget requests. The highest load is then searched for, see
	// [Sweep.search]. 0 makes one run of a level.
	Precision float64
	Budget    int64 // of measured requests of a level, or sessions

	Confirm  bool          // run again at the highest load
	Sustain  time.Duration // and for so long; 0 does not
	StopTTFT time.Duration // p99 of TTFT from schedule beyond which the server is saturated

	Report report.Options
	Dir    *Dir            // of the results; levels in it that are whole are not repeated
	Folder string          // of its levels in the directory, where several sweeps share that; "" is the directory
	Keys   Keys            // of every trial, beside its load
	Told   func(Level)     // when set, is told of each level
	Begins func(Beginning) // when set, is told of each run before it is made
}

// processAt is an arrival process such as poisson or gamma:cv=2 at a rate, as
// [arrival.ParseProcess] reads it.
func processAt(process string, rate float64) string {
	kind, rest, more := strings.Cut(process, ":")
	out := kind + ":" + spelled(rate)
	if more {
		out += "," + rest
	}
	return out
}

// Closed tells whether the sweep is over requests in flight, or live sessions.
func (s *Sweep) Closed() bool { return s.Process == "" }

// Check refuses a sweep that cannot be made.
func (s *Sweep) Check() error {
	if err := s.Ladder.check(); err != nil {
		return err
	}
	if !s.Closed() {
		if _, err := arrival.ParseProcess(processAt(s.Process, 1)); err != nil {
			return err
		}
	}
	if !(s.Precision >= 0 && s.Precision < 1) || s.Budget < 0 {
		return errors.New("a precision is a share from 0 to below 1, and a budget of requests not negative")
	}
	if s.Duration <= 0 || s.Sustain < 0 || s.Requests < 0 || s.StopTTFT <= 0 {
		return errors.New("a level lasts some time, and the limit of TTFT is above 0")
	}
	if _, err := replay.ParseSpan(s.Warmup); err != nil {
		return err
	}
	if s.Sessions != nil {
		if span, err := replay.ParseSpan(s.Warmup); err != nil || span.Requests > 0 {
			return errors.Join(err, errors.New(
				"the warm-up of a level by session is a time, or a number of sessions such as 50sessions"))
		}
		if err := s.Sessions.check(s.Closed()); err != nil {
			return err
		}
	}
	return s.Report.Check()
}

// unit is what the loads are.
func (s *Sweep) unit() string {
	switch {
	case s.Sessions != nil && s.Closed():
		return unitLiveSessions
	case s.Sessions != nil:
		return unitSessionRate
	case s.Closed():
		return unitInFlight
	}
	return unitRate
}

// Run makes the sweep. That a level cannot be trusted is no error: the result says
// so.
func (s *Sweep) Run(ctx context.Context) (SweepResult, error) {
	r := SweepResult{Schema: sweepSchema, Unit: s.unit(), Closed: s.Closed(), Process: s.Process,
		Precision: s.Precision, Seed: strconv.FormatUint(s.Seed, 10), Workload: s.Digest}
	if err := s.Check(); err != nil {
		return r, err
	}
	for {
		load := s.Ladder.nextLoad(r.Levels)
		if load == 0 {
			break
		}
		if _, err := s.measureLevel(ctx, &r, roleLevel, load, s.Duration); err != nil {
			return r, err
		}
	}
	r.Stopped = r.stopped()
	r.Knee = r.knee()
	return r, s.highest(ctx, &r)
}

// highest finds the highest load that holds, by what was measured and by runs at it. Without
// a contract every load holds until the server is saturated, and the answer is the knee.
func (s *Sweep) highest(ctx context.Context, r *SweepResult) error {
	defer func() { r.Highest.interval(r.Levels) }()
	if s.Report.Contract == nil {
		return s.confirmKnee(ctx, r)
	}
	if s.Precision > 0 {
		return errors.Join(s.search(ctx, r), s.sustain(ctx, r))
	}

	held, hi := holding(r.Levels)
	if held == nil {
		return nil
	}
	r.Highest.AtLeast = hi == nil
	estimate := held.Load
	if lo, _ := bracket(r.Levels); hi != nil && lo.Load == held.Load {
		estimate = interpolate(held.Load, hi.Load, held.Contract, hi.Contract)
		r.Highest.Estimate = &estimate
	}
	return s.confirm(ctx, r, held, estimate)
}

// confirmKnee makes the runs at the knee, which is the highest load where nothing was asked of
// latencies; or where too little came out to tell a knee, at the highest load that held.
func (s *Sweep) confirmKnee(ctx context.Context, r *SweepResult) error {
	at, hi := holding(r.Levels)
	r.Highest.AtLeast = at != nil && hi == nil
	for _, l := range r.Ladder() {
		if k := r.Knee; k != nil && l.Load == k.Load {
			at, r.Highest.AtLeast = l, !k.Found
		}
	}
	if at == nil {
		return nil
	}
	return s.confirm(ctx, r, at, at.Load)
}

// confirm makes runs from an estimate down to a level of the ladder that held and below, or
// takes that level where no runs were asked for, or where the client was the limit of them.
func (s *Sweep) confirm(ctx context.Context, r *SweepResult, held *Level, estimate float64) (err error) {
	level := *held
	if s.Confirm {
		err = s.approach(ctx, r, s.Ladder.candidates(estimate, held.Load))
		if err != nil || r.Highest.Load != nil || r.Levels[len(r.Levels)-1].Outcome != outcomeUntrusted ||
			slices.ContainsFunc(r.Levels, func(l Level) bool {
				return l.Role != roleLevel && l.NotHeld() && l.Load <= level.Load
			}) {
			return err
		}
	}
	r.reached(&level)
	return nil
}

// sustain makes a longer run at the highest load of a search, where that was asked for.
func (s *Sweep) sustain(ctx context.Context, r *SweepResult) error {
	at := r.atHighest()
	if s.Sustain == 0 || at == nil || r.Untrusted() != nil {
		return nil
	}
	l, err := s.measureLevel(ctx, r, roleSustain, at.Load, max(s.Sustain, s.Duration))
	if err == nil && l.Outcome == outcomeHolds {
		r.Highest.Sustained = true
		r.reached(&l)
	}
	return err
}

// approach confirms the first candidate that holds, or else the next level of the ladder below
// them that held, and then halves what lies between it and the one before, that failed, down to
// the resolution.
func (s *Sweep) approach(ctx context.Context, r *SweepResult, candidates []float64) error {
	held, failed := 0.0, 0.0
	for len(candidates) > 0 {
		load := candidates[0]
		l, err := s.measureLevel(ctx, r, roleConfirm, load, s.Duration)
		if err == nil && l.Outcome == outcomeHolds && s.Sustain > 0 {
			l, err = s.measureLevel(ctx, r, roleSustain, load, max(s.Sustain, s.Duration))
		}
		if err != nil || r.Levels[len(r.Levels)-1].Outcome == outcomeUntrusted {
			return err
		}
		switch {
		case l.Outcome == outcomeHolds:
			r.Highest.Sustained = s.Sustain > 0
			r.reached(&l)
			held, candidates = load, nil
		case held > 0:
			failed, candidates = load, nil
		default:
			failed, candidates = load, candidates[1:]
			if below := r.heldBelow(load); len(candidates) == 0 && below != nil {
				candidates = []float64{below.Load}
			}
		}
		if held > 0 && failed > 0 {
			candidates = s.Ladder.between(held, failed)
		}
	}
	return nil
}

// leastOffered is how many requests make a rate.
const leastOffered = 10

// reached takes a level for the highest load. Of an open loop of requests the load is what the
// server completed, where that is less than what was offered: more is not known to be held. A
// level with hardly a request has no rate.
func (r *SweepResult) reached(l *Level) {
	h, load := &r.Highest, l.Load
	if f := &l.Flow; r.Unit == unitRate && f.OfferedPerS != nil && *f.OfferedPerS*f.Seconds >= leastOffered {
		load = min(load, *f.AchievedPerS)
	}
	h.Load, h.Level, h.OutputPerRequest, h.GoodShare, h.E2EMeanMS = &load, l.Name, l.OutputMean, l.GoodShare, l.E2E.Mean
	if s := l.Sessions; s != nil {
		h.SessionsPerS, h.InputPerSession, h.CachedPerSession, h.OutputPerSession = s.EndedPerS, s.InputMean,
			s.CachedMean, s.OutputMean
	}
}

// measureLevel measures one load for so long, and with a precision by more runs: each is as
// long as all before it together, and the last as its budget leaves, so that a start from idle weighs
// less and less. A first run whose warm-up turns out to have been too short counts for nothing.
func (s *Sweep) measureLevel(ctx context.Context, r *SweepResult, role string, load float64,
	measured time.Duration) (Level, error) {
	m := newMeasurement(&s.Report, s.Sessions != nil)
	if s.Precision > 0 {
		m.budget = s.Budget
	}
	var l Level
	for enough := false; !enough; {
		t, err := s.trial(role, load, measured, m)
		if err != nil {
			return l, err
		}
		name, seed := l.Name, l.Seed
		if l, err = s.measureRun(ctx, r, role, load, t, m); err != nil {
			return l, err
		}
		l.Name, l.Seed = cmp.Or(name, l.Name), cmp.Or(seed, l.Seed)
		if s.cold(t, m) {
			m.forget()
			continue
		}
		enough = s.Precision == 0 || l.Outcome == outcomeUntrusted || l.Outcome == outcomeSaturated ||
			s.spent(m) || s.enough(m, &l)
	}
	l.Intervals = m.intervals(s.Precision)
	r.Levels = append(r.Levels, l)
	r.findSaturation()
	if s.Told != nil {
		s.Told(l)
	}
	return l, nil
}

// cold tells whether the first run of a level had a warm-up too short for what arrives, so
// that another with a longer one has to take its place.
func (s *Sweep) cold(t Trial, m *measurement) bool {
	warm, err := time.ParseDuration(t.Warmup)
	return s.Precision > 0 && s.Warmup == "" && s.Sessions == nil && m.runs == 1 && err == nil &&
		warm < warmupLeast*m.takes
}

// spent tells whether the budget of a level leaves no room for another run that is worth its
// warm-up: one as long as a quarter of what was measured.
func (s *Sweep) spent(m *measurement) bool {
	if s.Sessions != nil {
		return 2*m.units() > s.Budget || m.units() == 0
	}
	return m.units()+m.units()/4 > s.Budget || m.units() == 0
}

// enough tells whether a level needs no more runs: once it surely fails, or its interval is
// as narrow as asked. A load that the search measures is close to the highest one, where a
// queue may come once in 20,000 requests: it holds for sure only by its whole budget.
func (s *Sweep) enough(m *measurement, l *Level) bool {
	if l.Role == roleConfirm || l.Outcome == outcomeFails {
		return l.Sure && l.Outcome == outcomeFails
	}
	return m.resolved(s.Precision)
}

// measureRun makes a run of a level, and adds it to those before. Where the client was the
// limit it makes it once more: its machine may have stalled for a moment.
func (s *Sweep) measureRun(
	ctx context.Context, r *SweepResult, role string, load float64, t Trial, m *measurement,
) (Level, error) {
	k := s.Keys
	if k.Load, k.Round = t.Load.String(), m.runs+1; role != roleLevel {
		k.Role = role
	}
	begins := s.beginning(r, role, load, &t, m)
	summary, err := s.measureOnce(ctx, k, t, begins)
	var first *report.Reason
	if err == nil {
		if first = s.clientLimit(&summary); first != nil {
			begins.Untrusted = first.Text
			summary, err = s.measureOnce(ctx, k, t, begins)
		}
	}
	if err != nil {
		return Level{}, err
	}
	l, err := s.level(role, load, t, &summary, m)
	if err != nil {
		return l, err
	}
	if first != nil && l.Outcome != outcomeUntrusted {
		l.note("measured a second time, since the first was not trusted: " + first.Text)
	}
	r.about(&summary.Run)
	return l, nil
}

// level is what a run says of a load, together with those before it.
func (s *Sweep) level(role string, load float64, t Trial, summary *report.Summary, m *measurement) (Level, error) {
	l := Level{Name: t.Name, Role: role, Load: load, Seed: t.Seed, Warmup: t.Warmup, DurationS: t.Duration.Seconds()}
	l.takeSummary(summary)
	results, err := result.Open(t.Results)
	if err != nil {
		return l, err
	}
	l.Flow, err = flowOf(&results.Run, results.Reader)
	if err == nil {
		err = m.add(&results.Run, results.Reader())
	}
	results.Close()
	if err != nil {
		return l, err
	}
	if s.Sessions != nil {
		l.Sessions = levelSessions(summary, &results.Run, m.sessions, m.share)
	}
	if l.Runs, l.Measured = m.runs, m.values; m.runs > 1 {
		m.remeasure(&l)
		summary.Contract = l.Contract
	}
	l.judgeOutcome(summary, s.clientLimit(summary), s.Closed(), s.StopTTFT)
	if l.Role == roleSustain {
		l.judgeSteady(s.Closed())
	}
	s.Sessions.tellCut(&l)
	l.Extrapolates = summary.Run.Extrapolates
	l.Sure, err = s.isSure(t, &l, m)
	return l, err
}

// isSure tells whether the outcome of a level is beyond chance.
func (s *Sweep) isSure(t Trial, l *Level, m *measurement) (bool, error) {
	switch {
	case l.Outcome == outcomeSaturated:
		return true, nil
	case l.Outcome != outcomeHolds && l.Outcome != outcomeFails:
		return false, nil
	case l.Contract == nil:
		return true, nil
	}
	level := confidence
	if s.Precision > 0 {
		level = searchConfidence
	}
	return m.sure(l.Contract, level, func(c *contract.Contract) (*report.ContractResult, error) {
		o := s.Report
		o.Contract = c
		summary, err := Summarise(t.Results, o)
		return summary.Contract, err
	})
}

// trial is the next run at a load. Warming up is not measured, and comes on top.
func (s *Sweep) trial(role string, load float64, measured time.Duration, m *measurement) (Trial, error) {
	what := map[string]string{unitRate: "rate-", unitInFlight: "concurrency-", unitLiveSessions: "sessions-",
		unitSessionRate: "session-rate-"}[s.unit()]
	t := Trial{Name: role + "-" + what + spelled(load), Workload: s.Workload, Loop: true,
		Cache: s.Cache, Warmup: s.Warmup}
	switch {
	case s.Sessions != nil:
		s.sessionTrial(&t, role, load, measured, m)
		return t, nil
	case s.Closed():
		t.Load.Concurrency = int(load)
	default:
		t.Load.Rate = processAt(s.Process, load)
		measured = max(measured, time.Duration(float64(s.Requests)/load*1e9))
	}
	if m.runs > 0 { // as long as all before it, or as the budget leaves
		t.Name += fmt.Sprintf("-run-%d", m.runs+1)
		if m.values > 0 {
			rest := float64(s.Budget-m.values) / float64(m.values)
			measured = time.Duration(min(1, rest) * float64(m.lasted)).Round(time.Second)
		}
	}
	if t.Warmup == "" {
		// How long the server is brought to its steady state, in whole seconds.
		warmup := warmupTime
		if s.Precision > 0 {
			warmup = max(warmupPrecise, measured/warmupShare, warmupSpans*m.takes)
		}
		if !s.Closed() {
			warmup = max(warmup, time.Duration(warmupRequests/load*1e9))
		}
		t.Warmup = (warmup + time.Second - 1).Truncate(time.Second).String()
	}
	span, err := replay.ParseSpan(t.Warmup)
	if err != nil {
		return t, err
	}
	warm := s.warmTime(&t, load)
	t.Duration = (measured + warm).Round(time.Millisecond)
	s.place(&t)
	if !s.Closed() && s.Precision == 0 { // with a precision there are more runs
		return t, s.lengthen(&t, warm, span.Requests)
	}
	return t, nil
}

// lengthen has a level of an open loop last until as many requests as were asked for are due after its warm-up,
// where chance brings fewer of them than expected: when they are due is known by the seed.
func (s *Sweep) lengthen(t *Trial, warm time.Duration, warmRequests int64) error {
	seed, err := strconv.ParseUint(t.Seed, 10, 64)
	if err != nil {
		return err
	}
	process, err := arrival.ParseProcess(t.Load.Rate)
	if err != nil {
		return err
	}
	arrivals := process.From0(arrival.Stream(seed, ArrivalStream))
	due, after := time.Duration(0), int64(0)
	for n := int64(1); after < s.Requests && due < maxLevel; n++ {
		due += arrivals.Next()
		if warmRequests > 0 && n > warmRequests || warmRequests == 0 && due >= warm {
			after++
		}
	}
	t.Duration = max(t.Duration, due.Truncate(time.Millisecond)+time.Millisecond)
	return nil
}

// maxLevel is how long a level may last: a year, which ends a search for arrivals that never come.
const maxLevel = 365 * 24 * time.Hour

// place gives a trial its seed and its directory.
func (s *Sweep) place(t *Trial) {
	t.Seed = s.seed(t.Name)
	t.Results = s.Dir.Results(s.Folder, t.Name)
}

// sessionTrial is trial for a sweep by session: a further run measures as many trees as all
// before it, and one that sustains some times as many.
func (s *Sweep) sessionTrial(t *Trial, role string, load float64, measured time.Duration, m *measurement) {
	factor, arrivals := int64(1), ""
	if role == roleSustain {
		factor = sustainTrees
	}
	if m.runs > 0 {
		t.Name += fmt.Sprintf("-run-%d", m.runs+1)
		factor <<= m.runs - 1
		measured <<= m.runs - 1
	}
	if !s.Closed() {
		arrivals = processAt(s.Process, load)
	}
	s.Sessions.trial(t, load, s.Closed(), arrivals, factor, measured)
	s.place(t)
}

const (
	warmupTime     = 10 * time.Second
	warmupRequests = 50
	// With a precision the figures are narrow enough to show what is left of a start from idle.
	warmupPrecise = 30 * time.Second
	warmupShare   = 8  // of what is measured after it
	warmupSpans   = 10 // times as long as a request takes, or a session whose turns wait for each other
	warmupLeast   = 3  // of that, so that a first run counts
)

// seed is that of a level: the first 53 bits of a hash, so that any program that
// reads the JSON reads it whole.
func (s *Sweep) seed(name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "sweep %d %s", s.Seed, name))
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:])>>11, 10)
}

// measureOnce makes a trial, unless it is there whole. One whose client was the limit is made again.
func (s *Sweep) measureOnce(ctx context.Context, k Keys, t Trial, begins Beginning) (report.Summary, error) {
	for {
		if s.Begins != nil && !s.Dir.Has(t.Results) {
			s.Begins(begins)
		}
		made, err := s.Dir.Make(ctx, s.Target, s.Digest+" "+s.About, k, t)
		if err != nil {
			return report.Summary{}, err
		}
		summary, err := Summarise(t.Results, s.Report)
		if err != nil || made || s.clientLimit(&summary) == nil {
			return summary, err
		}
		if err := s.Dir.Drop(t.Results, "untrusted"); err != nil {
			return summary, err
		}
	}
}
