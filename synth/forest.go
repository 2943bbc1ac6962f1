package synth

// A forest is the prefix tree of all blocks of one trace so far, compressed. The blocks
// that a request adds are one run: a chain of nodes that hangs on a node of an older
// run, or is a root. A node is named by its run and its depth, which counts blocks from
// the root and begins at 1. Requests are numbered in order.
//
// Who touched a node last is found by the run that holds it: touches of a run
// begin at its top, so its last touchers are a staircase, a short list of
// depths and requests that a touch cuts from the top. A touch costs a constant for each
// run on the path and each step that it takes. The zero forest is empty.
type forest struct {
	length []int32 // by request: blocks of its prompt
	leaf   []int32 // by request: the run of its last block, none without blocks

	runs  []run
	steps []step
	free  int32 // the first unused step, from 1
}

// none stands for no run, no step, no request and no place.
const none = -1

// A run is a chain of nodes at depths start+1 to end.
type run struct {
	parent     int32 // run
	start, end int32
	top        int32 // first step of its staircase
}

// A step says that depths down to `to`, below the step before it, were touched
// last by owner.
type step struct{ to, owner, next int32 }

// runAt returns the run that holds depth on the path that ends in run x.
func (f *forest) runAt(x, depth int32) int32 {
	for f.runs[x].start >= depth {
		x = f.runs[x].parent
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

// appendRequest adds the next request: its prompt shares the node at depth hit in run
// x and adds fresh blocks below it. With a hit of 0, x is none. It calls taken, which
// may be nil, for each request that it took nodes from, with their number.
func (f *forest) appendRequest(x, hit, fresh int32, taken func(owner, n int32)) {
	if fresh > 0 {
		f.runs = append(f.runs, run{parent: x, start: hit, end: hit + fresh, top: none})
		x = int32(len(f.runs)) - 1
	}
	r := int32(len(f.length))
	f.length = append(f.length, hit+fresh)
	f.leaf = append(f.leaf, x)
	for to := hit + fresh; x != none; to, x = f.runs[x].start, f.runs[x].parent {
		f.touch(x, to, r, taken)
	}
}

// touch gives the nodes of run x down to depth `to` to request r.
func (f *forest) touch(x, to, r int32, taken func(owner, n int32)) {
	u := &f.runs[x]
	done := u.start
	s := u.top
	for s != none {
		st := &f.steps[s]
		upTo := min(st.to, to)
		if taken != nil {
			taken(st.owner, upTo-done)
		}
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
