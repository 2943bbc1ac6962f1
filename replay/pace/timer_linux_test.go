package pace

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Close ends a wait and all later ones that would sleep.
func TestTimerClosed(t *testing.T) {
	timer, err := New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- timer.WaitUntil(t.Context(), time.Hour) }()
	if err := timer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("the wait: %v", err)
	}
	if err := timer.WaitUntil(t.Context(), time.Hour); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a later wait: %v", err)
	}
}

// A cancellation that crosses the end of the sleep leaves nothing behind that would
// disturb the next wait.
func TestTimerCancelledAtWakeUp(t *testing.T) {
	start := time.Now()
	timer, err := New(start)
	if err != nil {
		t.Fatal(err)
	}
	defer timer.Close()
	for i := range 500 {
		due := time.Since(start) + 200*time.Microsecond
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			spin(start, due-spinFor+time.Duration(i%100-20)*time.Microsecond)
			cancel()
		}()
		if err := timer.WaitUntil(ctx, due); err != nil && err != context.Canceled {
			t.Fatal(err)
		}
		if err := timer.WaitUntil(t.Context(), due+300*time.Microsecond); err != nil {
			t.Fatalf("the next wait: %v", err)
		}
		<-ctx.Done()
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
