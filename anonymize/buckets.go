package anonymize

import (
	"math"
	"slices"
)

// buckets are ranges of lengths whose edges are public: they depend on nothing
// but how many there are in an octave. Length 0 has a bucket of its own.
type buckets struct {
	edges []int64 // first length of each bucket
	small []int16 // the buckets of the lengths that most have
}

// newBuckets makes the buckets whose edges are ⌈2^(i/perOctave)⌉.
func newBuckets(perOctave int) *buckets {
	edges := []int64{0}
	for i := 0; ; i++ {
		edge := math.Ceil(math.Exp2(float64(i) / float64(perOctave)))
		if edge > math.MaxInt32 {
			break
		}
		edges = append(edges, int64(edge))
	}
	b := &buckets{edges: slices.Compact(edges)}
	small := make([]int16, 1<<12)
	for n := range small {
		small[n] = int16(b.of(int64(n)))
	}
	b.small = small
	return b
}

// of is the bucket of a length.
func (b *buckets) of(n int64) int {
	if n >= 0 && n < int64(len(b.small)) {
		return int(b.small[n])
	}
	i, found := slices.BinarySearch(b.edges, max(n, 0))
	if !found {
		i--
	}
	return i
}

// middle is the length that stands for all in a bucket, which keeps their total
// where they are spread evenly.
func (b *buckets) middle(i int) int64 {
	next := int64(math.MaxInt32) + 1
	if i+1 < len(b.edges) {
		next = b.edges[i+1]
	}
	return (b.edges[i] + next - 1) / 2
}
