package replay

import (
	"math"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// aSurvey is of a run that was killed at 100 ns: rows 0 and 1 had ended at 40 and 60, and
// row 2 had failed.
func aSurvey(o Options) *surveyor {
	r := &Resumption{origin: o.origin, gap: result.Interruption{AtNS: 100}}
	for row, d := range []doneRow{{at: 40}, {at: 60}, {at: 50, failed: true}} {
		d.key = result.RequestKey{Row: int64(row)}
		r.done = append(r.done, d)
	}
	return &surveyor{r: r, opt: &o, sched: newScheduler(&o, nil, nil), first: math.MaxInt64, before: 7}
}

// When a turn was due whose parents are over: after its pause, by the speed, or else at
// its recorded time, moved as the schedule was.
func TestTurnsThatWereDue(t *testing.T) {
	id := trace.Ptr[int64]
	for i, c := range []struct {
		o    Options
		row  trace.Request
		due  int64
		know bool
	}{
		{Options{Speed: 1}, trace.Request{Parents: []int64{0, 1}, ThinkNS: id(8), ToolNS: id(4)}, 72, true},
		{Options{Speed: 2}, trace.Request{Parents: []int64{1, 0}, ThinkNS: id(8)}, 64, true},
		{Options{Speed: 2, KeepThink: true}, trace.Request{Parents: []int64{1}, ToolNS: id(8)}, 68, true},
		{Options{Speed: 1}, trace.Request{Parents: []int64{1}, ArrivalNS: 500, ThinkNS: id(0)}, 60, true},
		{Options{Speed: 1}, trace.Request{Parents: []int64{1}, ArrivalNS: 10}, 60, true},
		{Options{Speed: 2}, trace.Request{Parents: []int64{1}, ArrivalNS: 200}, 107, true},
		{Options{Speed: 1, Arrivals: fixedGaps(3)}, trace.Request{Parents: []int64{1}, ArrivalNS: 200}, 60, true},
		{Options{Speed: 1}, trace.Request{Parents: []int64{-1, 9, 10, 0}, ThinkNS: id(1)}, 41, true},
		{Options{Speed: 1}, trace.Request{Parents: []int64{0, 2}}, 0, false},
		{Options{Speed: 1}, trace.Request{Parents: []int64{0, 3}}, 0, false},
	} {
		if due, ok := aSurvey(c.o).turnDue(9, &c.row); due != c.due || ok != c.know {
			t.Errorf("%d: due at %d, %v; want %d, %v", i, due, ok, c.due, c.know)
		}
	}
}

// fixedGaps are arrivals at even gaps.
type fixedGaps time.Duration

func (g fixedGaps) Next() time.Duration { return time.Duration(g) }

// Which rows are sent again: those that were due when the run was killed and have no
// result. The first row without one says where the schedule goes on.
func TestRowsSentAgain(t *testing.T) {
	rows := make([]trace.Request, 10)
	for name, c := range map[string]struct {
		o     Options
		id    int64
		row   trace.Request
		again int64
		first int64
	}{
		"with a result":           {Options{}, 1, trace.Request{ArrivalNS: 5}, 0, math.MaxInt64},
		"due":                     {Options{}, 5, trace.Request{ArrivalNS: 93}, 1, 93},
		"not due":                 {Options{}, 5, trace.Request{ArrivalNS: 94}, 0, 94},
		"failed in the source":    {Options{}, 5, trace.Request{ArrivalNS: 5, Status: trace.StatusFailed}, 0, math.MaxInt64},
		"failed, and included":    {Options{IncludeFailed: true}, 5, trace.Request{ArrivalNS: 5, Status: trace.StatusFailed}, 1, 5},
		"behind the duration":     {Options{Duration: 20}, 5, trace.Request{ArrivalNS: 20}, 0, math.MaxInt64},
		"within the duration":     {Options{Duration: 20}, 5, trace.Request{ArrivalNS: 19}, 1, 19},
		"of a closed loop":        {Options{Concurrency: 1}, 5, trace.Request{ArrivalNS: 5}, 0, math.MaxInt64},
		"a turn that was due":     {Options{Causal: lineageOf(t, rows)}, 5, trace.Request{Parents: []int64{1}, ThinkNS: trace.Ptr(int64(40))}, 1, math.MaxInt64},
		"a turn that was not due": {Options{Causal: lineageOf(t, rows)}, 5, trace.Request{Parents: []int64{1}, ThinkNS: trace.Ptr(int64(41))}, 0, math.MaxInt64},
		"a turn of what failed":   {Options{Causal: lineageOf(t, rows)}, 5, trace.Request{Parents: []int64{2}, ThinkNS: trace.Ptr(int64(0))}, 0, math.MaxInt64},
		"a child of itself":       {Options{Causal: lineageOf(t, rows)}, 5, trace.Request{ArrivalNS: 3, Parents: []int64{5}}, 1, 3},
		"parents do not count":    {Options{}, 5, trace.Request{ArrivalNS: 3, Parents: []int64{2}}, 1, 3},
	} {
		o, err := c.o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := aSurvey(o)
		if err := s.row(c.id, &c.row); err != nil || s.r.gap.Again != c.again || s.first != c.first {
			t.Errorf("%s: %v, %d again, the first at %d; want %d, %d", name, err, s.r.gap.Again, s.first, c.again, c.first)
		}
	}
	// In a closed loop, rows before the last with a result were in flight.
	o, _ := Options{Concurrency: 2}.withDefaults()
	s := aSurvey(o)
	s.r.done = append(s.r.done[:1], s.r.done[2])
	for id, want := range map[int64]int64{0: 0, 1: 1, 2: 0, 3: 0} {
		s.r.gap.Again = 0
		if err := s.row(id, &trace.Request{}); err != nil || s.r.gap.Again != want {
			t.Errorf("row %d of a closed loop: %d again, want %d", id, s.r.gap.Again, want)
		}
	}
}

// What the parts of a run before its resumption had is added.
func TestResumptionAddsUp(t *testing.T) {
	r := &Resumption{requests: 5, unready: 2}
	var run result.Run
	run.Requests, run.Unprepared, run.Unready = 10, 1, "no words"
	r.addTo(&run)
	if run.Requests != 15 || run.Unprepared != 3 || run.Unready != "no words" {
		t.Errorf("%+v", run)
	}
	run = result.Run{}
	if r.addTo(&run); run.Unready != "before the run was interrupted" {
		t.Errorf("%+v", run)
	}
	run = result.Run{}
	(&Resumption{requests: 1}).addTo(&run)
	(*Resumption)(nil).addTo(&run)
	if run.Requests != 1 || run.Unready != "" {
		t.Errorf("%+v", run)
	}
	if r = nil; r.base() != 0 || r.shift() != 0 {
		t.Error("no resumption moves times")
	}
	if _, ok := r.find(3); ok {
		t.Error("no resumption has results")
	}
	r = &Resumption{gap: result.Interruption{AtNS: 4, ShiftNS: 3}}
	if r.base() != 4 || r.shift() != 3 || r.Gap() != r.gap {
		t.Errorf("%d, %d", r.base(), r.shift())
	}
	err := &Disagreement{"in_flight_limit", "none", "4"}
	if got := err.Error(); got != "the run that was interrupted had another in flight limit: none, not 4" {
		t.Error(got)
	}
}
