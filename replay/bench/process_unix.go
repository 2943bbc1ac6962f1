//go:build unix

package bench

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// askGroup asks a process and all that it started to end.
func askGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends what is left of them.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// lockDir takes a directory for this process, until unlock is called or the process
// has ended. On a file system without locks it succeeds for everyone.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("another command is writing to %s", dir)
	}
	return func() { f.Close() }, nil
}
