package anonymize

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"reprise/trace"
)

// links says which turns of a session stay together. Four lengths that somebody
// knows of a conversation would else single it out, as four places single out
// most people (de Montjoye et al., Scientific Reports 2013), though each of them
// alone hides among k units.
//
// The turns of a session are a sequence of classes of lengths. All sequences go
// down a trie, and one is cut where fewer than k units share it so far; what is
// left of it begins anew, in another round with what is left of the others. A
// sequence may neither end where fewer than k units end: some that go on are
// then cut as well. So a released session of several turns has the lengths of
// those of k units or more, turn by turn and to its end. Nothing but the
// released lengths and the units decides.
//
// Memory is 20 bytes for each row, and some 60 for each session.
type links struct {
	segment []int32 // by row of the source: its released session; -1 for none
	before  int64   // turns after another one of their session
	after   int64   // those that stay linked
}

// sessionTurns lists the turns of sessions while rows are counted, which spares
// another pass over them.
type sessionTurns struct {
	rows    []rowTurn
	units   []uint64         // by session: that of its first turn
	numbers bySession[int32] // of sessions, from 1
}

// A rowTurn is the number of a row's session, 0 for none, and its cell.
type rowTurn struct {
	session int32
	cell    packedCell
}

// A packedCell is a cell in one number, in the order of cells.
type packedCell int32

const outBits = 15

func (c cell) pack() packedCell { return packedCell(c.in)<<outBits | packedCell(c.out) }

// add takes the next row.
func (t *sessionTurns) add(q *trace.Request, at cell, unit uint64) error {
	if len(t.rows) == math.MaxInt32 {
		return errManyRows
	}
	if q.Session == nil {
		t.rows = append(t.rows, rowTurn{})
		return nil
	}
	n := t.numbers.get(*q.Session)
	if n == 0 {
		t.units = append(t.units, unit)
		n = int32(len(t.units))
		t.numbers.set(*q.Session, n)
	}
	t.rows = append(t.rows, rowTurn{n, at.pack()})
	return nil
}

// A turn is a row of a session that comes out, and the class of its lengths.
type turn struct{ row, class int32 }

// released are the turns that come out, by session and in their order.
func (t *sessionTurns) released(classes map[packedCell]int32) (turns []turn, sequences []sequence) {
	ends := make([]int32, len(t.units)+1)
	for i := range t.rows {
		r := &t.rows[i]
		if _, ok := classes[r.cell]; !ok {
			r.session = 0
		}
		ends[r.session]++
	}
	ends[0] = 0 // rows of no session
	for n := 1; n < len(ends); n++ {
		from := ends[n-1]
		if ends[n] > 0 {
			sequences = append(sequences, sequence{from: from, end: from + ends[n], unit: t.units[n-1]})
		}
		ends[n] += from
	}
	turns = make([]turn, ends[len(ends)-1])
	for row, r := range slices.Backward(t.rows) {
		if r.session > 0 {
			ends[r.session]--
			turns[ends[r.session]] = turn{int32(row), classes[r.cell]}
		}
	}
	return turns, sequences
}

