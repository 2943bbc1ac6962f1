package engine

import (
	"context"
	"sync"
	"time"
)

// A live lets an [Engine] run by the clock of the machine. A step is done when
// its beginning has come, at the instant at which the last one ended and not when
// a timer woke, so that lateness never adds up; its tokens are told at once, each
// with the instant at which it is due.
type live struct {
	start time.Time

	mu      sync.Mutex
	engine  *Engine
	flights map[*Job]chan time.Time // of tokens, with room for all of them
	driven  bool                    // a goroutine drives the engine, until it is idle
	queries int64                   // tokens of prompts scheduled, and those found
	hits    int64
}

func newLive(c EngineConfig) (*live, error) {
	e, err := NewEngine(c)
	if err != nil {
		return nil, err
	}
	return &live{start: time.Now(), engine: e, flights: map[*Job]chan time.Time{}}, nil
}

// add gives the engine a job that arrives now, and returns the instants of its
// tokens as they become known.
func (l *live) add(j *Job) (<-chan time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.engine.Add(j, PicosOf(time.Since(l.start))); err != nil {
		return nil, err
	}
	tokens := make(chan time.Time, j.Output)
	l.flights[j] = tokens
	if !l.driven {
		l.driven = true
		go l.drive()
	}
	return tokens, nil
}

// leave takes a job out whose client has gone; one that is over is not there.
func (l *live) leave(j *Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.Abort(j)
	delete(l.flights, j)
}

// drive does steps until there is nothing to do. Jobs enter in the order in
// which they were added, so that none can come before what it waits for.
func (l *live) drive() {
	for {
		l.mu.Lock()
		next, busy := l.engine.Step(0, 0, l)
		if !busy && next <= PicosOf(time.Since(l.start)) {
			next, _ = l.engine.Step(next, 0, l) // idle until then
		}
		l.driven = busy || next < Never
		l.mu.Unlock()
		if next == Never {
			return
		}
		time.Sleep(time.Until(l.start.Add(next.Duration())))
	}
}

// Tokens implements [Sink]; the caller of Step holds the lock.
func (l *live) Tokens(j *Job, at []Picos) {
	tokens, ok := l.flights[j]
	if !ok {
		return
	}
	if j.generated == len(at) { // its first
		l.queries += int64(j.Prompt)
		l.hits += int64(j.Cached)
	}
	for _, t := range at {
		tokens <- l.start.Add(t.Duration())
	}
}

// Finished implements [Sink].
func (l *live) Finished(j *Job, _ Picos) { delete(l.flights, j) }

// look returns the load and what the prefix cache found.
func (l *live) look() (load Load, stats EngineStats, queries, hits int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.engine.Load(), l.engine.Stats(), l.queries, l.hits
}

// reset forgets the blocks that no request uses.
func (l *live) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine.ResetCache()
}

// A stream tells a job's tokens when they are due.
type stream struct {
	tokens <-chan time.Time
	told   int
}

// wait returns when token i is due, which must be after those before.
func (t *stream) wait(ctx context.Context, i int) error {
	var at time.Time
	for ; t.told <= i; t.told++ {
		select {
		case at = <-t.tokens:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return until(ctx, at)
}
