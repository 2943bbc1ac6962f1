package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"reprise/replay/host"
	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/crash"
)

// A Runner replays a workload: a request is sent when it is due. In open loop
// that is its recorded time, or that of an arrival process, whatever happened to
// the requests before it; in a causal run it depends on when its parents were over, and
// in a closed loop on when there is room.
type Runner struct {
	Prompter result.Prompter
	Endpoint result.Endpoint
	// Pacer makes the pacer that releases requests; nil means [pace.NewThread], or
	// [pace.NewRealtime] with Realtime. A pacer that is an io.Closer is closed after the
	// last release. A Runner with a Pacer of its own may be in virtual time, so no
	// heartbeat watches it for [result.Stalls].
	Pacer func(start time.Time) (pace.Pacer, error)
	Options
}

var errNoContinuer = errors.New("replay: the prompter cannot make the end of a prompt, which a reply in it needs")

// Run replays rows and writes one Result for every request that was due, in
// order of completion, at the latest a second after it. Cancelling ctx ends the
// sending; requests in flight have [Options.Grace] to finish and are then cut off,
// and every Result is written. An early end is no error: [result.Run] records it.
// Run returns an error, together with the Run so far, when the workload cannot be read,
// or the pacer or the writer fails. A request in flight whose Endpoint has no time limit
// can delay the end of a run.
func (r *Runner) Run(ctx context.Context, rows trace.Reader[trace.Request],
	out trace.Writer[result.Result]) (result.Run, error) {
	opt, err := r.Options.withDefaults()
	if err != nil {
		return opt.About, err
	}
	host.GrowFiles()
	p := &play{opt: opt, runner: r, results: make(chan *result.Result, 1024), drift: drifts{limit: driftValues},
		window: windowTracker{warm: opt.Warmup, cool: opt.Cooldown}}
	if opt.MaxInFlight > 0 {
		p.slots = make(chan struct{}, opt.Share.Count(opt.MaxInFlight))
	}
	p.feed = newFeeder(&p.opt, rows, p.results)
	p.feed.prompts, p.feed.endpoint = r.Prompter, r.Endpoint
	if trees := p.feed.sched.trees; trees != nil {
		p.window.ended, p.window.trees = trees.ended, trees.window
	}
	if opt.Thread != nil {
		prompts, ok := r.Prompter.(result.Continuer)
		if !ok {
			return opt.About, errNoContinuer
		}
		p.feed.sched.threads = newThreads(opt.Thread, p.feed.sched.following, prompts)
	}
	run, err := p.run(ctx, out)
	if opt.Then != nil && err == nil && run.EndedEarly == "" {
		err = opt.Then(ctx, &run)
	}
	return run, err
}

// Record runs r, writes a journal beside path, named [result.JournalName], and finishes
// it into a results file at path. A run that fails is recorded as far as it
// came. The journal is removed when the results are whole, and stays when they cannot
// be written.
func (r *Runner) Record(ctx context.Context, rows trace.Reader[trace.Request], path string) (result.Run, error) {
	opt, err := r.Options.withDefaults()
	if err != nil {
		return opt.About, err
	}
	if left := opt.untilStart(); !opt.StartAt.IsZero() && left < 0 {
		return opt.About, opt.late(-left)
	}
	name := result.JournalName(path)
	journal, err := result.CreateJournal(name, opt.About)
	if err != nil {
		return opt.About, err
	}
	meter, err := newMeter(r.Metering, path, &opt.About)
	if err != nil {
		return opt.About, errors.Join(err, journal.Close(), os.Remove(name))
	}
	metered := *r
	metered.Begun = meter.prepare(ctx, metered.Begun)
	run, err := metered.Run(ctx, rows, journal)
	meter.over()
	if errors.Is(err, ErrLateStart) { // nothing was sent, so that nothing is to be kept
		return run, errors.Join(err, journal.Close(), meter.drop(), os.Remove(name))
	}
	err = errors.Join(err, journal.Close(), meter.end(ctx, &run))
	if r.Stamp != nil {
		err = errors.Join(err, stamp(name, &run, r.Stamp))
	}
	return run, errors.Join(err, result.Finish(name, path, run))
}