// numbers gives each cell whose rows come out the number of the pair of lengths
// that these have, in the order of such pairs. There are n.
func (m *mergedCells) numbers() (of map[packedCell]int32, n int) {
	var pairs []packedCell
	for _, to := range m.shown {
		pairs = append(pairs, to.pack())
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	of = map[packedCell]int32{}
	for from, to := range m.shown {
		at, _ := slices.BinarySearch(pairs, to.pack())
		of[from.pack()] = int32(at)
	}
	return of, len(pairs)
}

// A sequence is what is left of a session: turns at to end. Those before from
// are decided; the level-th after it is looked at.
type sequence struct {
	from, end int32
	group     int32 // sequences that were equal so far have the same one
	class     int32 // of the turn that is looked at; -1 after the end
	unit      uint64
}

var errManyRows = errors.New("more than two billion requests: release them in parts")

// A cutter cuts sequences.
type cutter struct {
	k     int
	turns []turn
	cuts  []bool // a released session begins with the turn
	turnSorter
}

// cut goes in rounds until nothing is left. It moves all that are left once for
// each turn that it decides and once more a round: twice for each turn at most.
func (c *cutter) cut(left []sequence) {
	for len(left) > 0 {
		slices.SortFunc(left, func(a, b sequence) int { return cmp.Compare(a.unit, b.unit) })
		left = c.round(left)
	}
}

// round decides about the beginnings of all sequences, and returns what is left.
func (c *cutter) round(all []sequence) (left []sequence) {
	for i := range all {
		c.cuts[all[i].from] = true
		all[i].group = 0
	}
	alive := all
	for level := int32(0); len(alive) > 0; level++ {
		var on []sequence // that go on together
		groups := int32(0)
		for i := range alive {
			s := &alive[i]
			s.class = -1
			if s.from+level < s.end {
				s.class = c.turns[s.from+level].class
			}
		}
		for len(alive) > 0 {
			n := same(alive, func(s *sequence) int32 { return s.group })
			c.part(alive[:n])
			ends := branches(alive[:n], c.k, level == 0)
			alive = alive[n:]
			for _, b := range ends.on {
				for i := range b {
					b[i].group = groups
				}
				on = append(on, b...)
				groups++
			}
			for _, b := range ends.cut {
				for _, s := range b {
					if s.from += max(level, 1); s.from < s.end {
						left = append(left, s)
					}
				}
			}
		}
		alive = on
	}
	return left
}

// A turnSorter brings sequences in the order of their next turn's class. Those of one
// class keep their order, which is that of units.
type turnSorter struct {
	ends    []int // by class and one, while they are moved
	scratch []sequence
}

func (p *turnSorter) part(group []sequence) {
	if len(group) < len(p.ends) {
		slices.SortStableFunc(group, func(a, b sequence) int { return cmp.Compare(a.class, b.class) })
		return
	}
	clear(p.ends)
	for i := range group {
		p.ends[group[i].class+1]++
	}
	for i := 1; i < len(p.ends); i++ {
		p.ends[i] += p.ends[i-1]
	}
	p.scratch = append(p.scratch[:0], group...)
	for _, s := range slices.Backward(p.scratch) {
		p.ends[s.class+1]--
		group[p.ends[s.class+1]] = s
	}
}

// same is how many of the first sequences have one value.
func same(of []sequence, value func(*sequence) int32) int {
	n := 1
	for n < len(of) && value(&of[n]) == value(&of[0]) {
		n++
	}
	return n
}

// A parting says which of the sequences that were equal so far go on, by their
// next turn, and which end.
type parting struct{ on, cut [][]sequence }

// branches parts sequences that were equal so far and are sorted by their next
// turn and unit. First says that they have no turn yet: then none can end for
// the sake of others.
func branches(group []sequence, k int, first bool) parting {
	var p parting
	var ended []uint64 // units
	for len(group) > 0 {
		n := same(group, func(s *sequence) int32 { return s.class })
		b := group[:n]
		group = group[n:]
		if b[0].class >= 0 && distinct(b) >= k {
			p.on = append(p.on, b)
			continue
		}
		p.cut = append(p.cut, b)
		for _, s := range b {
			ended = append(ended, s.unit)
		}
	}
	slices.Sort(ended)
	if first || len(ended) == 0 || len(slices.Compact(ended)) >= k || len(p.on) == 0 {
		return p
	}
	// The fewest that may end beside them: any branch that goes on has k units.
	fewest := slices.MinFunc(p.on, func(a, b []sequence) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a[0].class, b[0].class))
	})
	p.cut = append(p.cut, fewest)
	p.on = slices.DeleteFunc(p.on, func(b []sequence) bool { return b[0].class == fewest[0].class })
	return p
}

// distinct counts the units of sequences that are sorted by them.
func distinct(of []sequence) int {
	n := 0
	for i := range of {
		if i == 0 || of[i].unit != of[i-1].unit {
			n++
		}
	}
	return n
}

// linked tells whether a row may name a parent.
func (l *links) linked(row, parent int64) bool {
	return l == nil || parent >= 0 && parent < row && l.segment[row] == l.segment[parent]
}

// kept is the share of the links that are left; nil where there were none.
func (l *links) kept() *float64 {
	if l == nil || l.before == 0 {
		return nil
	}
	return trace.Ptr(float64(l.after) / float64(l.before))
}

// bySession keeps something for each session: in a slice where their ids are
// dense, as those of traces are, and in a map where they are not.
type bySession[T any] struct {
	dense []T
	rest  map[int64]T
}

// denseSlack is how far beyond twice as many ids as before one may be, and still
// be in the slice.
const denseSlack = 4096

func (s *bySession[T]) get(id int64) (v T) {
	if id >= 0 && id < int64(len(s.dense)) {
		return s.dense[id]
	}
	return s.rest[id]
}

func (s *bySession[T]) set(id int64, v T) {
	if n := int64(len(s.dense)); id >= n && id <= 2*n+denseSlack {
		to := 2*n + denseSlack + 1
		s.dense = append(s.dense, make([]T, to-n)...)
		for far, v := range s.rest { // what was beyond it
			if far >= n && far < to {
				s.dense[far] = v
				delete(s.rest, far)
			}
		}
	}
	if id >= 0 && id < int64(len(s.dense)) {
		s.dense[id] = v
		return
	}
	if s.rest == nil {
		s.rest = map[int64]T{}
	}
	s.rest[id] = v
}
