package replay

import (
	"container/heap"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// A Timetable says when the rows of a workload are due to a caller with a time
// of its own, as in a simulation, by the rules of a [Runner]: recorded times, an
// arrival process, parents that must be over, or a closed loop. Nothing waits:
// the caller takes the row that is due soonest, and tells when rows are over.
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
	feed   *feeder
	room   soonest[place] // of a closed loop
	sent   int64
	late   int64 // could be read only after they were due
	drift  drifts
	window windower
	last   time.Duration
}

// A Departure is a row at its due time.
type Departure struct {
	ID  int64          // of the row as it was read, for Over: rounds of a [Loop] go on counting
	Row *trace.Request // valid until the row is over
	// Cut is when its user hangs up, from its due time; 0 is never.
	Cut time.Duration
	// Result is what is known of the row before it is sent.
	Result result.Result
}

// A place in a closed loop became free at an instant.
type place struct{ at time.Duration }

func (p place) when() (time.Duration, int64) { return p.at, 0 }

// NewTimetable begins to read rows. MaxInFlight, Ahead, Grace, Known and
// Progress have no meaning here.
func NewTimetable(o Options, rows trace.Reader[trace.Request]) (*Timetable, error) {
	opt, err := o.settled()
	if err != nil {
		return nil, err
	}
	t := &Timetable{opt: opt, drift: drifts{limit: driftValues}, window: windower{warm: opt.Warmup, cool: opt.Cooldown}}
	for _, at := range opt.room() {
		heap.Push(&t.room, place{at})
	}
	t.opt.About.Started, t.opt.About.Cores = "", 0 // there is no clock and no client
	fed := opt
	fed.Ahead = 0 // nothing is prepared
	if t.closed() {
		fed.Concurrency, fed.Duration = 0, 0 // places are kept here
	}
	t.feed = newFeeder(&fed, &Runner{}, rows, nil)
	return t, nil
}

// Next returns when the next row is due, as far as is known: what ends before
// may settle one that is due sooner. It is not ok when every row that is left
// waits for one that is not over, or for a place, and when none is left.
func (t *Timetable) Next() (due time.Duration, ok bool) {
	f := t.feed
	for {
		read, canRead := f.readAt()
		if !canRead || len(f.timed) > 0 && (t.closed() || read > f.timed[0].due) {
			break
		}
		f.read()
	}
	switch {
	case len(f.timed) == 0:
		return 0, false
	case !t.closed():
		return f.timed[0].due, true
	case len(t.room) == 0 || t.opt.Duration > 0 && t.room[0].at >= t.opt.Duration:
		return 0, false
	}
	return t.room[0].at, true
}

// Fixed says that no end of a row changes when another is due.
func (t *Timetable) Fixed() bool { return t.opt.About.Timing == result.OpenLoop }

func (t *Timetable) closed() bool { return t.opt.About.Timing == result.ClosedLoop }

// Take lets go of the row that Next spoke of.
func (t *Timetable) Take() Departure {
	f := t.feed
	h := heap.Pop(&f.timed).(*held)
	f.bytes -= h.size
	if t.closed() {
		h.due = heap.Pop(&t.room).(place).at
	}
	d := Departure{ID: h.id, Row: h.row, Cut: f.opt.cut(h.row), Result: f.opt.blank(h.id, h.row, h.due)}
	t.window.count(result.Place{DueNS: int64(h.due), Row: d.Result.RowID, Round: d.Result.Round})
	if h.turn {
		t.drift.add(h.due - h.plan)
	}
	if h.due < t.last {
		t.late++
	}
	t.sent++
	t.last = max(t.last, h.due)
	return d
}

// Over says that a row has ended, by the id of its departure.
func (t *Timetable) Over(id int64, at time.Duration, failed bool) {
	switch {
	case t.closed():
		heap.Push(&t.room, place{at})
	case t.feed.kin != nil:
		t.feed.kin.end(ended{id: id, at: at, failed: failed}, t.feed.next)
		t.feed.schedule()
	}
}

// Finish returns what a [result.Run] says of the sending, on the rest of
// [Options.About]; the error is that of reading the workload.
func (t *Timetable) Finish() (result.Run, error) {
	run, f := t.opt.About, t.feed
	left := f.abandon()
	run.Requests, run.Excluded, run.Beyond = t.sent, f.excluded, f.beyond+left
	run.Skipped, run.ReadLate = f.skipped, t.late
	run.Drift, run.Window = t.drift.summary(), t.window.window()
	run.PlannedNS = int64(f.last - f.first)
	if t.closed() {
		run.PlannedNS = int64(t.last)
	}
	return run, f.err
}
