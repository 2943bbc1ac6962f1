package arrival

import (
	"errors"
	"math/bits"
	"slices"
	"sort"
)

var errTimes = errors.New("cascade: want at least 2 arrivals in ascending order within a span from 1 µs to 9 years")

// FitCascade fits a cascade to arrivals, in nanoseconds from the start of the
// span, ascending, 0 <= t < span. Its finest bins are at most 50 ms wide and at
// least eight for each arrival.
func FitCascade(times []int64, span int64) (*Cascade, error) {
	n := int64(len(times))
	if n < 2 || n > maxCount || span < narrowestBin || span > maxSpan || times[0] < 0 || times[n-1] >= span || !slices.IsSorted(times) {
		return nil, errTimes
	}
	f := fitter{span: span}
	for f.levels < maxLevels && span>>(f.levels+1) >= narrowestBin && (span>>f.levels > finestBin || 1<<f.levels < binsEach*n) {
		f.levels++
	}
	f.coarse = max(0, min(coarseLevels, f.levels, bits.Len64(uint64(n/coarseMean))-1))
	f.splits = make([]histogram, f.levels-f.coarse)
	for i := range f.splits {
		f.splits[i] = make(histogram)
	}
	f.gaps = make(histogram)
	f.fit(times)
	return NewCascade(f.rows())
}

// A fitter counts splits and gaps.
type fitter struct {
	span           int64
	levels, coarse int
	bins           []int64     // counts of the coarse bins
	splits         []histogram // by level from coarse
	gaps           histogram
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
	for k := range 1 << f.coarse {
		n := sort.Search(len(rest), func(i int) bool { return rest[i] >= edge(f.span, uint64(k+1), f.coarse) })
		f.bins = append(f.bins, int64(n))
		rest = rest[n:]
	}
	for k, n := range f.bins {
		f.fitBin(times[:n], coarseBin(f.bins, k))
		times = times[n:]
	}
}

// fitBin counts what is in a bin, whose arrivals these are, and below it.
func (f *fitter) fitBin(times []int64, b bin) {
	if len(times) < 2 {
		return
	}
	if b.level == f.levels {
		for i := 1; i < len(times); i++ {
			f.gaps.add(group{0, busyness(int64(len(times)))}, gapBucket(times[i]-times[i-1]))
		}
		return
	}
	mid := edge(f.span, 2*b.k+1, b.level+1)
	n := sort.Search(len(times), func(i int) bool { return times[i] >= mid })
	left, right := int64(n), int64(len(times)-n)
	s := split{left, right}
	if b.after > b.before || b.after == b.before && left > right {
		s = split{right, left}
	}
	f.splits[b.level-f.coarse].add(group{b.contrast(), busyness(left + right)}, s)
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
	rows := []CascadeRow{{Kind: cascadeHead, Level: int64(f.levels), Right: f.span, Count: 1}}
	for k, n := range f.bins {
		rows = append(rows, CascadeRow{Kind: cascadeCoarse, Level: int64(f.coarse), Bin: int64(k), Count: n})
	}
	add := func(kind int64, level int, h histogram) {
		for g, counts := range h {
			for s, n := range counts {
				rows = append(rows, CascadeRow{Kind: kind, Level: int64(level), Contrast: int64(g.contrast), Bin: int64(g.busy), Left: s.left, Right: s.right, Count: n})
			}
		}
	}
	for i, h := range f.splits {
		add(cascadeSplit, f.coarse+i, h)
	}
	add(cascadeGap, f.levels, f.gaps)
	slices.SortFunc(rows, CascadeRow.compare)
	return rows
}
