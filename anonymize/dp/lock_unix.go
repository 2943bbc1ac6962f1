//go:build unix

package dp

import (
	"errors"
	"os"
	"syscall"
)

// lock waits until no other process has the file, and takes it until it is closed. A
// file system that knows no locks lets everyone in.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
			return nil
		default:
			return err
		}
	}
}
