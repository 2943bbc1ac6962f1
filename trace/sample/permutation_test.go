package sample

import (
	"math/rand/v2"
	"testing"
)

// checkBijection holds that p maps [0, n) onto itself, value by value.
func checkBijection(t *testing.T, key, n uint64) {
	t.Helper()
	p := NewPermutation(key, n)
	seen := make([]bool, n)
	for x := range n {
		y := p.At(x)
		if y >= n || seen[y] {
			t.Fatalf("key %d, n %d: %d goes to %d, which is out of range or taken", key, n, x, y)
		}
		seen[y] = true
	}
}

func TestPermutationIsBijection(t *testing.T) {
	for n := range uint64(300) {
		for key := range uint64(20) {
			checkBijection(t, key, n)
		}
	}
	for _, n := range []uint64{1023, 1024, 1025, 4096, 4097, 65535, 65536, 65537, 1 << 20} {
		checkBijection(t, 7, n)
	}
}

// Large domains cannot be walked: a sample must stay inside and be distinct.
func TestPermutationLargeDomains(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []uint64{1 << 40, 7294 * 7294 * 7294, 10483 * 10483 * 10483, 1<<63 - 1, 1 << 63} {
		p := NewPermutation(rng.Uint64(), n)
		from, to := map[uint64]bool{}, map[uint64]bool{}
		for range 20_000 {
			x := rng.Uint64N(n)
			y := p.At(x)
			if y >= n {
				t.Fatalf("n %d: %d goes to %d", n, x, y)
			}
			from[x], to[y] = true, true
		}
		if len(from) != len(to) {
			t.Errorf("n %d: %d values have %d images", n, len(from), len(to))
		}
	}
}

// Over many keys every value must go everywhere about equally often, down to
// the smallest domains. The keys are fixed, so this holds or fails for good;
// the limit is five standard deviations of a fair draw.
func TestPermutationSpreads(t *testing.T) {
	const keys = 20_000
	for _, n := range []uint64{2, 3, 4, 5, 7, 10, 16, 17} {
		counts := make([]float64, n*n)
		for key := range uint64(keys) {
			p := NewPermutation(Key(key, 1), n)
			for x := range n {
				counts[x*n+p.At(x)]++
			}
		}
		want := float64(keys) / float64(n)
		variance := want * (1 - 1/float64(n))
		for i, c := range counts {
			if d := c - want; d*d > 25*variance {
				t.Errorf("n %d: %d goes to %d for %.0f of %d keys, want about %.0f", n, uint64(i)/n, uint64(i)%n, c, keys, want)
			}
		}
	}
}

// Neighbours must not stay neighbours, nor two seeds agree, beyond chance:
// each is one in n, so about one in all.
func TestPermutationHidesOrder(t *testing.T) {
	const n = 10_000
	p, q := NewPermutation(1, n), NewPermutation(2, n)
	neighbours, agree := 0, 0
	for x := range uint64(n - 1) {
		if p.At(x)+1 == p.At(x+1) {
			neighbours++
		}
		if p.At(x) == q.At(x) {
			agree++
		}
	}
	if neighbours > 6 || agree > 6 {
		t.Errorf("%d neighbours stay neighbours and %d values agree between seeds, want about 1 of %d", neighbours, agree, n)
	}
}

func TestStreamsOfASeedDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(1000) {
		for stream := range uint64(6) {
			seen[Key(seed, stream+1)] = true
		}
	}
	if len(seen) != 6000 {
		t.Errorf("%d different keys, want 6000", len(seen))
	}
}
