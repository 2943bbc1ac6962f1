package anonymize

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// buckets are ranges of lengths whose edges are public: they depend on nothing
// but how many there are in an octave. Length 0 has a bucket of its own.
type buckets struct {
	edges []int64 // first length of each bucket
	small []int16 // the buckets of the lengths that most have
}

// newBuckets makes the buckets whose edges are ⌈2^(i/perOctave)⌉.
func newBuckets(perOctave int) *buckets {
	edges := []int64{0}
	for i := 0; ; i++ {
		edge := math.Ceil(math.Exp2(float64(i) / float64(perOctave)))
		if edge > math.MaxInt32 {
			break
		}
		edges = append(edges, int64(edge))
	}
	b := &buckets{edges: slices.Compact(edges)}
	small := make([]int16, 1<<12)
	for n := range small {
		small[n] = int16(b.bucketOf(int64(n)))
	}
	b.small = small
	return b
}

// bucketOf is the bucket of a length.
func (b *buckets) bucketOf(n int64) int {
	if n >= 0 && n < int64(len(b.small)) {
		return int(b.small[n])
	}
	i, found := slices.BinarySearch(b.edges, max(n, 0))
	if !found {
		i--
	}
	return i
}

// middle is the length that stands for all in a bucket, which keeps their total
// where they are spread evenly.
func (b *buckets) middle(i int) int64 {
	next := int64(math.MaxInt32) + 1
	if i+1 < len(b.edges) {
		next = b.edges[i+1]
	}
	return (b.edges[i] + next - 1) / 2
}

// A unitSet holds distinct units up to a number that is enough to know of.
type unitSet struct {
	units []uint64
	full  bool
}

// add counts a unit; the set is full at k.
func (s *unitSet) add(unit uint64, k int) {
	if s.full || slices.Contains(s.units, unit) {
		return
	}
	if len(s.units)+1 >= k {
		s.units, s.full = nil, true
		return
	}
	s.units = append(s.units, unit)
}

// A cell is a bucket of the input and one of the output.
type cell struct{ in, out int }

// A class is a set of cells whose rows come out with one pair of lengths: those
// of the cell with the most rows.
type class struct {
	cells []cell
	shown cell
	most  int64 // rows of the shown cell
	rows  int64
	units unitSet
}

func (c *class) distance(o *class) int {
	return abs(c.shown.in-o.shown.in) + abs(c.shown.out-o.shown.out)
}

func abs(n int) int { return max(n, -n) }

// classes counts the units of each cell and then makes classes of at least k.
type classes struct {
	k     int
	cells map[cell]*class
}

func (c *classes) add(at cell, unit uint64) {
	one := c.cells[at]
	if one == nil {
		one = &class{cells: []cell{at}, shown: at}
		c.cells[at] = one
	}
	one.rows++
	one.most++
	one.units.add(unit, c.k)
}

// mergedCells is what became of the cells.
type mergedCells struct {
	shown      map[cell]cell // what the rows of a cell come out as; none for those suppressed
	classes    int
	suppressed int64 // rows
	merged     int64 // rows that come out with lengths of another cell
}

var errFewUnits = errors.New("all requests together come from fewer users than k_class: lower k_class, or release a longer capture")

// merge joins a class with too few units to the nearest one, the smallest
// classes first, until all have k. One without a neighbour within reach steps is
// left out while at most so many rows are; beyond, it joins the nearest however
// far. What it does depends on the counts alone and in no order but that of the
// cells.
func (c *classes) merge(reach int, budget int64) (mergedCells, error) {
	left := make([]*class, 0, len(c.cells))
	for _, one := range c.cells {
		left = append(left, one)
	}
	slices.SortFunc(left, func(a, b *class) int {
		return cmp.Or(cmp.Compare(a.shown.in, b.shown.in), cmp.Compare(a.shown.out, b.shown.out))
	})
	m := mergedCells{shown: map[cell]cell{}}
	for {
		i := -1 // the class with the fewest units of those that have too few
		for j, o := range left {
			if !o.units.full && (i < 0 || len(o.units.units) < len(left[i].units.units)) {
				i = j
			}
		}
		if i < 0 {
			break
		}
		one := left[i]
		left = slices.Delete(left, i, i+1)
		var near *class // the closest; of those as close, the one with the most rows
		if len(left) > 0 {
			near = slices.MinFunc(left, func(a, b *class) int {
				return cmp.Or(cmp.Compare(a.distance(one), b.distance(one)), cmp.Compare(b.rows, a.rows))
			})
		}
		switch {
		case m.suppressed+one.rows <= budget && (near == nil || near.distance(one) > reach):
			m.suppressed += one.rows
		case near == nil:
			return m, errFewUnits
		default:
			near.cells = append(near.cells, one.cells...)
			for _, unit := range one.units.units { // they are too few to be full
				near.units.add(unit, c.k)
			}
			near.rows += one.rows
			if one.most > near.most {
				near.shown, near.most = one.shown, one.most
			}
		}
	}
	m.classes = len(left)
	for _, one := range left {
		m.merged += one.rows - one.most
		for _, at := range one.cells {
			m.shown[at] = one.shown
		}
	}
	return m, nil
}
