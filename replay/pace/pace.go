// Package pace releases its caller at instants that are absolute from one start, so
// that a late release never moves the ones after it: no sleeps are added up.
//
//  1. The caller fixes a start and makes a [Timer], or a plain [Sleep] where precision
//     does not matter and in tests of virtual time.
//  2. For each request, in the order of their due times, it calls WaitUntil with the
//     offset from the start. A due time that has passed returns at once: being late is
//     the caller's to record, never the pacer's to make up for.
//  3. A cancelled context ends a wait, however long.
//
// A pacer is never early. How late it is depends on how it sleeps: Go's own timers
// wait in epoll with millisecond resolution on Linux (golang.org/issue/44343) and
// release half a millisecond to more than one late, which in a benchmark of servers
// that answer in milliseconds is an error of the instrument.
package pace

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// A Pacer releases its caller at an instant. WaitUntil returns nil when due, an offset
// from the pacer's start, has come or is past, and the context's error as soon as the
// context is cancelled.
type Pacer interface {
	WaitUntil(ctx context.Context, due time.Duration) error
}

// Sleep returns the pacer that only sleeps: portable, about a millisecond late, and at
// home in the virtual time of testing/synctest. Any number of goroutines may use it.
func Sleep(start time.Time) Pacer { return sleeper{start: start} }

// A sleeper sleeps with Go's timers until lead before the due time, yields until
// spinFor before it, and spins.
type sleeper struct {
	start time.Time
	lead  time.Duration
}

func (s sleeper) WaitUntil(ctx context.Context, due time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if left := due - time.Since(s.start) - s.lead; left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for time.Since(s.start) < due-spinFor {
		runtime.Gosched()
	}
	spin(s.start, due)
	return ctx.Err()
}

// spinFor is the longest time that a pacer holds a core to itself: what a wake-up
// through the netpoller takes, at half to nine tenths of them. A thousand releases a
// second cost 6 % of a core at most.
const spinFor = 60 * time.Microsecond

// spin passes the last moments before due. It does not yield: a goroutine that yields
// stands behind all that can run, and on a machine with busy streams that doubled the
// lateness at p90.
func spin(start time.Time, due time.Duration) {
	for time.Since(start) < due {
	}
}

var errNoMonotonic = errors.New("pace: the start has no monotonic clock reading: make it from time.Now")

// hasMonotonic reports whether t has a monotonic clock reading, which Round strips.
// Without one, offsets would follow every step of the wall clock.
func hasMonotonic(t time.Time) bool { return t != t.Round(0) }
