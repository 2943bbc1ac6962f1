package synth

import "math/bits"

// weights is a Fenwick tree (Fenwick, "A new data structure for cumulative
// frequency tables", 1994): sums of the weights of places in a row, and the
// place where a sum is reached, in O(log n). Its zero value is empty.
type weights struct {
	tree  []int64 // by place, from 1
	total int64
}

// pushWeight adds a place after all others.
func (w *weights) pushWeight(weight int64) {
	if len(w.tree) == 0 {
		w.tree = append(w.tree, 0)
	}
	i := len(w.tree)
	sum := weight
	for j := i - 1; j > i&(i-1); j &= j - 1 {
		sum += w.tree[j]
	}
	w.tree = append(w.tree, sum)
	w.total += weight
}

// addWeight changes the weight of place i by delta.
func (w *weights) addWeight(i int, delta int64) {
	w.total += delta
	for i++; i < len(w.tree); i += i & -i {
		w.tree[i] += delta
	}
}

// weightAfter is the sum of the weights after place i.
func (w *weights) weightAfter(i int) int64 {
	sum := w.total
	for i++; i > 0; i &= i - 1 {
		sum -= w.tree[i]
	}
	return sum
}

// placeAt returns the place that holds the unit at depth d from the end, counted
// from 1. d must be from 1 to total.
func (w *weights) placeAt(d int64) int {
	rest := w.total - d + 1 // from the beginning
	i := 0
	for step := 1 << bits.Len(uint(len(w.tree))) >> 1; step > 0; step >>= 1 {
		if j := i + step; j < len(w.tree) && w.tree[j] < rest {
			i, rest = j, rest-w.tree[j]
		}
	}
	return i
}
