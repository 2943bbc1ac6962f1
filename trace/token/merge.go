package token

import (
	"slices"
	"unicode/utf8"
)

// A state is what one goroutine needs to encode: scratch memory, and a cache of the pieces that were merged lately. It
// keeps those pieces of text in memory for as long as it is pooled, and shows them to no one.
type state struct {
	nodes  []node
	heap   candidates
	recent [1 << recentBits]piece
}

// recentBits sets the size of the cache: 2^12 pieces in 256 KiB. Eight times as many gain nothing on chat logs.
const recentBits = 12

// A piece is a merged piece of text with its ids. It fills a cache line and holds no pointer: to store one allocates
// nothing, and the garbage collector does not look inside. Longer ones are rare and merged again.
type piece struct {
	size, count uint8
	text        [34]byte
	ids         [7]uint32
}

// append appends the ids of one piece of text.
func (st *state) append(dst []uint32, v *vocab, p string) []uint32 {
	if len(p) == 1 {
		return append(dst, v.single[p[0]])
	}
	h := v.hash(p)
	if id, ok := v.find(p, h); ok {
		return append(dst, id)
	}
	// The slot comes from other bits than the vocabulary's index and tag.
	c := &st.recent[h>>24&(1<<recentBits-1)]
	if string(c.text[:c.size]) == p {
		return append(dst, c.ids[:c.count]...)
	}
	before := len(dst)
	dst = st.merge(dst, v, p)
	if ids := dst[before:]; len(p) <= len(c.text) && len(ids) <= len(c.ids) {
		c.size, c.count = uint8(copy(c.text[:], p)), uint8(copy(c.ids[:], ids))
	}
	return dst
}

// Byte-pair encoding of a piece that is not a token itself. The piece starts as its single bytes, or characters; the
// neighbouring pair whose union has the lowest rank, the leftmost of equals, becomes one part, until no union is a
// token. In tiktoken's encodings the rank of a union is the id of the part it makes; else it is its place in the list
// of merges. Either way ids come out without another look-up.
//
// The pairs wait in a heap. Looking through all of them for the lowest each time, as is usual for short pieces, was
// measured: a fifth faster on words of about ten letters, which the cache answers anyway, and half as slow again on
// Chinese clauses.

// keepMax is the number of nodes and of candidates that a state keeps for the next piece: 1 MiB and 0.5 MiB.
const keepMax = 1 << 16

// A node is a part in a linked list, found by the place where it starts. The last node is the end of the piece.
type node struct {
	prev, next int32  // places of the neighbours; -1 before the first and after the end
	id         uint32 // of the token that the part is
	rank       uint32 // of its union with the next part, or none
}

// merge appends the ids of a piece shorter than 2 GiB, in O(n log n), with 16 bytes of nodes and up to 16 of candidates
// for each byte.
func (st *state) merge(dst []uint32, v *vocab, p string) []uint32 {
	nodes := st.nodes[:0]
	if v.chars {
		nodes = v.spellChars(nodes, p)
	} else { // one node a byte
		for i := range len(p) {
			n := node{prev: int32(i - 1), next: int32(i + 1), id: v.single[p[i]], rank: none}
			if i+1 < len(p) {
				n.rank = v.double[uint(p[i])<<8|uint(p[i+1])]
			}
			nodes = append(nodes, n)
		}
		nodes = append(nodes, node{prev: int32(len(p) - 1), next: -1, rank: none})
	}
	heap := st.heap[:0]
	for i := int32(0); int(i) < len(p); i = nodes[i].next {
		if rank := nodes[i].rank; rank != none {
			heap = append(heap, newCandidate(rank, int(i)))
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		heap.down(i)
	}
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
			switch {
			case right.next < 0: // the end of the piece
			case v.pairs != nil:
				nodes[j].rank = v.pairs.rank(nodes[j].id, right.id)
			default:
				nodes[j].rank = v.rank(p[j:right.next])
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

// spellChars gives the nodes of the characters of a piece, and of the bytes of those that are not in the vocabulary.
// The places inside of a character stay unused.
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

// A candidate is a union that may be made: its rank above the place where its first part starts, so that the smallest
// number is the lowest rank, and the leftmost of equals.
type candidate uint64

func newCandidate(rank uint32, at int) candidate { return candidate(rank)<<32 | candidate(at) }

func (c candidate) rank() uint32 { return uint32(c >> 32) }
func (c candidate) at() int32    { return int32(uint32(c)) }

// candidates is a binary heap. Package container/heap would call through an interface and allocate for each push.
type candidates []candidate

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
