package profile

import (
	"math"

	"reprise/trace"
)

// Options are the settings of an [Annotator].
type Options struct {
	KeepSessions bool // leave requests without a session as they are
}

// An Annotator gives rows their reuse category and, where the source has none,
// a session. It reads the rows twice in the same order: call Count for every
// row, then Annotate for every row.
//
// A [Categorizer] gives the categories. Turns
// count up in order of arrival. Inferred sessions group requests that build on
// each other, see [SessionFinder]. They do not claim that one request waited for the other, so parents
// and think times stay null.
//
// Memory is that of the categorizer and of the finder, and 4 bytes for each inferred session.
type Annotator struct {
	size       int
	keep       bool // sessions are kept as they are
	second     bool // the second pass has begun
	at         int64
	finder     SessionFinder
	base       int64   // the first inferred session
	turns      []int32 // by inferred session: turns so far
	categories *Categorizer
}

// NewAnnotator makes an annotator for rows with blocks of blockSize tokens.
// With a blockSize below 1 there are no blocks: categories become empty and
// sessions stay as they are.
func NewAnnotator(blockSize int, opts Options) *Annotator {
	return &Annotator{size: blockSize, keep: opts.KeepSessions, categories: NewCategorizer(blockSize, false)}
}

// Count takes a row in the first pass. It does not change the row.
func (a *Annotator) Count(r *trace.Request) {
	if a.keep {
		return
	}
	// Inferred sessions are numbered after the source's own, so that a trace
	// that has both never mixes them.
	if r.Session != nil && *r.Session >= a.base && *r.Session < math.MaxInt64 {
		a.base = *r.Session + 1
	}
	row := a.at
	a.at++
	if !isLoad(r) || len(r.Blocks) == 0 || a.size < 1 {
		a.finder.Skip()
		return
	}
	// Marks are the row that had the block last, plus one.
	path := a.categories.blocks.find(r.Blocks)
	if r.Session != nil {
		a.finder.Skip()
	} else {
		hit, touched := leading(path), int64(-1)
		if hit > 0 {
			touched = int64(*path[hit-1]) - 1
		}
		a.finder.See(SightingOf(r, a.size, hit, touched))
	}
	for _, m := range path {
		*m = uint32(min(row, math.MaxUint32-1)) + 1
	}
}

// settle ends the first pass.
func (a *Annotator) settle() {
	if !a.second {
		a.second, a.at = true, 0
		a.finder.Finish()
		a.turns = make([]int32, a.finder.Inferred().Sessions)
		clear(a.categories.blocks.marks)
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
	if session, ok := a.finder.Session(a.at); ok && r.Session == nil {
		r.Session, r.Turn = trace.Ptr(a.base+session), trace.Ptr(a.turns[session])
		a.turns[session]++
	}
	a.at++
	r.Category = a.categories.Category(r)
}
