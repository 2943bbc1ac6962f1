package pace

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

var _ Pacer = (*Thread)(nil)

// threads are the kinds of Thread that this process may have.
func threads(t *testing.T, start time.Time, use func(name string, th *Thread)) {
	for name, make := range map[string]func(time.Time) (*Thread, error){"thread": NewThread, "realtime": NewRealtime} {
		th, err := make(start)
		if errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
			t.Logf("%s: %v", name, err)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		use(name, th)
		if err := th.Close(); err != nil {
			t.Error(err)
		}
		if err := th.WaitUntil(t.Context(), time.Hour); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: after Close: %v", name, err)
		}
		if err := th.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: closed twice: %v", name, err)
		}
	}
}

func TestThreadIsNeverEarly(t *testing.T) {
	start := time.Now().Add(2 * time.Millisecond) // the first due times are before it
	threads(t, start, func(name string, th *Thread) {
		base := time.Since(start)
		for i := range 200 {
			due := base + time.Duration(i*i-50)*100*time.Nanosecond
			if err := th.WaitUntil(t.Context(), due); err != nil || time.Since(start) < due {
				t.Fatalf("%s: due %v: %v, %v", name, due, err, time.Since(start))
			}
		}
	})
}

// A cancellation ends a wait of years, whenever it comes, and disturbs no other.
func TestThreadCancelled(t *testing.T) {
	start := time.Now()
	threads(t, start, func(name string, th *Thread) {
		for i := range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*time.Millisecond)
			if err := th.WaitUntil(ctx, 100*365*24*time.Hour); err != context.DeadlineExceeded {
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			due := time.Since(start) + 300*time.Microsecond
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i*6)*time.Microsecond)
			if err := th.WaitUntil(ctx, due); err == nil && time.Since(start) < due {
				t.Fatalf("%s: early", name)
			}
			cancel()
			due = time.Since(start) + 200*time.Microsecond
			if err := th.WaitUntil(t.Context(), due); err != nil || time.Since(start) < due {
				t.Fatalf("%s: after a cancellation: %v", name, err)
			}
		}
	})
}

// A cancellation that comes with the release disturbs no later wait.
func TestThreadCancelledWhenDue(t *testing.T) {
	start := time.Now()
	threads(t, start, func(name string, th *Thread) {
		for range 200 {
			due := time.Since(start) + 300*time.Microsecond
			ctx, cancel := context.WithDeadline(t.Context(), start.Add(due))
			if err := th.WaitUntil(ctx, due); err != nil && err != context.DeadlineExceeded {
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			if err := th.WaitUntil(t.Context(), due+100*time.Microsecond); err != nil {
				t.Fatalf("%s: the next wait: %v", name, err)
			}
		}
	})
}

func TestThreadNeedsAMonotonicStart(t *testing.T) {
	for _, start := range []time.Time{{}, time.Unix(1e9, 0), time.Now().Round(0), time.Now().UTC()} {
		if th, err := NewThread(start); !errors.Is(err, errNoMonotonic) || th != nil {
			t.Errorf("%v: %v", start, err)
		}
	}
	th, err := NewThread(time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	th.Close()
}

// BenchmarkLateness reports how late a Thread and a plain sleep release, for due times
// that they take in turns, so that a busy machine disturbs both alike. The due times
// are 1 ms apart on average, between 0.5 and 1.5: at 1 ms exactly a sleep looks ten
// times better than it is, since the runtime waits in whole milliseconds.
func BenchmarkLateness(b *testing.B) {
	start := time.Now()
	th, err := NewThread(start)
	if err != nil {
		b.Fatal(err)
	}
	defer th.Close()
	names := []string{"thread", "sleep"}
	waits := []func(due time.Duration) error{
		func(due time.Duration) error { return th.WaitUntil(b.Context(), due) },
		func(due time.Duration) error { time.Sleep(due - time.Since(start)); return nil },
	}
	late := make([][]time.Duration, len(waits))
	b.ReportAllocs()
	due := time.Since(start)
	for i := 0; b.Loop(); i++ {
		due += time.Duration(500+618*i%1000) * time.Microsecond
		// One's lateness must not eat into the other's time.
		due = max(due, time.Since(start)+500*time.Microsecond)
		if err := waits[i%2](due); err != nil {
			b.Fatal(err)
		}
		late[i%2] = append(late[i%2], time.Since(start)-due)
	}
	for i, name := range names {
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
