package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func testEngine(seqs, waiting int) *timeline {
	return &timeline{c: ServerConfig{MaxSeqs: seqs, MaxWaiting: waiting, Base: 10 * time.Millisecond, PrefillRate: 1000}}
}

// Prefills follow each other on one timeline, and an idle engine begins at once.
func TestPrefillTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := testEngine(1, 0)
		start := time.Now()
		for i, want := range []time.Duration{110, 120, 230} {
			uncached := []int{100, 0, 100}[i]
			end, _ := e.prefill(uncached)
			if got := end.Sub(start); got != want*time.Millisecond {
				t.Errorf("prefill %d ends at %v, want %v ms", i, got, want)
			}
		}
		time.Sleep(time.Second)
		end, _ := e.prefill(0)
		if got := end.Sub(start); got != 1010*time.Millisecond {
			t.Errorf("after idling a prefill ends at %v", got)
		}
	})
}

// Requests are admitted in order, beyond the queue they are refused, and one
// that gives up leaves no hole.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := testEngine(1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		if err := e.admit(ctx); err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 2 {
			c := t.Context()
			if i == 0 {
				c = ctx
			}
			go func() {
				if e.admit(c) == nil {
					order = append(order, i)
					e.release()
				}
			}()
			synctest.Wait()
		}
		if err := e.admit(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("a full queue answered %v", err)
		}
		cancel()
		synctest.Wait()
		if _, waiting := e.load(); waiting != 1 {
			t.Errorf("%d wait after one gave up", waiting)
		}
		e.release()
		synctest.Wait()
		if running, waiting := e.load(); running != 0 || waiting != 0 || len(order) != 1 || order[0] != 1 {
			t.Errorf("%d run, %d wait, admitted %v", running, waiting, order)
		}
	})
}

// A request that gives up in the instant in which a place is given to it hands the place
// on, and no place is lost.
func TestGivingUpAtTheLastInstant(t *testing.T) {
	gaveUp := 0
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			e := testEngine(1, 2)
			if err := e.admit(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			next := make(chan error, 2)
			for _, c := range []context.Context{ctx, t.Context()} {
				go func() {
					err := e.admit(c)
					if err == nil {
						e.release()
					}
					next <- err
				}()
				synctest.Wait()
			}
			cancel()
			e.release()
			for range 2 {
				if err := <-next; errors.Is(err, context.Canceled) {
					gaveUp++
				} else if err != nil {
					t.Errorf("a request that waits got %v", err)
				}
			}
			if running, waiting := e.load(); running != 0 || waiting != 0 {
				t.Errorf("%d run, %d wait", running, waiting)
			}
		})
	}
	if gaveUp == 0 {
		t.Error("nobody gave up")
	}
}

// Prompts that are computed at the same time do not wait for each other, and what has
// passed is not waited for.
func TestParallelPrefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := testEngine(1, 0)
		e.c.ParallelPrefill, e.c.ITL = true, 7*time.Millisecond
		start := time.Now()
		for _, uncached := range []int{100, 50, 0} {
			end, itl := e.prefill(uncached)
			if want := time.Duration(10+uncached) * time.Millisecond; end.Sub(start) != want || itl != 7*time.Millisecond {
				t.Errorf("%d tokens are done after %v, want %v; then one every %v", uncached, end.Sub(start), want, itl)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for name, row := range map[string]struct {
			ctx  context.Context
			at   time.Duration
			want error
		}{"past": {t.Context(), -1, nil}, "now": {t.Context(), 0, nil}, "future": {t.Context(), time.Second, nil},
			"past, gone": {gone, -1, context.Canceled}, "future, gone": {gone, time.Second, context.Canceled}} {
			begin := time.Now()
			if err := until(row.ctx, begin.Add(row.at)); err != row.want {
				t.Errorf("%s: %v", name, err)
			}
			waited := max(row.at, 0)
			if row.want != nil {
				waited = 0
			}
			if took := time.Since(begin); took != waited {
				t.Errorf("%s: waited for %v, want %v", name, took, waited)
			}
		}
	})
}
