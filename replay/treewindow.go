package replay

import (
	"sync"
	"time"

	"reprise/replay/result"
)

// A SessionWindow measures whole trees of a load of sessions. Trees start and are played as
// before; the trees that start in the window are measured, each to its end. Those that
// start after it keep the load up until the last measured one is over. Then nothing more is
// sent, so that no measured tree is cut, and none saw an emptier server than the others.
//
// The window begins with the first tree that starts after the warm-up of [Options], and, with
// Settled, when twice as many trees have ended as are live: a closed loop has then played
// each place twice on average, and of an open one three times as long has passed as a tree
// takes. It begins at the latest at half of [Options].Duration, and in an open loop when ten times
// as many trees as are to be measured have started: trees then pile up. It ends with the first tree
// that starts after Trees of them and after For.
type SessionWindow struct {
	Trees   int64
	For     time.Duration
	Settled bool
}

// unsettledFor is how many times as many trees as are to be measured an open loop starts before
// it is measured although it has not settled.
const unsettledFor = 10

// A treeWindow finds the [SessionWindow] of a run. The goroutine that starts the trees moves
// it; others read it.
type treeWindow struct {
	want *SessionWindow

	mu       sync.Mutex
	from, to *result.Place
	begun    int64
	over     bool
	overAt   time.Duration // end of the last measured tree
}

// begin takes a tree that starts, with the place of its first row.
func (w *treeWindow) begin(l *liveTrees, t *liveTree) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := l.placeOf(t)
	switch {
	case w.to != nil:
	case w.from == nil:
		if !l.warmedUp(t.start) {
			return
		}
		w.from, w.begun = &at, 1
	case w.begun >= w.want.Trees && at.DueNS >= w.from.DueNS+int64(w.want.For):
		w.to = &at
		w.settle(l)
	default:
		w.begun++
	}
}

// placeOf is the place of the first row of a tree that has begun.
func (l *liveTrees) placeOf(t *liveTree) result.Place {
	row, round := l.opt.origin(t.first)
	return result.Place{DueNS: int64(t.start), Row: row, Round: round}
}

// warmedUp says whether a tree that starts at an instant is measured.
func (l *liveTrees) warmedUp(at time.Duration) bool {
	if l.opt.Duration > 0 && at >= l.opt.Duration/2 {
		return true
	}
	ended, live := l.ended.Load(), int64(len(l.live)-len(l.ahead))
	settled := !l.window.want.Settled || ended >= 2*live || l.load.Live == 0 && ended+
		live > unsettledFor*l.window.want.Trees
	return at >= l.opt.Warmup.Time && ended >= l.opt.Warmup.Sessions && settled
}

// end takes a tree that is over, and settles whether it was the last to be measured.
func (w *treeWindow) end(l *liveTrees, ended *liveTree) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.within(l.placeOf(ended)) {
		w.overAt = max(w.overAt, ended.end)
	}
	if w.to != nil && !w.over {
		w.settle(l)
	}
}

// settle finds whether a measured tree is live still, once the window has ended.
func (w *treeWindow) settle(l *liveTrees) {
	for _, t := range l.live {
		if t.begun && w.within(l.placeOf(t)) {
			return
		}
	}
	w.over, w.overAt = true, max(w.overAt, time.Duration(w.to.DueNS))
}

// within says whether a place is in the window.
func (w *treeWindow) within(at result.Place) bool {
	return w.from != nil && !at.Before(*w.from) && (w.to == nil || at.Before(*w.to))
}

// isOver says that all measured trees are over.
func (w *treeWindow) isOver() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// moveEarlier follows starts that are moved.
func (w *treeWindow) moveEarlier(by, now time.Duration) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range []*result.Place{w.from, w.to} {
		if p != nil && p.DueNS > int64(now) {
			p.DueNS -= int64(by)
		}
	}
}

// window is what the results say; nothing is measured where it did not begin.
func (w *treeWindow) window() *result.Window {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.from == nil {
		return &result.Window{From: &result.Place{DueNS: int64(never)}}
	}
	return &result.Window{From: w.from, To: w.to}
}
