package synth

import (
	"slices"
)

// class is a set of kinds of nodes, see domain.
type class uint8

const (
	endpoint class = 1 << iota
	interior
	partialTail
)

// found is a node: the request that owns it and its depth. Its owner is none
// when there is no node.
type found struct{ owner, depth int32 }

// A search looks for the node that a tuple extends: the one with the least sum
// of the errors of its distance, of the distances along its path and of its
// depth. Errors of distances are differences of logarithms.
type search struct {
	p      *population
	d      *domain
	t      *tuple
	want   int64    // log2 of the distance
	depths [3]int64 // log2 of the profile
	at     int      // place in the domain where the distance is met
	best   int64
	found
}

// unfound is a cost above all others.
const unfound = 1 << 62

// Settings of the search, which are part of the output. They were chosen on the
// published Mooncake conversation trace: with a depthWeight of 2 hits fell short
// by 0.2 % of the blocks, with 128 the distances suffered; without a
// chainWeight one session in twenty gets another length, and twice as much
// costs the curve of hit ratios a tenth of its accuracy.
const (
	candidates  = 32                  // looked at on each side of the distance, for each depth and class
	depthWeight = 8 * logOne * 10 / 7 // cost of a depth that is off by its whole: 8 in natural logarithms
	chainWeight = 2                   // divides the cost of a chain of turns of another length
	turnWeight  = 2                   // multiplies the cost of another turn of a session of the source
	hurryWeight = 2                   // multiplies the cost of a turn that comes before its pause is over
)

// find returns the node to extend for t, which has a hit. Each attempt allows
// more: depths within 5 %, 30 % and 100 %, any class, and at last anything less
// deep. Only prompts that left the trunk where the tuple did are looked at.
func (p *population) find(d *domain, t *tuple) found {
	if len(d.members) == 0 {
		return found{owner: none}
	}
	s := search{p: p, d: d, t: t, best: unfound, found: found{owner: none}}
	distance := min(t.distance, p.forest.stack.total)
	s.want = log2(distance)
	for q := range s.depths {
		s.depths[q] = log2(t.profile[q])
	}
	s.at, _ = slices.BinarySearch(d.members, int32(p.forest.stack.placeAt(distance))) // its owner, or the next request of the domain
	classes, deepest := endpoint|interior, t.hit+t.fresh
	switch {
	case t.fresh == 0 && int(t.tail) < p.size:
		classes = partialTail
	case t.fresh == 0:
	default:
		deepest--
		switch t.category {
		case continuation:
			classes = endpoint
		case branch:
			classes = interior
		}
	}
	every := classes | endpoint | interior
	if s.within(classes, deepest, t.hit/20) || s.within(classes, deepest, t.hit*3/10) || s.within(classes, deepest, t.hit) ||
		s.within(every, deepest, t.hit*3/10) {
		return s.found
	}
	for depth := min(t.hit, deepest) - 1; depth > t.trunk; depth-- {
		if s.depth(depth, every, 0); s.owner != none {
			break
		}
	}
	return s.found
}

// within tries the depths from the tuple's own to so many blocks off it, up to
// deepest, nearest first.
func (s *search) within(c class, deepest, off int32) bool {
	for o := int32(0); o <= off; o++ {
		penalty := int64(o) * depthWeight / int64(s.t.hit)
		if penalty >= s.best {
			break
		}
		if depth := s.t.hit - o; depth > 0 && depth <= deepest {
			s.depth(depth, c, penalty)
		}
		if depth := s.t.hit + o; o > 0 && depth <= deepest {
			s.depth(depth, c, penalty)
		}
	}
	return s.owner != none
}

// depth tries the nodes of some classes at one depth.
func (s *search) depth(depth int32, c class, penalty int64) {
	if c&endpoint != 0 {
		s.list(s.d.endpoints.placesAt(depth), depth, penalty)
	}
	if c&partialTail != 0 {
		s.list(s.d.tails.placesAt(depth), depth, penalty)
	}
	if c&interior == 0 {
		return
	}
	next := func(seat int) int { return s.d.interior.nextMatch(seat+1, depth) }
	s.walk(s.d.interior.nextMatch(s.at, depth), next, depth, penalty, true)
	prev := func(seat int) int { return s.d.interior.prevMatch(seat-1, depth) }
	s.walk(s.d.interior.prevMatch(s.at-1, depth), prev, depth, penalty, false)
}

// list tries the places of a list that still own their node at depth.
func (s *search) list(seats []int32, depth int32, penalty int64) {
	low := s.p.forest.low
	i, _ := slices.BinarySearch(seats, int32(s.at)) // the first place at or after s.at
	at := i
	step := func(by int) func(int) int {
		return func(int) int {
			for i += by; i >= 0 && i < len(seats); i += by {
				if low[s.d.members[seats[i]]] < depth {
					return int(seats[i])
				}
			}
			return none
		}
	}
	up, down := step(1), step(-1)
	i = at - 1
	s.walk(up(0), up, depth, penalty, true)
	i = at
	s.walk(down(0), down, depth, penalty, false)
}

// walk tries places on one side, from the nearest on.
func (s *search) walk(seat int, next func(int) int, depth int32, penalty int64, up bool) {
	for tried, seen := 0, 0; seat != none && tried < candidates && seen < 8*candidates; seen++ {
		on := s.p.overlap[s.d.members[seat]]
		if depth > on && on == s.t.trunk {
			if tried++; !s.try(seat, depth, penalty, up) {
				return
			}
		}
		seat = next(seat)
	}
}

// try weighs one node. It returns false when no node further on the same side,
// up to newer ones or down to older ones, can be better.
func (s *search) try(seat int, depth int32, penalty int64, up bool) bool {
	r := s.d.members[seat]
	diff := log2(s.p.forest.distance(r, depth)) - s.want
	cost := penalty + abs(diff)
	if cost >= s.best {
		return up && diff > 0
	}
	cost += s.chain(r)
	for q, want := range s.depths {
		diff := log2(s.p.forest.ancestor(r, quarter(depth, q+1))) - want
		if cost += abs(diff) / 3; cost >= s.best {
			return true
		}
	}
	s.best, s.found = cost, found{r, depth}
	return true
}

// chain is the cost of extending request r by the length of its chain of turns,
// and by the time since.
func (s *search) chain(r int32) int64 {
	diff := abs(log2(int64(s.p.chain[r])+2) - log2(int64(s.t.chain)+1))
	switch {
	case s.p.sourced && s.t.join == byTree:
		return turnWeight*diff + s.p.hurry(s.t, int32(len(s.p.tail)), r)
	case !s.p.sourced && s.t.category > global:
		return diff / chainWeight
	}
	return 0
}

// Distances are compared by their logarithms. math.Log may differ in its last
// bit between processors, and a search that takes the least error would then
// make another workload; so logarithms are integers here: log2(x)·2^16, from a
// table of 1,024 steps an octave with linear interpolation between them. Both
// are integer arithmetic, the same on every machine; the error is below 2^-15.
