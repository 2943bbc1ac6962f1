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
//   - The coarse parts, which hold 5k arrivals or more on average, keep their counts
//     and their places, so that the course of the rate is that of the source. This
//     costs privacy: whoever holds the rows knows these counts. Parts that hold some
//     arrivals but fewer than k share theirs evenly, as many parts as hold k together.
//   - Below, the fraction is drawn from bins as busy whose neighbours were as
//     unlike, and from at least three of them if there are so many that are at
//     all alike. It is the half beside the busier neighbour that is counted, so
//     that a burst goes on across the edge of a bin; where neither neighbour is
//     busier a fraction and its mirror image are one. Where a burst was within
//     its part of the span is not kept, but a part unlike all others has few
//     bins to draw from, and something of its course comes back. The rows, which count how often a bin was split into so many and
//     so many, reveal more: a row of a busy bin describes that bin alone.
//   - In the finest bins the gaps between arrivals are bootstrapped from those
//     of bins as busy.
//   - The indices of dispersion of windows of 0.1 to 300 s are kept as they are, where
//     there are at least eight windows.
//   - Where the source's clock ticks, the finest bins are its ticks, and all that
//     arrives in one comes at one instant, as far off the tick as those of the source.
//
// It holds integers only and draws with them, so that all machines agree.
type Cascade struct {
	span        int64
	n           int64     // arrivals of the source
	tick        int64     // of the source's clock, in nanoseconds; 0 without
	whole       int64     // width of the tree: the span, or 2^levels ticks
	levels      int       // the finest bins are whole/2^levels wide
	depth       int       // the level of the parts
	parts       []int64   // their arrivals
	splits      []splits  // by level from depth
	gaps        []class   // in order of busyness
	offsets     empirical // how far arrivals are behind the middle of the tick before theirs
	dispersions []dispersion
	rows        []CascadeRow
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

// A Part is a stretch of time with so many arrivals.
type Part struct {
	Width int64 // nanoseconds
	Count int64
}

// Span is how long the source's arrivals take, in nanoseconds: whole ticks, where its
// clock ticks.
func (c *Cascade) Span() int64 { return c.span }

// Tick is the tick of the source's clock in nanoseconds, 0 without.
func (c *Cascade) Tick() int64 { return c.tick }

// Parts returns the coarse parts of the span, in order.
func (c *Cascade) Parts() []Part {
	out := make([]Part, len(c.parts))
	for k, n := range c.parts {
		out[k] = Part{c.until(k+1) - c.until(k), n}
	}
	return out
}

// MaxParts is how many parts [Repeat] makes at most.
const MaxParts = 1 << 20

// Repeat returns parts again and again until span is over; the last is clipped. There
// are at most [MaxParts], and the last then lasts to the end.
func Repeat(parts []Part, span int64) []Part {
	var out []Part
	for j := 0; span > 0 && len(parts) > 0; j++ {
		p := parts[j%len(parts)]
		if p.Width > span {
			p.Count, _ = mulDiv(p.Count, span, p.Width)
			p.Width = span
		}
		if p.Width <= 0 || len(out) == MaxParts {
			return append(out, Part{Width: span})
		}
		out = append(out, p)
		span -= p.Width
	}
	return out
}

// until is where part k begins, and the one before it ends.
func (c *Cascade) until(k int) int64 { return min(edge(c.whole, uint64(k), c.depth), c.span) }

// Times returns exactly n instants in ascending order, in nanoseconds from 0 up to the
// end of the last of parts, which follow each other. These are parts of Parts in any
// order, with any counts; a part wider than those ends in a pause. nil where there are
// no parts, or n is not positive.
//
// As many as the parts count are statistically those of the source; as many as the source
// has, in its whole course, are of up to 16 draws the one whose counts in windows of 0.1 to
// 300 s vary most as those of the source do. Fewer are a random
// choice of as many as that, which is what users who leave would do. More make every
// bin busier by the same factor, and split it as bins were split that were as busy: the
// course of the rate then stands out more, and its index of dispersion grows with n.
func (c *Cascade) Times(r *rand.Rand, n int, parts []Part) []int64 {
	total := int64(0)
	for _, p := range parts {
		total += p.Count
	}
	if n <= 0 || len(parts) == 0 || c.span == 0 {
		return nil
	}
	if total == 0 { // in all that there is of a quiet time
		parts, total = []Part{{parts[0].Width, 1}}, 1
	}
	full := min(total, thinnest*int64(n))
	if full <= int64(n) {
		return c.nearest(r, n, parts, total)
	}
	g := generator{Cascade: c, r: r}
	out, all := make([]int64, n), make([]int64, full)
	g.cascade(all, parts, total)
	rest := out
	for i, at := range all {
		if g.r.IntN(len(all)-i) < len(rest) {
			rest[0] = at
			rest = rest[1:]
		}
	}
	return out
}

// A generator makes one cascade after the other.
type generator struct {
	*Cascade
	r          *rand.Rand
	start, end int64 // of the part: where it begins, and its width
}

// thinnest is how many times as many arrivals are made, at most, to choose from:
// what is left of so many has no burst, and the work must end.
const thinnest = 64

// cascade places len(out) arrivals in parts, which count total together.
func (g *generator) cascade(out []int64, parts []Part, total int64) {
	n, rest := int64(len(out)), out
	counts := make([]int64, len(parts)+2) // with one before and one behind
	upTo, done := int64(0), int64(0)
	for j, p := range parts {
		upTo += p.Count
		due, _ := mulDiv(n, upTo, total)
		counts[j+1], done = due-done, due
	}
	for j, p := range parts {
		own := rest[:counts[j+1]]
		rest = rest[counts[j+1]:]
		b := bin{level: g.depth, before: counts[j] << neighbourBits, after: counts[j+2] << neighbourBits}
		if g.end = min(p.Width, g.until(1)); len(own) > 0 && g.end > 0 {
			g.fill(own, b)
		} else {
			for i := range own {
				own[i] = g.start
			}
		}
		g.start += p.Width
	}
	if g.tick == 0 {
		return
	}
	// The first instant is on its tick, as that of the source is, from which ticks count.
	slices.Sort(out) // one may be before its tick, and so in the part before
	first := out[0]
	for i := 0; i < len(out) && out[i] == first; i++ {
		out[i] = (first + g.tick/2) / g.tick * g.tick
	}
}

// fill places len(out) arrivals in a bin. One arrival alone is taken to be
// equally likely everywhere, which ends most branches early.
func (g *generator) fill(out []int64, b bin) {
	if len(out) == 0 {
		return
	}
	if b.level == g.levels || len(out) == 1 {
		from, to := edge(g.whole, b.k, b.level), edge(g.whole, b.k+1, b.level)
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
	level, contrast := b.level-g.depth, b.contrast()
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
	mid, end := edge(g.whole, 2*b.k+1, b.level+1), edge(g.whole, b.k+1, b.level)
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
	if g.tick > 0 {
		at := g.start + a + g.r.Int64N(max(1, width/g.tick))*g.tick + g.offsets.within(g.r) - g.tick/2
		at = max(0, min(at, g.start+a+width-1))
		for i := range out {
			out[i] = at
		}
		return
	}
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

// OnTicks returns times, in nanoseconds from the first arrival, on the ticks of the source's clock: each is moved to
// the nearest. Without a clock it returns them as they are.
func (c *Cascade) OnTicks(times []int64) []int64 {
	if c.tick == 0 {
		return times
	}
	out := make([]int64, len(times))
	for i, t := range times {
		out[i] = (t + c.tick/2) / c.tick * c.tick
	}
	return out
}

// OffTicks moves ascending times that are ticks of the source's clock as far off it as those of the source were: all
// of one tick together, and the first stays. Without a clock it does nothing.
func (c *Cascade) OffTicks(r *rand.Rand, times []int64) {
	if c.tick == 0 {
		return
	}
	for i := 0; i < len(times); {
		tick, end := times[i], i
		for end < len(times) && times[end] == tick {
			end++
		}
		by := c.offsets.within(r) - c.tick/2
		if i == 0 || tick+by < times[i-1] {
			by = 0
		}
		for ; i < end; i++ {
			times[i] = tick + by
		}
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
	partTimes    = 5    // arrivals in a part, on average and at least, for each of k
	finestBin    = 50e6 // nanoseconds in a finest bin, at most
	binsEach     = 8    // finest bins for each arrival, at least,
	narrowestBin = 1000 // as long as a bin is as many nanoseconds wide
)
