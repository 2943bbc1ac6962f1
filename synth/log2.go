package synth

import "math/bits"

// Distances are compared by their logarithms. math.Log may differ in its last
// bit between processors, and a search that takes the least error would then
// make another workload; so logarithms are integers here: log2(x)·2^16, from a
// table of 1,024 steps an octave with linear interpolation between them. Both
// are integer arithmetic, the same on every machine; the error is below 2^-15.

const (
	logOne   = 1 << 16 // log2(2)
	logSteps = 10      // bits of the mantissa that choose an entry
)

var logTable = makeLogTable()

// makeLogTable computes log2(1 + i/1024)·2^16 by repeated squaring: a mantissa
// in [1, 2) whose square is 2 or more has a fractional bit of 1.
func makeLogTable() [1<<logSteps + 1]int32 {
	var t [1<<logSteps + 1]int32
	for i := range t[:1<<logSteps] {
		x := uint64(1<<logSteps+i) << (31 - logSteps)
		var y int32
		for range 17 { // one bit more than is kept, to round by
			x = x * x >> 31
			y <<= 1
			if x >= 1<<32 {
				x >>= 1
				y |= 1
			}
		}
		t[i] = (y + 1) >> 1
	}
	t[1<<logSteps] = logOne
	return t
}

// log2 returns log2(x)·2^16, and 0 for 0.
func log2(x int64) int64 {
	if x < 2 {
		return 0
	}
	whole := bits.Len64(uint64(x)) - 1
	mantissa := uint64(x) << (63 - whole) << 1 // the bits behind the leading one, from the top
	i := mantissa >> (64 - logSteps)
	rest := int64(mantissa << logSteps >> 48)
	lo, hi := int64(logTable[i]), int64(logTable[i+1])
	return int64(whole)<<16 + lo + (hi-lo)*rest>>16
}
