package report

import (
	"math"
	"slices"

	"reprise/trace/page"
)

// lengths counts token lengths in buckets for the plots, 8 to each doubling.
// They are exact up to a dozen and then of equal width on a logarithmic axis.
// The log-linear buckets of a profile were rejected here: drawn, their counts
// would jump at every power of two, where their width does.
type lengths struct{ counts []int64 }

// lengthEdges are the first lengths of the buckets: 0, then the distinct
// 2^(k/8), rounded, to beyond the largest int32.
var lengthEdges = func() []int64 {
	edges := []int64{0}
	for k := 0; edges[len(edges)-1] <= math.MaxInt32; k++ {
		if e := int64(math.Round(math.Exp2(float64(k) / 8))); e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	return edges
}()

func (l *lengths) add(n int32) {
	b, found := slices.BinarySearch(lengthEdges, int64(n))
	if !found {
		b--
	}
	if len(l.counts) <= b {
		l.counts = append(l.counts, make([]int64, b+1-len(l.counts))...)
	}
	l.counts[b]++
}

// distinct is how many buckets hold something.
func (l *lengths) distinct() (n int) {
	for _, c := range l.counts {
		if c > 0 {
			n++
		}
	}
	return n
}

func (l *lengths) any() bool { return len(l.counts) > 0 }

// series are the bars of the buckets that hold something.
func (l *lengths) series(name string) page.Series {
	s := page.Series{Name: name}
	for b, n := range l.counts {
		if n == 0 {
			continue
		}
		s.X, s.Hi = append(s.X, float64(lengthEdges[b])), append(s.Hi, float64(lengthEdges[b+1]))
		s.Y = append(s.Y, float64(n))
	}
	return s
}
