package pace

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Thread is a Pacer that has a thread of the system to itself, and that waits in
// the kernel, not in Go's scheduler: a goroutine that the kernel wakes on time still
// waits for all others that can run, and with busy streams on every core it does so for
// milliseconds. It is made, used and closed by one goroutine, which it locks to its
// thread.
//
// The last milliseconds of a wait in the kernel keep what Go calls a processor from
// others. The program should have one more than there are cores.
type Thread struct {
	start    time.Time
	epoch    int64 // CLOCK_MONOTONIC at start, ns
	closed   bool
	realtime bool
	keeps    time.Duration // see brief
	slept    time.Time     // last
}

// slice is how long the thread asks to run at a time. One that asks for little is
// scheduled soon (EEVDF, Linux 6.12; others ignore it).
const slice = 100 * time.Microsecond

// NewThread returns a Thread whose due times count from start, which must come from
// time.Now. Close it after use.
func NewThread(start time.Time) (*Thread, error) {
	t, err := newThread(start)
	if err != nil {
		return nil, err
	}
	// It may fail, where the kernel knows of no such wish.
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: uint64(slice)},
		0)
	return t, nil
}

// NewRealtime returns a Thread before which every other has to give way: it has the
// policy SCHED_FIFO, for which the process needs to be root, CAP_SYS_NICE or a limit
// RLIMIT_RTPRIO. The error without is of os.ErrPermission.
//
// Such a thread that never sleeps is stopped by the kernel for 50 ms in each second
// (sched_rt_runtime_us). So it sleeps for a millisecond when it has not for ten:
// then the sending is late, and says so, but the machine goes on.
func NewRealtime(start time.Time) (*Thread, error) {
	t, err := newThread(start)
	if err != nil {
		return nil, err
	}
	err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10}, 0)
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("pace: SCHED_FIFO, which needs CAP_SYS_NICE: %w", err)
	}
	t.realtime = true
	return t, nil
}

func newThread(start time.Time) (*Thread, error) {
	if !hasMonotonic(start) {
		return nil, errNoMonotonic
	}
	epoch, err := monotonic(start)
	if err != nil {
		return nil, fmt.Errorf("pace: reading CLOCK_MONOTONIC: %w", err)
	}
	runtime.LockOSThread()
	return &Thread{start: start, epoch: epoch, slept: start, keeps: brief}, nil
}

// monotonic returns CLOCK_MONOTONIC at start.
//
// It sleeps until an absolute time, not for what is left: a thread that loses its core
// between computing the rest and sleeping would wake late by that much. That
// takes start on the kernel's clock. Go's monotonic reading is the same clock with
// another origin, which it hides, so the two are read side by side, once; of a few
// tries the one with the least time between counts, since a preemption there would
// shift every release. Their rates are equal, so the relation holds for good, and an
// error makes a wake-up late or the spin longer, but never a release early: that is
// judged by Go's clock alone.
func monotonic(start time.Time) (int64, error) {
	var epoch int64
	least := time.Duration(1<<63 - 1)
	for range 16 {
		var now unix.Timespec
		before := time.Since(start)
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return 0, err
		}
		if between := time.Since(start) - before; between < least {
			least = between
			epoch = now.Nano() - int64(before+between/2)
		}
	}
	return epoch, nil
}

// WaitUntil implements [Pacer]. Its error is the context's, or os.ErrClosed after
// Close. It may notice the end of the context some milliseconds late.
func (t *Thread) WaitUntil(ctx context.Context, due time.Duration) error {
	if t.closed {
		return os.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.realtime && time.Since(t.slept) > awakeAtMost {
		rest := unix.NsecToTimespec(int64(thenAsleep))
		unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, nil)
		t.slept = time.Now()
	}
	until := due - spinFor
	if early := until - t.keeps - time.Since(t.start); early > 0 {
		timer := time.NewTimer(early)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	for until > time.Since(t.start) {
		if err := sleepKept(t.epoch + int64(until)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.slept = time.Now()
	}
	spin(t.start, due)
	return ctx.Err()
}

// Bounds of a realtime thread.
const (
	awakeAtMost = 10 * time.Millisecond
	thenAsleep  = time.Millisecond
)

// brief is how long a wait keeps the processor. A wait that lets Go have it must get
// one back at its end, and where all are taken, by collectors of garbage too, it
// waits for goroutines: at 5,000 waits a second the p99 of the lateness was some
// 2 ms, and 0.1 to 0.2 when they kept it. Long waits begin as a timer of Go's, which wakes
// up to some milliseconds late. As a call of the system, Go's monitor would look for it
// every 20 µs for as long as it lasts, at a fifth of the CPU time of a slow replay.
const brief = 5 * time.Millisecond

// sleepKept sleeps without Go's knowledge until an instant of CLOCK_MONOTONIC, or until a
// signal. When Go wants the goroutine to stop, as before it looks for garbage, its signal
// ends the sleep, and the next call of this function, which for that must stay one, is
// where the goroutine stops: in the wait and not between it and the sending.
//
//go:noinline
func sleepKept(at int64) error {
	until := unix.NsecToTimespec(at)
	_, _, errno := unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
		uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return fmt.Errorf("pace: clock_nanosleep: %w", errno)
	}
	return nil
}

// Close gives the thread back.
func (t *Thread) Close() error {
	if t.closed {
		return os.ErrClosed
	}
	t.closed = true
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	runtime.UnlockOSThread()
	return nil
}
