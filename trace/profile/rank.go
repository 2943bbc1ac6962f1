package profile

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
)

// exactRanks is up to how many rows the rank correlation is exact. Each row
// takes 8 bytes until then.
const exactRanks = 1 << 22

// lengthPair is the input and the output length of a request, or the buckets of
// a histogram that they fall into.
type lengthPair struct{ in, out int32 }

// Correlation is Spearman's rank correlation: Pearson's of the ranks, where
// equal values share their mean rank.
type Correlation struct {
	Rho *float64 `json:"rho"` // null when either side is constant
	// Method is exact, or cells when there were more rows than memory is spent
	// on: lengths in one log-linear bucket then count as equal.
	Method string `json:"method"`
}

// ranks gathers pairs of lengths for their rank correlation.
type ranks struct {
	limit int
	pairs []lengthPair
	cells map[lengthPair]int64 // in place of pairs, above limit
}

func (k *ranks) add(in, out int32) {
	p := lengthPair{max(in, 0), max(out, 0)}
	switch {
	case k.cells != nil:
		k.cells[cell(p)]++
	case len(k.pairs) < k.limit:
		k.pairs = append(k.pairs, p)
	default:
		k.cells = map[lengthPair]int64{cell(p): 1}
		for _, p := range k.pairs {
			k.cells[cell(p)]++
		}
		k.pairs = nil
	}
}

func cell(p lengthPair) lengthPair {
	return lengthPair{int32(bucketOf(int64(p.in))), int32(bucketOf(int64(p.out)))}
}

func (k *ranks) correlation() Correlation {
	if k.cells == nil {
		return Correlation{spearman(func(yield func(lengthPair, int64) bool) {
			for _, p := range k.pairs {
				if !yield(p, 1) {
					return
				}
			}
		}), "exact"}
	}
	// In a fixed order, so that sums of floats come out the same each time.
	sorted := slices.SortedFunc(maps.Keys(k.cells), func(a, b lengthPair) int {
		return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out))
	})
	return Correlation{spearman(func(yield func(lengthPair, int64) bool) {
		for _, p := range sorted {
			if !yield(p, k.cells[p]) {
				return
			}
		}
	}), "cells"}
}

// spearman computes the correlation over pairs and how often each came.
func spearman(pairs iter.Seq2[lengthPair, int64]) *float64 {
	ins, outs := make(map[int32]int64), make(map[int32]int64)
	var n int64
	for p, count := range pairs {
		ins[p.in] += count
		outs[p.out] += count
		n += count
	}
	in, varIn := centred(ins, n)
	out, varOut := centred(outs, n)
	if varIn == 0 || varOut == 0 {
		return nil
	}
	var cov float64
	for p, count := range pairs {
		cov += in[p.in] * out[p.out] * float64(count)
	}
	return new(cov / math.Sqrt(varIn) / math.Sqrt(varOut))
}

// centred returns each value's mean rank less the mean of all n ranks, and the
// sum of their squares over all values.
func centred(counts map[int32]int64, n int64) (map[int32]float64, float64) {
	rank := make(map[int32]float64, len(counts))
	var before int64
	var squares float64
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		c := counts[v]
		// Ranks before+1 to before+c have the mean before+(c+1)/2; all, (n+1)/2.
		r := float64(2*before+c-n) / 2
		rank[v] = r
		squares += r * r * float64(c)
		before += c
	}
	return rank, squares
}
