package prompt

import (
	"errors"
	"fmt"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/sample"
)

// chunkWords is how many tokens are drawn at a time, onto the stack of the
// caller.
const chunkWords = 256

// A cursor draws the tokens of one prompt, as entries of the lexicon.
type cursor struct {
	p      *Prompter
	blocks []uint64 // still to come
	tokens int      // of those blocks, the template included
	drop   int      // tokens before the prompt, still to be dropped
	left   int      // tokens of the prompt still to be drawn

	id      uint64 // of the current block
	partial uint64 // the block that it completes
	tail    int    // tokens of that one
	n       int    // tokens of the block
	seg     segment

	whole  bool // whether the current block has spelt its id
	short  bool // whether a block could not
	filled int
}

// begin checks a row and returns the cursor at the start of its prompt, which
// has one token at least.
func (p *Prompter) begin(r *trace.Request) (cursor, error) {
	if r.InputTokens < 0 {
		return cursor{}, errors.New("its input_tokens are negative")
	}
	c := cursor{p: p, blocks: r.Blocks, tokens: int(r.InputTokens), drop: p.before, left: p.Count(r)}
	if len(r.Blocks) == 0 {
		c.alone(r)
	} else if err := p.check(r); err != nil {
		return cursor{}, err
	}
	return c, nil
}

// alone begins the prompt of a row without blocks.
func (c *cursor) alone(r *trace.Request) {
	p := c.p
	c.whole, c.n = true, c.left
	// The numbers that tell the row from others. Its place in the trace is not among
	// them: a Request does not hold it, and a counter would depend on who asks first.
	h := fold(0).add(uint64(r.ArrivalNS)).add(uint64(r.InputTokens)).add(uint64(r.OutputOr(0)))
	h = optional(h, r.Session)
	h = optional(h, r.Turn)
	h = optional(h, r.User)
	h = optional(h, r.TTFTNS)
	h = optional(h, r.E2ENS)
	for _, parent := range r.Parents {
		h = h.add(uint64(parent))
	}
	c.seg = segment{state: sample.Mix64(p.rows ^ uint64(h)), end: c.n}
	if p.text.english != nil || p.text.corpus != nil {
		// What these draw may tell rows apart only after many tokens.
		c.seg.spell(p, c.seg.state%p.heads.Len())
	}
	p.text.open(&c.seg)
	c.filled = c.seg.filled()
}

// appendText draws the rest of the prompt and appends its text. Its first token
// is a word, and bare is without its space.
func (c *cursor) appendText(bare bool, buf []byte) []byte {
	var chunk [chunkWords]uint32
	lex := &c.p.text.lex
	words := c.fill(chunk[:])
	if bare {
		buf, words = append(buf, lex.entry(words[0])[1:]...), words[1:]
	}
	for ; ; words = c.fill(chunk[:]) {
		for _, w := range words {
			buf = append(buf, lex.entry(w)...)
		}
		if c.left == 0 {
			c.end()
			return buf
		}
	}
}

// appendTokens is appendText for token ids.
func (c *cursor) appendTokens(bare bool, buf []uint32) []uint32 {
	var chunk [chunkWords]uint32
	lex := &c.p.text.lex
	words := c.fill(chunk[:])
	if bare {
		buf, words = append(buf, lex.bare[words[0]]), words[1:]
	}
	for ; ; words = c.fill(chunk[:]) {
		for _, w := range words {
			buf = append(buf, lex.ids[w])
		}
		if c.left == 0 {
			c.end()
			return buf
		}
	}
}

// end takes note of the prompt that was drawn.
func (c *cursor) end() {
	if c.short || !c.whole || len(c.blocks) > 0 {
		c.p.shortTails.Add(1)
	}
	if c.filled > 0 {
		c.p.filled.Add(int64(c.filled))
	}
}

