package pace

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var (
	_ Pacer = (*Timer)(nil)
	_ Pacer = sleeper{}
)

// In virtual time a Sleep releases exactly when due, in order, and at once when late.
func TestSleepReleasesWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(time.Second) // a start in the future
		p := Sleep(start)
		for _, row := range []struct{ due, released time.Duration }{
			{-500 * time.Millisecond, -500 * time.Millisecond},
			{0, 0},
			{1, 1},
			{time.Hour, time.Hour},
			{time.Minute, time.Hour}, // past
			{-time.Hour, time.Hour},
			{time.Hour + 1, time.Hour + 1},
		} {
			if err := p.WaitUntil(t.Context(), row.due); err != nil {
				t.Fatal(err)
			}
			if at := time.Since(start); at != row.released {
				t.Errorf("due %v: released at %v, want %v", row.due, at, row.released)
			}
		}
	})
}

// A caller that is held up for a while is not shifted for ever.
func TestSleepDoesNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := Sleep(start)
		for i := range 100 {
			due := time.Duration(i) * 10 * time.Millisecond
			if err := p.WaitUntil(t.Context(), due); err != nil {
				t.Fatal(err)
			}
			if at := time.Since(start); at != due {
				t.Fatalf("due %v: released at %v", due, at)
			}
			<-time.After(time.Duration(i%10) * time.Millisecond) // the caller's own work
		}
	})
}

func TestSleepSharedByGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := Sleep(start)
		released := make(chan time.Duration, 10)
		for i := range 10 {
			go func() {
				p.WaitUntil(t.Context(), time.Duration(10-i)*time.Second)
				released <- time.Since(start)
			}()
		}
		var got []time.Duration
		for range 10 {
			got = append(got, <-released)
		}
		if !slices.IsSorted(got) || got[0] != time.Second || got[9] != 10*time.Second {
			t.Errorf("released at %v", got)
		}
	})
}

func TestSleepCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := Sleep(start)
		if err := p.WaitUntil(ctx, time.Hour); err != context.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		for _, due := range []time.Duration{time.Hour, 0} {
			if err := p.WaitUntil(ctx, due); err != context.DeadlineExceeded {
				t.Errorf("due %v, cancelled before: %v", due, err)
			}
		}
	})
}

// precise are the pacers that spin: this platform's Timer and the one of the others.
func precise(t *testing.T, start time.Time) map[string]Pacer {
	timer, err := New(start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { timer.Close() })
	return map[string]Pacer{"timer": timer, "sleep and spin": sleeper{start, 1500 * time.Microsecond}}
}

func TestTimerIsNeverEarly(t *testing.T) {
	start := time.Now()
	for name, p := range precise(t, start) {
		base := time.Since(start)
		for i := range 200 {
			// From past, over within the spin, to a sleep.
			due := base + time.Duration(i*i-50)*100*time.Nanosecond
			if err := p.WaitUntil(t.Context(), due); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if at := time.Since(start); at < due {
				t.Fatalf("%s: due %v, released at %v", name, due, at)
			}
		}
	}
}

// Cancelling ends a wait of years, and the timer is as good as new after it.
func TestTimerCancelled(t *testing.T) {
	start := time.Now()
	const never = 100 * 365 * 24 * time.Hour
	for name, p := range precise(t, start) {
		for i := range 50 {
			// Some contexts end during the wait, some at about its begin, some before.
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*time.Millisecond)
			if err := p.WaitUntil(ctx, never); err != context.DeadlineExceeded {
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			due := time.Since(start) + 200*time.Microsecond
			if err := p.WaitUntil(t.Context(), due); err != nil || time.Since(start) < due {
				t.Fatalf("%s: after a cancellation: %v, %v early", name, err, due-time.Since(start))
			}
		}
	}
}

// A cancellation that comes with the release, from another goroutine.
func TestTimerCancelledWhenDue(t *testing.T) {
	start := time.Now()
	for name, p := range precise(t, start) {
		for range 200 {
			due := time.Since(start) + 300*time.Microsecond
			ctx, cancel := context.WithDeadline(t.Context(), start.Add(due))
			if err := p.WaitUntil(ctx, due); err != nil && err != context.DeadlineExceeded {
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			if err := p.WaitUntil(t.Context(), due+100*time.Microsecond); err != nil {
				t.Fatalf("%s: the next wait: %v", name, err)
			}
		}
	}
}

func TestNewRefusesWallClock(t *testing.T) {
	for _, start := range []time.Time{{}, time.Unix(1e9, 0), time.Now().Round(0), time.Now().UTC()} {
		if timer, err := New(start); !errors.Is(err, errNoMonotonic) || timer != nil {
			t.Errorf("%v: %v", start, err)
		}
	}
	timer, err := New(time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	timer.Close()
}

// BenchmarkLateness reports how late a Timer and a Sleep release, for due times that
// they take in turns, so that a busy machine disturbs both alike. The due times are
// 1 ms apart on average, between 0.5 and 1.5: at 1 ms exactly a Sleep looks ten times
// better than it is, since the runtime waits in whole milliseconds.
func BenchmarkLateness(b *testing.B) {
	start := time.Now()
	timer, err := New(start)
	if err != nil {
		b.Fatal(err)
	}
	defer timer.Close()
	pacers := []Pacer{timer, Sleep(start)}
	late := make([][]time.Duration, len(pacers))
	b.ReportAllocs()
	due := time.Since(start)
	for i := 0; b.Loop(); i++ {
		due += time.Duration(500+618*i%1000) * time.Microsecond
		// What one pacer is late must not eat into the other's time.
		due = max(due, time.Since(start)+500*time.Microsecond)
		if err := pacers[i%2].WaitUntil(b.Context(), due); err != nil {
			b.Fatal(err)
		}
		late[i%2] = append(late[i%2], time.Since(start)-due)
	}
	for i, name := range []string{"timer", "sleep"} {
		slices.Sort(late[i])
		for _, p := range []struct {
			name string
			q    float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			value := math.NaN() // no wait was measured
			if n := len(late[i]); n > 0 {
				value = float64(late[i][int(p.q*float64(n-1))]) / 1e3
			}
			b.ReportMetric(value, name+"-"+p.name+"-µs")
		}
	}
}
