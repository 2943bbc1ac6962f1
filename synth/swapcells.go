package synth

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A point is a place with what says how alike it is to others.
type point struct {
	place int32
	at    []float64
}

const alikeOrder = 1024

// mondrian cuts points into cells of at least k, at the median of the dimension that is
// widest in relation to the whole (Mondrian: LeFevre, DeWitt and Ramakrishnan, "Mondrian
// multidimensional k-anonymity", ICDE 2006).
//
// The first dimension is the order of requests. Of more than alikeOrder points it counts as if alikeOrder of them were
// its whole, so that the cells of a long trace are as wide in the other dimensions as the cells of each of its parts:
// cut as finely in both, sizes would be exchanged with nearly equal ones, hours away.
func mondrian(points []point, k int) [][]point {
	var cells [][]point
	whole := widths(points)
	if n := len(points); n > alikeOrder {
		whole[0] *= alikeOrder / float64(n)
	}
	open := [][]point{points}
	for len(open) > 0 {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		if a, b := halved(g, k, whole); a != nil {
			open = append(open, a, b)
		} else if len(g) > 0 {
			cells = append(cells, g)
		}
	}
	return cells
}

// widths are those of all points in each dimension.
func widths(points []point) []float64 {
	if len(points) == 0 {
		return nil
	}
	lo, hi := slices.Clone(points[0].at), slices.Clone(points[0].at)
	for _, p := range points {
		for d, v := range p.at {
			lo[d], hi[d] = min(lo[d], v), max(hi[d], v)
		}
	}
	for d := range hi {
		hi[d] = max(1e-9, hi[d]-lo[d])
	}
	return hi
}

// byWidth lists the dimensions of points, the widest in relation to whole first.
func byWidth(points []point, whole []float64) []int {
	width := widths(points)
	dims := make([]int, len(width))
	for d := range dims {
		dims[d] = d
		width[d] /= whole[d]
	}
	slices.SortStableFunc(dims, func(x, y int) int { return cmp.Compare(width[y], width[x]) })
	return dims
}

func sortBy(points []point, d int) {
	slices.SortStableFunc(points, func(x, y point) int { return cmp.Compare(x.at[d], y.at[d]) })
}

// halved cuts a cell in two, or returns nil when no dimension leaves k on both sides.
func halved(g []point, k int, whole []float64) (a, b []point) {
	if len(g) < 2*k {
		return nil, nil
	}
	for _, d := range byWidth(g, whole) {
		sortBy(g, d)
		median := g[len(g)/2].at[d]
		i, _ := slices.BinarySearchFunc(g, median, func(p point, v float64) int { return cmp.Compare(p.at[d], v) })
		if i >= k && len(g)-i >= k {
			return g[:i:i], g[i:]
		}
	}
	return nil, nil
}

// A pairing is a cell of two sets of points of one size: what the first have is dealt to
// the second.
type pairing struct{ from, to []point }

// paired cuts two sets of points into pairings of at least k, so that those of each are
// in the same part of their set. Both are halved by number, each in its own order of
// the dimension in which the first is widest, in relation to the whole and by the weight
// of the dimension.
func paired(from, to []point, k int, weight []float64) []pairing {
	var cells []pairing
	whole := widths(from)
	for d := range whole {
		whole[d] /= weight[d]
	}
	open := []pairing{{from, to}}
	for len(open) > 0 {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		if len(g.from) < 2*k {
			cells = append(cells, g)
			continue
		}
		d := byWidth(g.from, whole)[0]
		sortBy(g.from, d)
		sortBy(g.to, d)
		i := len(g.from) / 2
		open = append(open, pairing{g.from[:i:i], g.to[:i:i]}, pairing{g.from[i:], g.to[i:]})
	}
	return cells
}

// grouped parts places by a key; groups of fewer than least join another, with the key
// that wider makes of theirs, or at last the first group.
func grouped[K comparable](n int, least int, keys ...func(i int32) K) [][]int32 {
	rest := make([]int32, n)
	for i := range rest {
		rest[i] = int32(i)
	}
	var groups [][]int32
	for level, key := range keys {
		index := map[K]int{}
		var level0 [][]int32
		for _, i := range rest {
			k := key(i)
			g, ok := index[k]
			if !ok {
				g = len(level0)
				index[k] = g
				level0 = append(level0, nil)
			}
			level0[g] = append(level0[g], i)
		}
		rest = nil
		for _, g := range level0 {
			if len(g) >= least || level == len(keys)-1 {
				groups = append(groups, g)
			} else {
				rest = append(rest, g...)
			}
		}
		slices.Sort(rest)
	}
	return groups
}

func permuted[T any](g []T, r *rand.Rand) []T {
	p := slices.Clone(g)
	r.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}
