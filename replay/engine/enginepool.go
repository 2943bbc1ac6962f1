package engine

// A blockPool is the KV memory of an engine, in blocks. A block is free; or in use
// by sequences, under a key by which others find it or without one; or kept,
// under its key, after its last user left. Kept blocks are in LRU order and give
// way to new ones once none is free: those in use never do.
type blockPool struct {
	limit  int
	free   int
	cached int // in the ring
	index  blockKeys
	nodes  []blockNode // 0 heads the ring: its next was kept last, its prev longest ago
	spare  []int32     // nodes to use again
}

type blockNode struct {
	key        uint64
	users      int32
	prev, next int32 // while kept
}

// keyless stands for a block without a key among the blocks of a sequence.
const keyless int32 = 0

func newPool(limit, blockSize int) *blockPool {
	return &blockPool{limit: limit, free: limit, index: newBlockKeys(blockSize), nodes: make([]blockNode, 1)}
}

// available is how many blocks can be taken.
func (p *blockPool) available() int { return p.free + p.cached }

// used is how many blocks sequences hold.
func (p *blockPool) used() int { return p.limit - p.free - p.cached }

// find returns the block under key, in use or kept, or keyless.
func (p *blockPool) find(key uint64) int32 { return p.index.find(key) }

// share makes a sequence a user of block n.
func (p *blockPool) share(n int32) {
	if p.nodes[n].users == 0 {
		p.unlink(n)
		p.cached--
	}
	p.nodes[n].users++
}

// allocate takes a block without a key; there must be room.
func (p *blockPool) allocate() {
	if p.free > 0 {
		p.free--
		return
	}
	p.evict()
}

// evict forgets the block kept longest ago, which is then neither kept nor free.
func (p *blockPool) evict() {
	n := p.nodes[0].prev
	p.unlink(n)
	p.cached--
	p.index.remove(p.nodes[n].key)
	p.spare = append(p.spare, n)
}

// publish puts a block that take returned under key. It stays without one when
// another has that key, as when two prompts that begin alike are computed at
// once: vLLM keeps both, and so does this, but finds the first.
func (p *blockPool) publish(key uint64) int32 {
	slot := p.index.slot(key)
	if p.index.keys[slot] != 0 {
		return keyless
	}
	var n int32
	if last := len(p.spare) - 1; last >= 0 {
		n, p.spare = p.spare[last], p.spare[:last]
	} else {
		n = int32(len(p.nodes))
		p.nodes = append(p.nodes, blockNode{})
	}
	p.nodes[n] = blockNode{key: key, users: 1}
	p.index.put(slot, key, n)
	return n
}

// release gives the blocks of a sequence back from the last to the first, so
// that the beginnings of prompts are evicted last.
func (p *blockPool) release(held []int32) {
	for i := len(held) - 1; i >= 0; i-- {
		n := held[i]
		if n == keyless {
			p.free++
			continue
		}
		if p.nodes[n].users--; p.nodes[n].users == 0 {
			next := p.nodes[0].next
			p.nodes[n].prev, p.nodes[n].next = 0, next
			p.nodes[next].prev = n
			p.nodes[0].next = n
			p.cached++
		}
	}
}

func (p *blockPool) unlink(n int32) {
	node := p.nodes[n]
	p.nodes[node.prev].next = node.next
	p.nodes[node.next].prev = node.prev
}
