package release

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"reprise/trace"
)

// A Shift is how far a table moves, before its noise, when one unit comes or goes, and how
// far it may: what the noise was made for.
type Shift struct {
	Statistic        string `json:"statistic"`
	L1               int64  `json:"l1"`
	L2Squared        int64  `json:"l2_squared"`
	ClaimedL1        int64  `json:"claimed_l1"`
	ClaimedL2Squared int64  `json:"claimed_l2_squared"`
}

// Beyond reports whether it moves further than is claimed.
func (s Shift) Beyond() bool { return s.L1 > s.ClaimedL1 || s.L2Squared > s.ClaimedL2Squared }

// between adds up how far cells of two sides are apart.
func (s *Shift) between(a, b []int64) {
	for i := range max(len(a), len(b)) {
		d := int64(0)
		if i < len(a) {
			d = a[i]
		}
		if i < len(b) {
			d -= b[i]
		}
		s.L1, s.L2Squared = s.L1+max(d, -d), s.L2Squared+d*d
	}
}

// A Neighbour is a trace, or the same without one unit.
type Neighbour struct {
	Rows trace.Reader[trace.Request]
	Meta trace.Meta
}

// Shifts compares what [Fit] would count of two traces that differ by one unit: each table
// before its noise, how many units begin with each prefix, and, in differs, what the model
// says beside noisy counts and must not depend on anybody. No prefix is a trunk here, since
// ids of blocks are numbers of their trace. Nothing is released.
func Shifts(ctx context.Context, whole, part Neighbour, o Options) (shifts []Shift, differs []string, err error) {
	var sides [2]*fit
	var says [2]map[string]any
	var carriers [2][]int64
	for i, n := range []Neighbour{whole, part} {
		o := o
		n.Meta.Captures = whole.Meta.Captures // each import draws one
		if err := o.defaults(n.Meta); err != nil {
			return nil, nil, err
		}
		f := newFit(n.Meta, o)
		if err := f.source.read(ctx, n.Rows, nil); err != nil {
			return nil, nil, err
		}
		f.rate = startCells
		for t := range tables {
			if rows, columns := f.shape(t); rows > 0 {
				f.noisy[t] = make([]int64, rows*columns)
			}
		}
		units, votes, err := f.source.votes()
		if err != nil {
			return nil, nil, err
		}
		carriers[i] = carried(votes)
		f.noisy[ofSessions][0] = unit * units
		if err := f.count(); err != nil {
			return nil, nil, err
		}
		b, err := json.Marshal(f.statement())
		if err != nil {
			return nil, nil, err
		}
		if err := json.Unmarshal(b, &says[i]); err != nil {
			return nil, nil, err
		}
		f.modelMeta(n.Meta).Each(func(k, v string) { says[i]["metadata "+k] = v })
		sides[i] = f
	}
	keys := maps.Clone(says[0])
	maps.Copy(keys, says[1])
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(says[0][k], says[1][k]) {
			differs = append(differs, k)
		}
	}
	for t := range tables {
		if sides[0].noisy[t] != nil {
			s := Shift{Statistic: tableNames[t], ClaimedL1: unit, ClaimedL2Squared: unit * unit}
			s.between(sides[0].noisy[t], sides[1].noisy[t])
			shifts = append(shifts, s)
		}
	}
	if depth := sides[0].depth; depth > 0 {
		votes := int64(perUnit(depth))
		s := Shift{Statistic: "units by prefix", ClaimedL1: votes, ClaimedL2Squared: votes}
		s.between(carriers[0], carriers[1])
		shifts = append(shifts, s)
	}
	return shifts, differs, nil
}

// carried is how many units begin with each prefix, most first: the least shift that any
// numbering of the blocks allows.
func carried(votes [][]uint64) (counts []int64) {
	for _, blocks := range votes {
		for i := range blocks {
			if i == 0 || blocks[i] != blocks[i-1] {
				counts = append(counts, 0)
			}
			counts[len(counts)-1]++
		}
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	return counts
}
