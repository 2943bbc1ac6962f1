//go:build unix

package host

import "golang.org/x/sys/unix"

// FileLimit is how many files the process may have open.
func FileLimit() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 1 << 30
	}
	return int64(min(limit.Cur, 1<<30))
}
