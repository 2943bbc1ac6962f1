package profile

import (
	"cmp"
	"slices"

	"reprise/trace"
	"reprise/trace/block"
)

// topPrefixes is how many prefixes each list of [TopPrefixes] holds.
const topPrefixes = 10

// A Prefix is a chain of blocks that at least two prompts begin with, named by
// its last block. It is as long as it can be: every longer chain is carried by
// fewer requests, and the shorter ones by the same are not named.
type Prefix struct {
	// LastBlock numbers blocks by first appearance in rows that are load, a prompt
	// before its output. An imported trace without failed rows has the same ids.
	LastBlock    int64    `json:"last_block"`
	DepthBlocks  int64    `json:"depth_blocks"`
	DepthTokens  int64    `json:"depth_tokens"`
	Requests     int64    `json:"requests"`      // that begin with it
	RequestShare *float64 `json:"request_share"` // of those with blocks
	// SavedTokens is what a cache that keeps the prefix saves: its tokens, for
	// every request but the first. A prefix saves again what those that it begins
	// with save, so these do not add up.
	SavedTokens int64 `json:"saved_tokens"`
	// OwnSavedTokens is the part that no shorter prefix saves. Over all prefixes
	// of a trace these add up to its hit tokens.
	OwnSavedTokens int64    `json:"own_saved_tokens"`
	OwnShare       *float64 `json:"own_share_of_hit_tokens"`
}

// TopPrefixes are the prefixes that bring the most reuse by either measure, ten
// of each at most.
type TopPrefixes struct {
	// ByRequests leaves out a prefix that is for less than half its own: one more
	// turn of a chat whose earlier turns are listed.
	ByRequests []Prefix `json:"by_requests"`
	BySaved    []Prefix `json:"by_own_saved_tokens"`
}

// A blockUse is what a profile keeps of a block that prompts carry: 16 bytes.
type blockUse struct {
	touched  int64  // arrival of the request that last carried it
	requests uint32 // that carried it
	parent   uint32 // number of the block before it, plus one; 0 at the root
}

// prefixes finds the chains that prompts share. Memory: a blockUse for each
// block, and 12 bytes for each partial last block of prompts that came again. Above the
// bound further blocks end no prefix, and when they were carried is kept of a sample of them.
type prefixes struct {
	size   int
	bound  int              // blocks that are kept apart
	uses   []blockUse       // by block number
	tails  map[uint32]int32 // tokens of the prompt that ends with a partial block
	beyond bool             // there were more blocks than the bound
	later  sampleOf[int64]  // of these, when they were last carried
}

func newPrefixes(size, bound int) prefixes {
	x := prefixes{size: size, bound: bound,
		later: sampleOf[int64]{limit: max(bound/(DefaultExactBlocks/sampleBlocks), 1)}}
	for x.later.weight() < DefaultExactBlocks/sampleBlocks {
		x.later.shift++ // as many of the blocks up to the bound as of the sample of those beyond
	}
	return x
}

// grow makes room for n blocks.
func (x *prefixes) grow(n int) {
	switch {
	case n > cap(x.uses):
		// append's own quarter copies twice as often
		longer := make([]blockUse, n, max(n, min(cap(x.uses)*3/2, x.bound)))
		copy(longer, x.uses)
		x.uses = longer
	case n > len(x.uses):
		x.uses = x.uses[:n]
	}
}

// touched is when a block was last carried. It is not ok of one that is neither kept apart
// nor in the sample.
func (x *prefixes) touched(n uint32) (at int64, ok bool) {
	if int(n) < len(x.uses) {
		return x.uses[n].touched, true
	}
	at, ok = x.later.held[uint64(n)]
	return at, ok
}

// kept tells whether what is counted of a block counts, and for how many: all do while all
// blocks are kept apart, and those of a sample from then on.
func (x *prefixes) kept(n uint32) (weight int64, ok bool) {
	if !x.beyond {
		return 1, true
	}
	return x.later.weight(), x.later.has(uint64(n))
}

// carry counts a prompt with the blocks of path, whose first hit blocks were known, there
// and in the working sets of a trace that begins at first.
func (x *prefixes) carry(r *trace.Request, path []uint32, hit int, sets *workingSets, first int64) {
	parent := uint32(0)
	for _, n := range path {
		if int(n) >= len(x.uses) {
			sets.carryLater(n)
			if x.later.has(uint64(n)) {
				x.later.put(uint64(n), r.ArrivalNS)
			}
			parent = n + 1
			continue
		}
		use := &x.uses[n]
		sets.carry(use.touched-first, use.requests == 0)
		if use.requests == 0 {
			use.parent = parent
		}
		use.requests++
		use.touched = r.ArrivalNS
		parent = n + 1
	}
	if hit < len(path) || int(r.InputTokens) == block.Full(int(r.InputTokens), x.size)*x.size ||
		int(path[hit-1]) >= len(x.uses) {
		return
	}
	if x.tails == nil {
		x.tails = map[uint32]int32{}
	}
	x.tails[path[hit-1]] = r.InputTokens
}

