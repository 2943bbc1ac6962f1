package pace

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var _ Pacer = (*Thread)(nil)

// threads are the kinds of Thread that this process may have.
func threads(t *testing.T, start time.Time, use func(name string, th *Thread)) {
	for name, make := range map[string]func(time.Time) (*Thread, error){"thread": NewThread, "realtime": NewRealtime} {
		th, err := make(start)
		if errors.Is(err, os.ErrPermission) {
			t.Logf("%s: not permitted here", name)
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
	start := time.Now()
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

// Go can stop a thread that waits, and collect garbage meanwhile.
func TestThreadStopsForTheCollector(t *testing.T) {
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		t.Skip("Go sends no signals")
	}
	start := time.Now()
	threads(t, start, func(name string, th *Thread) {
		th.keeps = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Millisecond) // that it waits is likely, and not needed
			runtime.GC()
			cancel()
		}()
		if err := th.WaitUntil(ctx, time.Since(start)+30*time.Second); err != context.Canceled {
			t.Errorf("%s: the collector waited for the thread: %v", name, err)
		}
	})
}

// The thread has its policy while it is used, and not after.
func TestThreadPolicy(t *testing.T) {
	policy := func() uint32 {
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Policy
	}
	threads(t, time.Now(), func(name string, th *Thread) {
		if got := policy() == unix.SCHED_FIFO; got != (name == "realtime") {
			t.Errorf("%s: policy %d", name, policy())
		}
	})
	if got := policy(); got != unix.SCHED_NORMAL {
		t.Errorf("policy %d stays behind", got)
	}
}

// A realtime thread that is late for good sleeps all the same.
func TestRealtimeGivesWay(t *testing.T) {
	start := time.Now()
	th, err := NewRealtime(start)
	if errors.Is(err, os.ErrPermission) {
		t.Skip("SCHED_FIFO is not permitted here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer th.Close()
	var rests int
	last := th.slept
	for time.Since(start) < 200*time.Millisecond { // each due long ago
		if err := th.WaitUntil(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if th.slept != last {
			rests++
			last = th.slept
		}
	}
	if rests < 5 {
		t.Errorf("gave way %d times in 200 ms", rests)
	}
}

func TestThreadNeedsAMonotonicStart(t *testing.T) {
	if _, err := NewThread(time.Now().Round(0)); err == nil {
		t.Error("taken")
	}
}
