package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"reprise/replay/host"
	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
)

// tooLate is how far behind its time the dispatcher may be and still send by
// itself, at some 15 µs a request. When it is later, hundreds are due at once: then
// each goes to a goroutine, which other cores may run. A realtime thread sends
// whatever it can, since a goroutine would stand behind all that it need not.
const tooLate = 5 * time.Millisecond

// launch sends a flight from the dispatcher's own goroutine, if that can be done.
func (p *play) launch(ctx context.Context, s result.Shot, fl *flight) (read func()) {
	if !p.opt.Realtime && time.Duration(fl.at)-fl.due > tooLate {
		return nil
	}
	return p.runner.Endpoint.Launch(ctx, s, &fl.result)
}

// newPacer makes the pacer that the options and the Runner want.
func (r *Runner) newPacer(start time.Time) (pace.Pacer, error) {
	switch {
	case r.Pacer != nil:
		return r.Pacer(start)
	case r.Realtime:
		return pace.NewRealtime(start)
	}
	return pace.NewThread(start)
}

// Options are the settings of a run. The zero value replays at the recorded
// speed, without limits.
type Options struct {
	Speed         float64       // 2 is twice as fast; 0 means 1
	MaxInFlight   int           // requests at once; 0 means no limit
	Ahead         time.Duration // a request is prepared this long before it is due; 0 means 2 s
	Grace         time.Duration // from the end of the context to the end of the requests in flight; 0 means 5 s
	IncludeFailed bool          // send the rows that failed in the source too

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
	// RampUp is over how long a closed loop's places come, one after another; 0 is all
	// at once.
	RampUp time.Duration
	// Duration, when above zero, ends the sending: no row is sent that is due
	// then or later.
	Duration time.Duration
	// Warmup and Cooldown are the first and the last requests, which are sent and
	// not measured, see [result.Window]. Times count from the start, and back from the
	// last due time.
	Warmup, Cooldown Span

	// Realtime releases requests from a thread before which all others of the
	// machine give way, see [pace.NewRealtime], unless the Runner has a Pacer.
	Realtime bool
	// Origin, when set, says of which row of the workload, and of which round of a
	// [Loop], the row is that is read as the id-th. One goroutine calls it.
	Origin func(id int64) (row int64, round int32)
	// Endless says that the rows have no end, so that those left when the run is
	// over are not counted. It takes a Duration.
	Endless bool

	// Known, when set, is asked for every row that was sent, in the order in
	// which they were: how many leading prompt tokens earlier rows have sent. One
	// goroutine calls it.
	Known func(*trace.Request) int32
	// Thread, when set, puts the server's replies into the prompts of the turns
	// that follow, in a causal run. The Prompter must be a [result.Continuer].
	Thread *Threading
	// Progress, when set, is told each second and at the end how far the run is.
	Progress func(Progress)
	// Abort ends the sending when one of its conditions holds.
	Abort []Condition
	// Resume, when set, has a run that was killed go on.
	Resume *Resumption
	// Begun, when set, is told the instant at which the clock starts, and Measured,
	// when the first request that is measured is let go. Neither may block: the
	// sending waits for them.
	Begun    func(start time.Time)
	Measured func()
	// Metering is what is measured at the servers. Only [Runner.Record], which has
	// a place for it, does so.
	Metering Metering
	// Profile, when set, is told to start and stop the servers' profilers around
	// what is measured. Only Record does so.
	Profile Profiler
	// Then, when set, is called when all requests are over, unless the run ended
	// early, and may add to what is recorded of it. Its requests are not results.
	Then func(context.Context, *result.Run) error
	// About is what is known of the run before it begins; the Runner fills in
	// the rest.
	About result.Run

	wall func() time.Time // the wall clock; nil is the machine's
	hold int64            // bytes of rows that may wait for their parents; 0 is heldBytes
}

