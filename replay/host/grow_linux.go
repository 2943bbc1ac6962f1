package host

import (
	"golang.org/x/sys/unix"
)

// GrowFiles makes the kernel's table of open files as large as the process may
// need. The table doubles as files are opened, and each doubling stops every
// thread for 10 ms or so (synchronize_rcu): better now than among the
// measurements. It may fail, which costs only that.
func GrowFiles() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	top := min(limit.Cur, 1<<16)
	if fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, int(top)-1); err == nil {
		unix.Close(fd)
	}
}
