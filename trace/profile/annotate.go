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
	// Forgets says that ids of blocks count up from 0 about as they appear, and that Forget
	// is called between rows: memory is that of the blocks which later rows can have.
	Forgets bool
}

// An Annotator gives rows their reuse category and, where the source has none,
// a session. It reads the rows twice in the same order: call Count for every
// row, then Annotate for every row.
//
// The [Classifier] defines the categories and the beginning of a session. Turns
// count up in order of arrival. Inferred sessions group requests that build on
// each other. They do not claim that one request waited for the other, so parents
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
	marks  []uint64     // by block: first how many requests carry it, then its mark
	recent *recentMarks // in place of ids and marks, where some are forgotten
	row    []uint64     // numbers of the blocks of the current row
	path   []*uint64    // and their marks
	rows   int64        // load with blocks
	global int
	fixed  bool // global was given
	second bool // the second pass has begun
	base   int64
	turns  []int32 // by inferred session: turns so far
}

// NewAnnotator makes an annotator for rows with blocks of blockSize tokens.
// With a blockSize below 1 there are no blocks: categories become empty and
// sessions stay as they are.
func NewAnnotator(blockSize int, opts Options) *Annotator {
	a := &Annotator{size: blockSize}
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
	// Inferred sessions are numbered after the source's own, so that a trace
	// that has both never mixes them.
	if r.Session != nil && *r.Session >= a.base && *r.Session < math.MaxInt64 {
		a.base = *r.Session + 1
	}
	if !isLoad(r) || len(r.Blocks) == 0 || a.size < 1 {
		return
	}
	a.rows++
	a.find(r.Blocks)
	for _, m := range a.path {
		*m++
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
		if 2*n > uint64(rows) {
			blocks++
		}
	}
	return blocks
}

// GlobalBlocks returns the length of the global prefix in blocks. It is final
// when the second pass has begun.
func (a *Annotator) GlobalBlocks() int { return a.global }

// A mark holds the session that last touched a block, plus two, and in its lowest
// bit whether the block was the last full one of the request that touched it. The
// zero mark is an unknown block.
type mark uint64

// ofSource stands for every session that the source gave.
const ofSource = -1

func (m mark) session() int64 { return int64(m>>1) - 2 }
func (m mark) end() bool      { return m&1 != 0 }

// Annotate takes a row in the second pass: it sets Category, and Session and
// Turn where Session is null. The number of the row is not needed: it is there
// so that a caller hands on what [trace.Each] gives it.
//
// A failed row and a row without blocks get no category and no inferred
// session: there is nothing to tell them by. A session that the source gave is
// kept, and no inferred turn is added to it; a request that builds on one
// begins a session of its own.
func (a *Annotator) Annotate(_ int64, r *trace.Request) {
	if !a.second {
		a.second = true
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
	r.Category = ""
	if !isLoad(r) || len(r.Blocks) == 0 || a.size < 1 {
		return
	}
	a.find(r.Blocks)
	hit := 0
	for hit < len(a.path) && *a.path[hit] != 0 {
		hit++
	}
	var deepest mark
	if hit > 0 {
		deepest = mark(*a.path[hit-1])
	}
	category, continues := Classifier{a.global}.Classify(hit, len(a.path), deepest.end())
	r.Category = category
	session := int64(ofSource)
	if r.Session == nil {
		session = int64(len(a.turns))
		if continues && deepest.session() != ofSource {
			session = deepest.session()
		} else {
			a.turns = append(a.turns, 0)
		}
		r.Session, r.Turn = trace.Ptr(a.base+session), trace.Ptr(a.turns[session])
		a.turns[session]++
	}
	end := block.Full(int(r.InputTokens), a.size) - 1
	for i, to := range a.path {
		m := mark(session+2) << 1
		if i == end {
			m |= 1
		}
		*to = uint64(m)
	}
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
// A request that is cold or global begins a session, where sessions are
// inferred; any other continues that of the request that last touched its
// deepest hit block.
//
// What was known and touched is the caller's to find out: an [Annotator] does
// so in memory.
type Classifier struct {
	GlobalBlocks int // depth of the global prefix, in blocks
}

// Classify takes how many leading blocks of a prompt are known, how many it has,
// and whether the last known one is the last full block of the request that
// touched it last; without a hit that is of no account.
func (c Classifier) Classify(hit, blocks int, end bool) (category string, continues bool) {
	switch {
	case hit == 0:
		return trace.Cold, false
	case hit <= c.GlobalBlocks:
		return trace.Global, false
	case hit == blocks:
		return trace.Duplicate, true
	case end:
		return trace.Continuation, true
	}
	return trace.Branch, true
}
