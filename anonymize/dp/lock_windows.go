package dp

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes a file until it is closed or the process ends, unless another process has it. A
// lock keeps others from what it covers: one byte far behind the end leaves the lines readable.
func lock(f *os.File) (taken bool, err error) {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
