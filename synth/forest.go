package synth

import "math/bits"

// A forest is the prefix tree of all blocks of one trace so far together with
// the LRU stack of them, both compressed.
//
// The tree. The blocks that a request adds are one run: a chain of nodes that
// hangs on a node of an older run, or is a root. A node is named by its run and
// its depth, which counts blocks from the root and begins at 1. Requests are
// numbered in order.
//
// The stack. A request touches its path from the tail to the head, as vLLM
// frees blocks, so the head is the most recent. A later request that shares a
// prefix takes that prefix away, so what is left of a request in the stack is
// always one stretch of its path: the depths above low, down to its length,
// and in the stack they lie together in this order. The stack is then a list of
// requests with weights, length−low each, and a Fenwick tree over them gives
// the distance of any node. No block has an entry of its own.
//
// Who touched a node last is found by the run that holds it: touches of a run
// begin at its top, so its last touchers are a staircase, a short list of
// depths and requests that a touch cuts from the top.
//
// A touch costs O(log n) for each stretch that it takes, and a constant for
// each run on the path. Jump pointers (Myers 1983) find the run of an ancestor
// in O(log n). The zero forest is empty.
type forest struct {
	length []int32 // by request: blocks of its prompt
	low    []int32 // by request: the depth down to which later ones touched its path
	leaf   []int32 // by request: the run of its last block, none without blocks
	stack  weights // by request: length − low

	runs  []run
	steps []step
	free  int32 // the first unused step, from 1
}

// none stands for no run, no step and no request.
const none = -1

// A run is a chain of nodes at depths start+1 to end.
type run struct {
	parent, jump int32 // runs; jump is the parent or further up
	level        int32 // runs above this one
	start, end   int32
	top          int32 // first step of its staircase
}

// A step says that depths down to `to`, below the step before it, were touched
// last by owner.
type step struct{ to, owner, next int32 }

// distance is the LRU stack distance of the node at depth i of the path of
// request r, which must own it: 1 for the block touched last.
func (f *forest) distance(r, depth int32) int64 {
	return f.stack.weightAfter(int(r)) + int64(depth-f.low[r])
}

// runAt returns the run that holds depth on the path that ends in run x.
func (f *forest) runAt(x, depth int32) int32 {
	for f.runs[x].start >= depth {
		if j := f.runs[x].jump; f.runs[j].start >= depth {
			x = j
		} else {
			x = f.runs[x].parent
		}
	}
	return x
}

// owner returns the request that last touched the node at depth in run x.
func (f *forest) owner(x, depth int32) int32 {
	s := f.runs[x].top
	for f.steps[s].to < depth {
		s = f.steps[s].next
	}
	return f.steps[s].owner
}

// ancestor is the stack distance of the node at depth on the path of r.
func (f *forest) ancestor(r, depth int32) int64 {
	if depth <= f.low[r] {
		r = f.owner(f.runAt(f.leaf[r], depth), depth)
	}
	return f.distance(r, depth)
}

// appendRequest adds the next request: its prompt shares the node at depth hit in run
// x and adds fresh blocks below it. With a hit of 0, x is none. It calls taken
// for each request that it took nodes from, with its low before that.
func (f *forest) appendRequest(x, hit, fresh int32, taken func(owner, before int32)) {
	if fresh > 0 {
		x = f.grow(x, hit, hit+fresh)
	}
	r := int32(len(f.length))
	f.length = append(f.length, hit+fresh)
	f.low = append(f.low, 0)
	f.leaf = append(f.leaf, x)
	from, count := int32(none), int32(0) // taken, not yet accounted
	account := func() {
		if count > 0 {
			f.low[from] += count
			f.stack.addWeight(int(from), -int64(count))
			taken(from, f.low[from]-count)
		}
	}
	for to := hit + fresh; x != none; to, x = f.runs[x].start, f.runs[x].parent {
		f.touch(x, to, r, func(owner, n int32) {
			if owner != from {
				account()
				from, count = owner, 0
			}
			count += n
		})
	}
	account()
	f.stack.pushWeight(int64(hit + fresh))
}

// grow adds the run of depths start+1 to end below the node at start in run
// parent.
func (f *forest) grow(parent, start, end int32) int32 {
	x := int32(len(f.runs))
	u := run{parent: parent, jump: x, start: start, end: end, top: none}
	if parent != none {
		p := &f.runs[parent]
		u.level, u.jump = p.level+1, parent
		// The jumps of p and of its jump have one length: join them.
		if j := &f.runs[p.jump]; p.level-j.level == j.level-f.runs[j.jump].level && j.level < p.level {
			u.jump = j.jump
		}
	}
	f.runs = append(f.runs, u)
	return x
}

// touch gives the nodes of run x down to depth `to` to request r and tells from
// whom, deepest last.
func (f *forest) touch(x, to, r int32, take func(owner, n int32)) {
	u := &f.runs[x]
	// Deepest first would need the list backwards; the owners differ in any
	// case, so the order of accounting does not matter.
	done := u.start
	s := u.top
	for s != none {
		st := &f.steps[s]
		upTo := min(st.to, to)
		take(st.owner, upTo-done)
		done = upTo
		if st.to > to {
			break
		}
		next := st.next
		st.next, f.free = f.free, s+1
		s = next
		if done == to {
			break
		}
	}
	own := step{to: to, owner: r, next: s}
	if f.free == 0 {
		f.steps = append(f.steps, own)
		u.top = int32(len(f.steps) - 1)
		return
	}
	u.top = f.free - 1
	f.free = f.steps[u.top].next
	f.steps[u.top] = own
}

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