// check holds the block ids of a row against its length and the vocabulary.
func (p *Prompter) check(r *trace.Request) error {
	if p.blockSize == 0 {
		return errors.New("it has blocks, but the trace has no block size")
	}
	if len(r.Blocks) != block.Count(int(r.InputTokens), p.blockSize) {
		return fmt.Errorf("its block ids do not match its input_tokens: want one for every %d tokens, and one "+
			"for the rest", p.blockSize)
	}
	for _, id := range r.Blocks {
		if id >= p.heads.Len() {
			return p.errTooLarge("it")
		}
	}
	return nil
}

// errTooLarge says that a block id of who cannot be spelt.
func (p *Prompter) errTooLarge(who string) error {
	return fmt.Errorf("%s has a block id of %d or above, more than %d words of this vocabulary can spell: number the "+
		"blocks densely, or make prompts with a tokenizer of more words", who, p.heads.Len(), headTokens)
}

// fill draws the next tokens into dst and returns those drawn, fewer than
// len(dst) only at the end of the prompt.
func (c *cursor) fill(dst []uint32) []uint32 {
	dst = dst[:min(len(dst), c.left)]
	for i := 0; i < len(dst); {
		if c.seg.pos == c.n {
			c.next()
		}
		if c.seg.pos == c.seg.end {
			c.open()
		}
		n := min(len(dst)-i, c.seg.end-c.seg.pos)
		c.draw(dst[i : i+n])
		c.left -= n
		i += n
	}
	return dst
}

// next goes to the next block and takes what is still to be dropped from its
// end, as far as that leaves the id whole. What cannot be dropped from any block
// is missing at the end of the prompt, where the cursor stops before the blocks
// do.
func (c *cursor) next() {
	c.short = c.short || c.seg.end > 0 && !c.whole
	c.id = c.blocks[0]
	c.blocks = c.blocks[1:]
	c.partial, c.tail = c.p.tailOf(c.id)
	n := min(c.tokens, c.p.blockSize)
	c.tokens -= n
	cut := min(c.drop, max(n-c.tail-headTokens, 0))
	c.drop -= cut
	c.n = n - cut
	c.seg = segment{}
}

// open begins the segment at the position that the last one ended at. It is of
// the block's own tokens, or of the block in whose tail the position lies: that
// of the current block, or a tail within the tail.
func (c *cursor) open() {
	pos, end := c.seg.end, min(c.n, c.seg.end+c.left)
	owner, partial, from := c.id, c.partial, c.tail
	for from > pos {
		end, owner = min(end, from), partial
		partial, from = c.p.tailOf(owner)
	}
	c.seg = segment{state: sample.Mix64(c.p.blocks ^ sample.Mix64(owner+sample.Golden)), from: from, pos: pos, end: end}
	c.seg.spell(c.p, owner)
	c.whole = owner == c.id && end-from >= headTokens
	c.p.text.open(&c.seg)
	c.filled += c.seg.filled()
}

// tailOf is [Tails.Of] of the tails that are shared.
func (p *Prompter) tailOf(id uint64) (partial uint64, tokens int) {
	partial, n := p.tails.Of(id)
	return partial, int(n)
}

// spell sets the head to the words for an id.
func (s *segment) spell(p *Prompter, id uint64) {
	x, v := p.heads.At(id), p.text.words
	for i := range s.head {
		s.head[i] = uint32(x % v)
		x /= v
	}
	s.headed = true
}

// draw gives the tokens at the next len(dst) positions of the segment.
func (c *cursor) draw(dst []uint32) {
	s := &c.seg
	if at := s.pos - s.from; s.headed && at < headTokens {
		n := copy(dst, s.head[at:])
		s.pos += n
		dst = dst[n:]
	}
	c.p.text.draw(s, dst)
	s.pos += len(dst)
}

// A fold is a hash of the numbers that were added to it, in their order.
type fold uint64

func (h fold) add(v uint64) fold { return fold(sample.Mix64(uint64(h)^v) + sample.Golden) }

// optional adds a number that may be missing, which differs from every number.
func optional[T int32 | int64](h fold, v *T) fold {
	if v == nil {
		return h.add(0)
	}
	return h.add(1).add(uint64(*v))
}
