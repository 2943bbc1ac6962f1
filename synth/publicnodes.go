package synth

import (
	"cmp"
	"slices"

	"reprise/anonymize/dp"
)

// Reuse of what others sent is where sensitivity goes wrong. Judged against the
// requests before it, a request's hit depends on everyone: take one user away,
// and strangers' hits turn into misses, without a bound. So the prefixes that
// may count as known to all are chosen first, by a differentially private count
// of the users that carry them, and from then on are public. A request is then
// judged against that fixed set and its own unit's past, and a unit that comes
// or goes moves its own records only.
//
// Depths are powers of two, so that a unit carries few such nodes; it counts in
// at most nodesPerUnit of them, the shallowest first.
const nodesPerUnit = 8

// publicNodes are the prefix nodes that may be known to all.
type publicNodes struct {
	selection dp.Selection
	index     map[uint64]int // by block
	list      []publicNode
}

// A publicNode is named by its block, which stands for all of its prefix; so the
// node above it is public as well.
type publicNode struct {
	depth  int     // log2
	parent int     // the next public node above, or none
	ends   float64 // share of the requests that know it, and no deeper one
	share  float64 // of those that carry it
}

// candidates lists the nodes that a unit counts in.
func (u *unit) candidates() []uint64 {
	type node struct {
		block        uint64
		depth, times int
	}
	var nodes []node
	for i := range u.Kept {
		for d, b := range u.Kept[i].nodes {
			at := slices.IndexFunc(nodes, func(n node) bool { return n.block == b })
			if at < 0 {
				at = len(nodes)
				nodes = append(nodes, node{block: b, depth: d})
			}
			nodes[at].times++
		}
	}
	slices.SortStableFunc(nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(b.times, a.times))
	})
	nodes = nodes[:min(len(nodes), nodesPerUnit)]
	out := make([]uint64, len(nodes))
	for i, n := range nodes {
		out[i] = n.block
	}
	return out
}

// countNodes returns how many units count in each node, in a fixed order. Where each
// request is a unit and users are known, these count, and those that name none as one: no
// user selects a node alone by sending it often. A request still moves nodesPerUnit counts
// by one at most.
func countNodes(units []unit) (blocks []uint64, count map[uint64]int64) {
	type had struct {
		user  int64
		block uint64
	}
	count = map[uint64]int64{}
	var counted map[had]bool
	if slices.ContainsFunc(units, func(u unit) bool { return u.user != 0 }) {
		counted = map[had]bool{}
	}
	for i := range units {
		for _, b := range units[i].candidates() {
			if counted != nil {
				if counted[had{units[i].user, b}] {
					continue
				}
				counted[had{units[i].user, b}] = true
			}
			if count[b]++; count[b] == 1 {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks, count
}

// selectNodes chooses the public nodes within a budget.
func selectNodes(units []unit, b dp.Budget, noise *dp.Noise) (*publicNodes, error) {
	s, err := dp.NewSelection(b, nodesPerUnit)
	if err != nil {
		return nil, err
	}
	var kept []uint64
	blocks, count := countNodes(units)
	for _, block := range blocks {
		keep, err := s.Keep(noise, count[block])
		if err != nil {
			return nil, err
		}
		if keep {
			kept = append(kept, block)
		}
	}
	p := namedNodes(units, kept)
	p.selection = s
	return p, nil
}

// namedNodes are the nodes of some blocks. Where a block stands is no secret of
// those who carry it: its id is a hash of all that leads to it.
func namedNodes(units []unit, blocks []uint64) *publicNodes {
	p := &publicNodes{index: map[uint64]int{}}
	for _, b := range blocks {
		p.index[b] = len(p.list)
		p.list = append(p.list, publicNode{parent: none})
	}
	for i := range units {
		for k := range units[i].Kept {
			up := none
			for d, b := range units[i].Kept[k].nodes {
				if x, ok := p.index[b]; ok {
					p.list[x].depth, p.list[x].parent = d, up
					up = x
				}
			}
		}
	}
	return p
}

// deepest is the deepest public node that a record carries, or none.
func (p *publicNodes) deepest(r *record) int {
	for d := len(r.nodes) - 1; d >= 0; d-- {
		if x, ok := p.index[r.nodes[d]]; ok {
			return x
		}
	}
	return none
}

// weigh takes the shares of the requests by their deepest node, those without
// first.
func (p *publicNodes) weigh(shares []float64) {
	for i := range p.list {
		p.list[i].ends, p.list[i].share = 0, 0
	}
	if shares == nil {
		return
	}
	for i := range p.list {
		p.list[i].ends = shares[i+1]
		for x := i; x != none; x = p.list[x].parent {
			p.list[x].share += shares[i+1]
		}
	}
}

// trunk is the deepest node that more than half of the requests carry: log2 of
// its depth, or none.
func (p *publicNodes) trunk() int {
	deepest := none
	for _, n := range p.list {
		if n.share > 0.5 {
			deepest = max(deepest, n.depth)
		}
	}
	return deepest
}

// classify tells the category of a record and how much of it is known, in the
// light of the public nodes: for a continuation, how much is new. shared is what
// all know of it.
func (p *publicNodes) classify(r *record) (c category, blocks, shared int32) {
	if x := p.deepest(r); x != none {
		shared = 1 << p.list[x].depth
	}
	switch {
	case r.length == 0:
		return uncategorised, 0, 0
	case max(r.hit, shared) == 0:
		return cold, 0, 0
	case max(r.hit, shared) >= r.length:
		return duplicate, 0, shared
	case shared >= r.hit:
		return global, shared, shared
	case r.extends:
		return continuation, r.length - r.hit, shared
	}
	return branch, r.hit, shared
}
