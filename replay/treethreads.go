package replay

import "slices"

// A threadFinder numbers the threads of a tree: its conversations, of which the root is
// thread 0, and sub-agents and side calls are the others. The workload says only which
// rows wait for which, so a row goes on with the thread of a row before it
//
//   - that it waits for, or from which the thread of one that it waits for was forked (as
//     where agents join),
//   - that is the last of its thread so far, and
//   - whose prompt its own begins with: by all full blocks, or, where there are none, by
//     being as long as that prompt and its reply. Of several, the longest prompt counts.
//
// If none is, it goes on with the thread of a row that only it waits for, or, where it
// joins several, with the lowest of their threads. Else it begins a thread of its own. A
// row that waits for none belongs to thread 0, unless the workload says that it is the
// first turn of another conversation.
type threadFinder struct {
	size  int // tokens in a block
	tails []threadTail
}

// A threadTail is the last row of a thread so far.
type threadTail struct {
	row    int32 // index in the tree
	from   int32 // row that the thread was forked from; -1 is none
	turns  int32
	blocks []uint64 // the full ones of its prompt
	tokens int64    // of its prompt, and with the reply
	whole  int64
}

// add takes the next row of a tree, and says which thread it belongs to and which turn
// of it it is.
func (f *threadFinder) add(rows []treeRow, i int, blocks []uint64, first bool) (thread, turn int32) {
	r := &rows[i]
	at := f.place(rows, r, blocks, first && i > 0)
	if at < 0 {
		at = len(f.tails)
		f.tails = append(f.tails, threadTail{from: -1})
		if len(r.parents) > 0 {
			f.tails[at].from = r.parents[0]
		}
	}
	t := &f.tails[at]
	t.row, t.blocks, t.tokens, t.whole = int32(i), blocks, int64(r.input), int64(r.input)+int64(r.output)
	t.turns++
	return int32(at), t.turns - 1
}

// place is the thread that a row goes on with, or -1.
func (f *threadFinder) place(rows []treeRow, r *treeRow, blocks []uint64, anew bool) int {
	if len(r.parents) == 0 {
		if anew || len(f.tails) == 0 {
			return -1
		}
		return 0
	}
	var open []int // threads that end with a row that it may go on from
	for _, p := range r.parents {
		for ; p >= 0; p = f.tails[rows[p].thread].from {
			if k := int(rows[p].thread); f.tails[k].row == p && !slices.Contains(open, k) {
				open = append(open, k)
			}
		}
	}
	slices.Sort(open)
	best := -1
	for _, k := range open {
		if t := &f.tails[k]; t.precedes(r, blocks, f.size) && (best < 0 || t.tokens > f.tails[best].tokens) {
			best = k
		}
	}
	if best >= 0 {
		return best
	}
	for _, k := range open {
		p := f.tails[k].row
		if slices.Contains(r.parents, p) && (len(rows[p].children) == 1 || len(r.parents) > 1) {
			return k
		}
	}
	return -1
}

// precedes says whether a row's prompt begins with that of the thread's last row.
func (t *threadTail) precedes(r *treeRow, blocks []uint64, size int) bool {
	if size == 0 || len(t.blocks) == 0 {
		return int64(r.input) >= t.whole
	}
	return len(blocks) >= len(t.blocks) && slices.Equal(blocks[:len(t.blocks)], t.blocks)
}
