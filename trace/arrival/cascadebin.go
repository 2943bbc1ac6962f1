package arrival

import "math/bits"

// A bin is bin k of the 2^level of a cascade. Before and after are what its
// neighbours hold, in fixed point, as far as it is known when the bin is split.
type bin struct {
	level         int
	k             uint64
	before, after int64
}

const neighbourBits = 16 // behind the point

// coarseBin is bin k of those that hold counts.
func coarseBin(counts []int64, k int) bin {
	b := bin{level: bits.Len(uint(len(counts))) - 1, k: uint64(k)}
	if k > 0 {
		b.before = counts[k-1] << neighbourBits
	}
	if k+1 < len(counts) {
		b.after = counts[k+1] << neighbourBits
	}
	return b
}

// halves are the two halves of a bin, with their arrivals. The neighbours of
// the bin are taken to be spread evenly: what they are split into is not known
// on both sides, and a tree that is walked depth first needs no memory so.
func (b bin) halves(left, right int64) (bin, bin) {
	return bin{b.level + 1, 2 * b.k, b.before / 2, right << neighbourBits},
		bin{b.level + 1, 2*b.k + 1, left << neighbourBits, b.after / 2}
}

// contrasts is the number of classes of contrast.
const contrasts = 4

// contrast says how unlike the neighbours are: equal, or the busier up to
// twice, up to six times or over six times as busy as the other. Without it
// bursts end at the edges of bins too often, which the index of dispersion shows
// over windows that straddle them, and long pauses are cut.
func (b bin) contrast() int {
	less, more := min(b.before, b.after), max(b.before, b.after)
	switch {
	case less == more:
		return 0
	case more <= 2*less:
		return 1
	case more <= 6*less:
		return 2
	}
	return 3
}

// edge is the first nanosecond of bin k of 2^level in span.
func edge(span int64, k uint64, level int) int64 {
	hi, lo := bits.Mul64(uint64(span), k)
	lo, carry := bits.Add64(lo, 1<<level-1, 0)
	return int64((hi+carry)<<(64-level) | lo>>level) // a shift by 64, at level 0, gives 0
}

// mulDiv is x*part/whole rounded down, and the remainder. It wants part <= whole.
func mulDiv(x, part, whole int64) (quotient, remainder int64) {
	hi, lo := bits.Mul64(uint64(x), uint64(part))
	q, rem := bits.Div64(hi, lo, uint64(whole))
	return int64(q), int64(rem)
}
