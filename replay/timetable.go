package replay

import (
	"container/heap"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A Timetable gives the due times of a workload's rows to a caller with a clock
// of its own, such as a simulation, by the rules of a [Runner]: recorded times, an
// arrival process, parents that must be over, or a closed loop. Nothing waits:
// the caller takes the row that is due soonest, and reports when rows are over.
//
//	for {
//		due, ok := t.Next()
//		// Let time pass up to due, or without ok until something is over, and
//		// tell Over what ended. If anything did, ask Next again. Without ok and
//		// with nothing left to end, all rows were taken.
//		shot := t.Take()
//	}
//	run, err := t.Finish()
//
// It holds rows under the same bound of memory as a causal run; at the bound a row
// may be due before others that were taken. It is for one goroutine.
type Timetable struct {
	opt    Options
	sched  *scheduler
	slots  soonest[freeSlot] // of a closed loop
	sent   int64
	late   int64 // could be read only after they were due
	drift  drifts
	window windowTracker
	last   time.Duration
}

// A Departure is a row at its due time.
type Departure struct {
	ID  int64          // number of the row as it was read, for Over; it goes on over the rounds of a [Loop]
	Row *trace.Request // valid until the row is over
	// Cut is the time from the due time until the user hangs up; 0 is never.
	Cut time.Duration
	// Result is what is known of the row before it is sent.
	Result result.Result
}

// A freeSlot of a closed loop is free from an instant on.
type freeSlot struct{ at time.Duration }

func (s freeSlot) dueAt() (time.Duration, int64) { return s.at, 0 }

// NewTimetable begins to read rows. MaxInFlight, Ahead, Grace, Known and
// Progress have no meaning here.
func NewTimetable(o Options, rows trace.Reader[trace.Request]) (*Timetable, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Timetable{opt: opt, drift: drifts{limit: driftValues},
		window: windowTracker{warm: opt.Warmup, cool: opt.Cooldown}}
	t.opt.About.Started, t.opt.About.Cores = "", 0 // there is no clock and no client
	for _, at := range opt.slotTimes() {
		heap.Push(&t.slots, freeSlot{at})
	}
	fed := opt
	fed.Ahead = 0 // nothing is prepared
	if t.closed() {
		fed.Concurrency, fed.Duration = 0, 0 // slots are kept here
	}
	t.sched = newScheduler(&fed, rows, func() time.Duration { return 0 })
	if trees := t.sched.trees; trees != nil {
		t.window.ended, t.window.trees = trees.ended, trees.window
	}
	return t, nil
}

// Next returns when the next row is due, as far as is known: a row that ends before
// then may make another due sooner. ok is false when no row is left, or when every row
// that is left waits for one that is not over or for a slot.
func (t *Timetable) Next() (due time.Duration, ok bool) {
	s := t.sched
	if s.trees != nil {
		if s.trees.window.isOver() {
			return 0, false
		}
		s.capIdle(s.trees.idle, 0, never)
	}
	for {
		read, canRead := s.nextRead()
		if !canRead || len(s.due) > 0 && (t.closed() || read > s.due[0].due) {
			break
		}
		s.readRow()
	}
	switch {
	case len(s.due) == 0:
		return 0, false
	case !t.closed():
		return s.due[0].due, true
	case len(t.slots) == 0 || t.opt.Duration > 0 && t.slots[0].at >= t.opt.Duration:
		return 0, false
	}
	return t.slots[0].at, true
}

// Fixed reports whether due times do not depend on when rows end.
func (t *Timetable) Fixed() bool { return t.opt.About.Timing == result.OpenLoop }

func (t *Timetable) closed() bool { return t.opt.Concurrency > 0 }

// Take removes the row whose due time Next returned.
func (t *Timetable) Take() Departure {
	w := t.sched.takeDue()
	if t.closed() {
		w.due = heap.Pop(&t.slots).(freeSlot).at
	}
	d := Departure{ID: w.id, Row: w.row, Cut: t.sched.opt.cutAfter(w.row), Result: t.sched.opt.newResult(w)}
	t.window.addSent(result.Place{DueNS: int64(w.due), Row: d.Result.RowID, Round: d.Result.Round})
	if w.turn {
		t.drift.add(w.due - w.plan)
	}
	if w.due < t.last {
		t.late++
	}
	t.sent++
	t.last = max(t.last, w.due)
	return d
}

// Over reports that a row has ended, by the ID of its [Departure].
func (t *Timetable) Over(id int64, at time.Duration, failed bool) {
	switch {
	case t.closed():
		heap.Push(&t.slots, freeSlot{at})
	default:
		t.sched.rowEnded(rowEnd{id: id, at: at, failed: failed})
	}
}

// Finish returns the part of a [result.Run] that describes the sending, on the rest of
// [Options.About]; the error is that of reading the workload.
func (t *Timetable) Finish() (result.Run, error) {
	run, counts := t.opt.About, &t.sched.counts
	left := t.sched.countUnsent()
	run.Requests, run.Excluded, run.Beyond = t.sent, counts.excluded, counts.beyond+left
	run.Skipped, run.ReadLate, run.Cut = counts.skipped, t.late, counts.cut.summary(run.Beyond)
	run.Drift, run.Window = t.drift.summary(), t.window.window()
	run.PlannedNS = int64(counts.lastDue - counts.firstDue)
	if t.closed() {
		run.PlannedNS = int64(t.last)
	}
	t.sched.sayTrees(&run)
	return run, t.sched.readErr()
}
