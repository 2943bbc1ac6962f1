package replay

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A flight is one row on its way from the workload to its Result.
type flight struct {
	id     int64 // among the rows that are read
	call   result.Call
	size   int64
	due    time.Duration
	drift  time.Duration // from its recorded time; of turns only
	turn   bool
	cut    time.Duration
	at     int64          // backs result.ReleasedNS
	row    *trace.Request // while result.Known is not counted
	known  sync.Mutex     // locked while result.Known is counted
	result result.Result

	share    *share    // where its prompt holds the server's own reply
	handover *handover // where a turn may follow
}

func (fl *flight) when() (time.Duration, int64) { return fl.due, fl.id }

// A feeder reads the workload and prepares each row some seconds before it is
// due. It stops at a bound and goes on when there is room. A row that it
// prepares too late is sent late, and keeps its due time.
//
// It is one goroutine that does one thing after another, always what is due
// soonest: read a row, or prepare one that was read. In open loop a row is due
// at its recorded time. In a causal run some wait for their parents first, and
// rows behind them in the file are read meanwhile.
type feeder struct {
	opt     *Options
	prompts result.Prompter
	end     result.Endpoint
	line    *line
	unready chan<- *result.Result // rows without a prompt

	rows  trace.Reader[trace.Request]
	batch []trace.Request // read, of which the first is the next
	next  int64           // its row
	eof   bool
	err   error // of reading

	kin     *kin           // of a causal run
	threads *threads       // nil without
	closed  *closed        // of a closed loop
	at      time.Duration  // the next of the arrivals
	timed   soonest[*held] // due and not prepared
	hand    *flight        // prepared, without room in the line
	bytes   int64          // held
	filled  bool           // the bound on held rows has stopped the reading

	mu      sync.Mutex
	reports []ended       // flights that are over
	news    chan struct{} // told of them; holds one

	// The clock starts when the first rows are prepared, so that a workload
	// that begins with a burst is not late from its first request on.
	primed  chan struct{}
	prime   sync.Once
	started chan struct{}
	start   time.Time // valid once started is closed

	// Counts, read after run returns.
	excluded, notSent, unprepared, skipped, readLate, beyond int64

	leftOut atomic.Int64 // excluded, skipped and beyond, for reports while it runs

	why         string
	any         bool
	first, last time.Duration // due times
}

func newFeeder(opt *Options, r *Runner, rows trace.Reader[trace.Request], unready chan<- *result.Result) *feeder {
	f := &feeder{
		opt: opt, prompts: r.Prompter, end: r.Endpoint, line: newLine(), unready: unready, rows: rows,
		news: make(chan struct{}, 1), primed: make(chan struct{}), started: make(chan struct{}),
	}
	if opt.Causal != nil {
		f.kin = &kin{opt: opt, elders: map[int64]*elder{}, base: opt.Resume.base()}
	}
	if opt.Concurrency > 0 {
		f.closed = newClosed(opt, f.line)
	}
	if opt.Arrivals != nil {
		f.at = opt.Arrivals.Next()
	}
	if r := opt.Resume; r != nil && len(r.done) > 0 {
		f.plan(time.Duration(r.dueFirst))
		f.plan(time.Duration(r.dueLast))
	}
	return f
}

// run feeds until every row has been. After the end of ctx it prepares no more
// and only counts, so that what was not sent is known.
func (f *feeder) run(ctx context.Context) error {
	defer f.line.end()
	defer f.ready()
	for ctx.Err() == nil && f.step(ctx) {
	}
	left := f.abandon()
	if ctx.Err() != nil {
		f.notSent += left
	} else {
		f.leaveOut(&f.beyond, left)
	}
	if f.err != nil {
		return errors.Join(errWorkload, f.err)
	}
	return nil
}

// errWorkload is what the run says of a workload that cannot be read; the
// details, which may hold a path, are in the error that Run returns.
var errWorkload = errors.New("the workload could not be read to its end")

func (f *feeder) ready() { f.prime.Do(func() { close(f.primed) }) }

