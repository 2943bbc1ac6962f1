package synth

import (
	"slices"
	"sort"
)

// A lengthEnergy says how far the lengths of prompts are from those of the trace: the
// sum, over bins of as many prompts each, of the squared difference of how many are no
// longer than the bin (Cramér and von Mises' distance, on bins).
type lengthEnergy struct {
	edges   []int64 // the longest of each bin but the last
	more    []int   // by bin: prompts up to it, more than in the trace
	prompts int
}

// lengthBins is how many bins there are at most, of at least k prompts.
const lengthBins = 64

func newLengthEnergy(shapes []shape, now []int64, k int) lengthEnergy {
	want := make([]int64, len(shapes))
	for i := range shapes {
		want[i] = int64(shapes[i].tokens)
	}
	slices.Sort(want)
	bins := max(1, min(lengthBins, len(want)/max(1, k)))
	e := lengthEnergy{prompts: len(want)}
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

// unit is 1 over what the energy is of lengths drawn from the trace's.
func (e *lengthEnergy) unit() float64 { return 6 / float64(max(1, e.prompts*len(e.edges))) }
