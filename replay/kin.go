package replay

import (
	"container/heap"
	"math"
	"time"

	"reprise/trace"
)

// What is read and not yet prepared is bounded by memory and by number, so that
// rows of the file can be read while others wait for their parents.
const (
	heldBytes = 256 << 20
	heldRows  = 1 << 20
)

// A held row was read, and waits for its parents or for its time.
type held struct {
	id     int64
	row    *trace.Request
	size   int64
	due    time.Duration // known once no parent is left
	plan   time.Duration // its recorded time
	shift  time.Duration // what the schedule moved its session by
	turn   bool          // it has parents
	left   int           // parents that are not over
	latest time.Duration // end of the last parent that is
	failed bool          // a parent failed
}

func (h *held) when() (time.Duration, int64) { return h.due, h.id }

// An elder is a row that was read and is a parent of rows. It is kept until it
// is over and all its children were read.
type elder struct {
	unread int // children
	over   bool
	ended
	shift   time.Duration
	waiting []*held
}

// ended says how a row came to its end.
type ended struct {
	id     int64
	at     time.Duration
	failed bool
	reply  *handover // of a row that turns may follow
}

// kin keeps who waits for whom. It belongs to the feeder; flights report their
// end through [feeder.over].
type kin struct {
	opt     *Options
	base    time.Duration // no row counts as over before
	elders  map[int64]*elder
	waiting int           // held rows with a parent that is not over
	wanted  soonest[want] // children that were not read when a parent ended
	settled []*held       // rows whose parents are over: to be scheduled
}

// A want says that a row will be due, at the earliest, at an instant.
type want struct {
	due time.Duration
	row int64
}

func (w want) when() (time.Duration, int64) { return w.due, w.row }

// join takes a row that was read.
func (k *kin) join(h *held) {
	if n := k.opt.Causal.following(h.id); n > 0 {
		k.elders[h.id] = &elder{unread: n, ended: ended{id: h.id}}
	}
	for _, p := range h.row.Parents {
		e := k.elders[p]
		if e == nil || p == h.id {
			continue // outside the workload, or below in the file
		}
		if !h.turn || e.shift > h.shift {
			h.turn, h.shift = true, e.shift
		}
		e.unread--
		if !e.over {
			h.left++
			e.waiting = append(e.waiting, h)
			continue
		}
		h.meet(e)
		if e.unread == 0 {
			delete(k.elders, p)
		}
	}
	if e := k.elders[h.id]; e != nil {
		e.shift = h.shift
	}
	if h.left > 0 {
		k.waiting++
		return
	}
	k.settle(h)
}

// meet takes note of a parent that is over.
func (h *held) meet(e *elder) {
	h.latest = max(h.latest, e.at)
	h.failed = h.failed || e.failed
}

// settle gives a row whose parents are over its due time.
func (k *kin) settle(h *held) {
	k.settled = append(k.settled, h)
	if !h.turn {
		return // the schedule's
	}
	h.plan = k.opt.scaled(h.row.ArrivalNS) + h.shift
	if pause, known := pauseOf(h.row.ThinkNS, h.row.ToolNS); known {
		h.due = h.latest + k.opt.thinking(pause)
	} else {
		h.due = max(h.plan, h.latest)
	}
}

// end takes note that a row is over. next is the first row that was not read.
func (k *kin) end(o ended, next int64) {
	e := k.elders[o.id]
	if e == nil {
		return // nothing waits for it
	}
	o.at = max(o.at, k.base)
	e.over, e.ended = true, o
	for _, h := range e.waiting {
		h.meet(e)
		if h.left--; h.left == 0 {
			k.waiting--
			k.settle(h)
		}
	}
	e.waiting = nil
	if e.unread == 0 {
		delete(k.elders, o.id)
		return
	}
	children, first := k.opt.Causal.children(o.id)
	for _, c := range children {
		if pause := k.opt.Causal.pause[c]; first+int64(c) >= next && !math.IsNaN(float64(pause)) && !o.failed {
			heap.Push(&k.wanted, want{o.at + k.opt.thinking(int64(float64(pause)*1e9)), first + int64(c)})
		}
	}
}

// want returns when the soonest row that must be read will be due.
func (k *kin) want(next int64) (due time.Duration, ok bool) {
	for len(k.wanted) > 0 && k.wanted[0].row < next {
		heap.Pop(&k.wanted)
	}
	if len(k.wanted) == 0 {
		return 0, false
	}
	return k.wanted[0].due, true
}

// rowBytes is about what a row takes in memory.
func rowBytes(r *trace.Request) int64 {
	return 640 + 8*int64(len(r.Parents)+len(r.Blocks)+len(r.OutputBlocks))
}
