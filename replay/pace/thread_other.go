//go:build !linux

package pace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// A Thread is the most precise Pacer that this system has without a timer of the
// kernel's own: it sleeps with Go's timers until 1.5 ms before the due time, yields to
// other goroutines, and spins for the last 60 µs. It is for one goroutine at a time.
type Thread struct {
	start  time.Time
	closed bool
}

// lead is how long before the due time the sleep ends: Go's timers are up to a
// millisecond late, and more where the system joins wake-ups to save power. The
// precision costs up to a whole core, which other goroutines get whenever they can
// run.
const lead = 1500 * time.Microsecond

// NewThread returns a Thread whose due times count from start, which must come from
// time.Now (it may be moved by Add) and may lie in the future. Close it after use.
func NewThread(start time.Time) (*Thread, error) {
	if !hasMonotonic(start) {
		return nil, errNoMonotonic
	}
	return &Thread{start: start}, nil
}

// NewRealtime returns an error of errors.ErrUnsupported.
func NewRealtime(time.Time) (*Thread, error) {
	return nil, fmt.Errorf("pace: realtime threads: %w", errors.ErrUnsupported)
}

// WaitUntil implements [Pacer]. Its error is the context's, or os.ErrClosed after
// Close.
func (t *Thread) WaitUntil(ctx context.Context, due time.Duration) error {
	if t.closed {
		return os.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if left := due - time.Since(t.start) - lead; left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for time.Since(t.start) < due-spinFor {
		runtime.Gosched()
	}
	spin(t.start, due)
	return ctx.Err()
}

// Close ends the use of the Thread. A second call returns os.ErrClosed.
func (t *Thread) Close() error {
	if t.closed {
		return os.ErrClosed
	}
	t.closed = true
	return nil
}
