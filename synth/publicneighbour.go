package synth

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// A Shift is how far a statistic of a public model moves, before its noise, when one
// unit comes or goes, and how far it may: what the noise was made for.
type Shift struct {
	Statistic        string `json:"statistic"`
	L1               int64  `json:"l1"`
	L2Squared        int64  `json:"l2_squared"`
	ClaimedL1        int64  `json:"claimed_l1"`
	ClaimedL2Squared int64  `json:"claimed_l2_squared"`
}

// Beyond reports whether it moves further than is claimed.
func (s Shift) Beyond() bool { return s.L1 > s.ClaimedL1 || s.L2Squared > s.ClaimedL2Squared }

// A Neighbour is a trace, or the same without one unit.
type Neighbour struct {
	Rows trace.Reader[trace.Request]
	Meta trace.Meta
}

// Shifts compares what [FitPublic] would measure of two traces that differ by one
// unit: each histogram before its noise, how many units carry each prefix, and, in
// differs, what the model says beside noisy counts and must not depend on anybody.
// Requests of a unit are drawn by the same random numbers on both sides. No prefix
// is public here, since ids of blocks are numbers of their trace: the shift of
// prefixes is the least that any numbering allows. Nothing is released.
func Shifts(ctx context.Context, whole, part Neighbour, o PublicOptions) (shifts []Shift, differs []string, err error) {
	var sides [2]*publicFit
	var says [2]map[string]any
	for i, n := range []Neighbour{whole, part} {
		o := o
		n.Meta.Captures = whole.Meta.Captures // each import draws one
		if err := o.defaults(n.Meta); err != nil {
			return nil, nil, err
		}
		seen := map[int64]uint64{}
		c, err := o.collect(ctx, n.Rows, n.Meta, func(key int64) *dp.Noise {
			var seed [32]byte // by how many requests of the unit there were, whatever its number
			seed[0], seed[1], seed[2], seed[3] = byte(seen[key]), byte(seen[key]>>8), byte(seen[key]>>16), byte(seen[key]>>24)
			seen[key]++
			return dp.NewNoiseFrom(rand.NewChaCha8(seed))
		})
		if err != nil {
			return nil, nil, err
		}
		sides[i] = &publicFit{options: o, layout: newLayout(&o, n.Meta, c.sessions), source: c}
		if says[i], err = sides[i].says(n.Meta); err != nil {
			return nil, nil, err
		}
	}
	keys := maps.Clone(says[0])
	maps.Copy(keys, says[1])
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(says[0][k], says[1][k]) {
			differs = append(differs, k)
		}
	}
	ms, which := sides[0].measurements()
	for i, h := range which {
		a, _ := sides[0].count(h, sides[0].source.units)
		b, _ := sides[1].count(h, sides[1].source.units)
		s := Shift{Statistic: ms[i].Name, ClaimedL1: ms[i].L1, ClaimedL2Squared: ms[i].L2Squared}
		s.Add(a, b)
		shifts = append(shifts, s)
	}
	if whole.Meta.BlockSize > 0 {
		s := Shift{Statistic: "units by prefix", ClaimedL1: nodesPerUnit, ClaimedL2Squared: nodesPerUnit}
		var counts [2][]int64
		for i, f := range sides {
			_, count := countNodes(f.source.units)
			counts[i] = slices.Sorted(maps.Values(count))
			slices.Reverse(counts[i])
		}
		s.Add(counts[0], counts[1])
		shifts = append(shifts, s)
	}
	return shifts, differs, nil
}

// Add takes the cells of both sides.
func (s *Shift) Add(a, b []int64) {
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

// says is what a model says of itself beside noisy counts: its metadata and the
// statement of its release, with no count in it.
func (f *publicFit) says(meta trace.Meta) (map[string]any, error) {
	budget := f.options.Budget
	if f.size > 0 {
		var err error
		if f.nodes.selection, err = dp.NewSelection(dp.Budget{Epsilon: budget.Epsilon * selectionShare, Delta: budget.Delta / 2}, nodesPerUnit); err != nil {
			return nil, err
		}
	}
	ms, which := f.measurements()
	var err error
	if f.plan, err = dp.NewPlan(budget, ms); err != nil {
		return nil, err
	}
	for i, h := range which {
		f.noisy[h] = &noisy{f.plan.Noise[i], make([]int64, f.cells(h))}
	}
	b, err := json.Marshal(f.release(PublicErrors{}))
	if err != nil {
		return nil, err
	}
	says := map[string]any{}
	if err := json.Unmarshal(b, &says); err != nil {
		return nil, err
	}
	f.meta(meta).Each(func(k, v string) { says["metadata "+k] = v })
	return says, nil
}
