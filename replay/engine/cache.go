package engine

import (
	"sync"

	"reprise/trace/block"
)

// A prefixCache holds the ids of full blocks in LRU order. Looking a prompt up
// touches its blocks tail to head, so that leaves are evicted first, as in
// vLLM: what is known of a prompt is then always a prefix of it.
type prefixCache struct {
	mu       sync.Mutex
	capacity int // blocks; 0 is without bound
	nodes    map[block.ID]*node
	root     node // of a ring: root.next was used last, root.prev longest ago

	queries, hits int64 // tokens
}

type node struct {
	id         block.ID
	prev, next *node
}

func newPrefixCache(capacity int) *prefixCache {
	c := &prefixCache{capacity: capacity}
	c.reset()
	return c
}

// reset forgets every block; the counters go on.
func (c *prefixCache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = map[block.ID]*node{}
	c.root.prev, c.root.next = &c.root, &c.root
}

// schedule looks up the full blocks of a prompt, makes them known, and returns
// how many leading tokens need not be computed.
func (c *prefixCache) schedule(ids []block.ID, prompt, size int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	hit := 0
	for hit < len(ids) && c.nodes[ids[hit]] != nil {
		hit++
	}
	cached := block.Reusable(hit*size, prompt, size)
	c.touch(ids)
	c.queries += int64(prompt)
	c.hits += int64(cached)
	return cached
}

// addBlocks makes blocks known, such as those over a generated answer.
func (c *prefixCache) addBlocks(ids []block.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touch(ids)
}

func (c *prefixCache) touch(ids []block.ID) {
	for i := len(ids) - 1; i >= 0; i-- {
		n := c.nodes[ids[i]]
		if n == nil {
			n = &node{id: ids[i]}
			c.nodes[n.id] = n
		} else {
			n.prev.next, n.next.prev = n.next, n.prev
		}
		n.prev, n.next = &c.root, c.root.next
		n.prev.next, n.next.prev = n, n
	}
	for c.capacity > 0 && len(c.nodes) > c.capacity {
		last := c.root.prev
		last.prev.next, last.next.prev = last.next, last.prev
		delete(c.nodes, last.id)
	}
}

// counts returns the tokens asked for and found since the start.
func (c *prefixCache) counts() (queries, hits int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queries, c.hits
}
