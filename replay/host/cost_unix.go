//go:build unix

package host

import (
	"syscall"
	"time"
)

// CPUTime is what all threads of the process have used, in user and kernel.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