// common is how many leading blocks more than half of the requests carry. Ids are chained, so that they lie
// on one path.
func (x *prefixes) common(requests int64) (depth int64) {
	for i := range x.uses {
		if 2*int64(x.uses[i].requests) > requests {
			depth++
		}
	}
	return depth
}

// A chain is the end of a prefix: its last own blocks are carried by the same
// requests.
type chain struct {
	last uint32
	own  int64
	Prefix
}

// prefix describes the chain that ends with last.
func (x *prefixes) prefix(last uint32, own int64) chain {
	use := x.uses[last]
	p := Prefix{LastBlock: int64(last), DepthBlocks: 1, Requests: int64(use.requests)}
	// A block's parent was carried before it was, so this comes to an end.
	for parent := use.parent; parent != 0; parent = x.uses[parent-1].parent {
		p.DepthBlocks++
	}
	p.DepthTokens = p.DepthBlocks * int64(x.size)
	if tokens, ok := x.tails[last]; ok {
		p.DepthTokens = int64(tokens)
	}
	p.SavedTokens = (p.Requests - 1) * p.DepthTokens
	p.OwnSavedTokens = (p.Requests - 1) * (p.DepthTokens - (p.DepthBlocks-own)*int64(x.size))
	return chain{last, own, p}
}

// A ranking keeps the greatest chains, by two measures.
type ranking struct {
	list []chain
	by   func(*chain) [2]int64
}

func (k *ranking) add(c chain) {
	at, _ := slices.BinarySearchFunc(k.list, c, func(a, b chain) int {
		first, second := k.by(&a), k.by(&b)
		return cmp.Or(cmp.Compare(second[0], first[0]), cmp.Compare(second[1], first[1]), cmp.Compare(a.last, b.last))
	})
	if at < topPrefixes {
		k.list = slices.Insert(k.list[:min(len(k.list), topPrefixes-1)], min(at, len(k.list)), c)
	}
}

// beats tells whether a first measure could still enter.
func (k *ranking) beats(first int64) bool {
	return len(k.list) < topPrefixes || first >= k.by(&k.list[topPrefixes-1])[0]
}

// top ranks the prefixes, of a trace with so many requests with blocks that hit
// so many tokens. It returns nil when no two prompts share one.
func (x *prefixes) top(requests, hitTokens int64) *TopPrefixes {
	byRequests := ranking{by: func(c *chain) [2]int64 { return [2]int64{c.Requests, c.SavedTokens} }}
	bySaved := ranking{by: func(c *chain) [2]int64 { return [2]int64{c.OwnSavedTokens, c.Requests} }}
	// A block is passed when a child of it is carried by as many requests: then all of them go on to that child, and no
	// prefix ends at the block.
	var passed bitset
	for _, use := range x.uses {
		if use.requests > 1 && use.parent != 0 && x.uses[use.parent-1].requests == use.requests {
			passed.put(use.parent - 1)
		}
	}
	for n := range x.uses {
		carried := int64(x.uses[n].requests)
		if carried < 2 || passed.has(uint32(n)) {
			continue
		}
		own := int64(1) // blocks up to this one that the same requests carry
		for at := &x.uses[n]; at.parent != 0 && x.uses[at.parent-1].requests == at.requests; own++ {
			at = &x.uses[at.parent-1]
		}
		if !byRequests.beats(carried) && !bySaved.beats((carried-1)*own*int64(x.size)) {
			continue
		}
		c := x.prefix(uint32(n), own)
		bySaved.add(c)
		if 2*own >= c.DepthBlocks {
			byRequests.add(c)
		}
	}
	if len(bySaved.list) == 0 {
		return nil
	}
	listed := func(k *ranking) (list []Prefix) {
		for _, c := range k.list {
			c.RequestShare, c.OwnShare = share(c.Requests, requests), share(c.OwnSavedTokens, hitTokens)
			list = append(list, c.Prefix)
		}
		return list
	}
	return &TopPrefixes{listed(&byRequests), listed(&bySaved)}
}
