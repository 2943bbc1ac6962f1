// Package pace releases its caller at instants that are absolute from one start, so
// that a late release never moves the ones after it: no sleeps are added up.
//
//  1. The caller fixes a start and makes a [Thread], with [NewThread] or, where it may
//     run before every other thread of the machine, with [NewRealtime].
//  2. For each request, in the order of their due times, it calls WaitUntil with the
//     offset from the start. A due time that has passed returns at once: being late is
//     the caller's to record, never the pacer's to make up for.
//  3. A cancelled context ends a wait, however long.
//
// A pacer is never early. How late it is depends on how it sleeps: Go's own timers
// wait in epoll with millisecond resolution on Linux (golang.org/issue/44343) and
// release half a millisecond to more than one late, which in a benchmark of servers
// that answer in milliseconds is an error of the instrument. So a Thread waits in the
// kernel on Linux. On other systems it ends its sleep early and yields until it is due.
//
// # Files
//
//   - pace.go: the Pacer, and the last moments of a wait, spun through
//   - thread_linux.go: waiting in the kernel on a thread of its own; realtime priority
//     (--set realtime)
//   - thread_other.go: sleeping with Go's timers on other systems
//
// Exported names may change in any release.
package pace

import (
	"context"
	"errors"
	"time"
)

// A Pacer releases its caller at an instant. WaitUntil returns nil when due, an offset
// from the pacer's start, has come or is past, and the context's error as soon as the
// context is cancelled.
type Pacer interface {
	WaitUntil(ctx context.Context, due time.Duration) error
}

// spinFor is how long before the due time a wait in the system ends. A wake-up that
// takes no longer is not late; the rest is spun away, which keeps a core from others
// and at a thousand releases a second costs at most 6 % of one.
const spinFor = 60 * time.Microsecond

// spin passes the last moments before due. It does not yield: a goroutine that yields
// waits for all others that can run, and on a machine with busy streams that doubled the
// lateness at p90.
func spin(start time.Time, due time.Duration) {
	for time.Since(start) < due {
	}
}

var errNoMonotonic = errors.New("pace: the start has no monotonic clock reading: make it from time.Now")

// hasMonotonic reports whether t has a monotonic clock reading, which Round strips.
// Without one, offsets would follow every step of the wall clock.
func hasMonotonic(t time.Time) bool { return t != t.Round(0) }
