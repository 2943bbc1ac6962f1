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
