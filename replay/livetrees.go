package replay

import (
	"container/heap"
	"slices"
	"sync/atomic"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// liveTrees are the trees of a load of sessions: which start when, which are live, and
// when their rows are due. They belong to the scheduler.
type liveTrees struct {
	opt   *Options
	load  *SessionLoad
	live  map[int64]*liveTree
	ahead []*liveTree       // read and not begun, in their order
	next  int64             // number of the tree that is read next
	slots soonest[freeSlot] // places for further trees; not used without a limit
	at    time.Duration     // arrival of the tree that is read next, before moved
	moved time.Duration     // by what idle times were shortened
	ready []*pendingRow     // rows whose parents are over, to be scheduled
	open  int               // rows that were accepted and are not over
	idle  time.Duration     // since when, if nothing is in flight
	err   error             // the workload could not be read
	tally sessionTally
	ended *atomic.Int64 // trees that are over, for the window

	window *treeWindow // nil where the trees that are measured are not counted
}

func newLiveTrees(opt *Options) *liveTrees {
	l := &liveTrees{opt: opt, load: opt.Sessions, live: map[int64]*liveTree{}, ended: new(atomic.Int64)}
	if w := l.load.Window; w != nil {
		l.window = &treeWindow{want: w}
	}
	if l.load.Arrivals != nil {
		l.at = l.load.Arrivals.Next()
	}
	for _, at := range opt.placeTimes() {
		heap.Push(&l.slots, freeSlot{at})
	}
	return l
}

// placeTimes returns when each place of live trees opens that belongs to the share.
func (o *Options) placeTimes() []time.Duration {
	opens := make([]time.Duration, o.Share.Count(max(o.Sessions.Live, o.Sessions.MaxLive)))
	if o.Sessions.Live > 0 {
		for i := range opens {
			opens[i] = time.Duration(o.Share.Number(int64(i))) * (o.RampUp / time.Duration(o.Sessions.Live))
		}
	}
	return opens
}

// limited says whether only so many trees may be live.
func (l *liveTrees) limited() bool { return l.load.Live+l.load.MaxLive > 0 }

// Endless says whether trees are played again and again, until the time of the run or its window is over.
func (s *SessionLoad) Endless(o *Options) bool {
	return (o.Duration > 0 || s.Window != nil) && s.recycle() != result.RecycleStop
}

// more says whether there is a tree of a number.
func (s *SessionLoad) more(o *Options, number int64) bool {
	n := s.Trees.Len()
	if n == 0 || number < n {
		return n > 0
	}
	return s.Endless(o) && (s.MaxPlays == 0 || number/n < s.MaxPlays) &&
		(o.IncludeFailed || int64(len(s.Trees.failed)) < s.Trees.Rows())
}

// loadAhead reads one more tree; false says that none is left.
func (l *liveTrees) loadAhead() bool {
	if l.err == nil && l.load.more(l.opt, l.next) {
		t, err := l.opt.loadTree(l.next)
		if err != nil {
			l.err = err
			return false
		}
		l.next++
		if l.load.Arrivals != nil {
			t.wanted = l.at
			l.at += l.load.Arrivals.Next()
		}
		l.live[t.number] = t
		l.ahead = append(l.ahead, t)
		return true
	}
	return false
}

// peek is the tree that starts next, or nil.
func (l *liveTrees) peek() *liveTree {
	if len(l.ahead) == 0 && !l.loadAhead() {
		return nil
	}
	return l.ahead[0]
}

// nextStart returns when the next tree starts; false is never, or when a tree ends.
func (l *liveTrees) nextStart() (time.Duration, bool) {
	if l.limited() && len(l.slots) == 0 || l.window.isOver() {
		return 0, false
	}
	t := l.peek()
	if t == nil {
		return 0, false
	}
	at := l.startOf(t)
	return at, l.opt.Duration == 0 || at < l.opt.Duration
}

// startOf is when a tree starts in the place that is free next.
func (l *liveTrees) startOf(t *liveTree) time.Duration {
	at := max(l.wantedAt(t), 0)
	if l.limited() {
		at = max(at, l.slots[0].at)
	}
	return at
}

// wantedAt is when a tree is to start, if it may.
func (l *liveTrees) wantedAt(t *liveTree) time.Duration {
	if l.load.Arrivals == nil {
		return 0
	}
	return t.wanted - l.moved
}

// begin starts the tree that peek returned.
func (l *liveTrees) begin() {
	t := l.ahead[0]
	l.ahead = l.ahead[1:]
	t.begun, t.start = true, l.startOf(t)
	if l.limited() {
		heap.Pop(&l.slots)
		if l.load.Arrivals != nil {
			l.tally.held(t.start - max(l.wantedAt(t), 0))
		}
	}
	t.end = t.start
	l.tally.begin(t.start)
	l.window.begin(l, t)
	for i := range t.rows {
		if r := &t.rows[i]; r.waits == 0 && !r.over {
			l.release(t, i)
		}
	}
	if t.left == 0 { // all of it was left out
		l.finish(t)
	}
}

// release has a row whose parents are over be scheduled.
func (l *liveTrees) release(t *liveTree, i int) {
	r := &t.rows[i]
	r.due = l.dueOf(t, r, i)
	row, err := l.load.Trees.row(t, i, l.load.recycle())
	if err != nil {
		l.err = err
		row = &trace.Request{Status: trace.StatusFailed}
	}
	w := &pendingRow{id: t.first + int64(i), row: row, due: r.due, latest: max(r.latest, t.start), failed: r.broken ||
		err != nil, thread: &r.thread, place: &r.turn}
	if t.staged != nil && t.staged.id == w.id {
		w.prepared, t.staged = t.staged, nil
	}
	l.ready = append(l.ready, w)
}

// dueOf is when a row is due whose parents are over.
func (l *liveTrees) dueOf(t *liveTree, r *treeRow, i int) time.Duration {
	latest := max(r.latest, t.start)
	r.gap = r.kind(t.rows, i)
	if t.agents != nil && len(r.parents) > 0 {
		return l.dueOfAgent(t, r, i)
	}
	switch {
	case t.inside && !slices.ContainsFunc(r.parents, func(p int32) bool { return !t.rows[p].history }):
		return l.dueInside(t, r)
	case len(r.parents) == 0:
		return t.start + l.opt.scaled(r.arrival-t.rows[0].arrival)
	}
	if r.gap == fromStarts {
		return latest + l.capped(r, max(r.from-latest, 0))
	}
	return latest + l.capped(r, l.waitOf(r, t.rows))
}

// dueInside is when a row is due that follows only history: as long after the tree's start
// as recorded after its instant, with the scales and the cap of its wait.
func (l *liveTrees) dueInside(t *liveTree, r *treeRow) time.Duration {
	gap := l.opt.scaled(r.arrival - t.instant)
	if whole := l.opt.scaled(pauseIn(r, t.rows)); whole > 0 {
		gap = times(gap, float64(l.waitOf(r, t.rows))/float64(whole))
	}
	return t.start + l.capped(r, gap)
}

// waitOf is how long a row waits after its last parent, as far as is known.
func (l *liveTrees) waitOf(r *treeRow, rows []treeRow) time.Duration {
	think, tool := r.think, r.tool
	if think == nil && tool == nil {
		gap, _ := recordedGap(r, rows)
		think = &gap
	}
	return l.opt.wait(think, tool)
}

// capped cuts a wait to the cap of a turn.
func (l *liveTrees) capped(r *treeRow, wait time.Duration) time.Duration {
	most := l.load.GapCap
	if most == 0 || wait <= most {
		return wait
	}
	r.cut = wait - most
	return most
}

// firstRow is the first row of a tree that has not started, or nil where it is not sent.
func (l *liveTrees) firstRow(t *liveTree) *pendingRow {
	r := &t.rows[0]
	if r.over || r.leftOut {
		return nil
	}
	row, err := l.load.Trees.row(t, 0, l.load.recycle())
	if err != nil {
		return nil // as it will be when it starts
	}
	return &pendingRow{id: t.first, row: row, thread: &r.thread, place: &r.turn}
}

// accepted takes note that a row is to be sent.
func (l *liveTrees) accepted(w *pendingRow) {
	t, i := l.find(w.id)
	t.rows[i].sending, t.rows[i].pending = true, w
	l.tally.gap(&t.rows[i])
	l.open++
}

func (l *liveTrees) find(id int64) (*liveTree, int) {
	number, i := l.load.Trees.treeOf(id)
	return l.live[number], i
}

// following is how many rows wait for a row.
func (l *liveTrees) following(id int64) int {
	t, i := l.find(id)
	if t == nil {
		return 0
	}
	return len(t.rows[i].children)
}

// rowEnded takes note that a row is over.
func (l *liveTrees) rowEnded(end rowEnd) {
	t, i := l.find(end.id)
	if t == nil || t.rows[i].over {
		return
	}
	r := &t.rows[i]
	if r.sending {
		l.open--
		l.idle = max(l.idle, end.at)
	}
	r.sending, r.pending, r.over, r.end = false, nil, true, end.at
	t.left--
	t.short = t.short || end.cut
	t.end = max(t.end, end.at)
	for _, c := range r.children {
		child := &t.rows[c]
		child.latest = max(child.latest, end.at)
		child.from = max(child.from, r.due+l.opt.scaled(child.arrival-r.arrival))
		child.broken = child.broken || t.breaks(int32(i), c, end.failed, end.large || r.broken)
		if child.waits--; child.waits == 0 {
			l.release(t, int(c))
		}
	}
	if t.left == 0 {
		l.finish(t)
	}
}

func (l *liveTrees) finish(t *liveTree) {
	delete(l.live, t.number)
	l.tally.finish(t.end, !t.short)
	l.ended.Add(1)
	l.window.end(l, t)
	if l.limited() {
		heap.Push(&l.slots, freeSlot{t.end})
	}
}

// shorten returns by how much all that is pending is to be moved earlier, since nothing is
// in flight or due, and the next is due later than the cap allows.
func (l *liveTrees) shorten(next, now time.Duration) time.Duration {
	by := next - max(l.idle+l.load.IdleCap, now)
	if l.load.IdleCap == 0 || by <= 0 {
		return 0
	}
	l.tally.idleCap.Times++
	l.tally.idleCap.NS += int64(by)
	return by
}

// shortenTree moves all that is pending of a tree earlier, by one time, where none of its
// requests is in flight and the next is due later after since than the cap on its idle time
// allows. It tells whether it did.
func (l *liveTrees) shortenTree(t *liveTree, since time.Duration) bool {
	next := never
	for i := range t.rows {
		if w := t.rows[i].pending; w != nil {
			next = min(next, w.due)
		}
	}
	by := next - since - l.load.TreeCap
	if l.load.TreeCap == 0 || next == never || by <= 0 {
		return false
	}
	for i := range t.rows {
		if r := &t.rows[i]; r.pending != nil {
			r.pending.due -= by
			r.due -= by
		}
	}
	l.tally.treeCap.Times++
	l.tally.treeCap.NS += int64(by)
	return true
}

// moveEarlier moves what is not scheduled yet, and is due after now.
func (l *liveTrees) moveEarlier(by, now time.Duration) {
	l.moved += by
	for i := range l.slots {
		if l.slots[i].at > now {
			l.slots[i].at -= by
		}
	}
	for _, t := range l.live {
		for i := range t.rows {
			if r := &t.rows[i]; r.sending {
				r.due -= by
			}
		}
		if t.begun && t.start > now {
			t.start -= by
			t.end = t.start
		}
	}
	l.tally.moveEarlier(by, now)
	l.window.moveEarlier(by, now)
}

// unsent counts the rows that were not accepted, to the end of the workload: of those that
// failed in the source, and of the others. cut is told those of trees that had begun.
func (l *liveTrees) unsent(cut func(id int64, row *trace.Request)) (leftOut, left int64) {
	var row trace.Request
	count := func(t *liveTree) {
		for i := range t.rows {
			r := &t.rows[i]
			if r.over || r.sending {
				continue
			}
			switch {
			case r.leftOut:
				leftOut++
				continue
			case t.begun:
				_, at := l.load.Trees.firstID(t.number)
				if err := l.load.Trees.shelf.Row(int64(at[i]), &row); err == nil {
					cut(t.first+int64(i), &row)
				}
			}
			left++
		}
	}
	endless := l.load.Endless(l.opt)
	for _, t := range l.live {
		if t.begun || !endless {
			count(t)
		}
	}
	for ; !endless && l.err == nil && l.load.more(l.opt, l.next); l.next++ {
		t, err := l.opt.loadTree(l.next)
		if err != nil {
			l.err = err
			break
		}
		count(t)
	}
	return leftOut, left
}
