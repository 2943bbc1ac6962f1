package pace

import (
	"context"
	"errors"
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
// others. The program should have one more than there are cores:
// runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1).
type Thread struct {
	start    time.Time
	epoch    int64 // CLOCK_MONOTONIC at start, ns
	timer    int
	wake     int // an eventfd that ends a wait
	realtime bool
	keeps    time.Duration // see brief
	slept    time.Time     // last
	woken    chan struct{}
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
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Runtime: uint64(slice)}, 0)
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
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("pace: timerfd_create: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(timer)
		return nil, fmt.Errorf("pace: eventfd: %w", err)
	}
	runtime.LockOSThread()
	return &Thread{start: start, epoch: epoch, timer: timer, wake: wake, slept: start, keeps: brief, woken: make(chan struct{}, 1)}, nil
}

// monotonic returns CLOCK_MONOTONIC at start.
//
// The timer is armed with an absolute time, not with what is left: a thread that loses
// its core between computing the rest and arming would fire late by that much. That
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
// Close.
func (t *Thread) WaitUntil(ctx context.Context, due time.Duration) error {
	if t.timer < 0 {
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
	if until := due - spinFor; until > time.Since(t.start) {
		// Wait in the kernel until then, or until ctx ends.
		stop := context.AfterFunc(ctx, func() {
			one := [8]byte{1} // not 0 in either byte order
			unix.Write(t.wake, one[:])
			t.woken <- struct{}{}
		})
		var err error
		if early := until - t.keeps; early > time.Since(t.start) {
			err = t.poll(early, false)
		}
		if err == nil {
			err = t.poll(until, true)
		}
		if !stop() {
			<-t.woken // the wake-up was written: it must not end the next wait
			var n [8]byte
			unix.Read(t.wake, n[:])
			err = ctx.Err()
		}
		if err != nil {
			return err
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

// poll returns when the timer has fired or the wait was interrupted. The wait may keep
// the processor, see brief. Arming forgets an expiry that was not read.
func (t *Thread) poll(until time.Duration, keep bool) error {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(t.epoch + int64(until))}
	if err := unix.TimerfdSettime(t.timer, unix.TFD_TIMER_ABSTIME, &at, nil); err != nil {
		return fmt.Errorf("pace: timerfd_settime: %w", err)
	}
	fds := [2]unix.PollFd{{Fd: int32(t.timer), Events: unix.POLLIN}, {Fd: int32(t.wake), Events: unix.POLLIN}}
	for {
		var err error
		if keep {
			err = ppollKept(fds[:])
		} else {
			_, err = unix.Ppoll(fds[:], nil, nil)
		}
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// brief is how long a wait keeps the processor. A wait that lets Go have it must get
// one back at its end, and where all are taken, by collectors of garbage too, it
// waits for goroutines: at 5,000 waits a second the p99 of the lateness was some
// 2 ms, and 0.1 to 0.2 when they kept it. Long waits need not be so exact.
const brief = 5 * time.Millisecond

// ppollKept waits without Go's knowledge. When Go wants the goroutine to stop, as
// before it looks for garbage, its signal ends the wait, and the next call of this
// function, which for that must stay one, is where the goroutine stops: in the wait
// and not between it and the sending.
//
//go:noinline
func ppollKept(fds []unix.PollFd) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Close gives the thread back.
func (t *Thread) Close() error {
	if t.timer < 0 {
		return os.ErrClosed
	}
	unix.Close(t.timer)
	unix.Close(t.wake)
	t.timer = -1
	unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	runtime.UnlockOSThread()
	return nil
}
