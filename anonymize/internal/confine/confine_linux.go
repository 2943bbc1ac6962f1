package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process confines the process to p, for good.
func Process(p Paths) Status {
	dumps := NoDumps()
	var network error
	if p.Serves {
		network = errServes
	} else {
		network = noNetwork()
	}
	abi, files := landlock(p)
	return Status{CoreDumps: said("off", dumps), Network: said("seccomp", network),
		Files: said(fmt.Sprintf("landlock abi %d", abi), files)}
}

// NoDumps switches core dumps off, for good. A core_pattern that begins with a pipe
// disregards the limit; an undumpable process has no core for it either.
func NoDumps() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func said(done string, err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return notAvailable("the kernel refuses it") // cards have words of our own alone
	case err != nil:
		return notAvailable(err.Error())
	}
	return done
}

var errServes = errors.New("it serves the network")

// noNetwork closes the sockets that were handed over, but for the standard streams, and
// installs the filter in all threads: a write to a socket is like any other.
func noNetwork() error {
	filter, err := filter()
	if err != nil {
		return err
	}
	last := 4096
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		last = 0
		for _, f := range open {
			if fd, err := strconv.Atoi(f.Name()); err == nil {
				last = max(last, fd)
			}
		}
	}
	for fd := 3; fd <= last; fd++ {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
			unix.Close(fd)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Without it an unprivileged process gets no filter. TSYNC hands it on.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return install(filter)
}

var errThreads = errors.New("not all threads of a program built with cgo can be confined")

// onAllThreads makes a system call in every thread. A domain of Landlock is that
// of a thread and of those it starts.
func onAllThreads(trap, a1, a2, a3, a4, a5 uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall6(trap, a1, a2, a3, a4, a5, 0)
	switch errno {
	case 0:
		return nil
	case syscall.ENOTSUP:
		return errThreads
	}
	return errno
}
