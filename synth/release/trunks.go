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

// planTrunks is how the prefixes that enough units share are selected. Noise of scale
// levels/ε is ε-DP, so ε²/2-zCDP; the threshold hides that nobody has a prefix, but for δ.
func (f *fit) planTrunks() (dp.Selection, error) {
	epsilon := math.Sqrt(2 * f.share(ofTrunks))
	return dp.NewSelection(dp.Budget{Epsilon: epsilon, Delta: f.selectionDelta()}, perUnit(f.depth))
}

// selectTrunks finds these prefixes by noisy counts of votes. A unit votes with its first
// session: for at most one prefix of each level.
func selectTrunks(s dp.Selection, votes [][]uint64, noise *dp.Noise) (selected []node, err error) {
	// A block id says when it came first, so what is selected is put in the order of
	// its noisy counts.
	type chosen struct {
		node
		count int64
	}
	var list []chosen
	for level, blocks := range votes {
		for from, to := 0, 0; from < len(blocks); from = to {
			for to < len(blocks) && blocks[to] == blocks[from] {
				to++
			}
			n, kept, err := s.Keep(noise, int64(to-from))
			if err != nil {
				return nil, err
			}
			if kept {
				list = append(list, chosen{node{blocks[from], level}, n})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b chosen) int { return cmp.Or(a.level-b.level, cmp.Compare(b.count, a.count)) })
	for _, k := range list {
		selected = append(selected, k.node)
	}
	return selected, nil
}

// takeTrunks makes trunks of prefixes, those above others first. What is above each is found
// with the trunks of sessions.
func (f *fit) takeTrunks(selected []node) {
	f.trunks, f.numbers = nil, map[node]int32{}
	for i, k := range selected {
		f.numbers[k] = int32(i)
		f.trunks = append(f.trunks, trunk{1 << k.level, none})
	}
}

// findTrunk finds the deepest trunk of a session.
func (f *fit) findTrunk(s *session) {
	s.trunk = none
	for level, block := range s.nodes {
		if t, ok := f.numbers[node{block, level}]; ok {
			f.trunks[t].parent, s.trunk = s.trunk, t
		}
	}
}