// stamp hands the results of a journal to what adds to the run what they say of it.
func stamp(name string, run *result.Run, add func(*result.Run, trace.Reader[result.Result]) error) error {
	journal, err := result.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(add(run, journal.Reader()), journal.Close())
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

	slots    chan struct{} // nil without a limit of requests in flight
	blocked  time.Duration // until when the limit last kept the dispatcher waiting
	heldBack int64
	sent     atomic.Int64
	left     []*flight // prepared, and not sent
	peak     int64
	drift    drifts
	window   windowTracker

	uncounted  chan *flight // whose known tokens are to be counted, in the order of sending; nil where nobody asks
	lostTokens int64        // that would be known if every reply were the one recorded

	inFlight atomic.Int64
	wasCut   atomic.Bool
}

func (p *play) run(ctx context.Context, out trace.Writer[result.Result]) (result.Run, error) {
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	flying, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	disarm := p.cutAfterGrace(sending, cut)
	fed, collected := make(chan error, 1), make(chan error, 1)
	go func() {
		defer crash.Caught()
		fed <- p.feed.run(sending)
	}()
	c := collector{out: out, stop: stop, stalls: p.heart.takeNew, observe: p.opt.Observe}
	if p.opt.Progress != nil || len(p.opt.Abort) > 0 {
		c.meters = newMeters()
	}
	if len(p.opt.Abort) > 0 {
		c.aborter = &aborter{conditions: p.opt.Abort}
	}
	go func() {
		defer crash.Caught()
		collected <- c.run(p.results, p.report)
	}()
	if p.opt.Known != nil {
		p.uncounted = make(chan *flight, preparedCalls)
		// Counting runs beside the sending, which it must not delay.
		go func() {
			defer crash.Caught()
			for fl := range p.uncounted {
				fl.result.Known = trace.Ptr(p.known(fl))
				fl.row = nil
				fl.counted.Done()
			}
		}()
	}

	paceErr := p.dispatch(sending, flying)
	if paceErr != nil && sending.Err() == nil {
		stop(paceErr)
	}
	feedErr := <-fed
	p.left = append(p.left, p.feed.queue.left()...) // by an early end
	for _, fl := range p.left {
		p.feed.sched.counts.cut.add(&fl.result)
	}
	p.flights.Wait()
	if p.uncounted != nil {
		close(p.uncounted)
	}
	disarm()
	close(p.results)
	writeErr := <-collected
	if errors.Is(paceErr, context.Canceled) || errors.Is(paceErr, context.DeadlineExceeded) {
		paceErr = nil // an early end is said in the Run
	}
	return p.summary(context.Cause(sending), feedErr), errors.Join(feedErr, writeErr, paceErr)
}

