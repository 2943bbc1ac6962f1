//go:build unix && !linux

package bench

import "syscall"

// ownGroup starts a process in a group of its own, so that an interrupt at the
// terminal does not reach it before its requests have ended. It outlives this
// process if that is killed.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
