package synth

import "slices"

// A domain indexes the nodes of one cache domain (model and adapter) for the
// search of a node by its depth, class and recency. Requests are named by their
// place among those of the domain.
//
// The classes of nodes: an endpoint is the last full block of the request that
// last touched it, which a next turn extends; a tail is a partial last block,
// which only a duplicate can hit; any other is interior. A request owns at most
// one endpoint and one tail, and interior nodes in one stretch.
type domain struct {
	trunk     []int32 // by depth, from 1: the run
	trunkTail int32   // tokens in its last block
	members   []int32 // by place: the request
	interior  spans
	endpoints byDepth
	tails     byDepth
}

// byDepth lists, for each depth, the places of the requests that own a node of
// one class there, in order. Those that lost theirs stay until they are half of
// a list.
type byDepth struct {
	lists [][]int32
	dead  []int32
}

func (b *byDepth) addPlace(depth, place int32) {
	if n := int(depth) + 1 - len(b.lists); n > 0 {
		b.lists = append(b.lists, make([][]int32, n)...)
		b.dead = append(b.dead, make([]int32, n)...)
	}
	b.lists[depth] = append(b.lists[depth], place)
}

// dropPlace counts a place of the list of depth as lost; alive tells which are not.
func (b *byDepth) dropPlace(depth int32, alive func(place int32) bool) {
	b.dead[depth]++
	if l := b.lists[depth]; int(b.dead[depth]) > len(l)/2 && len(l) > 8 {
		b.lists[depth] = slices.DeleteFunc(l, func(p int32) bool { return !alive(p) })
		b.dead[depth] = 0
	}
}

func (b *byDepth) placesAt(depth int32) []int32 {
	if int(depth) >= len(b.lists) {
		return nil
	}
	return b.lists[depth]
}

// spans finds, among the requests of one domain in their order, the nearest
// ones that own an interior node at a given depth: those with low < depth <
// full, where full is the depth of the request's last full block.
//
// It is a segment tree with the least low and the greatest full below each
// node. Both together do not promise a match below, so a search may go down in
// vain; hardly ever in practice, since what a request still owns mostly begins
// near the root, and a request that owns no interior node is taken out.
type spans struct {
	n    int
	size int     // leaves, a power of two
	low  []int32 // by tree node, the root at 1
	full []int32
}

// never is a low that matches no depth.
const never = 1<<31 - 1

// appendSpan adds the next request.
func (s *spans) appendSpan(low, full int32) {
	if s.n == s.size {
		old := *s
		s.size = max(64, 2*old.size)
		s.low, s.full = slices.Repeat([]int32{never}, 2*s.size), make([]int32, 2*s.size)
		for i := range old.n {
			s.low[s.size+i], s.full[s.size+i] = old.low[old.size+i], old.full[old.size+i]
		}
		for i := s.size - 1; i > 0; i-- {
			s.pull(i)
		}
	}
	s.n++
	s.setSpan(s.n-1, low, full)
}

// setSpan changes the span of request i.
func (s *spans) setSpan(i int, low, full int32) {
	if full <= low+1 {
		low, full = never, 0
	}
	i += s.size
	if s.low[i] == low && s.full[i] == full {
		return
	}
	s.low[i], s.full[i] = low, full
	for i >>= 1; i > 0; i >>= 1 {
		s.pull(i)
	}
}

func (s *spans) pull(i int) {
	s.low[i] = min(s.low[2*i], s.low[2*i+1])
	s.full[i] = max(s.full[2*i], s.full[2*i+1])
}

// nextMatch returns the first match from i on, or none.
func (s *spans) nextMatch(i int, depth int32) int {
	if i >= s.n {
		return none
	}
	return s.search(1, 0, s.size, i, depth, true)
}

// prevMatch returns the last match up to i, or none.
func (s *spans) prevMatch(i int, depth int32) int {
	if i < 0 || s.n == 0 {
		return none
	}
	return s.search(1, 0, s.size, i, depth, false)
}

// search looks below node, which covers [from, to), at or after i when up is
// set, else at or before it.
func (s *spans) search(node, from, to, i int, depth int32, up bool) int {
	if up && to <= i || !up && from > i || depth <= s.low[node] || s.full[node] <= depth {
		return none
	}
	if to-from == 1 {
		return from
	}
	mid := (from + to) / 2
	if up {
		if r := s.search(2*node, from, mid, i, depth, up); r != none {
			return r
		}
		return s.search(2*node+1, mid, to, i, depth, up)
	}
	if r := s.search(2*node+1, mid, to, i, depth, up); r != none {
		return r
	}
	return s.search(2*node, from, mid, i, depth, up)
}
