package synth

import "math/bits"

// weights is a Fenwick tree (Fenwick, "A new data structure for cumulative
// frequency tables", 1994): sums of the weights of places in a row, and the
// place where a sum is reached, in O(log n). Its zero value is empty.
type weights struct {
	tree  []int64 // by place, from 1
	total int64
}

// push adds a place behind all others.
func (w *weights) push(weight int64) {
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

// add changes the weight of place i by delta.
func (w *weights) add(i int, delta int64) {
	w.total += delta
	for i++; i < len(w.tree); i += i & -i {
		w.tree[i] += delta
	}
}

// after is the sum of the weights behind place i.
func (w *weights) after(i int) int64 {
	sum := w.total
	for i++; i > 0; i &= i - 1 {
		sum -= w.tree[i]
	}
	return sum
}

// find returns the place that holds the unit at depth d from the end, counted
// from 1. d must be from 1 to total.
func (w *weights) find(d int64) int {
	rest := w.total - d + 1 // from the beginning
	i := 0
	for step := 1 << bits.Len(uint(len(w.tree))) >> 1; step > 0; step >>= 1 {
		if j := i + step; j < len(w.tree) && w.tree[j] < rest {
			i, rest = j, rest-w.tree[j]
		}
	}
	return i
}
