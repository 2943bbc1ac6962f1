package anonymize

import (
	"bufio"
	"math"
	"math/rand/v2"
	"testing"
)

// An instant comes out anywhere in its bin, as often in each part of it, and
// turns of a session in their order, also when all are in one bin.
func TestRetimer(t *testing.T) {
	const quantum = 1000
	r := retimer{quantum: quantum, noise: bufio.NewReader(rand.NewChaCha8([32]byte{1}))}
	var parts [10]int
	for range 100_000 {
		at := r.arrival(7*quantum+3, nil)
		if at/quantum != 7 {
			t.Fatalf("an instant of bin 7 came out at %d", at)
		}
		parts[at%quantum*10/quantum]++
	}
	for i, n := range parts {
		if math.Abs(float64(n)-10_000) > 500 {
			t.Errorf("%d of 100,000 in tenth %d of the bin", n, i)
		}
	}
	session, last := int64(4), int64(-1)
	for i := range 50 {
		at := r.arrival(int64(i/25)*quantum+999, &session)
		if at <= last && at != int64(i/25)*quantum+quantum-1 || at/quantum != int64(i/25) {
			t.Fatalf("turn %d came out at %d, the one before at %d", i, at, last)
		}
		last = at
	}
}

// The edges are the same for every trace, and each length is in the bucket whose
// edges are around it.
func TestBuckets(t *testing.T) {
	b := newBuckets(2)
	for i, want := range []int64{0, 1, 2, 3, 4, 6, 8, 12, 16, 23, 32} {
		if b.edges[i] != want {
			t.Errorf("edge %d is %d, want %d", i, b.edges[i], want)
		}
	}
	for _, n := range []int64{0, 1, 2, 3, 5, 6, 11, 12, 1000, math.MaxInt32} {
		i := b.bucketOf(n)
		if b.edges[i] > n || i+1 < len(b.edges) && b.edges[i+1] <= n {
			t.Errorf("%d is in the bucket from %d", n, b.edges[i])
		}
		if m := b.middle(i); b.bucketOf(m) != i {
			t.Errorf("the middle of the bucket from %d is %d, in another one", b.edges[i], m)
		}
	}
}
