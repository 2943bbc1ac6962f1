package synth

import (
	"slices"
	"sort"
)

// A lengthEnergy says how far the lengths of prompts are from those of the trace: the
// sum, over bins of as many prompts each, of the squared difference of how many are no
// longer than the bin (Cramér and von Mises' distance, on bins).
type lengthEnergy struct {
	edges []int64 // the longest of each bin but the last
	more  []int   // by bin: prompts up to it, more than in the trace
}

const (
	lengthBins   = 64   // at most, of at least k prompts
	lengthRounds = 12   // proposals for each growth
	mostMoved    = 1024 // prompts that one proposal may change
)

func newLengthEnergy(shapes []shape, now []int64, k int) lengthEnergy {
	want := make([]int64, len(shapes))
	for i := range shapes {
		want[i] = int64(shapes[i].tokens)
	}
	slices.Sort(want)
	bins := max(1, min(lengthBins, len(want)/max(1, k)))
	e := lengthEnergy{}
	for b := 1; b <= bins; b++ {
		at := min(b*len(want)/bins, len(want)-1-k) // the k longest are the last bin
		if x := want[max(0, at)]; len(e.edges) == 0 || x > e.edges[len(e.edges)-1] {
			e.edges = append(e.edges, x)
		}
	}
	e.more = make([]int, len(e.edges))
	for b, edge := range e.edges {
		upTo, _ := slices.BinarySearch(want, edge+1)
		e.more[b] = -upTo
	}
	for _, x := range now {
		for b := e.bin(x); b < len(e.more); b++ {
			e.more[b]++
		}
	}
	return e
}

func (e *lengthEnergy) bin(tokens int64) int {
	return sort.Search(len(e.edges), func(b int) bool { return tokens <= e.edges[b] })
}

// move lets a prompt have another length, and returns what that adds to the energy.
func (e *lengthEnergy) move(from, to int64) int {
	a, b, by := e.bin(from), e.bin(to), -1
	if a > b {
		a, b, by = b, a, 1
	}
	cost := 0
	for ; a < b; a++ {
		cost += 1 + 2*by*e.more[a]
		e.more[a] += by
	}
	return cost
}

// fitLengths exchanges growths within their cells until the lengths of all prompts are
// about those of the trace: permuted alone, a growth may meet a parent that is too long
// for it, and prompts pass the limit that the server had. An exchange is taken that
// brings the counts by length no farther away, unless it gives a place its own.
func (t *swapping) fitLengths(cells [][]int32) {
	m := &Model{places: t.places, labels: t.labels, ends: t.ends}
	m.meta.BlockSize = t.size
	p := &replayed(m, make([]int64, len(t.places))).populations[0]
	now := make([]int64, len(t.places))
	for i := range now {
		now[i] = p.tokens(int32(i))
	}
	below := make([][]int32, len(t.places)) // those whose length is their parent's and more
	for i := range t.places {
		if q := &t.places[i]; q.parent != none && q.class != branches {
			below[q.parent] = append(below[q.parent], int32(i))
		}
	}
	moved := make([]int32, len(t.places)) // prompts that change with it
	for i := len(moved) - 1; i >= 0; i-- {
		moved[i]++
		if up := t.places[i].parent; up != none && t.places[i].class != branches {
			moved[up] += moved[i]
		}
	}
	energy := newLengthEnergy(t.shapes, now, t.k)
	var open []int32
	lengthen := func(i int32, by int64) (cost int) {
		open = append(open[:0], i)
		for at := 0; at < len(open); at++ {
			j := open[at]
			cost += energy.move(now[j], now[j]+by)
			now[j] += by
			open = append(open, below[j]...)
		}
		return cost
	}
	for range lengthRounds {
		for _, c := range cells {
			for range c {
				i, j := c[t.r.IntN(len(c))], c[t.r.IntN(len(c))]
				by := int64(t.places[j].growth - t.places[i].growth)
				if by == 0 || t.from[i][0] == j || t.from[j][0] == i || moved[i]+moved[j] > mostMoved {
					continue
				}
				if lengthen(i, by)+lengthen(j, -by) > 0 {
					lengthen(i, -by)
					lengthen(j, by)
					continue
				}
				t.places[i].growth, t.places[j].growth = t.places[j].growth, t.places[i].growth
				t.from[i], t.from[j] = t.from[j], t.from[i]
			}
		}
	}
}
