package bench

import "syscall"

// ownGroup starts a process in a group of its own, so that an interrupt at the
// terminal does not reach it before its requests have ended, and asks it to end when
// this process is gone, however that came.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
