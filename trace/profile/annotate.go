package profile

import (
	"math"

	"reprise/trace"
	"reprise/trace/block"
)

// Options are the settings of an [Annotator].
type Options struct {
	// GlobalBlocks, when not nil, is the number of leading blocks that count as
	// the global prefix, in place of the prefix that more than half of the
	// requests carry.
	GlobalBlocks *int
	// KeepSessions leaves requests without a session as they are.
	KeepSessions bool
	// Forgets says that ids of blocks count up from 0 about as they appear, and that Forget
	// is called between rows: memory is that of the blocks which later rows can have.
	Forgets bool
}

// An Annotator gives rows their reuse category and, where the source has none,
// a session. It reads the rows twice in the same order: call Count for every
// row, then Annotate for every row.
//
// The [Classifier] defines the categories. Turns
// count up in order of arrival. Inferred sessions group requests that build on
// each other, see [SessionFinder]. They do not claim that one request waited for the other, so parents
// and think times stay null.
//
// Only prompts make blocks known. Output blocks are ignored, so that traces with
// and without them are classified by the same rule: either way the hit of the next
// turn of a chat ends at the last full block of the earlier prompt.
//
// Memory: 16 bytes for each distinct block (8 for its number, 8 for who touched
// it last) while ids are about as dense as [trace.Renumber] wants them, some
// 50 more where they are not, and 4 bytes for each inferred session. Where it may
// [Annotator.Forget], it is 8 bytes for each block that later rows can have.
type Annotator struct {
	size   int
	ids    trace.Renumber
	marks  []uint64     // by block
	recent *recentMarks // in place of ids and marks, where some are forgotten
	row    []uint64     // numbers of the blocks of the current row
	path   []*uint64    // and their marks
	rows   int64        // load with blocks
	global int
	fixed  bool  // global was given
	keep   bool  // sessions are kept as they are
	second bool  // the second pass has begun
	at     int64 // number of the next row
	finder SessionFinder
	base   int64   // the first inferred session
	turns  []int32 // by inferred session: turns so far
}

// NewAnnotator makes an annotator for rows with blocks of blockSize tokens.
// With a blockSize below 1 there are no blocks: categories become empty and
// sessions stay as they are.
func NewAnnotator(blockSize int, opts Options) *Annotator {
	a := &Annotator{size: blockSize, keep: opts.KeepSessions}
	if opts.GlobalBlocks != nil {
		a.global, a.fixed = max(*opts.GlobalBlocks, 0), true
	}
	if opts.Forgets {
		a.recent = newRecentMarks()
	}
	return a
}

// Count takes a row in the first pass. It does not change the row.
func (a *Annotator) Count(r *trace.Request) {
	defer func() { a.at++ }()
	// Inferred sessions are numbered after the source's own, so that a trace
	// that has both never mixes them.
	if r.Session != nil && *r.Session >= a.base && *r.Session < math.MaxInt64 {
		a.base = *r.Session + 1
	}
	if !isLoad(r) || len(r.Blocks) == 0 || a.size < 1 {
		a.finder.Skip()
		return
	}
	a.rows++
	hit, deepest := a.known(r.Blocks)
	if r.Session != nil || a.keep {
		a.finder.Skip()
	} else {
		a.finder.See(SightingOf(r, a.size, hit, deepest.row()))
	}
	a.touch(r, carriedOnce)
}

// known returns how many leading blocks of a prompt are known, and the mark of the last.
func (a *Annotator) known(blocks []uint64) (hit int, deepest mark) {
	a.find(blocks)
	for hit < len(a.path) && *a.path[hit] != 0 {
		hit++
	}
	if hit > 0 {
		deepest = mark(*a.path[hit-1])
	}
	return hit, deepest
}

// touch marks the blocks of the row at hand, and counts that it carries them.
func (a *Annotator) touch(r *trace.Request, carried uint64) {
	end := block.Full(int(r.InputTokens), a.size) - 1
	to := uint64(a.at+1) << 1 & (carriedOnce - 1)
	for i, m := range a.path {
		*m = (*m&^(carriedOnce-1) + carried) | to
		if i == end {
			*m |= 1
		}
	}
}

