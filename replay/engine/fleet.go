package engine

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// FleetConfig says what a [Fleet] is like.
type FleetConfig struct {
	Engine   Config // of each replica
	Replicas int    // 1 to [fleet.MaxReplicas]
	Router   string // one of [fleet.Routers]
	Seed     uint64 // of [fleet.Random]
	Noise    RunNoise
}

// An Arrival is a request as a fleet sees it.
type Arrival struct {
	Job     Job
	Session *int64 // for [fleet.Session]
	At      Picos
	Cut     Picos // when the client hangs up; 0 is never
}

// An Answer is the outcome of an [Arrival].
type Answer struct {
	Arrival
	Replica int
	Tokens  []Picos // instants of the tokens that the client got
	Done    Picos
	Err     error // nil, ErrCut, ErrBusy or ErrTooLong
}

// ErrCut says that the client hung up before the answer was whole.
var ErrCut = errors.New("the client hung up")

// refusal is how long it takes a client to learn that a request is refused. In no
// time at all, a closed loop would ask again and again at one instant.
const refusal = Picos(time.Millisecond) * 1000

// A Fleet is a number of engines behind one router, in virtual time: it does
// what they would do between two arrivals as fast as it can.
type Fleet struct {
	c       FleetConfig
	engines []*engineCore
	router  *router
	late    *rand.Rand // of the noise
	done    func(*Answer) error
	cuts    cuts
	most    int // requests in flight at once
	ended   int64
	failed  error
}

// NewFleet makes a fleet at instant 0. It hands every answer to done, in the
// order in which they end on each replica, except that a client who hangs up within a
// step comes behind the answers that end with it; an error from done ends the run.
func NewFleet(c FleetConfig, done func(*Answer) error) (*Fleet, error) {
	f := &Fleet{c: c, done: done, late: rand.New(rand.NewPCG(c.Noise.Seed, 0))}
	if c.Noise.Factor > 0 {
		c.Engine.Costs = c.Engine.Costs.Times(c.Noise.Factor)
	}
	for range c.Replicas {
		e, err := newEngineCore(c.Engine)
		if err != nil {
			return nil, err
		}
		f.engines = append(f.engines, e)
	}
	router, err := newRouter(c, f.engines)
	if err != nil {
		return nil, fmt.Errorf("simulated fleet: %w", err)
	}
	f.router = router
	return f, nil
}

// Send lets a request arrive, which must not be before an earlier one.
func (f *Fleet) Send(a Arrival) error {
	f.runUntil(a.At)
	if f.failed != nil {
		return f.failed
	}
	if err := a.Job.check(); err != nil {
		return err
	}
	answer := &Answer{Arrival: a, Replica: f.router.route(&a)}
	job := &answer.Job
	if f.c.Noise.Late > 0 {
		job.late = Picos(f.late.ExpFloat64() * float64(f.c.Noise.Late))
	}
	switch err := f.engines[answer.Replica].Add(job, a.At); err {
	case nil:
		job.answer = answer
		if a.Cut > 0 {
			heap.Push(&f.cuts, answer)
		}
		inFlight := 0
		for _, e := range f.engines {
			inFlight += e.InFlight(a.At)
		}
		f.most = max(f.most, inFlight)
		return nil
	case ErrBusy, ErrTooLong:
		answer.Done, answer.Err = a.At+refusal, err
		return f.done(answer)
	default:
		return err
	}
}

// Advance lets time pass, and returns true as soon as a request has ended, so
// that its end may lead to an arrival sooner than at. What else happened by then
// is no later than that end, except steps under way. Else it is false, and all
// that comes before at has happened.
func (f *Fleet) Advance(at Picos) (ended bool) {
	for before := f.ended; f.ended == before; {
		// The engine whose next step begins first, and how far it may go before another
		// engine, a hang-up or the instant comes.
		var first *engineCore
		begin, horizon := Never, at
		for _, e := range f.engines {
			switch next := e.nextStep(); {
			case next < begin:
				first, begin, horizon = e, next, min(horizon, begin)
			default:
				horizon = min(horizon, next)
			}
		}
		if len(f.cuts) > 0 {
			horizon = min(horizon, f.cuts[0].Cut)
		}
		switch {
		case len(f.cuts) > 0 && f.cuts[0].Cut <= min(begin, at):
			f.runUntil(f.cuts[0].Cut)
		case first == nil || begin >= at:
			return false
		default:
			first.Step(begin, horizon, f)
		}
	}
	return true
}

// Finish lets all requests end.
func (f *Fleet) Finish() error {
	f.runUntil(Never)
	return f.failed
}

// Stats returns what each engine counted.
func (f *Fleet) Stats() []Stats {
	var all []Stats
	for _, e := range f.engines {
		all = append(all, e.Stats())
	}
	return all
}

// MaxInFlight is the most requests that were in flight at once.
func (f *Fleet) MaxInFlight() int { return f.most }

// Load returns what each engine is busy with.
func (f *Fleet) Load() []Load {
	var all []Load
	for _, e := range f.engines {
		all = append(all, e.Load())
	}
	return all
}

func (f *Fleet) runUntil(at Picos) {
	for len(f.cuts) > 0 && f.cuts[0].Cut <= at {
		a := heap.Pop(&f.cuts).(*Answer)
		e := f.engines[a.Replica]
		e.Run(a.Cut, f)
		if e.Abort(&a.Job) {
			f.finishAnswer(&a.Job, a.Cut, ErrCut)
		}
	}
	for _, e := range f.engines {
		e.Run(at, f)
	}
}

// Tokens implements [tokenSink].
func (f *Fleet) Tokens(j *Job, at []Picos) {
	a := j.answer
	if a.Tokens == nil {
		a.Tokens = make([]Picos, 0, min(j.Output, 1<<16))
	}
	a.Tokens = append(a.Tokens, at...)
}

// Finished implements [tokenSink].
func (f *Fleet) Finished(j *Job, at Picos) {
	if cut := j.answer.Cut; cut > 0 && at > cut {
		f.finishAnswer(j, cut, ErrCut) // within the step in which it was cut
		return
	}
	f.finishAnswer(j, at, nil)
}

// finishAnswer hands an answer on. One that was cut has no more than the client got.
func (f *Fleet) finishAnswer(j *Job, at Picos, how error) {
	a := j.answer
	j.answer = nil
	a.Done, a.Err = at, how
	f.ended++
	for n := len(a.Tokens); n > 0 && a.Tokens[n-1] > at; n-- {
		a.Tokens = a.Tokens[:n-1]
	}
	if err := f.done(a); err != nil && f.failed == nil {
		f.failed = err
	}
}

// cuts is a heap of answers by the instant of their cut, then by job.
type cuts []*Answer

func (c cuts) Len() int { return len(c) }
func (c cuts) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[i].Cut, c[j].Cut), cmp.Compare(c[i].Job.ID, c[j].Job.ID)) < 0
}
func (c cuts) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cuts) Push(v any)   { *c = append(*c, v.(*Answer)) }
func (c *cuts) Pop() any {
	last := len(*c) - 1
	v := (*c)[last]
	*c = (*c)[:last]
	return v
}
