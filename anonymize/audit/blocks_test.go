package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"reprise/trace"
)

// The memory for blocks changes nothing: neither how many stand behind different
// ones, nor how many there are.
func TestBlocksInLittleMemory(t *testing.T) {
	type step struct {
		at   int
		past uint64
	}
	rng := rand.New(rand.NewPCG(1, 2))
	seen, before, want := map[uint64]bool{}, map[uint64]step{}, 0
	private, err := trace.Private(t.TempDir(), func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		for range 500 {
			r := trace.Request{}
			past := uint64(0)
			for i := range rng.IntN(20) {
				b := uint64(i*10 + rng.IntN(10))
				if was, ok := before[b]; ok && was != (step{i, past}) {
					want++
				}
				before[b], past, seen[b] = step{i, past}, b+1, true
				r.Blocks = append(r.Blocks, b)
			}
			if _, err := w.Write([]trace.Request{r}); err != nil {
				return trace.Meta{}, err
			}
		}
		return trace.Meta{Tier: "partner"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	for _, limit := range []uint64{8, 64, 800, blockBytes} {
		if got, err := unchained(t.Context(), private, 200, limit); err != nil || got != want {
			t.Errorf("in %d bytes %d stand behind different ones (%v), want %d", limit, got, err, want)
		}
	}
	if got, err := distinctBlocks(t.Context(), private, 200); err != nil || got != len(seen) {
		t.Errorf("%d distinct blocks (%v), want %d", got, err, len(seen))
	}
}

// The first block counts as every other does.
func TestUnchainedFirstBlock(t *testing.T) {
	private, err := trace.Private(t.TempDir(), func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write([]trace.Request{{Blocks: []uint64{0}}, {Blocks: []uint64{1, 0}}, {Blocks: []uint64{0, 1}}})
		return trace.Meta{Tier: "partner"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	if got, err := unchained(t.Context(), private, 2, blockBytes); err != nil || got != 3 {
		t.Errorf("%d blocks stand after different ones (%v), want 3", got, err)
	}
}

func TestCounts(t *testing.T) {
	next := uint64(0)
	for i, c := range []struct {
		id uint64
		ok bool
	}{{0, true}, {0, true}, {1, true}, {3, false}, {2, true}, {4, true}, {math.MaxUint64, false}, {5, true}, {math.MaxUint64, true}} {
		if counts(&next, c.id) != c.ok {
			t.Errorf("id %d, the %d-th, counts up: %v", c.id, i, !c.ok)
		}
	}
}
