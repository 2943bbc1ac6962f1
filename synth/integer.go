package synth

import (
	"math"
	"math/bits"
)

// mulDiv is x·num/den rounded down, and the greatest int64 where that is more.
func mulDiv(x, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	if hi >= uint64(den) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(den))
	return int64(min(q, math.MaxInt64))
}

// share splits total in proportion to weights, so that the sum is exact: each
// gets what the running total allows.
func share(total int64, weights []int64) []int64 {
	var sum, upTo, done int64
	for _, w := range weights {
		sum += w
	}
	out := make([]int64, len(weights))
	for i, w := range weights {
		upTo += w
		out[i] = mulDiv(total, upTo, sum) - done
		done += out[i]
	}
	return out
}

func abs(x int64) int64 { return max(x, -x) }

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
	mantissa := uint64(x) << (63 - whole) << 1 // the bits after the leading one, from the top
	i := mantissa >> (64 - logSteps)
	rest := int64(mantissa << logSteps >> 48)
	lo, hi := int64(logTable[i]), int64(logTable[i+1])
	return int64(whole)<<16 + lo + (hi-lo)*rest>>16
}
