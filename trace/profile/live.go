package profile

import "reprise/trace"

// A Live follows the prompts that a prefix cache of a stated capacity holds, so
// that a replay that begins in the middle of a trace can first put them there.
//
// It evicts by LRU: a request looks its blocks up and then touches them from tail
// to head, so that what is held is always whole prefixes, and the blocks that
// nothing else needs go first. Blocks count with the tokens that they have. What
// servers generate is left aside: a replayed prompt has other tokens in its place.
//
// Memory: about 100 bytes for each block that is held, and a row without its
// lists for each request that was the last to touch one.
type Live struct {
	size           int
	capacity, held int64 // tokens
	at             map[uint64]int32
	nodes          []liveNode
	free           []int32
	newest, oldest int32
}

// A liveNode is a block that is held. None is -1.
type liveNode struct {
	id           uint64
	newer, older int32
	parent       int32 // the block before it
	children     int32
	tokens       int32
	row          *trace.Request // the last that touched it, without its lists
}

// NewLive makes an empty cache of so many tokens, for rows in blocks of blockSize
// tokens.
func NewLive(blockSize int, capacityTokens int64) *Live {
	return &Live{size: blockSize, capacity: capacityTokens, at: map[uint64]int32{}, newest: -1, oldest: -1}
}

// Touch takes the next request. One that failed is no load.
func (l *Live) Touch(r *trace.Request) {
	if r.Status == trace.StatusFailed {
		return
	}
	row := *r
	row.Blocks, row.OutputBlocks, row.Parents = nil, nil, nil
	leaf, left := int32(-1), int(r.InputTokens)
	for _, id := range r.Blocks {
		tokens := min(left, l.size)
		if tokens < 1 {
			break
		}
		n, ok := l.at[id]
		switch {
		case !ok:
			n = l.insert(id, leaf, int32(tokens))
		case l.nodes[n].parent != leaf:
			tokens = 0 // an id that follows other ids than before names no prefix
		}
		if tokens == 0 {
			break
		}
		leaf, left = n, left-tokens
	}
	for n := leaf; n >= 0; n = l.nodes[n].parent {
		l.unlink(n)
		l.link(n)
		l.nodes[n].row = &row
	}
	for l.held > l.capacity {
		n := l.oldest // it has no children: they would be older
		b := &l.nodes[n]
		l.unlink(n)
		delete(l.at, b.id)
		if b.parent >= 0 {
			l.nodes[b.parent].children--
		}
		l.held -= int64(b.tokens)
		b.row = nil
		l.free = append(l.free, n)
	}
}

// insert makes a block that is about to be touched.
func (l *Live) insert(id uint64, parent, tokens int32) int32 {
	n := int32(len(l.nodes))
	if last := len(l.free) - 1; last >= 0 {
		n, l.free = l.free[last], l.free[:last]
	} else {
		l.nodes = append(l.nodes, liveNode{})
	}
	l.nodes[n] = liveNode{id: id, parent: parent, tokens: tokens, newer: -1, older: -1}
	if parent >= 0 {
		l.nodes[parent].children++
	}
	l.at[id] = n
	l.held += int64(tokens)
	l.link(n)
	return n
}

// link makes a block the newest.
func (l *Live) link(n int32) {
	l.nodes[n].newer, l.nodes[n].older = -1, l.newest
	if l.newest >= 0 {
		l.nodes[l.newest].newer = n
	} else {
		l.oldest = n
	}
	l.newest = n
}

func (l *Live) unlink(n int32) {
	b := &l.nodes[n]
	if b.newer >= 0 {
		l.nodes[b.newer].older = b.older
	} else {
		l.newest = b.older
	}
	if b.older >= 0 {
		l.nodes[b.older].newer = b.newer
	} else {
		l.oldest = b.newer
	}
}

// Tokens is how many tokens are held.
func (l *Live) Tokens() int64 { return l.held }

// Prompts returns what is held as requests that would bring it there: each is the
// last request that touched the end of a prefix, cut down to what is held of it,
// for one token of output. They come in the order of LRU, the one touched last at
// the end.
func (l *Live) Prompts() []trace.Request {
	var out []trace.Request
	for n := l.oldest; n >= 0; n = l.nodes[n].newer {
		if l.nodes[n].children > 0 {
			continue
		}
		r := *l.nodes[n].row
		r.Status, r.OutputTokens, r.MaxTokens, r.InputTokens = trace.StatusOK, trace.Ptr[int32](1), nil, 0
		depth := 0
		for b := n; b >= 0; b = l.nodes[b].parent {
			depth++
		}
		r.Blocks = make([]uint64, depth)
		for b := n; b >= 0; b = l.nodes[b].parent {
			depth--
			r.Blocks[depth] = l.nodes[b].id
			r.InputTokens += l.nodes[b].tokens
		}
		out = append(out, r)
	}
	return out
}
