package arrival

import (
	"errors"
	"math/bits"
	"slices"
	"sort"
)

var errTimes = errors.New("cascade: want at least 2 arrivals in ascending order within a span from 1 µs to 9 years")

// FitCascade fits a cascade to arrivals, in nanoseconds from the start of the
// span, ascending, 0 <= t < span. Its parts hold 5k arrivals or more on average, with k
// above 0. Its finest bins are the ticks of the source's clock if it has one, and the
// span is then whole ticks; otherwise at most 50 ms wide and at least eight for each
// arrival.
func FitCascade(times []int64, span int64, k int) (*Cascade, error) {
	n := int64(len(times))
	if n < 2 || n > maxCount || span < narrowestBin || span > maxSpan || times[0] < 0 || times[n-1] >= span ||
		!slices.IsSorted(times) || k < 1 {
		return nil, errTimes
	}
	f := fitter{Cascade: Cascade{span: span, whole: span, tick: tickOf(times)}, offsets: map[int64]int64{}}
	mean := min(n, partTimes*int64(k)) // arrivals in a part
	instants := times
	if f.tick > 0 {
		ticks := (times[n-1]-times[0]+f.tick/2)/f.tick + 1
		f.levels = bits.Len64(uint64(ticks - 1))
		f.span, f.whole = ticks*f.tick, f.tick<<f.levels
		for f.depth = f.levels; f.depth > 0 && n<<(f.levels-f.depth) < mean*ticks; {
			f.depth--
		}
		times = f.onTicks(times)
	} else {
		for f.levels < maxLevels && span>>(f.levels+1) >= narrowestBin &&
			(span>>f.levels > finestBin || 1<<f.levels < binsEach*n) {
			f.levels++
		}
		f.depth = min(f.levels, bits.Len64(uint64(n/mean))-1)
	}
	f.splits = make([]histogram, f.levels-f.depth)
	for i := range f.splits {
		f.splits[i] = make(histogram)
	}
	f.gaps = make(histogram)
	f.fit(times)
	levelled(f.parts, int64(k))
	f.dispersions = dispersions(instants, f.span)
	return NewCascade(f.rows())
}

// What makes a clock that ticks.
const (
	leastTick = 200e6 // nanoseconds: shorter ones are no matter for a schedule
	offTick   = 10e6  // nanoseconds that an arrival may be off
	keepTick  = 0.9   // of the arrivals must be on it
)

// tickOf is the tick of the clock that arrivals are on, or 0: the commonest gap
// between instants, if hardly any arrival is off its multiples.
func tickOf(times []int64) int64 {
	gaps := map[int64]int{} // between instants, by buckets of offTick
	apart := 0
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap > 2*offTick {
			gaps[(gap+offTick/2)/offTick]++
			apart++
		}
	}
	best := int64(0)
	for gap, n := range gaps {
		if n > gaps[best] || n == gaps[best] && gap < best {
			best = gap
		}
	}
	tick := best * offTick
	if tick < leastTick || apart < 20 {
		return 0
	}
	on := 0
	for _, t := range times {
		if off := (t - times[0] + tick/2) % tick; max(off-tick/2, tick/2-off) <= offTick {
			on++
		}
	}
	if float64(on) < keepTick*float64(len(times)) {
		return 0
	}
	return tick
}

// onTicks moves arrivals to the middle of the bins that their ticks are, and counts how
// far behind the begin of these each instant was.
func (f *fitter) onTicks(times []int64) []int64 {
	out := make([]int64, len(times))
	for i, t := range times {
		at := (t - times[0] + f.tick/2) / f.tick
		out[i] = at*f.tick + f.tick/2
		if i == 0 || out[i] != out[i-1] {
			f.offsets[t-times[0]-at*f.tick+f.tick/2]++
		}
	}
	return out
}

// levelled makes even what parts with fewer arrivals than least hold: those that follow
// each other among them, other parts between or not, share evenly as soon as they hold
// least together. Empty parts, which are nobody's, stay empty.
func levelled(counts []int64, least int64) {
	var small [][]int // groups of such parts
	sum := least
	for i, n := range counts {
		if n == 0 || n >= least {
			continue
		}
		if sum >= least {
			small, sum = append(small, nil), 0
		}
		last := &small[len(small)-1]
		*last = append(*last, i)
		sum += n
	}
	if n := len(small); sum < least && n > 1 { // the rest joins the group before
		small[n-2] = append(small[n-2], small[n-1]...)
		small = small[:n-1]
	}
	for _, group := range small {
		sum := int64(0)
		for _, i := range group {
			sum += counts[i]
		}
		for j, i := range group {
			counts[i] = sum*int64(j+1)/int64(len(group)) - sum*int64(j)/int64(len(group))
		}
	}
}

