package trace_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reprise/trace"
)

// The parts that are dealt of a part are its rows, each once, with those that a session or a
// parent connects together, and in turns by the order of first rows.
func TestDeal(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var rows []trace.Member
		for i := range int64(200) {
			var m trace.Member
			if rng.IntN(2) == 0 {
				m.Session = trace.Ptr(rng.Int64N(40))
			}
			if i > 0 && rng.IntN(4) == 0 {
				m.Parents = []int64{rng.Int64N(i)}
			}
			rows = append(rows, m)
		}
		read := func() trace.Reader[trace.Member] {
			own := slices.Clone(rows)
			for i := range own {
				own[i].Parents = slices.Clone(own[i].Parents) // which are renumbered in place
			}
			return &trace.SliceReader[trace.Member]{Rows: own}
		}
		part := trace.Whole(200)
		if seed%3 == 1 {
			part = part.Head(120)
		}
		if seed%3 == 2 { // dealt of what was dealt before
			var err error
			if part, _, err = part.Deal(read(), func(g int64) bool { return g%3 != 1 }); err != nil {
				t.Fatal(err)
			}
		}
		// By brute force: rows are joined until nothing changes.
		group := map[int64]int64{}
		for i := range part.Len() {
			group[part.Row(i)] = i
		}
		for changed := true; changed; {
			changed = false
			for a := range group {
				for b := range group {
					together := rows[a].Session != nil && rows[b].Session != nil && *rows[a].Session == *rows[b].Session || slices.Contains(rows[a].Parents, b)
					if together && group[a] != group[b] {
						least := min(group[a], group[b])
						group[a], group[b], changed = least, least, true
					}
				}
			}
		}
		order := []int64{}
		for i := range part.Len() {
			if g := group[part.Row(i)]; !slices.Contains(order, g) {
				order = append(order, g)
			}
		}
		of := int64(1 + seed%7)
		seen := map[int64]bool{}
		for index := range of {
			own, groups, err := part.Deal(read(), func(g int64) bool { return g%of == index })
			if err != nil || groups != int64(len(order)) {
				t.Fatalf("%d groups, want %d (%v)", groups, len(order), err)
			}
			for i := range own.Len() {
				row := own.Row(i)
				if seen[row] || int64(slices.Index(order, group[row]))%of != index {
					t.Fatalf("seed %d: row %d is dealt to %d of %d", seed, row, index, of)
				}
				seen[row] = true
			}
		}
		if int64(len(seen)) != part.Len() {
			t.Fatalf("seed %d: %d of %d rows are dealt", seed, len(seen), part.Len())
		}
	}
}
