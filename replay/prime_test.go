package replay

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reprise/trace"
)

// Priming sends in order, so many at once and no more, and says which were
// answered.
func TestPrime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, peak := 0, 0
		f := &fake{fail: func(id int32) bool { return id%10 == 3 },
			fired: func() { mu.Lock(); now++; peak = max(peak, now); mu.Unlock() },
			hold: func(int32) time.Duration {
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return 0
			},
			prepare: func(row *trace.Request) error {
				if row.InputTokens == 5 {
					return errors.New("no prompt")
				}
				return nil
			}}
		var told int64
		p := Primer{Endpoint: f, Concurrency: 4, Progress: func(n int64) { told = n }}
		sent, failures, err := p.Prime(t.Context(), workload(every(0, 40)...))
		if err != nil || sent.Prompts != 39 || sent.Failed != 5 || sent.Tokens != 39*40/2-5 || peak != 4 || told != 39 || sent.TookNS < int64(9*time.Second) {
			t.Fatal(sent, peak, err)
		}
		for i, why := range failures {
			if (why == "") == (i%10 == 3 || i == 5) {
				t.Errorf("row %d: failed with %q", i, why)
			}
		}
	})
	// At given instants, and for a time at least.
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hold: func(int32) time.Duration { return time.Second }}
		at := []time.Duration{0, 2 * time.Second, 2 * time.Second, 7 * time.Second}
		p := Primer{Endpoint: f, Concurrency: 4, At: at, Least: 9 * time.Second}
		sent, _, err := p.Prime(t.Context(), workload(every(0, 4)...))
		for i, want := range at {
			if got := f.shots[int32(i)]; got != want {
				t.Errorf("row %d was sent at %v, want %v", i, got, want)
			}
		}
		if err != nil || sent.TookNS != int64(9*time.Second) {
			t.Error(sent, err)
		}
	})
	all := &fake{fail: func(int32) bool { return true }}
	if _, _, err := (&Primer{Endpoint: all}).Prime(t.Context(), workload(every(0, 3)...)); err == nil {
		t.Error("a server that answers nothing was primed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (&Primer{Endpoint: &fake{}}).Prime(ctx, workload(every(0, 3)...)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := (&Primer{Endpoint: &fake{}}).Prime(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// Eight prompts at once go to the server where nothing else was asked for.
func TestPrimeSendsEightAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, peak := 0, 0
		f := &fake{fired: func() { mu.Lock(); now++; peak = max(peak, now); mu.Unlock() },
			hold: func(int32) time.Duration {
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return 0
			}}
		if _, _, err := (&Primer{Endpoint: f}).Prime(t.Context(), workload(every(0, 40)...)); err != nil || peak != 8 {
			t.Errorf("%d prompts at once, error %v; want 8", peak, err)
		}
	})
}
