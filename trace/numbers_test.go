package trace

import (
	"math/rand/v2"
	"testing"
)

// Block numbers are those of a renumbering in memory, wherever they are kept: small ids, ids far
// above their number, and ids that were far once.
func TestBlockNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	b := BlockNumbers{most: 5000}
	defer b.Close()
	want := map[uint64]uint64{}
	for i := range 300_000 {
		var old uint64
		kind := r.IntN(4)
		if i < 20_000 {
			kind = 4
		}
		switch kind {
		case 4: // numbered so already, more of them than are in memory
			old = r.Uint64N(uint64(len(want)) + 1)
		case 0:
			old = r.Uint64N(6000)
		case 1:
			old = r.Uint64N(1 << 20)
		case 2:
			old = 1<<20 + r.Uint64N(8*300_000) // far at first
		default:
			old = r.Uint64() >> r.IntN(20)
		}
		id, err := b.ID(old)
		first, seen := want[old]
		if !seen {
			first = uint64(len(want))
			want[old] = first
		}
		if err != nil || id != first {
			t.Fatalf("step %d: id %d of %d, want %d: %v", i, id, old, first, err)
		}
	}
	if b.rest == nil || len(b.near.far) == 0 {
		t.Error("not all kinds of ids were tried")
	}
}
