//go:build unix

package result

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a file for this process, until it is closed or the process is no
// more. It is false when another has it. A file system without locks has none to
// take, and lets everyone in.
func lock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
