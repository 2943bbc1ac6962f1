package token

// Byte-pair encoding of a piece that is not a token itself. The piece starts as its single bytes; the neighbouring pair whose
// union has the lowest rank, the leftmost of equals, becomes one part, until no union is a token. The rank of a union is the
// id of the part it makes, so ids come out without another look-up.
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
	nodes, heap := st.nodes[:0], st.heap[:0]
	for i := range len(p) {
		n := node{prev: int32(i - 1), next: int32(i + 1), id: v.single[p[i]], rank: none}
		if i+1 < len(p) {
			n.rank = v.rank(p[i : i+2])
		}
		nodes = append(nodes, n)
		if n.rank != none {
			heap = append(heap, newCandidate(n.rank, i))
		}
	}
	nodes = append(nodes, node{prev: int32(len(p) - 1), next: -1, rank: none})
	heap.init()
	for len(heap) > 0 {
		c := heap.pop()
		i := c.at()
		n := &nodes[i]
		if n.rank != c.rank() {
			continue // one of the two parts has merged with its other neighbour since
		}
		gone := n.next
		n.id, n.next = n.rank, nodes[gone].next
		nodes[gone].rank = none
		nodes[n.next].prev = i
		for _, j := range [2]int32{i, n.prev} {
			if j < 0 {
				continue
			}
			nodes[j].rank = none
			if end := nodes[nodes[j].next].next; end >= 0 {
				nodes[j].rank = v.rank(p[j:end])
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
