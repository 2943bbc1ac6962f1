package block

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naive numbers by searching the list of all that came before.
type naive struct{ seen []uint64 }

func (n *naive) id(k uint64) uint64 {
	if i := slices.Index(n.seen, k); i >= 0 {
		return uint64(i)
	}
	n.seen = append(n.seen, k)
	return uint64(len(n.seen) - 1)
}

func TestDense(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	d, want := NewDense[uint64](), new(naive)
	for range 3000 {
		k := rnd.Uint64N(500) * rnd.Uint64N(3) << 40
		if got := d.ID(k); got != want.id(k) {
			t.Fatalf("got %d", got)
		}
		if d.Len() != len(want.seen) {
			t.Fatalf("Len is %d, want %d", d.Len(), len(want.seen))
		}
	}
}

func BenchmarkDense(b *testing.B) {
	ids := rand.New(rand.NewPCG(7, 7)).Perm(1 << 20)
	for b.Loop() {
		d := NewDense[uint64]()
		for _, id := range ids {
			d.ID(uint64(id))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/id")
}
