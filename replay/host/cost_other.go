//go:build !unix

package host

import (
	"runtime/metrics"
	"time"
)

// CPUTime is the runtime's own estimate, which it renews at each collection.
func CPUTime() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * 1e9)
}
