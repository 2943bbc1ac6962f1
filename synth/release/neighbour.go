package release

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"reprise/synth"
)

// Shifts compares what [Fit] would count of two traces that differ by one unit: each table
// before its noise, how many units begin with each prefix, and, in differs, what the model
// says beside noisy counts and must not depend on anybody. No prefix is a trunk here, since
// ids of blocks are numbers of their trace. Nothing is released.
func Shifts(ctx context.Context, whole, part synth.Neighbour, o Options) (shifts []synth.Shift, differs []string, err error) {
	var sides [2]*fit
	var says [2]map[string]any
	for i, n := range []synth.Neighbour{whole, part} {
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
		f.noisy[ofSessions][0] = unit * int64(len(f.source.units))
		f.count()
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
			s := synth.Shift{Statistic: tableNames[t], ClaimedL1: unit, ClaimedL2Squared: unit * unit}
			s.Add(sides[0].noisy[t], sides[1].noisy[t])
			shifts = append(shifts, s)
		}
	}
	if depth := sides[0].depth; depth > 0 {
		votes := int64(perUnit(depth))
		s := synth.Shift{Statistic: "units by prefix", ClaimedL1: votes, ClaimedL2Squared: votes}
		s.Add(sides[0].carriers(), sides[1].carriers())
		shifts = append(shifts, s)
	}
	return shifts, differs, nil
}

// carriers are how many units begin with each prefix, most first: the least shift that any
// numbering of the blocks allows.
func (f *fit) carriers() []int64 {
	units := map[node]int64{}
	for _, u := range f.source.units {
		for level, block := range f.source.sessions[u[0]].nodes {
			units[node{block, level}]++
		}
	}
	counts := slices.Sorted(maps.Values(units))
	slices.Reverse(counts)
	return counts
}
