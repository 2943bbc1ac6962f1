package engine

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// By the clock, an engine gives every token at the instant at which it does in
// virtual time.
func TestLiveIsVirtual(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		c := randomConfig(rng)
		c.MaxWaiting = 1000
		for _, f := range c.Costs.fields() {
			*f.value *= 1e6 // whole microseconds
		}
		c.KVTokens = max(c.KVTokens, min(c.KVTokens, 1)*c.BlockSize*(1+240/c.BlockSize))
		list := randomArrivals(rng, c)
		for i := range list {
			// Nanoseconds of its own: what comes at the very end of a step, which
			// another job began, may be seen by the next or by the one after it.
			list[i].at, list[i].abort = list[i].at*1e6+Picos(i)*1000, 0
		}
		_, virtual, _ := play(t, c, list, false)
		synctest.Test(t, func(t *testing.T) {
			l, err := newLive(c)
			if err != nil {
				t.Fatal(err)
			}
			got := map[int64][]Picos{}
			var mu sync.Mutex
			for _, a := range list {
				time.Sleep(time.Until(l.start.Add(a.at.Duration())))
				job := a.job
				tokens, err := l.submit(&job)
				if err != nil {
					t.Fatal(err)
				}
				at := make([]Picos, 0, job.Output)
				go func() {
					s := tokenStream{tokens: tokens}
					for i := range job.Output {
						if err := s.wait(t.Context(), i); err != nil {
							t.Error(err)
						}
						at = append(at, picosOf(time.Since(l.start)))
					}
					mu.Lock()
					defer mu.Unlock()
					if job.Output > 0 {
						got[job.ID] = at
					}
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if !reflect.DeepEqual(got, virtual.tokens) {
				t.Errorf("seed %d: real time gives other instants", seed)
			}
			if load, _, _, _ := l.snapshot(); load.Running+load.Waiting+load.UsedBlocks != 0 || l.driven || len(l.flights) != 0 {
				t.Errorf("seed %d: %+v is left", seed, load)
			}
		})
	}
}

// A client that goes away frees its place and its blocks.
func TestLiveLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := DefaultConfig()
		c.KVTokens, c.MaxSeqs, c.Costs.Step = 1600, 1, picosOf(10*time.Millisecond)
		l, err := newLive(c)
		if err != nil {
			t.Fatal(err)
		}
		gone, next := &Job{ID: 1, Prompt: 160, Output: 1000}, &Job{ID: 2, Prompt: 160, Output: 2}
		first, err := l.submit(gone)
		if err != nil {
			t.Fatal(err)
		}
		second, err := l.submit(next)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Millisecond)
		defer cancel()
		a := tokenStream{tokens: first}
		if err := a.wait(ctx, 999); err == nil || a.delivered != 4 {
			t.Errorf("%d tokens in 35 ms (%v)", a.delivered, err)
		}
		l.withdraw(gone)
		b := tokenStream{tokens: second}
		if err := b.wait(t.Context(), 1); err != nil || time.Since(l.start) != 60*time.Millisecond {
			t.Errorf("the next is over after %v (%v)", time.Since(l.start), err)
		}
		l.withdraw(next)
		time.Sleep(time.Second)
		if load, _, _, _ := l.snapshot(); load.UsedBlocks != 0 || load.KeptBlocks == 0 || l.driven {
			t.Errorf("%+v is left", load)
		}
		l.reset()
		if load, _, _, _ := l.snapshot(); load.KeptBlocks != 0 || l.engine.pool.free != 100 {
			t.Errorf("%+v is left by a reset", load)
		}
		if _, err := l.submit(&Job{ID: 3, Prompt: 1600, Output: 2}); err != ErrTooLong {
			t.Errorf("too long: %v", err)
		}
	})
}

// An engine that was idle begins with the next request when that enters, however long it
// was idle, and one that never had any stands still.
func TestLiveAfterIdling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := DefaultConfig()
		c.Costs = Costs{Step: 10e9, Request: 3e9}
		l, err := newLive(c)
		if err != nil {
			t.Fatal(err)
		}
		for i, pause := range []time.Duration{0, 5 * time.Millisecond, time.Hour} {
			time.Sleep(pause)
			begin := time.Now()
			j := &Job{ID: int64(i), Prompt: 5, Output: 2}
			tokens, err := l.submit(j)
			if err != nil {
				t.Fatal(err)
			}
			s := tokenStream{tokens: tokens}
			for token, want := range []time.Duration{13 * time.Millisecond, 23 * time.Millisecond} {
				if err := s.wait(t.Context(), token); err != nil || time.Since(begin) != want {
					t.Errorf("request %d: token %d after %v (%v), want %v", i, token, time.Since(begin), err, want)
				}
			}
			l.withdraw(j)
		}
		time.Sleep(time.Minute)
		if _, stats, queries, hits := l.snapshot(); stats.Steps != 6 || queries != 15 || hits != 0 || len(l.flights) != 0 || l.driven {
			t.Errorf("%+v, %d tokens asked for, %d found, %d in flight, driven: %v", stats, queries, hits, len(l.flights), l.driven)
		}
	})
}
