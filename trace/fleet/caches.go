package fleet

import (
	"math"
	"math/bits"
)

// Caches are the prefix caches of some replicas, an LRU cache each, for a router of the
// caller's own: it asks for [Caches.Depths], and sends. Requests go through them in order,
// each whole before the next: look up, touch from the tail to the head, as in
// profile.Reuse.
//
// Which replicas hold a block is a bit each, so that finding how much all of
// them hold of a prompt takes one step for each of its blocks. Memory: 8 bytes
// for each block of the trace, and up to 36 for each that a replica holds; where
// the caches have no limit, only the former.
type Caches struct {
	held   []uint64 // by block number: which replicas hold it
	caches []*cache // nil without limit
	depth  []int
}

// NewCaches makes the caches of 1 to [MaxReplicas] replicas, which hold so many blocks each;
// 0 is without limit.
func NewCaches(replicas int, blocks int64) *Caches {
	c := &Caches{depth: make([]int, replicas)}
	for range replicas {
		if blocks > 0 {
			c.caches = append(c.caches, newCache(int(min(blocks, math.MaxUint32-1))))
		}
	}
	return c
}

// Depths says, by replica, how many of the leading blocks of a prompt it holds. path has
// the number of each of its blocks; numbers count the distinct blocks of the trace from 0.
// The list is good until the next call.
func (c *Caches) Depths(path []uint32) []int {
	c.grow(path)
	rest := uint64(math.MaxUint64) >> (64 - len(c.depth)) // replicas that hold all blocks so far
	for i, n := range path {
		for lost := rest &^ c.held[n]; lost != 0; lost &= lost - 1 {
			c.depth[bits.TrailingZeros64(lost)] = i
		}
		if rest &= c.held[n]; rest == 0 {
			break
		}
	}
	for ; rest != 0; rest &= rest - 1 {
		c.depth[bits.TrailingZeros64(rest)] = len(path)
	}
	return c.depth
}

// Send makes the blocks of a prompt the newest in the cache of one replica.
func (c *Caches) Send(to int, path []uint32) {
	c.grow(path)
	for i := len(path) - 1; i >= 0; i-- {
		n := path[i]
		c.held[n] |= 1 << to
		if c.caches == nil {
			continue
		}
		if evicted, full := c.caches[to].touch(n); full {
			c.held[evicted] &^= 1 << to
		}
	}
}

// grow makes room for the blocks of a path.
func (c *Caches) grow(path []uint32) {
	for _, n := range path {
		if int(n) >= len(c.held) {
			c.held = append(c.held, make([]uint64, int(n)+1-len(c.held))...)
		}
	}
}
