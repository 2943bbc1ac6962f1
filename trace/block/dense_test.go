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

// IDs numbers as Dense does, and stops at its limit without forgetting.
func TestIDs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	const limit = 5000
	d := NewIDs(limit)
	for range 2 { // the second time after Clear
		want := NewDense[[2]uint64]()
		for range 60_000 {
			k := [2]uint64{rnd.Uint64N(3), rnd.Uint64N(4000) * (1 + rnd.Uint64N(2)<<40)}
			n, ok := d.ID(k[0], k[1])
			_, known := want.ids[k]
			if !known && want.Len() == limit {
				if ok {
					t.Fatalf("key %v beyond the limit got the number %d", k, n)
				}
				continue
			}
			if id := want.ID(k); !ok || uint64(n) != id {
				t.Fatalf("key %v got %d, %v, want %d", k, n, ok, id)
			}
		}
		for k, id := range want.ids {
			if hi, lo := d.Key(int(id)); k != [2]uint64{hi, lo} {
				t.Fatalf("the key of %d is %d, %d, want %v", id, hi, lo, k)
			}
		}
		if d.Len() != limit || want.Len() != limit {
			t.Errorf("%d and %d keys, want %d", d.Len(), want.Len(), limit)
		}
		d.Clear()
	}
	if n, ok := d.ID(0, 1); n != 0 || !ok {
		t.Errorf("the first key after Clear got %d, %v", n, ok)
	}
}

func BenchmarkIDs(b *testing.B) {
	ids := rand.New(rand.NewPCG(7, 7)).Perm(1 << 20)
	for b.Loop() {
		d := NewIDs(0)
		for _, id := range ids {
			d.ID(0, uint64(id))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/id")
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
