package fleet

import "reprise/trace/sample"

// A cache is one LRU cache of at most limit blocks. It is a list in a
// slice and an open-addressed table from block numbers to places in it, so that
// it takes 24 to 36 bytes for each block that it holds, however many there are
// in the trace, and a touch takes constant time.
//
// The blocks of a prompt mostly have numbers in a row, and so have places in the table: a search stays
// in a line of memory, and goes on in the next lines at the same place. Hashed one by one, each
// block would miss the processor's cache.
type cache struct {
	limit int
	nodes []cacheNode       // 0 is the ring's head: its older is the newest block
	slots []uint32          // places in nodes; 0 is free
	used  [lineSlots]uint32 // slots, by their place in the line
}

type cacheNode struct{ block, newer, older uint32 }

const (
	minSlots  = 64
	lineSlots = 16 // of 4 bytes each
)

func newCache(limit int) *cache {
	return &cache{limit: limit, nodes: make([]cacheNode, 1), slots: make([]uint32, minSlots)}
}

// slot returns where block is in the table, or the free slot where it belongs.
func (c *cache) slot(block uint32) int {
	last := len(c.slots) - 1
	i := home(block) & last
	for c.slots[i] != 0 && c.nodes[c.slots[i]].block != block {
		i = (i + lineSlots) & last
	}
	return i
}

// home is where the search for a block begins, in a table of any size: lineSlots numbers in a row have one
// line, turned by their hash, so that numbers which are all even have all places.
func home(block uint32) int {
	line := spread(uint64(block / lineSlots))
	return int(line<<8>>8)*lineSlots | int(uint64(block)+line>>60)%lineSlots
}

// put enters node n in a free slot, and makes the table larger where more than half of it is in use, or
// three quarters of one place of its lines.
func (c *cache) put(at int, n uint32) {
	c.slots[at] = n
	c.used[at%lineSlots]++
	size := len(c.slots)
	for 2*(len(c.nodes)-1) > size || 4*lineSlots*int(c.used[at%lineSlots]) > 3*size {
		size *= 2
	}
	if size == len(c.slots) {
		return
	}
	c.slots = make([]uint32, size)
	for i := 1; i < len(c.nodes); i++ {
		c.slots[c.slot(c.nodes[i].block)] = uint32(i)
	}
}

// touch makes block the newest. It returns the block that it evicts, if the cache
// is full.
func (c *cache) touch(block uint32) (evicted uint32, full bool) {
	at := c.slot(block)
	if n := c.slots[at]; n != 0 {
		c.unlink(n)
		c.link(n)
		return 0, false
	}
	if len(c.nodes) <= c.limit {
		n := uint32(len(c.nodes))
		c.nodes = append(c.nodes, cacheNode{block: block})
		c.put(at, n)
		c.link(n)
		return 0, false
	}
	n := c.nodes[0].newer // the oldest
	evicted = c.nodes[n].block
	c.unlink(n)
	c.free(c.slot(evicted))
	c.nodes[n].block = block
	c.put(c.slot(block), n) // the slot found above may have been closed up
	c.link(n)
	return evicted, true
}

func (c *cache) unlink(n uint32) {
	node := c.nodes[n]
	c.nodes[node.newer].older = node.older
	c.nodes[node.older].newer = node.newer
}

// link makes node n the newest.
func (c *cache) link(n uint32) {
	next := c.nodes[0].older
	c.nodes[n].newer, c.nodes[n].older = 0, next
	c.nodes[next].newer = n
	c.nodes[0].older = n
}

// free empties slot i, and moves up the entries after it that a search would no
// longer find (Knuth, The art of computer programming 3, section 6.4, algorithm R).
func (c *cache) free(i int) {
	last := len(c.slots) - 1
	c.used[i%lineSlots]--
	for j := i; ; {
		c.slots[i] = 0
		for {
			j = (j + lineSlots) & last
			if c.slots[j] == 0 {
				return
			}
			home := home(c.nodes[c.slots[j]].block)
			if (j-home)&last >= (j-i)&last {
				break // its search passes i
			}
		}
		c.slots[i] = c.slots[j]
		i = j
	}
}

// spread is a hash of block numbers and of sessions.
func spread(n uint64) uint64 { return sample.Mix64((n + 1) * sample.Golden) }
