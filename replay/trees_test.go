package replay

import (
	"math/rand/v2"
	"testing"

	"reprise/replay/result"
)

// Played apart, no two plays of trees share a block, and within a play rows share what they
// share in the workload.
func TestPlaysApart(t *testing.T) {
	rows, treeOf := agents(rand.New(rand.NewPCG(4, 1)), 5)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range rows {
		rows[i].InputTokens = 64
		rows[i].Blocks = []uint64{0, rng.Uint64N(3), uint64(10*treeOf[i]) + rng.Uint64N(4), 999}
		rows[i].OutputBlocks = []uint64{rng.Uint64N(1000)}
	}
	trees := treesOf(t, rows, 16)
	o := Options{Sessions: &SessionLoad{Live: 1, Trees: trees, Recycle: result.RecycleApart}, Speed: 1}
	playOf := map[uint64]int64{}
	for n := range 3 * trees.Len() {
		tree, err := o.loadTree(n)
		if err != nil {
			t.Fatal(err)
		}
		recorded := map[uint64]uint64{}
		for i := range tree.rows {
			row, err := trees.row(tree, i, result.RecycleApart)
			if err != nil {
				t.Fatal(err)
			}
			_, of := trees.firstID(n)
			source := &rows[of[i]]
			for k, id := range append(row.Blocks, row.OutputBlocks...) {
				if play, seen := playOf[id]; seen && play != n {
					t.Fatalf("plays %d and %d share block %d", play, n, id)
				}
				playOf[id] = n
				want := append(source.Blocks, source.OutputBlocks...)[k]
				if old, seen := recorded[id]; seen && old != want {
					t.Fatalf("play %d: block %d stands for %d and %d", n, id, old, want)
				}
				recorded[id] = want
			}
		}
	}
	if trees.MaxPlays(15*trees.Blocks(), result.RecycleApart) != 3 || trees.MaxPlays(15*trees.Blocks(), result.RecycleSalt) != 15 {
		t.Errorf("with blocks for 15 plays of trees: %d plays of each", trees.MaxPlays(15*trees.Blocks(), result.RecycleApart))
	}
}
