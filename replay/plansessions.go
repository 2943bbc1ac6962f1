package replay

import (
	"container/heap"
	"errors"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// ErrNoTime is the error of a plan in which no time passes.
var ErrNoTime = errors.New("replay: sessions that are played until a time is over never end if neither answers nor " +
	"waits take time")

// A plannedEnd is when a row of a plan is over.
type plannedEnd struct {
	at time.Duration
	id int64
}

func (e plannedEnd) dueAt() (time.Duration, int64) { return e.at, e.id }

// PlanSessions plays the load of sessions of o in a time of its own, in which each request
// takes as long as took says and none fails. each is called with every row that would be
// sent, in order; an error of it ends the plan.
func PlanSessions(o Options, took func(*trace.Request) (time.Duration, bool),
	each func(*trace.Request) error) (Plan, *result.Sessions, error) {
	t, err := NewTimetable(o, nil)
	if err != nil {
		return Plan{}, nil, err
	}
	p := &Planner{opt: t.opt, took: took}
	var flying soonest[plannedEnd]
	last, atOnce := time.Duration(-1), int64(0)
	for {
		due, ok := t.Next()
		if len(flying) > 0 && (!ok || flying[0].at <= due) {
			e := heap.Pop(&flying).(plannedEnd)
			t.Over(e.id, e.at, false)
			continue
		}
		if !ok {
			break
		}
		if atOnce++; due > last {
			last, atOnce = due, 0
		}
		if atOnce > 4*o.Sessions.Trees.Rows()+1000 {
			return Plan{}, nil, ErrNoTime
		}
		d := t.Take()
		if err := each(d.Row); err != nil {
			return Plan{}, nil, err
		}
		heap.Push(&flying, plannedEnd{p.count(d.Row, due), d.ID})
	}
	run, err := t.Finish()
	p.plan.Excluded, p.plan.Beyond = run.Excluded, run.Beyond
	return p.Plan(), run.Sessions, err
}
