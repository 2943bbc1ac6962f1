package replay

import (
	"container/heap"
	"math"
	"time"

	"reprise/trace"
)

// A pendingRow was read, and waits for its parents or for its time.
type pendingRow struct {
	id         int64
	row        *trace.Request
	size       int64         // bytes that it is counted with
	due        time.Duration // known once no parent is left
	plan       time.Duration // its recorded time
	shift      time.Duration // what the schedule moved its session by
	turn       bool          // it has parents
	unfinished int           // parents that are not over
	latest     time.Duration // end of the last parent that is
	failed     bool          // a parent failed

	// Of a load of sessions.
	thread, place *int32  // of the row in its tree: its thread, and the turn there
	prepared      *flight // it was prepared before its due time was known
}

func (w *pendingRow) dueAt() (time.Duration, int64) { return w.due, w.id }

// A parentRow is a row that was read and that rows wait for. It is kept until it
// is over and all its children were read.
type parentRow struct {
	unread int // children
	over   bool
	rowEnd
	shift   time.Duration
	waiting []*pendingRow
}

// rowEnd says how a row ended.
type rowEnd struct {
	id     int64
	at     time.Duration
	failed bool
	large  bool         // it failed since the prompt does not fit the context
	cut    bool         // it was not sent, since the run ended before it was due
	reply  *threadReply // of a row that turns may follow
}

// A dependencyTracker keeps which rows of a causal run wait for which. It belongs to
// the scheduler; requests report their end to the feeder.
type dependencyTracker struct {
	opt     *Options
	parents map[int64]*parentRow
	waiting int                  // pending rows with a parent that is not over
	unread  soonest[unreadChild] // children that were not read when a parent ended
	ready   []*pendingRow        // rows whose parents are over, to be scheduled
}

// An unreadChild is a row that will be due, at the earliest, at an instant.
type unreadChild struct {
	due time.Duration
	row int64
}

func (c unreadChild) dueAt() (time.Duration, int64) { return c.due, c.row }

// addRow takes a row that was read.
func (d *dependencyTracker) addRow(w *pendingRow) {
	if n := d.opt.Causal.following(w.id); n > 0 {
		d.parents[w.id] = &parentRow{unread: n, rowEnd: rowEnd{id: w.id}}
	}
	for _, id := range w.row.Parents {
		p := d.parents[id]
		if p == nil || id == w.id {
			continue // outside the workload, or further down in the file
		}
		if !w.turn || p.shift > w.shift {
			w.turn, w.shift = true, p.shift
		}
		p.unread--
		if !p.over {
			w.unfinished++
			p.waiting = append(p.waiting, w)
			continue
		}
		w.parentEnded(p)
		if p.unread == 0 {
			delete(d.parents, id)
		}
	}
	if p := d.parents[w.id]; p != nil {
		p.shift = w.shift
	}
	if w.unfinished > 0 {
		d.waiting++
		return
	}
	d.addReady(w)
}

// parentEnded takes note of a parent that is over.
func (w *pendingRow) parentEnded(p *parentRow) {
	w.latest = max(w.latest, p.at)
	w.failed = w.failed || p.failed
}

// addReady gives a row whose parents are over its due time. A row without parents gets
// it from the scheduler.
func (d *dependencyTracker) addReady(w *pendingRow) {
	d.ready = append(d.ready, w)
	if !w.turn {
		return
	}
	w.plan = d.opt.scaled(w.row.ArrivalNS) + w.shift
	if pause, known := pauseOf(w.row.ThinkNS, w.row.ToolNS); known {
		w.due = w.latest + d.opt.thinking(pause)
	} else {
		w.due = max(w.plan, w.latest)
	}
}

// rowEnded takes note that a row is over. next is the first row that was not read.
func (d *dependencyTracker) rowEnded(end rowEnd, next int64) {
	p := d.parents[end.id]
	if p == nil {
		return // nothing waits for it
	}
	p.over, p.rowEnd = true, end
	for _, w := range p.waiting {
		w.parentEnded(p)
		if w.unfinished--; w.unfinished == 0 {
			d.waiting--
			d.addReady(w)
		}
	}
	p.waiting = nil
	if p.unread == 0 {
		delete(d.parents, end.id)
		return
	}
	children, first := d.opt.Causal.children(end.id)
	for _, c := range children {
		if pause := d.opt.Causal.pause[c]; first+int64(c) >= next && !math.IsNaN(float64(pause)) && !end.failed {
			heap.Push(&d.unread, unreadChild{end.at + d.opt.thinking(int64(float64(pause)*1e9)), first + int64(c)})
		}
	}
}
