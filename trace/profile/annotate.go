package profile

import (
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/block"
)

// Options are the settings of an [Annotator].
type Options struct {
	KeepSessions bool // leave requests without a session as they are
}

// An Annotator gives rows their reuse category and, where the source has none,
// a session. It reads the rows twice in the same order: call Count for every
// row, then Annotate for every row. Ids of blocks count up from 0 as they appear.
//
// Categories are those of [trace.CategoryDefinitions], as a [Categorizer] gives them. Turns
// count up in order of arrival. Inferred sessions group requests that build on
// each other, see [SessionFinder]. They do not claim that one request waited for the other, so parents
// and think times stay null.
//
// Memory is that of the finder, 4 bytes for each block, up to 16 for one in which the hit of a row ends, and
// 4 bytes for each row and each inferred session.
type Annotator struct {
	size    int
	keep    bool // sessions are kept as they are
	second  bool // the second pass has begun
	at      int64
	finder  SessionFinder
	base    int64      // the first inferred session
	turns   []int32    // by inferred session: turns so far
	touched [][]uint32 // by block, in chunks: the last row that had it, plus one
	hits    []uint32   // by row: the leading blocks that were known
	ends    HitEnds
	rule    CategoryRule
}

const touchedChunk = 1 << 16

// NewAnnotator makes an annotator for rows with blocks of blockSize tokens.
// With a blockSize below 1 there are no blocks: categories become empty and
// sessions stay as they are.
func NewAnnotator(blockSize int, opts Options) *Annotator {
	return &Annotator{size: blockSize, keep: opts.KeepSessions}
}

// KeepSessions is the option of this name, for who learns of it late, in the first pass.
func (a *Annotator) KeepSessions() { a.keep, a.finder, a.base = true, SessionFinder{}, 0 }

// touch is the mark of a block.
func (a *Annotator) touch(id uint64) *uint32 {
	for id/touchedChunk >= uint64(len(a.touched)) {
		a.touched = append(a.touched, make([]uint32, touchedChunk))
	}
	return &a.touched[id/touchedChunk][id%touchedChunk]
}

// Count takes a row in the first pass. It does not change the row.
func (a *Annotator) Count(r *trace.Request) {
	row, load := a.at, isLoad(r) && len(r.Blocks) > 0 && a.size >= 1
	a.at++
	hit, touched := 0, int64(-1)
	if load {
		for _, id := range r.Blocks {
			t := *a.touch(id)
			if t == 0 {
				break
			}
			hit, touched = hit+1, int64(t)-1
		}
		for _, id := range r.Blocks {
			*a.touch(id) = uint32(min(row, math.MaxUint32-1)) + 1
		}
		if hit > 0 {
			a.ends.Mark(r.Blocks[hit-1])
		}
	}
	a.hits = push(a.hits, uint32(hit))
	if a.keep {
		return
	}
	// Inferred sessions are numbered after the source's own, so that a trace
	// that has both never mixes them.
	if r.Session != nil && *r.Session >= a.base && *r.Session < math.MaxInt64 {
		a.base = *r.Session + 1
	}
	if load && r.Session == nil {
		a.finder.See(SightingOf(r, a.size, hit, touched))
	} else {
		a.finder.Skip()
	}
}

// push appends v to a long list, of which append would copy all more often than it has to.
func push[T any](list []T, v T) []T {
	if len(list) == cap(list) {
		list = slices.Grow(list, max(len(list), 64))
	}
	return append(list, v)
}

// settle ends the first pass.
func (a *Annotator) settle() {
	if !a.second {
		a.second, a.at, a.touched = true, 0, nil
		a.finder.Finish()
		a.ends.Finish()
		a.turns = make([]int32, a.finder.Inferred().Sessions)
	}
}

// Inferred says how many sessions were inferred. It is final when the second pass has begun.
func (a *Annotator) Inferred() InferredSessions { return a.finder.Inferred() }

// Annotate takes a row in the second pass: it sets Category, and Session and
// Turn where Session is null. The number of the row is not needed: it is there
// so that a caller hands on what [trace.Each] gives it.
//
// A failed row and a row without blocks get no category and no inferred
// session: there is nothing to tell them by. A session that the source gave is
// kept, and no inferred turn is added to it.
func (a *Annotator) Annotate(_ int64, r *trace.Request) {
	a.settle()
	row := a.at
	a.at++
	if session, ok := a.finder.Session(row); ok && r.Session == nil {
		r.Session, r.Turn = trace.Ptr(a.base+session), trace.Ptr(a.turns[session])
		a.turns[session]++
	}
	if r.Category = ""; isLoad(r) && len(r.Blocks) > 0 && a.size >= 1 {
		who, hit := a.rule.Who(row, r.Session), int(a.hits[row])
		r.Category = a.rule.Category(r, a.size, hit, a.ends.Take(r.Blocks, hit, who))
	}
}

// HitEnds say which sessions had a block, for each block in which the hit of a row ends. A category
// asks for no other block.
type HitEnds struct {
	blocks block.Bits
	marks  []uint32 // of each of them, see [BlockUsers]
	users  BlockUsers
}

// Mark notes a block in which a hit ends.
func (h *HitEnds) Mark(id uint64) { h.blocks.Set(int64(id)) }

// Finish ends the marking.
func (h *HitEnds) Finish() { h.marks = make([]uint32, h.blocks.Count()) }

// Take says who had the block in which the hit of a row ends, and notes whose the row is.
func (h *HitEnds) Take(blocks []uint64, hit int, who uint32) (use BlockUse) {
	if hit > 0 {
		use = h.users.Use(h.marks[h.blocks.Before(int64(blocks[hit-1]))], who)
	}
	var first, bits uint64 // bits of the blocks from the first on, n of them: most of a prompt count up
	n := uint64(0)
	for _, id := range blocks {
		if id-first >= n {
			word, more := h.blocks.From(int64(id))
			first, bits, n = id, word, uint64(more)
		}
		if bits>>(id-first)&1 != 0 {
			h.users.Add(&h.marks[h.blocks.Before(int64(id))], who)
		}
	}
	return use
}
