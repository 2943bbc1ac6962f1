package replay

import (
	"container/heap"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// What is read and not yet prepared is bounded by memory and by number, so that
// rows of the file can be read while others wait for their parents.
const (
	pendingBytes = 256 << 20
	pendingRows  = 1 << 20
)

// errWorkload is the run's error for a workload that cannot be read; the
// details, which may hold a path, are in the error that Run returns.
var errWorkload = errors.New("the workload could not be read to its end")

// A scheduler reads the workload and finds when each row is due: at its recorded time,
// at that of an arrival process, or when its parents are over. It has no clock and no
// goroutine of its own; whoever uses it takes the rows out of the heap of those that
// are due. Rows of a closed loop get their due time from the [closedLoop].
type scheduler struct {
	opt     *Options
	now     func() time.Duration
	rows    rowReader
	deps    *dependencyTracker // of a causal run
	trees   *liveTrees         // of a load of sessions; rows is not used then
	threads *threads           // nil without

	nextArrival time.Duration
	due         soonest[*pendingRow] // that are to be prepared
	bytes       int64                // of pending rows
	readBlocked bool                 // the bound on pending rows has stopped the reading
	counts      rowCounts
}

// rowCounts are why rows were not sent as planned, and when the others were due. All
// but leftOut are read when the scheduling is over.
type rowCounts struct {
	excluded, notSent, unprepared, skipped, readLate, beyond int64

	cut     cutSessions  // that have some of them
	leftOut atomic.Int64 // excluded, skipped and beyond, for reports during the run

	unready           string // why the first of unprepared had no prompt
	anyDue            bool
	firstDue, lastDue time.Duration
}

// leave counts rows that are not sent.
func (c *rowCounts) leave(why *int64, rows int64) {
	*why += rows
	c.leftOut.Add(rows)
}

func (c *rowCounts) noteDue(due time.Duration) {
	if !c.anyDue {
		c.anyDue, c.firstDue, c.lastDue = true, due, due
	}
	c.firstDue, c.lastDue = min(c.firstDue, due), max(c.lastDue, due)
}

func newScheduler(opt *Options, rows trace.Reader[trace.Request], now func() time.Duration) *scheduler {
	s := &scheduler{opt: opt, now: now, rows: rowReader{src: rows}}
	if opt.Causal != nil {
		s.deps = &dependencyTracker{opt: opt, parents: map[int64]*parentRow{}}
	}
	if opt.Sessions != nil {
		s.trees = newLiveTrees(opt)
	}
	if opt.Arrivals != nil {
		s.nextArrival = opt.Arrivals.Next()
	}
	return s
}

// A rowReader reads a workload row by row.
type rowReader struct {
	src   trace.Reader[trace.Request]
	batch []trace.Request // read; the first is the next row
	next  int64           // number of the next row
	eof   bool
	err   error
}

// peek returns the next row, which may read some; nil is the end. The batch is a new
// one each time: its rows may be kept.
func (r *rowReader) peek() *trace.Request {
	for len(r.batch) == 0 && !r.eof {
		batch := make([]trace.Request, 128)
		n, err := r.src.Read(batch)
		r.batch = batch[:n]
		if err != nil {
			r.eof = true
			if err != io.EOF {
				r.err = err
			}
		}
	}
	if len(r.batch) == 0 {
		return nil
	}
	return &r.batch[0]
}

// skip passes the row that peek returned, and returns its number.
func (r *rowReader) skip() (id int64) {
	r.batch = r.batch[1:]
	r.next++
	return r.next - 1
}

// nextRead says from when on the next row must be read: when it is due itself, or
// an unread child of a row that is over. It is false at the end of the workload and
// at the bound on pending rows.
func (s *scheduler) nextRead() (time.Duration, bool) {
	if s.trees != nil {
		at, ok := s.trees.nextStart()
		return at - s.opt.Ahead, ok
	}
	row := s.rows.peek()
	if row == nil {
		return 0, false
	}
	due := s.opt.scaled(row.ArrivalNS)
	if s.opt.Arrivals != nil {
		due = s.nextArrival
	}
	if d := s.deps; d != nil {
		for len(d.unread) > 0 && d.unread[0].row < s.rows.next {
			heap.Pop(&d.unread) // it was read since
		}
		if len(d.unread) > 0 {
			due = min(due, d.unread[0].due)
		}
	}
	if s.opt.Duration > 0 && due >= s.opt.Duration {
		return 0, false
	}
	limit := int64(pendingBytes)
	if s.opt.pendingLimit > 0 {
		limit = s.opt.pendingLimit
	}
	// One row may always be pending.
	if n := len(s.due) + s.waiting(); n > 0 && (s.bytes >= limit || n >= pendingRows) {
		s.readBlocked = s.readBlocked || due-s.opt.Ahead <= s.now()
		return 0, false
	}
	return due - s.opt.Ahead, true
}

// waiting is the number of rows that were read and wait for a parent, or of live trees.
func (s *scheduler) waiting() int {
	switch {
	case s.trees != nil:
		return len(s.trees.live) - len(s.trees.ahead)
	case s.deps != nil:
		return s.deps.waiting
	}
	return 0
}

// allRead says that the workload has no further row.
func (s *scheduler) allRead() bool {
	if s.trees != nil {
		return s.trees.peek() == nil
	}
	return s.rows.peek() == nil
}

// readErr is why the workload could not be read.
func (s *scheduler) readErr() error {
	if s.trees != nil {
		return s.trees.err
	}
	return s.rows.err
}

// ordered says that some rows wait for others.
func (s *scheduler) ordered() bool { return s.deps != nil || s.trees != nil }

// readRow takes the row, or starts the tree, that nextRead looked at, and schedules what
// waits for nothing.
func (s *scheduler) readRow() {
	if s.trees != nil {
		t := s.trees.peek()
		s.trees.begin()
		s.scheduleReady()
		s.capTree(t, t.start)
		return
	}
	w := &pendingRow{row: s.rows.peek()}
	w.id = s.rows.skip()
	if s.deps == nil {
		s.schedule(w)
		return
	}
	one := *w.row // one that waits must not keep its batch in memory
	w.row, w.size = &one, 640+8*int64(len(one.Parents)+len(one.Blocks)+len(one.OutputBlocks))
	s.bytes += w.size
	s.deps.addRow(w)
	s.scheduleReady()
	if s.readBlocked && w.unfinished == 0 && w.due < s.now() {
		s.counts.readLate++
	}
	s.readBlocked = false
}

// rowEnded takes note that a row is over, and schedules those that waited for it last.
func (s *scheduler) rowEnded(end rowEnd) {
	var t *liveTree
	if s.trees != nil && s.trees.load.TreeCap > 0 {
		t, _ = s.trees.find(end.id)
	}
	s.noteEnd(end)
	s.scheduleReady()
	if t != nil {
		s.capTree(t, end.at)
	}
}

// capTree moves what is pending of a tree earlier where it is idle for longer than the cap.
func (s *scheduler) capTree(t *liveTree, since time.Duration) {
	if s.trees.shortenTree(t, since) {
		heap.Init(&s.due)
	}
}

// following is how many rows wait for a row.
func (s *scheduler) following(id int64) int {
	if s.trees != nil {
		return s.trees.following(id)
	}
	return s.opt.Causal.following(id)
}

// noteEnd is rowEnded without the scheduling.
func (s *scheduler) noteEnd(end rowEnd) {
	switch {
	case s.trees != nil:
		s.trees.rowEnded(end)
	case s.deps != nil:
		s.deps.rowEnded(end, s.rows.next)
	}
}

// scheduleReady schedules the rows whose parents are over. A row that is not sent,
// since it failed in the source or a parent did here, is over at once, which may
// make its children ready in turn.
func (s *scheduler) scheduleReady() {
	if !s.ordered() {
		return
	}
	ready := s.readyRows()
	for len(*ready) > 0 {
		w := (*ready)[0]
		*ready = (*ready)[1:]
		s.schedule(w)
	}
	*ready = nil
}

func (s *scheduler) readyRows() *[]*pendingRow {
	if s.trees != nil {
		return &s.trees.ready
	}
	return &s.deps.ready
}

func (s *scheduler) schedule(w *pendingRow) {
	if s.accept(w) {
		if s.trees != nil {
			s.trees.accepted(w)
		}
		s.counts.noteDue(w.due)
		heap.Push(&s.due, w)
	}
}

// accept says whether a row that waits for no other is to be sent. Its due time is
// known then, but for that of a closed loop.
func (s *scheduler) accept(w *pendingRow) bool {
	s.counts.cut.begin(w.row)
	if !w.turn && s.trees == nil {
		s.setRootDue(w)
	}
	end := rowEnd{id: w.id, at: w.due}
	switch {
	case s.opt.excludes(w.row):
		s.counts.leave(&s.counts.excluded, 1)
		end.at, end.failed = w.due+s.opt.recordedLength(w.row), w.failed
	case w.failed:
		s.counts.leave(&s.counts.skipped, 1)
		end.at, end.failed = w.latest, true
	case s.opt.Concurrency == 0 && s.opt.Duration > 0 && w.due >= s.opt.Duration:
		s.counts.leave(&s.counts.beyond, 1) // what follows is due later still
		s.cut(w.id, w.row)
		end.cut = true
	default:
		return true
	}
	if s.threads != nil {
		s.threads.releaseParents(w.id, w.row)
	}
	s.bytes -= w.size
	s.noteEnd(end)
	return false
}

// setRootDue gives a row without parents its due time. One that is left out and that
// nothing follows takes none of the arrivals.
func (s *scheduler) setRootDue(w *pendingRow) {
	w.due = s.opt.scaled(w.row.ArrivalNS)
	var p *parentRow
	if s.deps != nil {
		p = s.deps.parents[w.id]
	}
	if s.opt.Arrivals != nil && (p != nil || !s.opt.excludes(w.row)) {
		w.shift = s.nextArrival - w.due
		w.due = s.nextArrival
		s.nextArrival += s.opt.Arrivals.Next()
	}
	w.plan = w.due
	if p != nil {
		p.shift = w.shift
	}
}

// takeDue takes the row that is due soonest.
func (s *scheduler) takeDue() *pendingRow {
	w := heap.Pop(&s.due).(*pendingRow)
	s.bytes -= w.size
	return w
}

// countUnsent counts the rows that are left when the scheduling ends early, to the end
// of the workload.
func (s *scheduler) countUnsent() (left int64) {
	if s.trees != nil {
		leftOut, left := s.trees.unsent(s.cut)
		s.counts.leave(&s.counts.excluded, leftOut)
		s.cutRest()
		return int64(len(s.due)) + left
	}
	left = int64(len(s.due) + s.waiting())
	s.cutRest()
	if s.opt.Endless {
		return left
	}
	for row := s.rows.peek(); row != nil; row = s.rows.peek() {
		if s.opt.excludes(row) {
			s.counts.leave(&s.counts.excluded, 1)
		} else {
			s.cut(s.rows.next, row)
			left++
		}
		s.rows.skip()
	}
	return left
}

// sayTrees puts into a Run what became of the trees of a load of sessions.
func (s *scheduler) sayTrees(run *result.Run) {
	if s.trees == nil {
		return
	}
	about := *run.Sessions
	about.Counts = s.trees.counts()
	about.Counts.Warm = s.opt.Sessions.Warmed
	run.Sessions = &about
}

// capIdle moves all that is still to come earlier, by one time, where nothing is in flight
// or due and the next is due later than the cap on idle time allows. ahead are rows that
// were taken from the heap and are not released yet: how many, and when the first is due.
// It returns by how much they are to be moved.
func (s *scheduler) capIdle(now time.Duration, ahead int, first time.Duration) (by time.Duration) {
	t := s.trees
	if t == nil || t.load.IdleCap == 0 || t.open > len(s.due)+ahead {
		return 0
	}
	next := never
	if ahead > 0 {
		next = first
	}
	if len(s.due) > 0 {
		next = min(next, s.due[0].due)
	}
	if at, ok := t.nextStart(); ok {
		next = min(next, at)
	}
	if next == never {
		return 0
	}
	if by = t.shorten(next, now); by > 0 {
		for _, w := range s.due {
			w.due -= by
		}
		t.moveEarlier(by, now)
		if s.counts.lastDue > now {
			s.counts.lastDue -= by
		}
	}
	return by
}
