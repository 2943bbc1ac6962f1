package replay

import (
	"context"
	"errors"
	"sync"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A feeder prepares each row some seconds before it is due. It stops at a bound and
// goes on when there is room. A row that it prepares too late is sent late, and keeps
// its due time.
//
// It is one goroutine that does one thing after another, always what is due
// soonest: read a row, or prepare one that was read. In open loop a row is due
// at its recorded time. In a causal run some wait for their parents first, and
// rows after them in the file are read meanwhile.
type feeder struct {
	opt    *Options
	sched  *scheduler
	closed *closedLoop // nil without
	clock  startClock
	ends   endReports

	// Preparing.
	prompts  result.Prompter
	endpoint result.Endpoint
	queue    *readyQueue
	blocked  *flight               // prepared, without room in the queue
	unready  chan<- *result.Result // takes the results of rows without a prompt
}

// A startClock starts when the first rows are prepared, so that a workload that begins
// with a burst is not late from its first request on.
type startClock struct {
	prime   sync.Once
	primed  chan struct{} // closed when the first rows are prepared
	started chan struct{} // closed when the clock runs
	start   time.Time     // valid once started is closed
}

func (c *startClock) setPrimed() { c.prime.Do(func() { close(c.primed) }) }

// now is the time of the run.
func (c *startClock) now() time.Duration {
	select {
	case <-c.started:
		return time.Since(c.start)
	default:
		return 0
	}
}

// endReports take how requests ended, from their goroutines to the feeder.
type endReports struct {
	mu   sync.Mutex
	ends []rowEnd
	news chan struct{} // holds one
}

// newFeeder makes a feeder without what it prepares with: prompts, an endpoint and
// threads.
func newFeeder(opt *Options, rows trace.Reader[trace.Request], unready chan<- *result.Result) *feeder {
	f := &feeder{
		opt: opt, unready: unready,
		queue: &readyQueue{filled: make(chan struct{}, 1), room: make(chan struct{}, 1)},
		ends:  endReports{news: make(chan struct{}, 1)},
		clock: startClock{primed: make(chan struct{}), started: make(chan struct{})},
	}
	f.sched = newScheduler(opt, rows, f.clock.now)
	if opt.Concurrency > 0 {
		f.closed = &closedLoop{limit: opt.Share.Count(opt.Concurrency), until: opt.Duration, queue: f.queue,
			rampUp: opt.slotTimes()}
	}
	return f
}

// run feeds until every row has been. After the end of ctx it prepares no more
// and only counts, so that what was not sent is known.
func (f *feeder) run(ctx context.Context) error {
	defer f.queue.close()
	defer f.clock.setPrimed()
	for ctx.Err() == nil && f.step(ctx) {
	}
	counts := &f.sched.counts
	left := int64(0)
	if f.closed != nil {
		counts.noteDue(0)
		counts.noteDue(f.closed.stop())
		left = int64(f.closed.waiting())
		for _, fl := range f.closed.prepared {
			counts.cut.add(&fl.result)
		}
	}
	if f.blocked != nil {
		counts.cut.add(&f.blocked.result)
		left++
	}
	left += f.sched.countUnsent()
	if ctx.Err() != nil {
		counts.notSent += left
	} else {
		counts.leave(&counts.beyond, left)
	}
	if err := f.sched.readErr(); err != nil {
		return errors.Join(errWorkload, err)
	}
	return nil
}

// step does what is due soonest, or waits until something is. It is false when
// nothing is left.
func (f *feeder) step(ctx context.Context) bool {
	f.takeEnds()
	if trees := f.sched.trees; trees != nil && trees.window.isOver() {
		return false
	}
	f.capIdle()
	if f.blocked != nil && f.queue.push(f.blocked, false) {
		f.blocked = nil
	}
	read, canRead := f.nextRead()
	var prepare time.Duration // from when on the row that is due soonest is to be prepared
	canPrepare := len(f.sched.due) > 0 && f.blocked == nil
	if canPrepare {
		prepare = f.sched.due[0].due - f.opt.Ahead
	}
	now, slotOpens := f.clock.now(), never
	waiting := f.sched.waiting()
	if f.closed != nil {
		slotOpens = f.closed.openSlots(now)
		waiting = f.closed.waiting()
	}
	switch {
	case canPrepare && prepare <= now && (!canRead || prepare <= read):
		f.prepare(f.sched.takeDue())
	case canRead && read <= now:
		f.readRow()
	case !canRead && !canPrepare && f.blocked == nil && (f.pastDuration(now) || waiting == 0 && f.sched.allRead()):
		return false
	case f.stage():
	default:
		until := slotOpens
		if f.opt.Duration > now {
			until = min(until, f.opt.Duration)
		}
		if canRead {
			until = min(until, read)
		}
		if canPrepare {
			until = min(until, prepare)
		}
		f.wait(ctx, until)
	}
	return true
}

// nextRead says from when on the next row must be read. A closed loop reads as soon as
// it wants a row.
func (f *feeder) nextRead() (time.Duration, bool) {
	if f.closed == nil {
		return f.sched.nextRead()
	}
	return 0, f.sched.rows.peek() != nil && f.closed.wantsRow() && !f.pastDuration(f.clock.now())
}

func (f *feeder) readRow() {
	if f.closed == nil {
		f.sched.readRow()
		return
	}
	w := &pendingRow{row: f.sched.rows.peek()}
	w.id = f.sched.rows.skip()
	if f.sched.accept(w) {
		w.due = f.clock.now() // of one without a prompt; the others get that of their slot
		f.prepare(w)
	}
}

// pastDuration says that nothing that may still become due is to be sent.
func (f *feeder) pastDuration(now time.Duration) bool {
	return f.opt.Duration > 0 && now >= f.opt.Duration
}

// wait returns at an instant of the run, or sooner when a request ends or there is
// room.
func (f *feeder) wait(ctx context.Context, until time.Duration) {
	f.clock.setPrimed()
	select {
	case <-f.clock.started:
	case <-ctx.Done():
		return
	}
	var at <-chan time.Time
	if until != never {
		t := time.NewTimer(until - time.Since(f.clock.start))
		defer t.Stop()
		at = t.C
	}
	var room <-chan struct{}
	if f.blocked != nil {
		room = f.queue.room
	}
	select {
	case <-at:
	case <-room:
	case <-f.ends.news:
	case <-ctx.Done():
	}
}

// reportEnd takes note that a request has ended. The request's own goroutine calls it.
func (f *feeder) reportEnd(end rowEnd) {
	switch {
	case f.closed != nil:
		f.closed.freeSlot(end.at)
	case f.sched.ordered():
		f.ends.mu.Lock()
		f.ends.ends = append(f.ends.ends, end)
		f.ends.mu.Unlock()
	default:
		return
	}
	wake(f.ends.news)
}

// takeEnds schedules the rows that waited for requests that have ended.
func (f *feeder) takeEnds() {
	if !f.sched.ordered() {
		return
	}
	f.ends.mu.Lock()
	ends := f.ends.ends
	f.ends.ends = nil
	f.ends.mu.Unlock()
	for _, end := range ends {
		if end.reply != nil {
			f.sched.threads.setReply(end.id, end.reply)
		}
		f.sched.noteEnd(end)
	}
	f.sched.scheduleReady()
}

// prepare makes the call of a row, unless it was made before, and queues it. A row that
// cannot be prepared gets its Result at once.
func (f *feeder) prepare(w *pendingRow) {
	fl := w.prepared
	if fl == nil {
		var err error
		if fl, err = f.makeCall(w); err != nil {
			fl.result.Error = result.KindPrepare
			f.unready <- &fl.result
			counts := &f.sched.counts
			if counts.unprepared++; counts.unprepared == 1 {
				counts.unready = err.Error()
			}
			f.sched.rowEnded(rowEnd{id: w.id, at: w.due, failed: true})
			return
		}
	}
	fl.due, fl.result.DueNS = w.due, int64(w.due)
	if f.closed != nil {
		f.closed.addPrepared(fl)
		return
	}
	if !f.queue.push(fl, false) {
		f.clock.setPrimed()
		f.blocked = fl
	}
}

// makeCall makes the call of a row. The flight is never nil.
func (f *feeder) makeCall(w *pendingRow) (fl *flight, err error) {
	fl = &flight{id: w.id, due: w.due, turn: w.turn, drift: w.due - w.plan, cut: f.opt.cutAfter(w.row),
		result: f.opt.newResult(w)}
	if threads := f.sched.threads; threads == nil {
		fl.call, err = f.endpoint.Prepare(fl.result.RowID, fl.result.Round, w.row, f.prompts)
	} else {
		threads.startTurn(w.id, w.row)
		fl.call, err = f.endpoint.Prepare(fl.result.RowID, fl.result.Round, w.row, threads)
		fl.prefix, fl.reply = threads.finishTurn(err)
	}
	if err != nil {
		return fl, err
	}
	if f.opt.Known != nil {
		fl.row = w.row
	}
	fl.size = min(int64(fl.call.Size()), preparedBytes)
	return fl, nil
}

// What is prepared of trees that have not started is bounded in number and memory.
const (
	stagedTrees = 16
	stagedBytes = 64 << 20
)

// stage prepares the first row of a tree before it is known when the tree starts, so that a
// place that becomes free does not stay empty meanwhile. It is false where there is
// nothing to prepare.
func (f *feeder) stage() bool {
	trees := f.sched.trees
	if trees == nil || !trees.limited() || f.pastDuration(f.clock.now()) {
		return false
	}
	bytes := int64(0)
	for i := 0; i < min(stagedTrees, f.opt.Share.Count(max(trees.load.Live, trees.load.MaxLive))); i++ {
		if i == len(trees.ahead) && !trees.loadAhead() {
			return false
		}
		t := trees.ahead[i]
		if t.staged != nil {
			bytes += t.staged.size
		}
		if t.tried || bytes >= stagedBytes {
			continue
		}
		t.tried = true
		if w := trees.firstRow(t); w != nil {
			if fl, err := f.makeCall(w); err == nil {
				t.staged = fl
			}
		}
		return true
	}
	return false
}

// capIdle shortens the time in which the whole system is idle.
func (f *feeder) capIdle() {
	if f.sched.trees == nil {
		return
	}
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	ahead, first := len(q.flights), never
	if ahead > 0 {
		first = q.flights[0].due
	}
	if f.blocked != nil {
		ahead++
		first = min(first, f.blocked.due)
	}
	by := f.sched.capIdle(f.clock.now(), ahead, first)
	if by == 0 {
		return
	}
	for _, fl := range append(q.flights[:len(q.flights):len(q.flights)], f.blocked) {
		if fl != nil {
			fl.due -= by
			fl.result.DueNS -= int64(by)
		}
	}
	if q.sooner != nil {
		q.sooner()
	}
}
