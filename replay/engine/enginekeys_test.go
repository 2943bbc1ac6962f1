package engine

import (
	"math/rand/v2"
	"testing"
)

// The table of keys does what a map does, whatever is put in and taken out, in any order.
func TestBlockKeysAreAMap(t *testing.T) {
	for _, size := range []int{1, 16, 17, 512} {
		rng := rand.New(rand.NewPCG(uint64(size), 1))
		table, truth := newBlockKeys(size), map[uint64]int32{}
		var held []uint64
		for step := range 60_000 {
			key := uint64(rng.IntN(40))*uint64(16*size) + uint64(rng.IntN(16*size))
			if rng.IntN(3) == 0 {
				key = privateKey | uint64(rng.IntN(20))<<privateBits | uint64(rng.IntN(100))
			}
			if step == 30_000 { // long enough full, then nearly empty
				for _, k := range held {
					table.remove(k)
					delete(truth, k)
				}
			}
			if slot := table.slot(key); rng.IntN(2) == 0 {
				if _, has := truth[key]; !has {
					table.put(slot, key, int32(step+1))
					truth[key] = int32(step + 1)
					held = append(held, key)
				}
			} else {
				table.remove(key)
				delete(truth, key)
			}
			if got := table.find(key); got != truth[key] {
				t.Fatalf("size %d, step %d: key %x has block %d, want %d", size, step, key, got, truth[key])
			}
		}
		for _, key := range held {
			if got := table.find(key); got != truth[key] {
				t.Errorf("size %d: key %x has block %d, want %d", size, key, got, truth[key])
			}
		}
		if table.count != len(truth) {
			t.Errorf("size %d: %d keys, want %d", size, table.count, len(truth))
		}
	}
}
