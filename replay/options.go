package replay

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// Options are the settings of a run. The zero value replays at the recorded
// speed, without limits.
type Options struct {
	Speed         float64       // 2 is twice as fast; 0 means 1
	MaxInFlight   int           // requests at once; 0 means no limit
	Ahead         time.Duration // a request is prepared this long before it is due; 0 means 2 s
	Grace         time.Duration // from the end of the context to the end of the requests in flight; 0 means 5 s
	IncludeFailed bool          // also send the rows that failed in the source

	// Causal, when set, makes a row wait for its parents: it is due when they are
	// over plus its think and tool time, or, where neither is known, at the later
	// of its recorded time and their end. Rows without parents are due at their
	// recorded times. It must be read from the same workload.
	Causal    *Lineage
	KeepThink bool // Speed does not divide think and tool times

	// Arrivals, when set, replaces recorded times: those of the rows, in their
	// order, or in a causal run those of the rows without parents. Other recorded
	// times move with their session.
	Arrivals arrival.Process
	// Concurrency, when above zero, closes the loop: so many requests are in
	// flight, and the next row is due when one is over. Recorded times and parents
	// do not count.
	Concurrency int
	// Sessions, when set, makes the session tree the unit of load, in place of the rows that
	// are given to the Runner, Concurrency, Arrivals and Causal.
	Sessions *SessionLoad
	// Share, unless it is the whole, is what this process sends of a load that several send.
	// The rows are those of its own trees already, see [Trees.Deal] for a load of sessions,
	// and Arrivals are thinned, see [Thinning]. Concurrency, MaxInFlight and the live trees
	// of Sessions are of the whole load, and divided by it.
	Share result.Share
	// StartAt, unless it is zero, is the instant of the wall clock at which the clock of the run
	// starts. A run that is not ready by then ends with [ErrLateStart].
	StartAt time.Time
	// RampUp is the time over which a closed loop's slots open, one after another; 0 opens
	// all at once.
	RampUp time.Duration
	// Duration, when above zero, ends the sending: no row is sent that is due
	// then or later.
	Duration time.Duration
	// Warmup and Cooldown are the first and the last requests, which are sent and
	// not measured, see [result.Window]. Times count from the start, and back from the
	// last due time.
	Warmup, Cooldown Span

	// Realtime releases requests from a thread that runs before all others of the
	// machine, see [pace.NewRealtime], unless the Runner has a Pacer.
	Realtime bool
	// Origin, when set, returns the row of the workload, and the round of a [Loop], of
	// the row that is read as the id-th. One goroutine calls it.
	Origin func(id int64) (row int64, round int32)
	// Endless says that the rows have no end, so that those left when the run is
	// over are not counted. It needs a Duration.
	Endless bool

	// Known, when set, is asked for every row that was sent, in the order in
	// which they were, with its number among those that are read: how many leading prompt
	// tokens earlier rows have sent. One goroutine calls it.
	Known func(id int64, row *trace.Request) int32
	// Thread, when set, puts the server's replies into the prompts of the turns
	// that follow, in a causal run. The Prompter must be a [result.Continuer].
	Thread *Threading
	// Progress, when set, is called each second and at the end.
	Progress func(Progress)
	// Observe, when set, is called with each result when its request is over, by one
	// goroutine, which does not send. It may not change it.
	Observe func(*result.Result)
	// Abort ends the sending when one of its conditions holds.
	Abort []Condition
	// Begun, when set, is called with the instant at which the clock starts. It may not block:
	// the sending waits for it.
	Begun func(start time.Time)
	// Metering is what is measured at the servers. Only [Runner.Record] does so.
	Metering Metering
	// Then, when set, is called when all requests are over, unless the run ended
	// early, and may add to what is recorded of it. Its requests are not results.
	Then func(context.Context, *result.Run) error
	// Stamp, when set, is called when the results are whole, also after an early end, and may
	// add to what is recorded of the run what they say of it. Only Record does so.
	Stamp func(*result.Run, trace.Reader[result.Result]) error
	// About is what is known of the run before it begins; the Runner fills in
	// the rest.
	About result.Run

	wall         func() time.Time // the wall clock; nil is the machine's
	pendingLimit int64            // bytes of rows that may wait for their parents; 0 is pendingBytes
}

// maxCooldown bounds the requests of a cool-down, which are kept until the end.
const maxCooldown = 1 << 20

var (
	errClosed = errors.New("replay: a closed loop cannot be combined with parents, arrivals, speed or a limit in " +
		"flight, since the server sets the pace")
	errCooldown   = errors.New("replay: a cool-down can have at most a million requests")
	errThreadOpen = errors.New("replay: replies can go into later prompts only in a causal run")
)

// check refuses what makes no sense, alone or together.
func (o *Options) check() error {
	switch {
	case !(o.Speed > 0) || math.IsInf(o.Speed, 0) || o.MaxInFlight < 0 || o.Ahead < 0 || o.Grace < 0:
		return errors.New("replay: speed must be a positive number, and no limit or duration negative")
	case o.RampUp < 0 || o.RampUp > 0 && o.Concurrency == 0 && (o.Sessions == nil || o.Sessions.Live == 0):
		return errors.New("replay: a ramp-up needs a closed loop, and cannot be negative")
	case o.Concurrency < 0 || o.Duration < 0 || o.Warmup.bad() || o.Cooldown.bad():
		return errors.New("replay: neither concurrency, duration, warm-up nor cool-down may be negative")
	case o.Concurrency > 0 && (o.Causal != nil || o.Arrivals != nil || o.Speed != 1 || o.KeepThink ||
		o.MaxInFlight > 0):
		return errClosed
	case o.Arrivals != nil && o.Causal == nil && o.Speed != 1:
		return errors.New("replay: give arrivals or a speed, not both: arrivals replace the recorded times that a " +
			"speed divides")
	case o.Endless && o.Duration == 0:
		return errors.New("replay: a workload without an end needs a duration")
	case o.Thread != nil && o.Causal == nil && o.Sessions == nil:
		return errThreadOpen
	case o.Cooldown.Requests > maxCooldown:
		return errCooldown
	}
	if err := o.CheckShare(); err != nil {
		return err
	}
	return o.checkSessions()
}