// find fills path.
func (a *Annotator) find(blocks []uint64) {
	a.path = a.path[:0]
	if a.recent != nil {
		a.path = a.recent.find(a.path, blocks)
		return
	}
	a.row = a.row[:0]
	for _, b := range blocks {
		a.row = append(a.row, a.ids.ID(b))
	}
	if n := a.ids.Len() - len(a.marks); n > 0 {
		a.marks = append(a.marks, make([]uint64, n)...)
	}
	for _, id := range a.row {
		a.path = append(a.path, &a.marks[id])
	}
}

// carriedByMost counts the blocks that more than half of so many requests carry.
func carriedByMost(counts []uint64, rows int64) (blocks int) {
	for _, n := range counts {
		if 2*(n/carriedOnce) > uint64(rows) {
			blocks++
		}
	}
	return blocks
}

// GlobalBlocks returns the length of the global prefix in blocks. It is final
// when the second pass has begun.
func (a *Annotator) GlobalBlocks() int { return a.global }

// A mark holds, from its lowest bit on: whether the block was the last full one of the row that
// touched it last; the number of that row, plus one; and, in the first pass, how many rows carry the
// block. The zero mark is an unknown block.
type mark uint64

const carriedOnce = 1 << 33

func (m mark) row() int64 { return int64(m%carriedOnce>>1) - 1 }
func (m mark) end() bool  { return m&1 != 0 }

// Settle ends the first pass. The first row of the second does so too.
func (a *Annotator) Settle() {
	if a.second {
		return
	}
	a.second, a.at = true, 0
	a.finder.Finish()
	a.turns = make([]int32, a.finder.Inferred().Sessions)
	if !a.fixed {
		// Ids are chained, so the blocks that more than half of the requests
		// carry lie on one path from the root, and their number is its length.
		a.global = carriedByMost(a.marks, a.rows)
		if a.recent != nil {
			a.global = a.recent.carriedByMost(a.rows)
		}
	}
	clear(a.marks)
	if a.recent != nil {
		a.recent = newRecentMarks()
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
	a.Settle()
	defer func() { a.at++ }()
	r.Category = ""
	if !isLoad(r) || len(r.Blocks) == 0 || a.size < 1 {
		return
	}
	hit, deepest := a.known(r.Blocks)
	r.Category = Classifier{a.global}.Classify(hit, len(a.path), deepest.end())
	if session, ok := a.finder.Session(a.at); ok && r.Session == nil {
		r.Session, r.Turn = trace.Ptr(a.base+session), trace.Ptr(a.turns[session])
		a.turns[session]++
	}
	a.touch(r, 0)
}

// A Classifier is the rule that gives a request its reuse category. The
// categories, in their order of precedence:
//
//   - cold: no block of the prompt is known;
//   - global: the hit is no deeper than the prefix that more than half of the
//     requests with blocks carry;
//   - duplicate: every block of the prompt is known;
//   - continuation: the hit ends at the last full block of the request that
//     last touched that block, so this is a next turn;
//   - branch: the hit ends inside an earlier prompt, as after a template, a
//     document or few-shot examples.
//
// What was known and touched is the caller's to find out: an [Annotator] does
// so in memory.
type Classifier struct {
	GlobalBlocks int // depth of the global prefix, in blocks
}

// Classify takes how many leading blocks of a prompt are known, how many it has,
// and whether the last known one is the last full block of the request that
// touched it last; without a hit that is of no account.
func (c Classifier) Classify(hit, blocks int, end bool) (category string) {
	switch {
	case hit == 0:
		return trace.Cold
	case hit <= c.GlobalBlocks:
		return trace.Global
	case hit == blocks:
		return trace.Duplicate
	case end:
		return trace.Continuation
	}
	return trace.Branch
}
