//go:build unix

package replay

import (
	"syscall"
	"time"
)

// cpuTime is what all threads of the process have used, in user and kernel.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
