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

// selectTrunks finds the prefixes that enough units share, by noisy counts. A unit
// votes with its first session: for at most one prefix of each level. Noise of scale
// levels/ε is ε-DP, so ε²/2-zCDP; the threshold hides that nobody has a prefix, but
// for δ.
func (l *layout) selectTrunks(c *collector, rho, delta float64, noise *dp.Noise) (s dp.Selection, selected []node, err error) {
	if s, err = dp.NewSelection(dp.Budget{Epsilon: math.Sqrt(2 * rho), Delta: delta}, perUnit(l.depth)); err != nil {
		return s, nil, err
	}
	nodes := map[node]int64{} // units that begin with it
	for _, unit := range c.units {
		for level, block := range c.sessions[unit[0]].nodes {
			nodes[node{block, level}]++
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
		n, kept, err := s.Keep(noise, nodes[k])
		if err != nil {
			return s, nil, err
		}
		if kept {
			list = append(list, chosen{k, n})
		}
	}
	slices.SortStableFunc(list, func(a, b chosen) int { return cmp.Or(a.level-b.level, cmp.Compare(b.count, a.count)) })
	for _, k := range list {
		selected = append(selected, k.node)
	}
	return s, selected, nil
}

// takeTrunks makes trunks of prefixes, those above others first, and finds the deepest one
// of each session.
func (l *layout) takeTrunks(c *collector, selected []node) {
	l.trunks = nil
	number := map[node]int32{}
	for i, k := range selected {
		number[k] = int32(i)
		l.trunks = append(l.trunks, trunk{1 << k.level, none})
	}
	for i := range c.sessions {
		s := &c.sessions[i]
		s.trunk = none
		for level, block := range s.nodes {
			if t, ok := number[node{block, level}]; ok {
				l.trunks[t].parent, s.trunk = s.trunk, t
			}
		}
	}
}