// A Runner replays a workload: a request is sent when it is due. In open loop
// that is its recorded time, or that of an arrival process, whatever became of
// those before it; in a causal run it depends on when its parents were over, and
// in a closed loop on when there is room.
type Runner struct {
	Prompter result.Prompter
	Endpoint result.Endpoint
	// Pacer makes the pacer that releases requests; nil means [pace.NewThread], or a realtime one. One
	// that is an io.Closer is closed after the last release. A Runner with a Pacer of its
	// own may be in virtual time, so that no heartbeat watches it for [result.Stalls].
	Pacer func(start time.Time) (pace.Pacer, error)
	Options
}

// Run replays rows and writes one Result for every request that was due, in
// order of completion, at the latest a second after it. Cancelling ctx ends the
// sending; requests in flight have [Options.Grace] to finish and are then cut,
// and every Result is written. An early end is said in [result.Run], and is no error;
// an error is a workload that could not be read, a pacer that failed or a
// writer that did, and comes with the Run so far. An in-flight request whose
// Endpoint has no time limit can hold the end of a run back.
func (r *Runner) Run(ctx context.Context, rows trace.Reader[trace.Request], out trace.Writer[result.Result]) (result.Run, error) {
	opt, err := r.Options.settled()
	if err != nil {
		return opt.About, err
	}
	host.GrowFiles()
	threads, err := r.threading(&opt)
	if err != nil {
		return opt.About, err
	}
	p := &play{opt: opt, runner: r, results: make(chan *result.Result, 1024), drift: drifts{limit: driftValues}, window: windower{warm: opt.Warmup, cool: opt.Cooldown}}
	if opt.MaxInFlight > 0 {
		p.slots = make(chan struct{}, opt.MaxInFlight)
	}
	p.feed = newFeeder(&p.opt, r, rows, p.results)
	p.window.resume(opt.Resume)
	p.feed.threads = threads
	run, err := p.run(ctx, out)
	if opt.Then != nil && err == nil && run.EndedEarly == "" {
		err = opt.Then(ctx, &run)
	}
	return run, err
}

// settled checks the options and puts the defaults in.
func (o Options) settled() (Options, error) {
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Ahead == 0 {
		o.Ahead = 2 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if !(o.Speed > 0) || math.IsInf(o.Speed, 0) || o.MaxInFlight < 0 || o.Ahead < 0 || o.Grace < 0 {
		return o, errors.New("replay: speed must be a positive number, and no limit or duration negative")
	}
	o.About.Schema = result.Schema
	if err := o.check(); err != nil {
		return o, err
	}
	o.About.Timing = o.timing()
	o.About.KeepThink, o.About.Concurrency = o.KeepThink, o.Concurrency
	if o.RampUp > 0 {
		o.About.RampUp = o.RampUp.String()
	}
	o.About.Plan = o.asked()
	if o.Warmup.Time > 0 {
		o.About.Window = &result.Window{From: &result.Place{DueNS: int64(o.Warmup.Time)}}
	}
	o.About.Speed, o.About.InFlightLimit = o.Speed, o.MaxInFlight
	o.About.Started = time.Now().UTC().Format(time.RFC3339Nano) // until the clock starts
	o.About.Realtime = o.Realtime
	if o.About.Cores == 0 {
		o.About.Cores = runtime.GOMAXPROCS(0)
	}
	if o.Resume != nil {
		o.Resume.carry(&o)
	}
	return o, nil
}

// A play is a run under way.
type play struct {
	opt     Options
	runner  *Runner
	feed    *feeder
	start   time.Time
	cost    host.Cost
	clock   clockWatch
	heart   heartbeat
	flights sync.WaitGroup
	results chan *result.Result

	slots   chan struct{} // nil without a limit
	blocked time.Duration // until when the limit last held the dispatcher
	held    int64
	sent    atomic.Int64
	left    int64 // prepared, and not sent
	peak    int64
	drift   drifts
	window  windower
	asked   chan *flight // whose known tokens are to be counted, in the order of sending
	lost    int64        // tokens that would be known if every reply were the one recorded

	inFlight atomic.Int64
	wasCut   atomic.Bool
}

func (p *play) run(ctx context.Context, out trace.Writer[result.Result]) (result.Run, error) {
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	flying, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	disarm := p.cutAfterGrace(sending, flying, cut)
	fed, collected := make(chan error, 1), make(chan error, 1)
	go func() { fed <- p.feed.run(sending) }()
	go func() { collected <- p.collect(out, stop) }()
	if p.opt.Known != nil {
		p.asked = make(chan *flight, preparedCalls)
		go p.count()
	}

	paceErr := p.dispatch(sending, flying)
	if paceErr != nil && sending.Err() == nil {
		stop(paceErr)
	}
	feedErr := <-fed
	p.left += int64(p.feed.line.len()) // what an early end left behind
	p.flights.Wait()
	if p.asked != nil {
		close(p.asked)
	}
	disarm()
	close(p.results)
	writeErr := <-collected
	return p.summary(context.Cause(sending), feedErr), errors.Join(feedErr, writeErr, realError(paceErr))
}

// realError drops what a cancelled context leaves behind: an early end is said
// in the Run.
func realError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// cutAfterGrace cuts the requests in flight some time after sending has ended, and
// at once when nobody can take note of them any more. The function that it returns ends the watch.
func (p *play) cutAfterGrace(sending, flying context.Context, cut func()) (disarm func()) {
	over := make(chan struct{})
	unwatch := context.AfterFunc(sending, func() {
		grace := p.opt.Grace
		if context.Cause(sending) == errWrite {
			grace = 0
		}
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			p.wasCut.Store(p.inFlight.Load() > 0)
			cut()
		case <-over:
		}
	})
	return func() { unwatch(); close(over) }
}

