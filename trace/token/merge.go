package token

import (
	"slices"
	"unicode/utf8"
)

// Byte-pair encoding of a piece that is not a token itself. The piece starts as its single bytes, or characters; the
// neighbouring pair whose union has the lowest rank, the leftmost of equals, becomes one part, until no union is a token.
// In tiktoken's encodings the rank of a union is the id of the part it makes; else it is its place in the list of merges.
// Either way ids come out without another look-up.
//
// The pairs wait in a heap. Looking through all of them for the lowest each time, as is usual for short pieces, was measured:
// a fifth faster on words of about ten letters, which the cache answers anyway, and half as slow again on Chinese clauses.

// keepMax is the number of nodes and of candidates that a state keeps for the next piece: 1 MiB and 0.5 MiB.
const keepMax = 1 << 16

// A node is a part in a linked list, found by the place where it starts. The last node is the end of the piece.
type node struct {
	prev, next int32  // places of the neighbours; -1 before the first and behind the end
	id         uint32 // of the token that the part is
	rank       uint32 // of its union with the part behind it, or none
}

// merge appends the ids of a piece shorter than 2 GiB, in O(n log n), with 16 bytes of nodes and up to 16 of candidates for
// each byte.
func (st *state) merge(dst []uint32, v *vocab, p string) []uint32 {
	var nodes []node
	if v.chars {
		nodes = v.spellChars(st.nodes[:0], p)
	} else {
		nodes = v.spellBytes(st.nodes[:0], p)
	}
	heap := st.heap[:0]
	for i := int32(0); int(i) < len(p); i = nodes[i].next {
		if rank := nodes[i].rank; rank != none {
			heap = append(heap, newCandidate(rank, int(i)))
		}
	}
	heap.init()
	for len(heap) > 0 {
		c := heap.pop()
		i := c.at()
		n := &nodes[i]
		if n.rank != c.rank() {
			continue // one of the two parts has merged with its other neighbour since
		}
		gone := n.next
		n.id, n.next = v.made(n.rank), nodes[gone].next
		nodes[gone].rank = none
		nodes[n.next].prev = i
		for _, j := range [2]int32{i, n.prev} {
			if j < 0 {
				continue
			}
			nodes[j].rank = none
			right := nodes[nodes[j].next]
			if right.next >= 0 {
				nodes[j].rank = v.union(nodes[j].id, right.id, p[j:right.next])
			}
			if nodes[j].rank != none {
				heap.push(newCandidate(nodes[j].rank, int(j)))
			}
		}
	}
	for i := int32(0); int(i) < len(p); i = nodes[i].next {
		dst = append(dst, nodes[i].id)
	}
	if cap(nodes) <= keepMax {
		st.nodes = nodes
	}
	if cap(heap) <= keepMax {
		st.heap = heap
	}
	return dst
}

// spellBytes gives the nodes of the single bytes of a piece.
func (v *vocab) spellBytes(nodes []node, p string) []node {
	for i := range len(p) {
		n := node{prev: int32(i - 1), next: int32(i + 1), id: v.single[p[i]], rank: none}
		if i+1 < len(p) {
			n.rank = v.double[uint(p[i])<<8|uint(p[i+1])]
		}
		nodes = append(nodes, n)
	}
	return append(nodes, node{prev: int32(len(p) - 1), next: -1, rank: none})
}

// spellChars gives the nodes of the characters of a piece, and of the bytes of those that are not in the vocabulary. The
// places inside of a character stay unused.
func (v *vocab) spellChars(nodes []node, p string) []node {
	nodes = slices.Grow(nodes, len(p)+1)[:len(p)+1]
	prev := -1
	add := func(i, size int, id uint32) {
		nodes[i] = node{prev: int32(prev), next: int32(i + size), id: id, rank: none}
		if prev >= 0 {
			nodes[prev].rank = v.pairs.rank(nodes[prev].id, id)
		}
		prev = i
	}
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf {
			add(i, 1, v.single[p[i]])
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(p[i:])
		if id, ok := v.find(p[i:i+size], v.hash(p[i:i+size])); ok {
			add(i, size, id)
			i += size
			continue
		}
		for end := i + size; i < end; i++ {
			add(i, 1, v.single[p[i]])
		}
	}
	nodes[len(p)] = node{prev: int32(prev), next: -1, rank: none}
	return nodes
}

// A candidate is a union that may be made: its rank above the place where its first part starts, so that the smallest number
// is the lowest rank, and the leftmost of equals.
type candidate uint64

func newCandidate(rank uint32, at int) candidate { return candidate(rank)<<32 | candidate(at) }

func (c candidate) rank() uint32 { return uint32(c >> 32) }
func (c candidate) at() int32    { return int32(uint32(c)) }

// candidates is a binary heap. Package container/heap would call through an interface and allocate for each push.
type candidates []candidate

func (h candidates) init() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up] <= a[i] {
			break
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *candidates) pop() candidate {
	a := *h
	top := a[0]
	a[0] = a[len(a)-1]
	*h = a[:len(a)-1]
	h.down(0)
	return top
}

func (h candidates) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
