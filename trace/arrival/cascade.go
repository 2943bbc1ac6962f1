package arrival

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A Cascade is the multifractal wavelet model of a sequence of arrivals (Riedi,
// Crouse, Ribeiro and Baraniuk, "A multifractal wavelet model with application
// to network traffic", 1999): a binary tree of bins of time, in which each bin
// hands its arrivals to its two halves by a fraction drawn from those of bins
// that were as busy at the same level. It keeps the burstiness of counts at
// every scale from the span down to milliseconds, where a renewal process such
// as gamma has one scale only.
//
//   - The first levels, at most 5, have too few bins to draw from. They keep
//     their fractions and their places, so that the coarse shape of the rate is
//     that of the source. This costs privacy: whoever holds the rows knows the
//     exact counts of up to 32 equal parts of the span. No part holds fewer
//     than 64 arrivals on average, but a quiet one may hold a single arrival,
//     and is then disclosed. Noise on these rows removes that.
//   - Below, the fraction is drawn from bins as busy whose neighbours were as
//     unlike, and from at least three of them if there are so many that are at
//     all alike. It is the half beside the busier neighbour that is counted, so
//     that a burst goes on across the edge of a bin; where neither neighbour is
//     busier a fraction and its mirror image are one. Where a burst was within
//     its part of the span is not kept, but a part unlike all others has few
//     bins to draw from, and something of its course comes back: the two halves
//     of the 32 parts of a public trace and of its cascades had a correlation
//     of 0.4. The rows, which count how often a bin was split into so many and
//     so many, reveal more: a row of a busy bin describes that bin alone.
//   - In the finest bins the gaps between arrivals are bootstrapped from those
//     of bins as busy. A source with a quantised clock keeps its zero gaps so.
//
// It holds integers only and draws with them, so that all machines agree.
type Cascade struct {
	span   int64
	n      int64     // arrivals of the source
	levels int       // the finest bins are span/2^levels wide
	coarse [][]split // by level and bin
	splits []splits  // by level from len(coarse)
	gaps   []class   // in order of busyness
	rows   []CascadeRow
}

// The splits of one level are by contrast of the neighbours and by busyness.
type splits [contrasts][]class

// A class is the empirical distribution over bins of one busyness.
type class struct {
	busy int
	empirical
}

// busyness numbers the counts from 1 by half octaves: 1, 2, 3, 4-5, 6-7, 8-11
// and so on are 0, 2, 3, 4, 5, 6.
func busyness(n int64) int {
	octave := bits.Len64(uint64(n)) - 1
	if octave == 0 {
		return 0
	}
	return 2*octave + int(n>>(octave-1)&1)
}

// near is the class whose busyness is nearest to that of n arrivals, the less
// busy of two.
func near(classes []class, n int64) *class {
	want := busyness(n)
	i, exact := slices.BinarySearchFunc(classes, want, func(c class, want int) int { return c.busy - want })
	switch {
	case exact || i == 0:
	case i == len(classes) || want-classes[i-1].busy <= classes[i].busy-want:
		i--
	}
	return &classes[i]
}

// Times returns exactly n instants in ascending order, in nanoseconds from 0 up
// to and without span, or nil where n or span is not positive.
//
// Over the span of the fit and with its count, the arrivals are statistically
// those of the source. Fewer are a random choice of as many as the source had,
// which is what users who leave would do. More make every bin busier by the same
// factor, and split it as bins were split that were as busy: the coarse shape
// then stands out more, and its index of dispersion grows with n. A longer span
// continues the process: one cascade follows another, each with a share of n in
// proportion to its length, independent below the coarse shape, which repeats.
// A shorter one is the beginning of a cascade.
func (c *Cascade) Times(r *rand.Rand, n int, span int64) []int64 {
	if n <= 0 || span <= 0 || c.span == 0 {
		return nil
	}
	out := make([]int64, n)
	for done := int64(0); done < int64(n); {
		due, rem := mulDiv(span, done+1, int64(n)) // when the next arrival has come at the mean rate
		if rem == 0 {
			due--
		}
		start := due / c.span * c.span
		end := min(span-start, c.span)
		upTo, _ := mulDiv(int64(n), start+end, span)
		g := generator{Cascade: c, r: r, start: start, end: end}
		g.thinned(out[done:upTo])
		done = upTo
	}
	return out
}

// A generator makes one cascade, up to end.
type generator struct {
	*Cascade
	r          *rand.Rand
	start, end int64
}

// thinnest is how many times as many arrivals are made, at most, to choose from:
// what is left of so many has no burst, and the work must end.
const thinnest = 64

// thinned makes as many arrivals as the source had up to the end, if that is
// more, and chooses len(out) of them, each equally likely.
func (g *generator) thinned(out []int64) {
	full, _ := mulDiv(g.n, g.end, g.span)
	full = min(full, thinnest*int64(len(out)))
	if full <= int64(len(out)) {
		g.cascade(out)
		return
	}
	all := make([]int64, full)
	g.cascade(all)
	for i, at := range all {
		if g.r.IntN(len(all)-i) < len(out) {
			out[0] = at
			out = out[1:]
		}
	}
}

// cascade places len(out) arrivals.
func (g *generator) cascade(out []int64) {
	counts := []int64{int64(len(out))}
	for level, coarse := range g.coarse {
		var halves []int64
		for k, n := range counts {
			left := g.left(n, bin{level: level, k: uint64(k)}, coarse[k])
			halves = append(halves, left, n-left)
		}
		counts = halves
	}
	for k, n := range counts {
		g.fill(out[:n], coarseBin(counts, k))
		out = out[n:]
	}
}

// fill places len(out) arrivals in a bin. One arrival alone is taken to be
// equally likely everywhere, which ends most branches early.
func (g *generator) fill(out []int64, b bin) {
	if len(out) == 0 {
		return
	}
	if b.level == g.levels || len(out) == 1 {
		from, to := edge(g.span, b.k, b.level), edge(g.span, b.k+1, b.level)
		g.place(out, from, min(to, g.end)-from)
		return
	}
	n := int64(len(out))
	s := g.class(n, b).draw(g.r)
	if b.after > b.before || b.after == b.before && g.r.Uint64()&1 == 1 {
		s.left, s.right = s.right, s.left
	}
	left := g.left(n, b, s)
	first, second := b.halves(left, n-left)
	g.fill(out[:left], first)
	g.fill(out[left:], second)
}

// class is where the split of n arrivals in a bin is drawn from: the bins about
// as busy at this level, or where none was so busy, at the first above that had
// some. Without this, many more arrivals than the fit had would come in clumps:
// ten times a Poisson process would split as unevenly as the process did.
func (g *generator) class(n int64, b bin) *class {
	level, contrast := b.level-len(g.coarse), b.contrast()
	for level > 0 {
		if c := g.splits[level][contrast]; busyness(n) <= c[len(c)-1].busy {
			break
		}
		level--
	}
	return near(g.splits[level][contrast], n)
}

// left is how many of n arrivals in a bin that is split as s come in its first
// half, rounded at random so that the mean is exact.
func (g *generator) left(n int64, b bin, s split) int64 {
	mid, end := edge(g.span, 2*b.k+1, b.level+1), edge(g.span, b.k+1, b.level)
	if g.end <= mid {
		return n
	}
	if g.end < end { // of the right half, only the part before the end counts
		s.right, _ = mulDiv(s.right, g.end-mid, end-mid)
	}
	if s.left == 0 {
		return 0
	}
	q, rem := mulDiv(n, s.left, s.left+s.right)
	if rem > 0 && g.r.Int64N(s.left+s.right) < rem {
		q++
	}
	return q
}

// place puts arrivals into a bin of a width from a.
func (g *generator) place(out []int64, a, width int64) {
	out[0] = 0
	for i := 1; i < len(out); i++ {
		out[i] = out[i-1] + near(g.gaps, int64(len(out))).within(g.r)
	}
	if last := out[len(out)-1]; last >= width {
		for i := range out {
			out[i], _ = mulDiv(width-1, out[i], last)
		}
	}
	offset := g.start + a + g.r.Int64N(width-out[len(out)-1])
	for i := range out {
		out[i] += offset
	}
}

// A bin is bin k of the 2^level bins of a cascade. before and after are the
// arrivals in its neighbours, in fixed point, as far as they are known when the
// bin is split.
type bin struct {
	level         int
	k             uint64
	before, after int64
}

const neighbourBits = 16 // after the point

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

// contrast is the class of the difference between the neighbours: equal, or the busier up to
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

// How fine a cascade is.
const (
	coarseLevels = 5    // at most this many levels keep the fraction of every bin,
	coarseMean   = 64   // so that the bins below hold this many arrivals on average
	finestBin    = 50e6 // nanoseconds in a finest bin, at most
	binsEach     = 8    // finest bins for each arrival, at least,
	narrowestBin = 1000 // as long as a bin is as many nanoseconds wide
)