// dispatch releases what the feeder prepared, each when it is due.
func (p *play) dispatch(sending, flying context.Context) error {
	<-p.feed.primed
	p.cost.Begin()
	p.clock.begin(p.opt.wall)
	p.start = time.Now().Add(-p.opt.Resume.base())
	if p.opt.Resume == nil {
		p.opt.About.Started = p.start.UTC().Format(time.RFC3339Nano)
	}
	if p.runner.Pacer == nil {
		p.heart.begin(p.start)
	}
	p.feed.start = p.start
	close(p.feed.started)
	if p.opt.Begun != nil {
		p.opt.Begun(p.start)
	}
	pacer, err := p.runner.newPacer(p.start)
	if err != nil {
		return fmt.Errorf("replay: the pacer: %w", err)
	}
	if c, ok := pacer.(io.Closer); ok {
		defer c.Close()
	}
	return p.sendAll(sending, flying, pacer)
}

// sendAll sends flights until the line ends.
func (p *play) sendAll(sending, flying context.Context, pacer pace.Pacer) error {
	for {
		due, ok := p.feed.line.head()
		if !ok {
			return nil
		}
		if early, err := p.wait(sending, pacer, due); err != nil {
			return err
		} else if early {
			continue
		}
		fl := p.feed.line.take()
		if err := p.takeSlot(sending, fl.due); err != nil {
			p.left++
			return err
		}
		p.release(flying, fl)
		p.feed.line.letGo(fl) // after the sending, since it wakes the feeder
	}
}

// wait waits until the head of the line is due. It is early when a flight came
// that is due sooner.
func (p *play) wait(sending context.Context, pacer pace.Pacer, due time.Duration) (early bool, err error) {
	waiting, sooner := context.WithCancel(sending)
	defer sooner()
	p.feed.line.await(due, sooner)
	err = pacer.WaitUntil(waiting, due)
	if err != nil && waiting.Err() != nil && sending.Err() == nil {
		return true, nil
	}
	return false, err
}