// A fitter counts splits and gaps.
type fitter struct {
	Cascade             // its span, levels and parts
	splits  []histogram // by level from the parts
	gaps    histogram
	offsets map[int64]int64
}

// A group holds the bins of one contrast, which gaps do not have, and busyness.
type group struct{ contrast, busy int }

type histogram map[group]map[split]int64

func (h histogram) add(g group, s split) {
	if h[g] == nil {
		h[g] = make(map[split]int64)
	}
	h[g][s]++
}

func (f *fitter) fit(times []int64) {
	rest := times
	for k := 0; k == 0 || f.until(k) < f.span; k++ {
		n := sort.Search(len(rest), func(i int) bool { return rest[i] >= f.until(k+1) })
		f.parts = append(f.parts, int64(n))
		rest = rest[n:]
	}
	for k, n := range f.parts {
		b := bin{level: f.depth, k: uint64(k)}
		if k > 0 {
			b.before = f.parts[k-1] << neighbourBits
		}
		if k+1 < len(f.parts) {
			b.after = f.parts[k+1] << neighbourBits
		}
		if edge(f.whole, uint64(k+1), f.depth) <= f.span { // the rest of a part is split otherwise
			f.fitBin(times[:n], b)
		}
		times = times[n:]
	}
}

// fitBin counts what is in a bin, whose arrivals these are, and below it.
func (f *fitter) fitBin(times []int64, b bin) {
	if len(times) < 2 {
		return
	}
	if b.level == f.levels {
		if f.tick > 0 {
			return // all at once
		}
		for i := 1; i < len(times); i++ {
			f.gaps.add(group{0, busyness(int64(len(times)))}, gapBucket(times[i]-times[i-1]))
		}
		return
	}
	mid := edge(f.whole, 2*b.k+1, b.level+1)
	n := sort.Search(len(times), func(i int) bool { return times[i] >= mid })
	left, right := int64(n), int64(len(times)-n)
	s := split{left, right}
	if b.after > b.before || b.after == b.before && left > right {
		s = split{right, left}
	}
	f.splits[b.level-f.depth].add(group{b.contrast(), busyness(left + right)}, s)
	first, second := b.halves(left, right)
	f.fitBin(times[:n], first)
	f.fitBin(times[n:], second)
}

// gapBucket is the bucket of a gap: sixteen for each octave, and exact below 32 ns.
func gapBucket(ns int64) split {
	shift := max(0, bits.Len64(uint64(ns))-5)
	lo := ns >> shift << shift
	return split{lo, lo + 1<<shift - 1}
}

func (f *fitter) rows() []CascadeRow {
	rows := []CascadeRow{{Kind: cascadeHead, Level: int64(f.levels), Left: f.tick, Right: f.span, Count: 1}}
	for k, n := range f.parts {
		rows = append(rows, CascadeRow{Kind: cascadeCoarse, Level: int64(f.depth), Bin: int64(k), Count: n})
	}
	for off, n := range f.offsets {
		rows = append(rows, CascadeRow{Kind: cascadeOffset, Left: off, Right: off, Count: n})
	}
	for _, d := range f.dispersions {
		rows = append(rows, CascadeRow{Kind: cascadeDispersion, Bin: d.millis, Count: d.index})
	}
	add := func(kind int64, level int, h histogram) {
		for g, counts := range h {
			for s, n := range counts {
				rows = append(rows, CascadeRow{Kind: kind, Level: int64(level), Contrast: int64(g.contrast),
					Bin: int64(g.busy), Left: s.left, Right: s.right, Count: n})
			}
		}
	}
	for i, h := range f.splits {
		add(cascadeSplit, f.depth+i, h)
	}
	add(cascadeGap, f.levels, f.gaps)
	slices.SortFunc(rows, CascadeRow.compare)
	return rows
}
