package host

import (
	"fmt"
	"os"
)

// OpenFiles is how many files the process has open.
func OpenFiles() int64 {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return int64(len(open))
}

// LocalPorts is how many ports the system gives to outgoing connections; 0 when it
// does not say.
func LocalPorts() int64 {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0
	}
	var from, to int64
	if _, err := fmt.Sscan(string(b), &from, &to); err != nil || to < from {
		return 0
	}
	return to - from + 1
}
