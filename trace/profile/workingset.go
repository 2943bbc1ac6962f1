package profile

import "reprise/trace"

// workingWindows are the widths of the windows that distinct blocks are counted
// in, in ns.
var workingWindows = [...]int64{60 * second, 600 * second, 3600 * second}

// A WorkingSet is how many distinct blocks the prompts of a window of time carry
// (Denning: The working set model for program behavior, 1968): what a cache must
// hold to miss none of what comes again within the window. The windows follow
// each other from the first arrival on; only whole ones count, empty ones too.
type WorkingSet struct {
	WindowS float64         `json:"window_s"`
	Windows int64           `json:"windows"`
	Mean    *WorkingSetSize `json:"mean"` // null without a whole window
	Max     *WorkingSetSize `json:"max"`
}

// A WorkingSetSize is a number of blocks and the memory that they take: that of
// a whole block for a partial one too.
type WorkingSetSize struct {
	Blocks float64  `json:"blocks"`
	Tokens float64  `json:"tokens"`
	GiB    *float64 `json:"gib"` // null where the memory of a token is unknown
}

// WorkingSets are the working sets of windows of 1, 10 and 60 minutes, and all
// blocks of prompts.
type WorkingSets struct {
	Windows []WorkingSet   `json:"windows"`
	Total   WorkingSetSize `json:"total"`
}

// A workingSet counts the distinct blocks of one window after the other. It
// needs to know of each block when it was last carried, and nothing more. Of blocks of which
// that is not kept, the set of those in the window takes a bit for each, and a list of up to
// listedBlocks of them, by which it is emptied.
type workingSet struct {
	width  int64
	window int64 // the one that is being counted
	from   int64 // where it begins, since the first arrival
	blocks int64 // distinct ones in it
	sum    int64 // over the windows before it
	max    int64

	later  bitset
	listed []uint32
	more   bool // than are listed
}

const listedBlocks = 1 << 20

// arrive moves the clock to the time since the first arrival.
func (w *workingSet) arrive(elapsed int64) {
	if elapsed-w.from < w.width {
		return
	}
	w.sum += w.blocks
	w.max = max(w.max, w.blocks)
	w.window, w.blocks = elapsed/w.width, 0
	w.from = w.window * w.width
	if w.more {
		clear(w.later)
	}
	for _, n := range w.listed {
		w.later[n/64] = 0
	}
	w.listed, w.more = w.listed[:0], false
}

// workingSets are all of them.
type workingSets struct {
	sets [len(workingWindows)]workingSet
}

func (w *workingSets) arrive(elapsed int64) {
	for i := range w.sets {
		w.sets[i].arrive(elapsed)
	}
}

// carry counts a block that a prompt carries, last carried at that time since
// the first arrival; fresh is one that no prompt has carried yet.
func (w *workingSets) carry(last int64, fresh bool) {
	for i := range w.sets {
		if s := &w.sets[i]; fresh || last < s.from {
			s.blocks++
		}
	}
}

// carryLater counts a block of which is not kept when it was last carried.
func (w *workingSets) carryLater(n uint32) {
	for i := range w.sets {
		s := &w.sets[i]
		if s.later.has(n) {
			continue
		}
		s.later.put(n)
		s.blocks++
		if s.more = s.more || len(s.listed) == listedBlocks; !s.more {
			s.listed = append(s.listed, n)
		}
	}
}

// summary describes them, of a trace whose prompts have so many distinct blocks.
func (w *workingSets) summary(all int64, size int, kvBytes int64) *WorkingSets {
	sized := func(blocks float64) WorkingSetSize {
		s := WorkingSetSize{Blocks: blocks, Tokens: blocks * float64(size)}
		if kvBytes >= 1 {
			s.GiB = trace.Ptr(s.Tokens * float64(kvBytes) / gib)
		}
		return s
	}
	sum := &WorkingSets{Total: sized(float64(all))}
	for _, s := range w.sets {
		one := WorkingSet{WindowS: float64(s.width) / second, Windows: s.window}
		if s.window > 0 {
			one.Mean = trace.Ptr(sized(float64(s.sum) / float64(s.window)))
			one.Max = trace.Ptr(sized(float64(s.max)))
		}
		sum.Windows = append(sum.Windows, one)
	}
	return sum
}
