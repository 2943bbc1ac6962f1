package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"reprise/trace/crash"
)

// A liveEngine lets an [engineCore] run by the clock of the machine. A step is done when
// its beginning has come, at the instant at which the last one ended and not when
// a timer woke, so that lateness never adds up; its tokens are handed on at once, each
// with the instant at which it is due.
type liveEngine struct {
	start time.Time

	mu      sync.Mutex
	engine  *engineCore
	flights map[*Job]chan time.Time // of tokens, with room for all of them
	driven  bool                    // a goroutine drives the engine, until it is idle
	queries int64                   // tokens of prompts scheduled, and those found
	hits    int64
}

func newLive(c Config) (*liveEngine, error) {
	e, err := newEngineCore(c)
	if err != nil {
		return nil, err
	}
	return &liveEngine{start: time.Now(), engine: e, flights: map[*Job]chan time.Time{}}, nil
}

// submit gives the engine a job that arrives now, and returns the instants of its
// tokens as they become known.
func (l *liveEngine) submit(j *Job) (<-chan time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.engine.Add(j, picosOf(time.Since(l.start))); err != nil {
		return nil, err
	}
	tokens := make(chan time.Time, j.Output)
	l.flights[j] = tokens
	if !l.driven {
		l.driven = true
		go func() {
			defer crash.Caught()
			l.drive()
		}()
	}
	return tokens, nil
}

// withdraw takes a job out whose client has gone; one that is over is not there.
func (l *liveEngine) withdraw(j *Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.Abort(j)
	delete(l.flights, j)
}

// drive does steps until there is nothing to do. Jobs enter in the order in
// which they were added, so that none can come before what it waits for.
func (l *liveEngine) drive() {
	for {
		l.mu.Lock()
		now := l.engine.Now()
		next, busy := l.engine.Step(now, now, l)
		if !busy && next <= picosOf(time.Since(l.start)) {
			next, _ = l.engine.Step(next, next, l) // idle until then
		}
		l.driven = busy || next < Never
		l.mu.Unlock()
		if next == Never {
			return
		}
		time.Sleep(time.Until(l.start.Add(next.Duration())))
	}
}

// Tokens implements [tokenSink]; the caller of Step holds the lock.
func (l *liveEngine) Tokens(j *Job, at []Picos) {
	tokens := l.flights[j]
	if j.generated == len(at) { // its first
		l.queries += int64(j.Prompt)
		l.hits += int64(j.Cached)
	}
	for _, t := range at {
		tokens <- l.start.Add(t.Duration())
	}
}

// Finished implements [tokenSink].
func (l *liveEngine) Finished(j *Job, _ Picos) { delete(l.flights, j) }

// snapshot returns the load, the counts, and the tokens asked of and found in the prefix
// cache.
func (l *liveEngine) snapshot() (load Load, stats Stats, queries, hits int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.engine.Load(), l.engine.Stats(), l.queries, l.hits
}

// settings are those that may be changed.
func (l *liveEngine) settings() (costs string, maxWaiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.engine.c.Costs.String(), l.engine.c.MaxWaiting
}

// change takes costs, of which those that are not named stay, and how many requests may wait.
// A step that is under way keeps the costs that it began with.
func (l *liveEngine) change(costs string, maxWaiting int) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.engine.c
	c.MaxWaiting = maxWaiting
	if c.Costs, err = ParseCosts(costs, c.Costs); err != nil {
		return fmt.Errorf("costs: %w", err)
	}
	if err := c.check(); err != nil {
		return err
	}
	l.engine.c, l.engine.reading = c, c.reading()
	return nil
}

// reset forgets the blocks that no request uses.
func (l *liveEngine) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.ResetCache()
}

// A tokenStream delivers a job's tokens when they are due.
type tokenStream struct {
	tokens    <-chan time.Time
	delivered int
}

// wait returns when token i is due, which must be after those before.
func (t *tokenStream) wait(ctx context.Context, i int) error {
	var at time.Time
	for ; t.delivered <= i; t.delivered++ {
		select {
		case at = <-t.tokens:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return until(ctx, at)
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
