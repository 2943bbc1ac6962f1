package doc

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// wave is n points of noise on a sine, with ascending X.
func wave(rng *rand.Rand, n int) (x, y []float64) {
	at := 0.0
	for range n {
		at += rng.ExpFloat64()
		x = append(x, at)
		y = append(y, math.Sin(at/50)+0.3*rng.NormFloat64())
	}
	return x, y
}

func TestLTTBProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n, limit := rng.IntN(3000), 3+rng.IntN(300)
		x, y := wave(rng, n)
		kept := lttb(x, y, limit)
		if len(kept) != min(n, limit) {
			t.Fatalf("n=%d limit=%d: kept %d", n, limit, len(kept))
		}
		if n == 0 {
			continue
		}
		if kept[0] != 0 || kept[len(kept)-1] != n-1 {
			t.Fatalf("n=%d limit=%d: ends %d and %d", n, limit, kept[0], kept[len(kept)-1])
		}
		if !slices.IsSorted(kept) || len(slices.Compact(slices.Clone(kept))) != len(kept) {
			t.Fatalf("n=%d limit=%d: indices do not ascend strictly", n, limit)
		}
	}
}

// The oracle follows the paper's words with slices of points: split, then for
// each bucket try every candidate against the mean of the next bucket.
func TestLTTBAgainstOracle(t *testing.T) {
	type point struct{ x, y float64 }
	oracle := func(p []point, limit int) []point {
		buckets := [][]point{p[:1]}
		for b := range limit - 2 {
			from, to := b*(len(p)-2)/(limit-2)+1, (b+1)*(len(p)-2)/(limit-2)+1
			buckets = append(buckets, p[from:to])
		}
		buckets = append(buckets, p[len(p)-1:])
		out := []point{p[0]}
		for b := 1; b < limit-1; b++ {
			var mean point
			for _, q := range buckets[b+1] {
				mean.x += q.x / float64(len(buckets[b+1]))
				mean.y += q.y / float64(len(buckets[b+1]))
			}
			a := out[len(out)-1]
			area := func(q point) float64 { // shoelace
				return math.Abs(a.x*(q.y-mean.y) + q.x*(mean.y-a.y) + mean.x*(a.y-q.y))
			}
			out = append(out, slices.MaxFunc(buckets[b], func(q, r point) int {
				if area(q) < area(r) {
					return -1
				}
				return 1
			}))
		}
		return append(out, p[len(p)-1])
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		limit := 3 + rng.IntN(50)
		x, y := wave(rng, limit+1+rng.IntN(500))
		var p []point
		for i := range x {
			p = append(p, point{x[i], y[i]})
		}
		want := oracle(p, limit)
		for i, k := range lttb(x, y, limit) {
			if x[k] != want[i].x || y[k] != want[i].y {
				t.Fatalf("n=%d limit=%d: point %d is (%v, %v), the oracle keeps %v", len(x), limit, i, x[k], y[k], want[i])
			}
		}
	}
}

func TestLTTBKeepsPeak(t *testing.T) {
	x, y := make([]float64, 100_000), make([]float64, 100_000)
	for i := range x {
		x[i] = float64(i)
	}
	y[70_001] = 5
	if !slices.Contains(lttb(x, y, maxPoints), 70_001) {
		t.Error("the one peak is lost")
	}
}