// cutAfterGrace cuts the requests in flight some time after sending has ended, and
// at once when their results can no longer be written. The function that it returns ends
// the watch.
func (p *play) cutAfterGrace(sending context.Context, cut func()) (disarm func()) {
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

// dispatch starts the clock, and releases what the feeder prepared, each request when
// it is due.
func (p *play) dispatch(sending, flying context.Context) error {
	<-p.feed.clock.primed
	at, err := p.opt.awaitStart(sending.Done())
	p.cost.Begin()
	p.clock.begin(p.opt.wall)
	p.start = at
	p.opt.About.Started = p.start.UTC().Format(time.RFC3339Nano)
	if p.runner.Pacer == nil {
		p.heart.begin(p.start, p.runner.Endpoint)
	}
	p.feed.clock.start = p.start
	close(p.feed.clock.started)
	if err != nil {
		return err
	}
	if p.opt.Begun != nil {
		p.opt.Begun(p.start)
	}
	var pacer pace.Pacer
	switch {
	case p.runner.Pacer != nil:
		pacer, err = p.runner.Pacer(p.start)
	case p.runner.Realtime:
		pacer, err = pace.NewRealtime(p.start)
	default:
		pacer, err = pace.NewThread(p.start)
	}
	if err != nil {
		return fmt.Errorf("replay: the pacer: %w", err)
	}
	if c, ok := pacer.(io.Closer); ok {
		defer c.Close()
	}
	queue := p.feed.queue
	for {
		due, ok := queue.nextDue()
		if !ok {
			return nil
		}
		if early, err := p.wait(sending, pacer, due); err != nil {
			return err
		} else if early {
			continue
		}
		fl := queue.pop()
		if err := p.takeSlot(sending, fl.due); err != nil {
			p.left = append(p.left, fl)
			return err
		}
		p.release(flying, fl)
		queue.freeRoom(fl) // after the sending, since it wakes the feeder
	}
}

// wait waits until the request that is due next is due. It is early when another came
// that is due sooner.
func (p *play) wait(sending context.Context, pacer pace.Pacer, due time.Duration) (early bool, err error) {
	waiting, sooner := context.WithCancel(sending)
	defer sooner()
	p.feed.queue.interruptWait(due, sooner)
	err = pacer.WaitUntil(waiting, due)
	if err != nil && waiting.Err() != nil && sending.Err() == nil {
		return true, nil
	}
	return false, err
}

// takeSlot waits at the limit of requests in flight. It counts a request as
// held back when the limit kept it past its due time, whether as the first in the
// queue or after another.
func (p *play) takeSlot(ctx context.Context, due time.Duration) error {
	if p.slots == nil {
		return nil
	}
	select {
	case p.slots <- struct{}{}:
		if due < p.blocked {
			p.heldBack++
		}
		return nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
		p.heldBack++
		p.blocked = time.Since(p.start)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tooLate is how late the dispatcher may be and still send by itself, at some 15 µs a
// request. When it is later, hundreds are due at once: then each goes to a goroutine,
// which other cores may run. A realtime thread sends whatever it can, since a
// goroutine would wait behind work that the thread overtakes.
const tooLate = 5 * time.Millisecond

// release sends a request, or has it sent, and reads the answer in a goroutine of its
// own: many that are due at one instant all start.
func (p *play) release(ctx context.Context, fl *flight) {
	p.sent.Add(1)
	p.peak = max(p.peak, p.inFlight.Add(1))
	fl.at = int64(time.Since(p.start))
	fl.result.ReleasedNS = &fl.at
	place := result.Place{DueNS: int64(fl.due), Row: fl.result.RowID, Round: fl.result.Round}
	p.window.addSent(place)
	if fl.turn {
		p.drift.add(fl.drift)
	}
	if p.uncounted != nil {
		fl.counted.Add(1)
		p.uncounted <- fl
	}
	shot := result.Shot{Call: fl.call, Start: p.start, Cut: fl.cut}
	if fl.reply != nil {
		shot.Reply = &fl.reply.reply
	}
	var read func()
	if p.opt.Realtime || time.Duration(fl.at)-fl.due <= tooLate {
		read = p.runner.Endpoint.Launch(ctx, shot, &fl.result)
	}
	p.flights.Go(func() {
		defer crash.Caught()
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
		if fl.reply != nil {
			fl.reply.findTokens(p.opt.Thread, r)
		}
		p.inFlight.Add(-1) // before the report, which may release the next in its place
		p.feed.reportEnd(rowEnd{id: fl.id, at: time.Duration(*r.DoneNS), failed: r.Failed(),
			large: r.Error == result.KindTooLong, reply: fl.reply})
		fl.reply = nil
		if p.slots != nil {
			<-p.slots
		}
		fl.counted.Wait()
		p.results <- r
	})
}

// known is what is known of a request's prompt. A prompt that holds the server's reply
// is not what the workload's blocks say, and makes none of them known.
func (p *play) known(fl *flight) int32 {
	th := p.opt.Thread
	if th == nil {
		return p.opt.Known(fl.id, fl.row)
	}
	whole := int32(0)
	if th.Whole != nil {
		whole = th.Whole(fl.row)
	}
	if fl.prefix != nil {
		return fl.prefix.known(fl.row)
	}
	known := p.opt.Known(fl.id, fl.row)
	p.lostTokens += int64(max(whole-known, 0))
	return known
}

// report reports the progress of the run, and ends it when a condition holds.
func (p *play) report(c *collector) {
	select {
	case <-p.feed.clock.started:
	default:
		return // still preparing
	}
	if c.meters == nil {
		return
	}
	now := time.Since(p.feed.clock.start)
	// In flight before sent: a request that is released in between counts as sent at least.
	inFlight := p.inFlight.Load()
	out := Progress{Elapsed: now, Done: c.done, Failed: c.failed, LeftOut: p.feed.sched.counts.leftOut.Load(),
		InFlight: int(inFlight), Sent: p.sent.Load()}
	out.Due = out.Sent + p.feed.queue.overdue(now)
	// The conditions first: a report that takes long must not keep a run from its end.
	if a := c.aborter.look(c.done-c.told[0], c.failed-c.told[1], inFlight, c.meters); a != nil {
		c.stop(a) // the first cause counts
	}
	c.told = [2]int64{c.done, c.failed}
	c.meters.report(&out)
	out.Stalled = p.heart.total()
	if p.opt.Progress != nil {
		p.opt.Progress(out)
	}
}

// summary fills in what the run has learnt of itself. cause is that of its early end.
func (p *play) summary(cause, feedErr error) result.Run {
	run, counts := p.opt.About, &p.feed.sched.counts
	run.Requests, run.MaxInFlight, run.HeldBack = p.sent.Load(), int(p.peak), p.heldBack
	run.Excluded, run.NotSent = counts.excluded, counts.notSent+int64(len(p.left))
	run.Unprepared, run.Unready = counts.unprepared, counts.unready
	run.Beyond, run.Window = counts.beyond, p.window.window()
	run.Cut = counts.cut.summary(run.Beyond + run.NotSent)
	run.Skipped, run.ReadLate, run.Drift = counts.skipped, counts.readLate, p.drift.summary()
	run.PlannedNS = int64(counts.lastDue - counts.firstDue)
	if c, ok := p.runner.Prompter.(result.TailCounter); ok {
		run.ShortTails = c.ShortTails()
	}
	p.feed.sched.sayTrees(&run)
	if t := p.feed.sched.threads; t != nil {
		t.stats.LostTokens = p.lostTokens
		run.Thread = &t.stats
	}
	run.ClientCPU, run.GCPauseMaxNS = p.cost.End()
	run.CPU = p.cost.CPU()
	learnt := p.runner.Endpoint.Report()
	run.Odd, run.Said, run.Served, run.Wire = learnt.Odd, learnt.Said, learnt.Served, learnt.Wire
	jump, stalled := p.clock.end()
	run.ClockJumpNS, run.StalledNS = int64(jump), int64(stalled)
	run.Stalls = p.heart.end()
	took := time.Since(p.feed.clock.start)
	unended := p.opt.Endless && took < p.opt.Duration
	if p.opt.Endless {
		run.NotSent = 0 // of rows without an end none is left, but those that waited
	}
	switch {
	case cause != nil && (run.NotSent > 0 || p.wasCut.Load() || unended):
		switch {
		case errors.Is(cause, context.Canceled):
			run.EndedEarly = "interrupted"
		case errors.Is(cause, context.DeadlineExceeded):
			run.EndedEarly = "the time limit was reached"
		default:
			run.EndedEarly = cause.Error()
		}
		if unended { // there is no number of requests that says how much is missing
			run.EndedEarly += fmt.Sprintf(", after %v of %v", took.Round(time.Second), p.opt.Duration)
		}
	case feedErr != nil:
		run.EndedEarly = errWorkload.Error()
	}
	return run
}
