package synth

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A sequence yields the places of one population in the order of their requests, each
// after those that it builds on.
//
// One that is no longer than the trace has the places in their order; populations
// behind the first move each among some two hundred neighbours. A longer one deals
// whole sessions: each pass takes all blocks of sessions, which are the sixteenths of
// the trace that they begin in, once and in random order. The turns of a session keep
// the number of requests between them, so that sessions reach across the ends of blocks
// and passes, and every pass is alike.
type sequence struct {
	places []place
	r      *rand.Rand
	order  []dealt // to come
	next   int
	blocks [][]int32 // of places, by the block that their session begins in; nil for one pass
	left   []dealt   // of the pass before, that reach into the next
	passes int64
	at     [3][]int32 // by pass, modulo 3, and place: the request
	n      int32      // requests so far
}

// A dealt is a place in a pass.
type dealt struct {
	key   int64
	pass  int64
	place int32
}

const (
	sessionBlocks = 16  // parts of the trace that passes deal
	shuffleWindow = 200 // neighbours among which a further population moves places
)

// orderedSequence begins a sequence in a given order.
func orderedSequence(places []place, order []dealt) *sequence {
	s := &sequence{places: places, order: order}
	for i := range s.at {
		s.at[i] = make([]int32, len(places))
	}
	return s
}

// newSequence begins the sequence of n requests.
func newSequence(places []place, population int, n int64, r *rand.Rand) *sequence {
	s := orderedSequence(places, nil)
	s.r = r
	if n > int64(len(places)) {
		s.part()
		return s
	}
	s.order = make([]dealt, len(places))
	for i := range s.order {
		d := &s.order[i]
		*d = dealt{key: int64(i), place: int32(i)}
		if population == 0 {
			continue
		}
		d.key = int64(i)<<8 + r.Int64N(shuffleWindow<<8)
		t := &places[i]
		for _, up := range [...]int32{t.parent, t.after} {
			if up != none {
				d.key = max(d.key, s.order[up].key+1)
			}
		}
	}
	slices.SortFunc(s.order, dealt.compare)
	return s
}

// arrange puts the places in the order of times of their own, which it returns in order.
func (s *sequence) arrange(times []int64) []int64 {
	s.order = byTime(times)
	return slices.Sorted(slices.Values(times))
}

func (d dealt) compare(e dealt) int {
	return cmp.Or(cmp.Compare(d.key, e.key), cmp.Compare(d.pass, e.pass), cmp.Compare(d.place, e.place))
}

// firstOf finds the first of all places that build on each other, or follow each other, for each.
func firstOf(places []place, follows []int32) []int32 {
	first := make([]int32, len(places))
	for i := range first {
		first[i] = int32(i)
	}
	find := func(i int32) int32 {
		for first[i] != i {
			first[i] = first[first[i]]
			i = first[i]
		}
		return i
	}
	for i := range places {
		for _, up := range [...]int32{places[i].parent, places[i].after, follows[i]} {
			if up != none {
				a, b := find(int32(i)), find(up)
				first[max(a, b)] = min(a, b)
			}
		}
	}
	for i := range first {
		first[i] = find(int32(i))
	}
	return first
}

// part finds the block of each place: that of the first of all that build on each other.
func (s *sequence) part() {
	first := firstOf(s.places, slices.Repeat([]int32{none}, len(s.places)))
	s.blocks = make([][]int32, sessionBlocks)
	for i := range s.places {
		b := s.blockOf(first[i])
		s.blocks[b] = append(s.blocks[b], int32(i))
	}
}

func (s *sequence) blockOf(place int32) int64 {
	return int64(place) * sessionBlocks / int64(len(s.places))
}

// deal adds the next pass.
func (s *sequence) deal() {
	n := int64(len(s.places))
	all := s.left
	slots := s.r.Perm(sessionBlocks)
	for slot, b := range slots {
		for _, i := range s.blocks[b] {
			key := (s.passes*sessionBlocks+int64(slot)-int64(b))*n + int64(i)*sessionBlocks
			all = append(all, dealt{key, s.passes, i})
		}
	}
	s.passes++
	slices.SortFunc(all, dealt.compare)
	end, _ := slices.BinarySearchFunc(all, s.passes*sessionBlocks*n,
		func(d dealt, key int64) int { return cmp.Compare(d.key, key) })
	s.order, s.left, s.next = all[:end], slices.Clone(all[end:]), 0
}

// nextPlace returns the next place, its pass, and the requests that it builds on and whose session
// it joins.
func (s *sequence) nextPlace() (place int32, pass int64, parent, after int32) {
	for s.next == len(s.order) {
		s.deal()
	}
	d := s.order[s.next]
	s.next++
	at := s.at[d.pass%int64(len(s.at))]
	at[d.place] = s.n
	s.n++
	t := &s.places[d.place]
	parent, after = none, none
	if t.parent != none {
		parent = at[t.parent]
	}
	if t.after != none {
		after = at[t.after]
	}
	return d.place, d.pass, parent, after
}
