package profile

import (
	"math"
	"testing"
)

// Bins follow each other, keep their distance on a logarithmic axis, and hold
// whole buckets: their edges are edges of buckets.
func TestBins(t *testing.T) {
	for n := 0; n < 62*4; n++ {
		lo, hi := binEdge(n), binEdge(n+1)
		if lo > hi || lo < 1 {
			t.Fatalf("bin %d is from %d to %d", n, lo, hi)
		}
		if edge, _ := bucketEdges(bucketOf(lo)); edge != lo {
			t.Errorf("bin %d begins within a bucket, at %d", n, lo)
		}
		near := 0.025 // of a doubling, where whole numbers are far apart
		if n >= 4*6 {
			near = 0.008
		}
		if off := math.Abs(math.Log2(float64(lo)) - float64(n)/4); n >= 4*4 && off > near {
			t.Errorf("bin %d begins at %d, %v of a doubling off", n, lo, off)
		}
	}
	for i := 1; ; i++ {
		lo, hi := bucketEdges(i)
		n := binOf(lo)
		if binEdge(n) > lo || binEdge(n+1) <= lo || binEdge(n+1) < hi {
			t.Fatalf("the bucket from %d to %d is in the bin from %d to %d", lo, hi, binEdge(n), binEdge(n+1))
		}
		if hi == math.MaxInt64 {
			return
		}
	}
}

func TestPageWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 0.5: "0.5", 3.401: "3.4", 27.94: "27.9", 99.96: "100", 0.0638: "0.0638",
		12035.1: "12,035", 1e7: "10,000,000", -2.5: "-2.5", 6e-6: "6e-06", 9.999: "10", 0.99996: "1"} {
		if got := figure(v); got != want {
			t.Errorf("figure(%v) is %s; want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0 s", 6e-6: "6 µs", 0.25: "250 ms", 0.9999: "1 s", 60: "60 s", 123: "2.05 min",
		3537: "59 min", 7200: "2 h", 86400 * 3: "3 days"} {
		if got := lasting(v); got != want {
			t.Errorf("lasting(%v) is %s; want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{3.4: "3.4 requests/s", 0.1: "0.1 requests/s", 0.05: "3 requests/min", 1e-4: "0.36 requests/h", 3e-6: "0.259 requests/day", 0: "0 requests/day"} {
		if got := often(v); got != want {
			t.Errorf("often(%v) is %s; want %s", v, got, want)
		}
	}
	for v, want := range map[int64]string{0: "0", 245896: "245,896", 1_351_531: "1.4 M", 999_960_000: "1,000.0 M", 12_345_678_901: "12.35 G"} {
		if got := compact(v); got != want {
			t.Errorf("compact(%d) is %s; want %s", v, got, want)
		}
	}
	for v, want := range map[float64]int{-1: 0, 0: 0, 0.5: 12, 1: 24, 7: 24} {
		if got := len([]rune(shareBar(v))); got != want {
			t.Errorf("the bar of %v is %d long; want %d", v, got, want)
		}
	}
}
