package prompt

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"reprise/trace"
)

// Tails say which blocks complete a partial one. A turn of a conversation mostly
// ends inside a block, and the next turn, which repeats it and goes on, has a
// fuller block in that place, under an id of its own. In truth the fuller block
// begins with the tokens of the partial one, its tail; with fresh tokens a
// server whose blocks are smaller than the trace's would miss them.
//
// Memory: about 20 bytes for each block that completes another.
type Tails struct {
	size    int      // tokens in a block
	keys    []uint64 // ids of completing blocks, rising
	tails   []tail
	buckets []uint32 // keys[buckets[b]:buckets[b+1]] are those with id>>shift == b
	shift   int
	tokens  int64
	top     uint64 // greatest id of a partial block
	period  uint64 // see Repeat; 0 is none
}

// A tail is the id of a partial block above the number of its tokens.
type tail uint64

const tailBits = 20

// maxBlocks bounds the ids of blocks: a tail takes the other 40 bits for one, and a
// mark, which has a bit more, still fits.
const maxBlocks = 1 << 40

func newTail(block uint64, tokens int) tail { return tail(block<<tailBits | uint64(tokens)) }

func (t tail) block() uint64 { return uint64(t >> tailBits) }
func (t tail) tokens() int   { return int(t & (1<<tailBits - 1)) }

// ReadTails reads the rows of a whole workload, in blocks of blockSize tokens,
// and finds the blocks that complete a partial one: row B continues row A when
//
//   - its leading known blocks are exactly the full blocks of A, one at least,
//   - A is the last row of its session or, of rows without one, the row that touched the last
//     of these blocks most recently,
//   - A ends in a partial block, and B has a new one with more tokens in its
//     place, partial or full, and
//   - B's category, where it has one, is continuation. In particular, what many
//     prompts have in common does not make one of them continue another.
//
// Rows that failed are left aside. The result is a function of the whole
// workload, so that shards agree if each reads all of it; a part of a workload
// may have others. While it reads it takes 16 bytes for each distinct block, see
// [trace.Renumber], and some 60 for each session.
//
// A block id of 2^40 and above is an error that names the row, counted from 0.
func ReadTails(rows trace.Reader[trace.Request], blockSize int) (*Tails, error) {
	if blockSize < 1 || blockSize > 1<<tailBits {
		return nil, fmt.Errorf("tails can be shared in blocks of 1 to %d tokens", 1<<tailBits)
	}
	p := tailPass{size: blockSize, last: map[int64]lastTail{}}
	err := trace.Each(rows, func(row int64, r *trace.Request) error {
		for _, id := range r.Blocks {
			if id >= maxBlocks {
				return fmt.Errorf("row %d: a block id is not below 2^40", row)
			}
		}
		if r.Status != trace.StatusFailed {
			p.readRow(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newTails(blockSize, p.found), nil
}

// A tailPass finds the blocks that complete a partial one.
type tailPass struct {
	size  int
	ids   trace.Renumber
	marks []tailMark // by number of a block
	path  []uint64   // numbers of the row's blocks
	last  map[int64]lastTail
	found []completion
}

// A lastTail is how the last row of a session ended: its last full block by number, and the tail behind it.
type lastTail struct {
	block uint64
	tail  tail
}

// A tailMark is zero for an unknown block. Its lowest bit says that it is known;
// above it is the tail that followed it if it was the last full block of the row
// that last touched it, and else zero.
type tailMark uint64

func (m tailMark) tail() tail { return tail(m >> 1) }

// A completion is a block and the partial one that it completes.
type completion struct {
	block uint64
	tail  tail
}

// readRow looks whether a row completes the partial block of an earlier one, and marks its own.
func (p *tailPass) readRow(r *trace.Request) {
	p.path = p.path[:0]
	for _, id := range r.Blocks {
		p.path = append(p.path, p.ids.ID(id))
	}
	if n := p.ids.Len() - len(p.marks); n > 0 {
		p.marks = append(p.marks, make([]tailMark, n)...)
	}
	hit := 0
	for hit < len(p.path) && p.marks[p.path[hit]] != 0 {
		hit++
	}
	if hit > 0 && hit < len(p.path) && (r.Category == "" || r.Category == trace.Continuation) {
		t := p.marks[p.path[hit-1]].tail()
		if r.Session != nil {
			if t = 0; p.last[*r.Session].block == p.path[hit-1] {
				t = p.last[*r.Session].tail
			}
		}
		if own := min(int(r.InputTokens)-hit*p.size, p.size); t.tokens() > 0 && own > t.tokens() {
			p.found = append(p.found, completion{r.Blocks[hit], t})
		}
	}
	for _, n := range p.path {
		p.marks[n] = 1
	}
	full, behind := int(r.InputTokens)/p.size, tail(0)
	if over := int(r.InputTokens) - full*p.size; full > 0 && over > 0 && len(p.path) == full+1 {
		behind = newTail(r.Blocks[full], over)
		p.marks[p.path[full-1]] |= tailMark(behind) << 1
	}
	if r.Session != nil {
		if delete(p.last, *r.Session); behind != 0 {
			p.last[*r.Session] = lastTail{p.path[full-1], behind}
		}
	}
}

// newTails makes the table.
func newTails(size int, found []completion) *Tails {
	slices.SortFunc(found, func(a, b completion) int {
		return cmp.Compare(a.block, b.block)
	})
	t := &Tails{size: size, keys: make([]uint64, len(found)), tails: make([]tail, len(found))}
	for i, c := range found {
		t.keys[i], t.tails[i] = c.block, c.tail
		t.tokens += int64(c.tail.tokens())
		t.top = max(t.top, c.tail.block())
	}
	if len(found) == 0 {
		return t
	}
	// As many buckets as keys, or up to twice as many: one key in each, give or
	// take, where ids are spread as a mirror spreads them.
	top := found[len(found)-1].block
	t.shift = max(bits.Len64(top)-bits.Len(uint(len(found))), 0)
	t.buckets = make([]uint32, top>>t.shift+2)
	for i, c := range found {
		t.buckets[c.block>>t.shift+1] = uint32(i + 1)
	}
	for b := range t.buckets[1:] {
		t.buckets[b+1] = max(t.buckets[b+1], t.buckets[b])
	}
	return t
}

// Of returns the partial block that a block completes and how many tokens that
// has: the block begins with them. The number is 0 for a block that completes
// none. The partial block may complete another in its turn. No tails at all are
// a nil table.
func (t *Tails) Of(block uint64) (partial uint64, tokens int32) {
	if t == nil {
		return 0, 0
	}
	round := uint64(0)
	if t.period > 0 {
		round = block - block%t.period
		block -= round
	}
	if len(t.keys) == 0 || block > t.keys[len(t.keys)-1] {
		return 0, 0
	}
	b := block >> t.shift
	from, to := t.buckets[b], t.buckets[b+1]
	if i, ok := slices.BinarySearch(t.keys[from:to], block); ok {
		found := t.tails[from+uint32(i)]
		return round + found.block(), int32(found.tokens())
	}
	return 0, 0
}

// Repeat returns the tails of a workload that is played again and again, in each
// round with ids that are higher by period: one more than the greatest. It shares
// the table. No tails at all stay none.
func (t *Tails) Repeat(period uint64) *Tails {
	if t == nil {
		return nil
	}
	again := *t
	again.period = period
	return &again
}

// Len returns how many blocks complete another.
func (t *Tails) Len() int {
	if t == nil {
		return 0
	}
	return len(t.keys)
}

// Tokens returns how many tokens they repeat.
func (t *Tails) Tokens() int64 { return t.tokens }
