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
	d := NewIDs(limit, 0)
	for range 2 { // the second time after Clear
		var next [2]uint64
		want := NewDense[[2]uint64]()
		for range 60_000 {
			k := [2]uint64{rnd.Uint64N(3), rnd.Uint64N(4000) * (1 + rnd.Uint64N(2)<<40)}
			if rnd.IntN(2) == 0 { // count up
				k = [2]uint64{next[0], next[1] + 1}
			}
			next = k
			part := uint16(rnd.IntN(8) / 6 * rnd.IntN(3)) // of some, and of what the whole is there as well
			if rnd.IntN(4) > 0 {
				part *= uint16(k[1] % 3 / 2)
			}
			n, ok := d.Part(k[0], k[1], part)
			k[0] |= uint64(part) << 32
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
		frozen := *d
		frozen.Freeze()
		for k, id := range want.ids {
			hi, lo, more := frozen.Stretch(int(id))
			if hi &^= otherPart; k != [2]uint64{hi, lo} || more < 1 {
				t.Fatalf("the key of %d is %d, %d, want %v", id, hi, lo, k)
			}
			for i := range uint64(more) {
				if n, ok := want.ids[[2]uint64{hi, lo + i}]; !ok || n != id+i {
					t.Fatalf("the stretch of %d has %d numbers, and that of key %d, %d is %d", id, more, hi, lo+i, n)
				}
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

// Keys without neighbours end at an eighth of the pages, and others at all of them: as many share a page as come in
// their order.
func TestIDsPages(t *testing.T) {
	for step, want := range map[uint64]int{1: 80 * idKeys, 8: 80 * idKeys / 8, idKeys: 10} {
		d, n := NewIDs(0, 80), 0
		for ok := true; ok; n++ {
			_, ok = d.ID(7, uint64(n)*step)
		}
		if n-1 != want || d.Len() != want {
			t.Errorf("of keys %d apart %d have a number, want %d", step, d.Len(), want)
		}
	}
}

// Numbers that are given to others between those of a page's keys, such as ends of prompts, do not end the page.
func TestIDsBetween(t *testing.T) {
	d := NewIDs(0, 0)
	for lo := range uint64(idKeys) {
		d.ID(0, lo)
		d.ID(1+lo, 0)
	}
	if want := 1 + idKeys; d.count != want {
		t.Errorf("%d pages, want %d", d.count, want)
	}
}

// Of the same blocks each prompt ends in another part.
func BenchmarkIDsOfParts(b *testing.B) {
	const blocks, sizes = 1 << 6, 1 << 12
	for b.Loop() {
		d := NewIDs(0, 0)
		for i := range blocks * sizes {
			d.Part(0, uint64(i/sizes), uint16(i%sizes))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blocks/sizes, "ns/id")
}

func BenchmarkIDs(b *testing.B) {
	ids := rand.New(rand.NewPCG(7, 7)).Perm(1 << 20)
	for b.Loop() {
		d := NewIDs(0, 0)
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
