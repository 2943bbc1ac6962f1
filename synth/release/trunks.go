package release

import (
	"cmp"
	"math"
	"slices"

	"reprise/anonymize/dp"
)

// trunkDelta is the share of δ for trunks: with it a prefix of one unit alone is
// never selected.
const trunkDelta = 0.1

// A node is a prefix: its last block, whose id stands for all before it.
type node struct {
	block uint64
	level int // its depth is 2^level blocks
}

// A carried prefix is one that units begin with.
type carried struct {
	units int64
	above uint64 // the node one level up
}

// selectTrunks finds the prefixes that enough units share, by noisy counts. A unit
// votes with its first session: for at most one prefix of each level. Noise of scale
// levels/ε is ε-DP, so ε²/2-zCDP; the threshold hides that nobody has a prefix, but
// for δ.
func (l *layout) selectTrunks(c *collector, rho, delta float64, noise *dp.Noise) (dp.Selection, error) {
	s, err := dp.NewSelection(dp.Budget{Epsilon: math.Sqrt(2 * rho), Delta: delta}, perUnit(l.depth))
	if err != nil {
		return s, err
	}
	nodes := map[node]*carried{}
	for _, unit := range c.units {
		path := c.sessions[unit[0]].nodes
		for level, block := range path {
			k := node{block, level}
			if nodes[k] == nil {
				nodes[k] = &carried{above: path[max(0, level-1)]}
			}
			nodes[k].units++
		}
	}
	order := make([]node, 0, len(nodes))
	for k := range nodes {
		order = append(order, k)
	}
	// The order only says which node gets which noise.
	slices.SortFunc(order, func(a, b node) int { return cmp.Or(a.level-b.level, cmp.Compare(a.block, b.block)) })
	// A block id says when it came first, so what is selected is put in the order of
	// its noisy counts.
	type chosen struct {
		node
		count int64
	}
	var list []chosen
	for _, k := range order {
		x, err := noise.Laplace(s.Scale)
		if err != nil {
			return s, err
		}
		if n := nodes[k].units + x; n >= s.Threshold {
			list = append(list, chosen{k, n})
		}
	}
	slices.SortStableFunc(list, func(a, b chosen) int { return cmp.Or(a.level-b.level, cmp.Compare(b.count, a.count)) })
	number := map[node]int32{}
	for i, k := range list {
		number[k.node] = int32(i)
		l.trunks = append(l.trunks, trunk{1 << k.level, none})
		for up := k.node; up.level > 0; {
			up = node{nodes[up].above, up.level - 1}
			if p, ok := number[up]; ok {
				l.trunks[i].parent = p
				break
			}
		}
	}
	for i := range c.sessions {
		s := &c.sessions[i]
		for level, block := range s.nodes {
			if t, ok := number[node{block, level}]; ok {
				s.trunk = t
			}
		}
	}
	return s, nil
}
