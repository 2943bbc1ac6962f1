package fleet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The cache agrees with a plain list, over many evictions.
func TestReplicaCache(t *testing.T) {
	for _, limit := range []int{1, 2, 31, 32, 33, 500} {
		apart := uint32(1)
		if limit%2 == 1 {
			apart = lineSlots // all blocks at one place of a line
		}
		rng := rand.New(rand.NewPCG(7, uint64(limit)))
		c := newCache(limit)
		var list []uint32 // the most recent last
		for i := range 50_000 {
			block := apart * uint32(rng.ExpFloat64()*float64(limit))
			evicted, full := c.touch(block)
			at := slices.Index(list, block)
			want, wantFull := uint32(0), at < 0 && len(list) == limit
			switch {
			case at >= 0:
				list = slices.Delete(list, at, at+1)
			case wantFull:
				want, list = list[0], list[1:]
			}
			list = append(list, block)
			if evicted != want || full != wantFull {
				t.Fatalf("limit %d, touch %d: evicted %d (%v); want %d (%v)", limit, i, evicted, full, want, wantFull)
			}
		}
		if len(c.slots) > max(8*limit, 4*minSlots) || len(c.nodes) > limit+1 {
			t.Errorf("limit %d: %d slots, %d nodes", limit, len(c.slots), len(c.nodes))
		}
	}
}
