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

// The timer must fire when Go's clock says so, whichever moment the two were compared
// at. The bound is generous; another clock's origin would be off by hours.
func TestMonotonic(t *testing.T) {
	start := time.Now()
	first, err := monotonic(start)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := monotonic(start)
		if err != nil || time.Duration(again-first).Abs() > 10*time.Millisecond {
			t.Fatalf("origins differ by %v, %v", time.Duration(again-first), err)
		}
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil || first > now.Nano() {
		t.Errorf("the start lies after now, %v", err)
	}
}
