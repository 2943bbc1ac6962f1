//go:build unix

package bench

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockDir takes a directory for this process, until unlock is called or the process
// is no more. A file system without locks has none to take, and lets everyone in.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("a suite is being run into %s", dir)
	}
	return func() { f.Close() }, nil
}
