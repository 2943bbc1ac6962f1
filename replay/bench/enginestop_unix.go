//go:build unix

package bench

import (
	"os"
	"syscall"
)

// askGroup asks a process and all that it started to end.
func askGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends what is left of them.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
