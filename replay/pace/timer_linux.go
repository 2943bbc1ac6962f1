package pace

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Timer is the most precise Pacer that needs no privileges: on Linux a timerfd, which
// the kernel fires to the nanosecond, parked in the runtime's netpoller like a socket,
// and a spin of at most 60 µs. It is for one goroutine at a time.
//
// Rejected: a blocking clock_nanosleep is as precise, but keeps its P from running
// other goroutines until the scheduler's monitor takes it away.
type Timer struct {
	start time.Time
	epoch int64 // CLOCK_MONOTONIC at start, ns
	file  *os.File
	conn  syscall.RawConn

	// What arm and interrupt use, made once so that a wait allocates next to nothing.
	due         unix.ItimerSpec
	armErr      error
	arm         func(fd uintptr)
	interrupt   func()
	interrupted chan struct{}
}

// New returns a Timer whose due times count from start, which must come from time.Now
// (it may be moved by Add) and may lie in the future. Close it after use.
func New(start time.Time) (*Timer, error) {
	if !hasMonotonic(start) {
		return nil, errNoMonotonic
	}
	epoch, err := monotonic(start)
	if err != nil {
		return nil, fmt.Errorf("pace: reading CLOCK_MONOTONIC: %w", err)
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("pace: timerfd_create: %w", err)
	}
	t := &Timer{start: start, epoch: epoch, file: os.NewFile(uintptr(fd), "timerfd"), interrupted: make(chan struct{}, 1)}
	if t.conn, err = t.file.SyscallConn(); err != nil {
		t.file.Close()
		return nil, fmt.Errorf("pace: timerfd: %w", err)
	}
	t.arm = func(fd uintptr) {
		t.armErr = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &t.due, nil)
	}
	t.interrupt = func() {
		t.file.SetReadDeadline(time.Unix(1, 0)) // fails only if closed, which ends the read as well
		t.interrupted <- struct{}{}
	}
	return t, nil
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

// WaitUntil implements [Pacer]. Its error is the context's, or os.ErrClosed after Close.
func (t *Timer) WaitUntil(ctx context.Context, due time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if due-time.Since(t.start) > spinFor {
		if err := t.sleep(ctx, due-spinFor); err != nil {
			return err
		}
	}
	spin(t.start, due)
	return ctx.Err()
}

// sleep parks the goroutine until the offset until has come.
func (t *Timer) sleep(ctx context.Context, until time.Duration) error {
	stop := context.AfterFunc(ctx, t.interrupt)
	err := t.read(until)
	if stop() {
		return err
	}
	// The interrupt runs or has run: wait for it, so that its deadline, which is in the
	// past for good, is lifted before the next wait.
	<-t.interrupted
	if err := t.file.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return ctx.Err()
}

// read arms the timer and reads its expiry. Arming forgets an expiry that was not read.
func (t *Timer) read(until time.Duration) error {
	t.due.Value = unix.NsecToTimespec(t.epoch + int64(until))
	if err := t.conn.Control(t.arm); err != nil {
		return os.ErrClosed
	}
	if t.armErr != nil {
		return fmt.Errorf("pace: timerfd_settime: %w", t.armErr)
	}
	var expiries [8]byte
	_, err := t.file.Read(expiries[:])
	return err
}

// Close releases the timer; a wait that is under way ends with os.ErrClosed.
func (t *Timer) Close() error { return t.file.Close() }
