package dp

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock waits until no other process has the file, and takes it until it is closed. A
// lock keeps others from what it covers: one byte far behind the end leaves the lines
// readable.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}
