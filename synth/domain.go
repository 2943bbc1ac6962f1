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

func (b *byDepth) add(depth, place int32) {
	if n := int(depth) + 1 - len(b.lists); n > 0 {
		b.lists = append(b.lists, make([][]int32, n)...)
		b.dead = append(b.dead, make([]int32, n)...)
	}
	b.lists[depth] = append(b.lists[depth], place)
}

// drop counts a place of the list of depth as lost; alive tells which are not.
func (b *byDepth) drop(depth int32, alive func(place int32) bool) {
	b.dead[depth]++
	if l := b.lists[depth]; int(b.dead[depth]) > len(l)/2 && len(l) > 8 {
		b.lists[depth] = slices.DeleteFunc(l, func(p int32) bool { return !alive(p) })
		b.dead[depth] = 0
	}
}

func (b *byDepth) at(depth int32) []int32 {
	if int(depth) >= len(b.lists) {
		return nil
	}
	return b.lists[depth]
}

// place returns the first place whose request is r or later.
func (d *domain) place(r int32) int {
	i, _ := slices.BinarySearch(d.members, r)
	return i
}
