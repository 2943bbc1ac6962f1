package engine

import (
	"context"
	"sync"
	"time"
)

// A timeline admits requests in order of arrival and keeps the timeline of
// their prefills.
type timeline struct {
	c ServerConfig

	mu        sync.Mutex
	running   int
	waiting   []chan struct{} // in order of arrival; closed when admitted
	prefilled time.Time       // when the last scheduled prefill ends
}

// admit waits for a place among the running. The caller must call leave.
func (e *timeline) admit(ctx context.Context) error {
	e.mu.Lock()
	if e.running < e.c.MaxSeqs && len(e.waiting) == 0 {
		e.running++
		e.mu.Unlock()
		return nil
	}
	if len(e.waiting) >= e.c.MaxWaiting {
		e.mu.Unlock()
		return ErrBusy
	}
	turn := make(chan struct{})
	e.waiting = append(e.waiting, turn)
	e.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, w := range e.waiting {
		if w == turn {
			e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	e.passPlaceOn() // admitted in the same instant: hand the place on
	return ctx.Err()
}

// release gives the place to the request that has waited longest.
func (e *timeline) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.passPlaceOn()
}

func (e *timeline) passPlaceOn() {
	if len(e.waiting) == 0 {
		e.running--
		return
	}
	close(e.waiting[0])
	e.waiting = e.waiting[1:]
}

// load returns how many requests run and wait.
func (e *timeline) load() (running, waiting int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running, len(e.waiting)
}

// prefill books the computation of so many tokens after those booked before
// and returns when it ends, which is when the first token is due, and the time
// between the tokens that follow.
func (e *timeline) prefill(uncached int) (first time.Time, itl time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	begin := time.Now()
	if e.prefilled.After(begin) && !e.c.ParallelPrefill {
		begin = e.prefilled
	}
	e.prefilled = begin.Add(e.c.Base + time.Duration(float64(uncached)/e.c.PrefillRate*float64(time.Second)))
	return e.prefilled, e.c.ITL
}

// until sleeps to an absolute instant; it returns at once when that has passed.
func until(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
