//go:build unix

package dp

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a file until it is closed or the process ends, however that ends, unless another
// process has it. A file system that knows no locks lets everyone in.
func lock(f *os.File) (taken bool, err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
			return true, nil
		default:
			return err == nil, err
		}
	}
}