// step does what is due soonest, or waits until something is. It is false when
// nothing is left.
func (f *feeder) step(ctx context.Context) bool {
	f.hear()
	if f.hand != nil && f.line.put(f.hand) {
		f.hand = nil
	}
	read, canRead := f.readAt()
	prepare, canPrepare := f.prepareAt()
	now, place := f.now(), never
	if f.closed != nil {
		place = f.closed.open(now)
	}
	switch {
	case canPrepare && prepare <= now && (!canRead || prepare <= read):
		f.prepare(heap.Pop(&f.timed).(*held))
	case canRead && read <= now:
		f.read()
	case !canRead && !canPrepare && f.hand == nil && (f.past(now) || f.waiting() == 0 && f.more() == nil):
		return false
	default:
		until := place
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

const never = time.Duration(1<<63 - 1)

// now is the time of the run, before it begins that of its beginning.
func (f *feeder) now() time.Duration {
	select {
	case <-f.started:
		return time.Since(f.start)
	default:
		return f.opt.Resume.base()
	}
}

// wait returns at an instant of the run, or sooner when there is news or room.
func (f *feeder) wait(ctx context.Context, until time.Duration) {
	f.ready()
	select {
	case <-f.started:
	case <-ctx.Done():
		return
	}
	var at <-chan time.Time
	if until != never {
		t := time.NewTimer(until - time.Since(f.start))
		defer t.Stop()
		at = t.C
	}
	var room <-chan struct{}
	if f.hand != nil {
		room = f.line.room
	}
	select {
	case <-at:
	case <-room:
	case <-f.news:
	case <-ctx.Done():
	}
}

// past says that nothing that may still come to be due is to be sent.
func (f *feeder) past(now time.Duration) bool {
	return f.opt.Duration > 0 && now >= f.opt.Duration
}

// waiting is the number of rows that were read and wait for a parent, or for
// room in a closed loop.
func (f *feeder) waiting() int {
	switch {
	case f.kin != nil:
		return f.kin.waiting
	case f.closed != nil:
		return f.closed.waiting()
	}
	return 0
}

// prepareAt says from when on the row that is due soonest is to be prepared.
func (f *feeder) prepareAt() (time.Duration, bool) {
	if len(f.timed) == 0 || f.hand != nil {
		return 0, false
	}
	return f.timed[0].due - f.opt.Ahead, true
}

// schedule takes the rows whose parents are over. A row that is not sent, since
// it failed in the source or a parent did here, is over at once, which may
// settle its children in turn.
func (f *feeder) schedule() {
	for len(f.kin.settled) > 0 {
		h := f.kin.settled[0]
		f.kin.settled = f.kin.settled[1:]
		f.settle(h)
	}
	f.kin.settled = nil
}

// settle schedules a row that waits for no other.
func (f *feeder) settle(h *held) {
	if !h.turn {
		f.begin(h)
	}
	before, done := f.opt.Resume.find(h.id)
	switch excluded := f.opt.excludes(h.row); {
	case done: // before the run was interrupted
		f.drop(h, ended{id: h.id, at: h.due, failed: before.failed})
		return
	case excluded:
		f.leaveOut(&f.excluded, 1)
		f.drop(h, ended{id: h.id, at: h.due + f.opt.recordedLength(h.row), failed: h.failed})
		return
	case h.failed:
		f.leaveOut(&f.skipped, 1)
		f.drop(h, ended{id: h.id, at: h.latest, failed: true})
		return
	case f.closed != nil:
		h.due = f.now() // of one without a prompt; the others get their place
		f.prepare(h)
		return
	case f.opt.Duration > 0 && h.due >= f.opt.Duration:
		f.leaveOut(&f.beyond, 1)
		f.drop(h, ended{id: h.id, at: h.due}) // what follows is due later still
		return
	}
	f.plan(h.due)
	heap.Push(&f.timed, h)
}

// begin gives a row without parents its due time. One that is left out and that
// nothing follows takes none of the arrivals.
func (f *feeder) begin(h *held) {
	h.due = f.opt.scaled(h.row.ArrivalNS)
	var e *elder
	if f.kin != nil {
		e = f.kin.elders[h.id]
	}
	if f.opt.Arrivals != nil && (e != nil || !f.opt.excludes(h.row)) {
		h.shift = f.at - h.due
		h.due = f.at
		f.at += f.opt.Arrivals.Next()
	}
	h.shift += f.opt.Resume.shift()
	h.due += f.opt.Resume.shift()
	h.plan = h.due
	if e != nil {
		e.shift = h.shift
	}
}

// leaveOut counts rows that are not sent.
func (f *feeder) leaveOut(why *int64, rows int64) {
	*why += rows
	f.leftOut.Add(rows)
}

// drop lets go of a row that is not sent.
func (f *feeder) drop(h *held, o ended) {
	if f.threads != nil {
		f.threads.leave(h.id, h.row)
	}
	if f.kin != nil {
		f.bytes -= h.size
		f.kin.end(o, f.next)
	}
}

// plan takes note of a due time.
func (f *feeder) plan(due time.Duration) {
	if !f.any {
		f.any, f.first, f.last = true, due, due
	}
	f.first, f.last = min(f.first, due), max(f.last, due)
}

// over reports that a flight has ended, from its own goroutine.
func (f *feeder) over(o ended) {
	switch {
	case f.closed != nil:
		f.closed.leave(o.at)
	case f.kin != nil:
		f.mu.Lock()
		f.reports = append(f.reports, o)
		f.mu.Unlock()
	default:
		return
	}
	tell(f.news)
}

// hear takes the reports of flights that have ended.
func (f *feeder) hear() {
	if f.kin == nil {
		return
	}
	f.mu.Lock()
	reports := f.reports
	f.reports = nil
	f.mu.Unlock()
	for _, o := range reports {
		if o.reply != nil {
			f.threads.answered(o.id, o.reply)
		}
		f.kin.end(o, f.next)
	}
	f.schedule()
}

// prepare makes the call of a row and queues it.
func (f *feeder) prepare(h *held) {
	row := h.row
	fl := &flight{id: h.id, due: h.due, turn: h.turn, drift: h.due - h.plan, result: f.opt.blank(h.id, row, h.due)}
	f.bytes -= h.size
	fl.cut = f.opt.cut(row)
	if err := f.call(h, fl); err != nil {
		f.spoil(h, fl, err)
		return
	}
	if f.opt.Known != nil {
		fl.row = row
	}
	fl.size = min(int64(fl.call.Size()), preparedBytes)
	if f.closed != nil {
		f.closed.hold(fl)
		return
	}
	if !f.line.put(fl) {
		f.ready()
		f.hand = fl
	}
}

// call makes the call of a flight.
func (f *feeder) call(h *held, fl *flight) (err error) {
	if f.threads == nil {
		fl.call, err = f.end.Prepare(fl.result.RowID, h.row, f.prompts)
		return err
	}
	f.threads.begin(h.id, h.row)
	fl.call, err = f.end.Prepare(fl.result.RowID, h.row, f.threads)
	f.threads.finish(fl, err)
	return err
}

// spoil gives a row that could not be prepared its Result.
func (f *feeder) spoil(h *held, fl *flight, err error) {
	fl.result.Error = result.KindPrepare
	f.unready <- &fl.result
	if f.unprepared++; f.unprepared == 1 {
		f.why = err.Error()
	}
	if f.kin != nil {
		f.kin.end(ended{id: h.id, at: h.due, failed: true}, f.next)
		f.schedule()
	}
}

// abandon counts what is left when the feeding ends early, to the end of the
// workload.
func (f *feeder) abandon() (left int64) {
	if f.closed != nil {
		f.plan(0)
		f.plan(f.closed.stop())
	}
	left = int64(len(f.timed) + f.waiting())
	if f.hand != nil {
		left++
	}
	if f.opt.Endless {
		return left
	}
	for row := f.more(); row != nil; row = f.more() {
		_, done := f.opt.Resume.find(f.next)
		switch {
		case done:
		case f.opt.excludes(row):
			f.leaveOut(&f.excluded, 1)
		default:
			left++
		}
		f.batch = f.batch[1:]
		f.next++
	}
	return left
}