// withDefaults checks the options, puts the defaults in, and fills in what About says
// of them.
func (o Options) withDefaults() (Options, error) {
	o.Speed = cmp.Or(o.Speed, 1)
	o.Ahead = cmp.Or(o.Ahead, 2*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	run := &o.About
	run.Schema = result.Schema
	if err := o.check(); err != nil {
		return o, err
	}
	run.Timing = result.OpenLoop
	switch {
	case o.Concurrency > 0 || o.Sessions != nil && o.Sessions.Live > 0:
		run.Timing = result.ClosedLoop
	case o.Causal != nil || o.Sessions != nil:
		run.Timing = result.Causal
	}
	run.KeepThink, run.Concurrency = o.KeepThink, o.Concurrency
	if o.RampUp > 0 {
		run.RampUp = o.RampUp.String()
	}
	if o.Sessions != nil {
		run.Sessions = o.Sessions.about(o.Warmup.Sessions)
	}
	run.Plan = result.Asked{
		DurationNS: int64(o.Duration), WarmupNS: int64(o.Warmup.Time), WarmupRequests: o.Warmup.Requests,
		CooldownNS: int64(o.Cooldown.Time), CooldownRequests: o.Cooldown.Requests, IncludeFailed: o.IncludeFailed,
	}
	if o.Warmup.Time > 0 {
		run.Window = &result.Window{From: &result.Place{DueNS: int64(o.Warmup.Time)}}
	}
	run.Speed, run.InFlightLimit = o.Speed, o.MaxInFlight
	run.Started = time.Now().UTC().Format(time.RFC3339Nano) // until the clock starts
	run.Realtime = o.Realtime
	run.Cores = cmp.Or(run.Cores, runtime.GOMAXPROCS(0))
	return o, o.sayShard()
}

// excludes says that a row is not sent, since it failed in the source.
func (o *Options) excludes(row *trace.Request) bool {
	return row.Status == trace.StatusFailed && !o.IncludeFailed
}

// recordedLength is how long a request took in the source, as far as is known.
func (o *Options) recordedLength(row *trace.Request) time.Duration {
	if row.E2ENS == nil {
		return 0
	}
	return o.scaled(max(*row.E2ENS, 0))
}

// cutAfter is how long after it was sent the client hangs up on a row, as its user did;
// 0 is never.
func (o *Options) cutAfter(row *trace.Request) time.Duration {
	if row.Status != trace.StatusCancelled || row.E2ENS == nil {
		return 0
	}
	return max(o.scaled(*row.E2ENS), 1) // also of one that was dropped at once
}

// scaled divides a recorded time by the speed.
func (o *Options) scaled(ns int64) time.Duration {
	if o.Speed == 1 {
		return time.Duration(ns)
	}
	return time.Duration(float64(ns) / o.Speed)
}

// thinking is how long a turn waits for who or what thinks.
func (o *Options) thinking(ns int64) time.Duration {
	if o.KeepThink {
		return time.Duration(ns)
	}
	return o.scaled(ns)
}

// origin returns the row of the workload, and the round, of the row that is read as the
// id-th.
func (o *Options) origin(id int64) (row int64, round int32) {
	if s := o.Sessions; s != nil {
		id, round = s.Trees.rowOf(id)
		if o.Origin != nil {
			id, _ = o.Origin(id)
		}
		return id, round
	}
	if o.Origin == nil {
		return id, 0
	}
	return o.Origin(id)
}

// newResult begins the Result of a row.
func (o *Options) newResult(w *pendingRow) result.Result {
	row := w.row
	at, round := o.origin(w.id)
	// One allocation for all that is copied: the row may be read over.
	own := struct {
		session, think, tool, arrival, e2e, user int64
		turn, output                             int32
	}{arrival: row.ArrivalNS}
	r := result.Result{
		RowID: at, Round: round, Category: row.Category, DueNS: int64(w.due),
		WantInput: row.InputTokens, WantOutput: copied(&own.output, row.OutputTokens), ArrivalNS: &own.arrival,
		Session: copied(&own.session, row.Session), Turn: copied(&own.turn, row.Turn),
		ThinkNS: copied(&own.think, row.ThinkNS), ToolNS: copied(&own.tool, row.ToolNS),
		RecordedE2ENS: copied(&own.e2e, row.E2ENS),
		User:          copied(&own.user, row.User), Model: row.Model, Adapter: row.Adapter,
	}
	for _, p := range row.Parents {
		if p >= 0 && p < w.id {
			at, _ := o.origin(p)
			r.Parents = append(r.Parents, at)
		}
	}
	if o.Sessions != nil {
		r.Thread, r.Turn, r.Play = w.thread, w.place, trace.Ptr(round)
	}
	if row.Class != nil {
		r.Class = *row.Class
	}
	return r
}

// copied is a pointer to a copy, in place, of what from points to; nil of nil.
func copied[T any](place, from *T) *T {
	if from == nil {
		return nil
	}
	*place = *from
	return place
}
