package synth

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// neighbourTrace is a small trace in which users share prompts, have many
// requests, and often the same lengths and pauses.
func neighbourTrace(seed uint64, rng *rand.Rand) ([]trace.Request, trace.Meta) {
	k := talk{block: []int{1, 4, 16}[rng.IntN(3)], models: 1 + rng.IntN(2), sessions: rng.IntN(2) == 0, users: 1 + rng.IntN(9), failed: rng.IntN(3) == 0}
	rows := k.rows(seed, 60+rng.IntN(200))
	for i := range rows {
		if rng.IntN(3) > 0 {
			rows[i].OutputTokens = int32(rng.IntN(3))
		}
		if rows[i].ThinkNS != nil && rng.IntN(4) > 0 {
			rows[i].ThinkNS = trace.Ptr(int64(5e9))
		}
		if rng.IntN(20) == 0 {
			rows[i].User = nil
		}
	}
	meta := declared(trace.Meta{BlockSize: k.block}, rows)
	if k.sessions {
		meta.Sessions = sessionsOfSource
	}
	if rng.IntN(4) == 0 {
		meta.BlockSize = 0
		for i := range rows {
			rows[i].Blocks = nil
		}
	}
	return rows, meta
}

// collected reads rows with one source of samples for each unit, so that those of
// the others are the same when a unit is taken away.
func collected(t *testing.T, rows []trace.Request, meta trace.Meta, o *PublicOptions) *collector {
	t.Helper()
	key, err := unitKey(o.Unit)
	if err != nil {
		t.Fatal(err)
	}
	draws := map[int64]*dp.Noise{}
	c := &collector{key: key, size: meta.BlockSize, sessions: meta.Sessions != "" && o.Unit != UnitRequest, alone: o.Unit == UnitRequest,
		end: int64(meta.Capture.Length()), bound: o.Contribution, noise: func(key int64) *dp.Noise {
			if draws[key] == nil {
				var seed [32]byte
				binary.LittleEndian.PutUint64(seed[:], uint64(key))
				draws[key] = dp.NewNoiseFrom(rand.NewChaCha8(seed))
			}
			return draws[key]
		}}
	if err := c.read(t.Context(), cloned(rows), nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// without leaves out the rows of one unit.
func without(rows []trace.Request, unit string, key int64) []trace.Request {
	of, _ := unitKey(unit)
	var out []trace.Request
	for i := range rows {
		if of(&rows[i], int64(i)) != key {
			out = append(out, rows[i])
		}
	}
	return out
}

// The property on which all privacy rests: take any unit away, and no histogram
// changes by more than is claimed; nor does any cell of another's request.
func TestNeighboursWithinSensitivity(t *testing.T) {
	reached := map[string]float64{} // how much of the claimed L2 occurred
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows, meta := neighbourTrace(seed, rng)
		o := PublicOptions{Unit: []string{UnitUser, UnitSession, UnitRequest, UnitUser}[seed%4], MaxInput: 64, MaxOutput: 64,
			Contribution: []dp.Contribution{dp.DefaultContribution, {Records: 5, PerCell: 1}}[rng.IntN(2)]}
		if err := o.defaults(meta); err != nil {
			t.Fatal(err)
		}
		if o.Unit == UnitSession && meta.Sessions == "" {
			o.Unit = UnitUser
		}
		whole := collected(t, rows, meta, &o)
		l := newLayout(&o, meta, whole.sessions)
		blocks, count := countNodes(whole.units)
		l.nodes = namedNodes(whole.units, slices.DeleteFunc(blocks, func(uint64) bool { return rng.IntN(3) > 0 }))
		ms, which := l.measurements()
		var before [histograms][]int64
		for _, h := range which {
			before[h], _ = l.count(h, whole.units)
		}
		for key := range whole.index {
			if o.Unit == UnitRequest && rng.IntN(10) > 0 {
				continue
			}
			part := collected(t, without(rows, o.Unit, key), meta, &o)
			name := fmt.Sprintf("seed %d without %s %d", seed, o.Unit, key)
			for i, h := range which {
				after, _ := l.count(h, part.units)
				l1, l2 := int64(0), int64(0)
				for at, n := range before[h] {
					d := n - after[at]
					if d < 0 {
						t.Fatalf("%s: cell %d of %s grows by %d, so another's request moved", name, at, ms[i].Name, -d)
					}
					l1, l2 = l1+d, l2+d*d
				}
				if l1 > ms[i].L1 || l2 > ms[i].L2Squared {
					t.Fatalf("%s: %s changes by %d, squared %d; claimed are %d and %d", name, ms[i].Name, l1, l2, ms[i].L1, ms[i].L2Squared)
				}
				reached[ms[i].Name] = max(reached[ms[i].Name], float64(l2)/float64(ms[i].L2Squared))
			}
			_, fewer := countNodes(part.units)
			changed := 0
			for b, n := range count {
				if d := n - fewer[b]; d != 0 {
					if changed++; d != 1 {
						t.Fatalf("%s: node %d changes by %d", name, b, d)
					}
				}
			}
			if changed > nodesPerUnit {
				t.Fatalf("%s: it is in %d nodes, claimed are %d", name, changed, nodesPerUnit)
			}
		}
	}
	// A bound that nothing comes near would not be tested.
	for name, x := range reached {
		if x < 0.6 {
			t.Errorf("%s: at most %.0f %% of the claimed squares occurred", name, 100*x)
		}
	}
	if len(reached) != histograms {
		t.Errorf("only %d histograms were measured", len(reached))
	}
}
