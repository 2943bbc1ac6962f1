package cli

import (
	"math"
	"runtime/debug"
)

// LimitMemory has the garbage collector aim to keep the heap below so many bytes, until the
// function that it returns is called. It is for what holds little beside what a collector
// that waits for the heap to double would let pile up. GOMEMLIMIT, where it is set, stands.
func LimitMemory(bytes int64) (undo func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	before := debug.SetMemoryLimit(bytes)
	return func() { debug.SetMemoryLimit(before) }
}
