package audit

import (
	"math"
	"math/rand/v2"
	"testing"

	"reprise/trace"
)

// Distinct blocks are counted.
func TestDistinctBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[uint64]bool{}
	private, err := trace.Private(t.TempDir(), func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		for range 500 {
			r := trace.Request{}
			for i := range rng.IntN(20) {
				b := uint64(i*10 + rng.IntN(10))
				seen[b] = true
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
	if got, err := distinctBlocks(t.Context(), private, 200); err != nil || got != len(seen) {
		t.Errorf("%d distinct blocks (%v), want %d", got, err, len(seen))
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