// takeSlot waits at the limit of requests in flight. It counts a request as
// held back when the limit kept it past its due time, be it as the first in the
// line or behind another.
func (p *play) takeSlot(ctx context.Context, due time.Duration) error {
	if p.slots == nil {
		return nil
	}
	select {
	case p.slots <- struct{}{}:
		if due < p.blocked {
			p.held++
		}
		return nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
		p.held++
		p.blocked = time.Since(p.start)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release lets a request go, in a goroutine of its own: many that are due at
// one instant all start.
func (p *play) release(ctx context.Context, fl *flight) {
	p.sent.Add(1)
	p.peak = max(p.peak, p.inFlight.Add(1))
	fl.at = int64(time.Since(p.start))
	fl.result.ReleasedNS = &fl.at
	if p.window.sent(fl) && p.opt.Measured != nil {
		p.opt.Measured()
		p.opt.Measured = nil
	}
	if fl.turn {
		p.drift.add(fl.drift)
	}
	if p.asked != nil {
		fl.known.Lock()
		p.asked <- fl
	}
	shot := result.Shot{Call: fl.call, Start: p.start, Cut: fl.cut}
	if fl.handover != nil {
		shot.Reply = &fl.handover.reply
	}
	read := p.launch(ctx, shot, fl)
	p.flights.Go(func() {
		r := &fl.result
		if read != nil {
			read()
		} else {
			p.runner.Endpoint.Fire(ctx, shot, r)
		}
		if r.DoneNS == nil {
			r.DoneNS = trace.Ptr(int64(time.Since(p.start)))
		}
		fl.call = nil
		if fl.handover != nil {
			fl.handover.settle(p.opt.Thread.Encode, r)
		}
		p.inFlight.Add(-1) // before over, which may release the next in its place
		p.feed.over(ended{fl.id, time.Duration(*r.DoneNS), r.Failed(), fl.handover})
		fl.handover = nil
		if p.slots != nil {
			<-p.slots
		}
		fl.known.Lock() // counted
		p.results <- r
	})
}

// count says of each flight how many of its tokens those before it have sent. It
// works beside the sending, which it must not delay.
func (p *play) count() {
	for fl := range p.asked {
		fl.result.Known = trace.Ptr(p.known(fl))
		fl.row = nil
		fl.known.Unlock()
	}
}

// known is what is known of a flight's prompt. One that holds the server's reply
// is not what the workload's blocks say, and makes none of them known.
func (p *play) known(fl *flight) int32 {
	th := p.opt.Thread
	if th == nil {
		return p.opt.Known(fl.row)
	}
	whole := int32(0)
	if th.Whole != nil {
		whole = th.Whole(fl.row)
	}
	if fl.share != nil {
		return fl.share.known(fl.row)
	}
	known := p.opt.Known(fl.row)
	p.lost += int64(max(whole-known, 0))
	return known
}

// summary fills in what the run has learnt of itself.
func (p *play) summary(cause, feedErr error) result.Run {
	run, f := p.opt.About, p.feed
	run.Requests, run.MaxInFlight, run.HeldBack = p.sent.Load(), int(p.peak), p.held
	run.Excluded, run.NotSent = f.excluded, f.notSent+p.left
	run.Unprepared, run.Unready = f.unprepared, f.why
	run.Beyond, run.Window = f.beyond, p.window.window()
	run.Skipped, run.ReadLate, run.Drift = f.skipped, f.readLate, p.drift.summary()
	run.PlannedNS = int64(f.last - f.first)
	if c, ok := p.runner.Prompter.(result.TailCounter); ok {
		run.ShortTails = c.ShortTails()
	}
	if f.threads != nil {
		f.threads.stats.LostTokens = p.lost
		run.Thread = &f.threads.stats
	}
	run.ClientCPU, run.GCPauseMaxNS = p.cost.End()
	learnt := p.runner.Endpoint.Report()
	run.Odd, run.Served, run.Wire = learnt.Odd, learnt.Served, learnt.Wire
	jump, stalled := p.clock.end()
	run.ClockJumpNS, run.StalledNS = int64(jump), int64(stalled)
	run.Stalls = p.heart.end()
	p.opt.Resume.add(&run)
	switch {
	case cause != nil && (run.NotSent > 0 || p.wasCut.Load()):
		run.EndedEarly = reason(cause)
	case feedErr != nil:
		run.EndedEarly = errWorkload.Error()
	}
	return run
}

// reason puts the cause of an early end into words.
func reason(cause error) string {
	switch {
	case errors.Is(cause, context.Canceled):
		return "interrupted"
	case errors.Is(cause, context.DeadlineExceeded):
		return "the time limit was reached"
	}
	return cause.Error()
}
