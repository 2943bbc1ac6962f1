package synth

import (
	"errors"
	"fmt"
	"math/bits"

	"reprise/trace"
)

// chunkWords is how many words are drawn at a time, onto the stack of the
// caller.
const chunkWords = 256

// A cursor draws the words of one prompt, as indices into the vocabulary.
type cursor struct {
	p      *Prompter
	blocks []uint64 // still to come
	tokens int      // of those blocks, overhead included
	drop   int      // overhead still to be dropped
	left   int      // words of the prompt still to be drawn

	state  uint64             // of the block, or of a row without blocks
	head   [headTokens]uint32 // spells the id of the block
	headed bool               // false for a row without blocks
	pos, n int                // within the block
}

// begin checks a row and returns the cursor at the start of its prompt, which
// has one word at least.
func (p *Prompter) begin(r *trace.Request) (cursor, error) {
	if r.InputTokens < 0 {
		return cursor{}, errors.New("its input_tokens are negative")
	}
	tokens := int(r.InputTokens)
	c := cursor{p: p, blocks: r.Blocks, tokens: tokens, drop: p.overhead, left: max(tokens-p.overhead, 1)}
	if len(r.Blocks) == 0 {
		c.state, c.n = mix(p.rows^identity(r)), c.left
	} else if err := p.check(r); err != nil {
		return cursor{}, err
	} else if tail := tokens - (len(r.Blocks)-1)*p.blockSize; tail < headTokens || c.left < headTokens*len(r.Blocks) {
		p.shortTails.Add(1)
	}
	if tokens-p.overhead < 1 {
		p.shortfalls.Add(1)
	}
	return c, nil
}

// check holds the block ids of a row against its length and the vocabulary.
func (p *Prompter) check(r *trace.Request) error {
	if p.blockSize == 0 {
		return errors.New("it has blocks, but the trace does not say of how many tokens")
	}
	if len(r.Blocks) != blockCount(r.InputTokens, p.blockSize) {
		return fmt.Errorf("its block ids do not match its input_tokens: there must be one for every %d tokens and one for the rest", p.blockSize)
	}
	for _, id := range r.Blocks {
		if id >= p.heads.n {
			return fmt.Errorf("it has a block id of %d or above, more than %d words of this vocabulary can spell; number the blocks densely", p.heads.n, headTokens)
		}
	}
	return nil
}

// fill draws the next words into dst and returns those drawn, fewer than
// len(dst) only at the end of the prompt.
func (c *cursor) fill(dst []uint32) []uint32 {
	dst = dst[:min(len(dst), c.left)]
	c.left -= len(dst)
	for i := 0; i < len(dst); {
		if c.pos == c.n {
			c.next()
		}
		n := min(len(dst)-i, c.n-c.pos)
		c.draw(dst[i : i+n])
		i += n
	}
	return dst
}

// next goes to the next block: it spells the id and takes what is still to be
// dropped from the end, as far as that leaves the id whole. What cannot be
// dropped from any block is missing at the end of the prompt, where the cursor
// stops before the blocks do.
func (c *cursor) next() {
	id := c.blocks[0]
	c.blocks = c.blocks[1:]
	n := min(c.tokens, c.p.blockSize)
	c.tokens -= n
	cut := min(c.drop, max(n-headTokens, 0))
	c.drop -= cut
	c.pos, c.n = 0, n-cut

	c.state, c.headed = mix(c.p.blocks^mix(id+golden)), true
	v := c.p.v
	for x, i := c.p.heads.at(id), 0; i < headTokens; i++ {
		c.head[i] = uint32(x % v)
		x /= v
	}
}

// draw gives the words at the next len(dst) positions of the block. The words
// behind the head are the high half of a product (Lemire, "Fast random integer
// generation in an interval", 2019), whose bias of V in 2^64 is nothing here.
func (c *cursor) draw(dst []uint32) {
	i := 0
	if c.headed && c.pos < headTokens {
		i = copy(dst, c.head[c.pos:])
	}
	counter := c.state + uint64(c.pos+i)*golden
	for ; i < len(dst); i++ {
		counter += golden
		hi, _ := bits.Mul64(mix(counter), c.p.v)
		dst[i] = uint32(hi)
	}
	c.pos += len(dst)
}

// identity tells a row without blocks from others by the numbers in it that
// differ between requests. The row's place in the trace is not among them: a
// Request does not hold it, and a counter would depend on who asks first.
func identity(r *trace.Request) uint64 {
	h := fold(0).add(uint64(r.ArrivalNS)).add(uint64(r.InputTokens)).add(uint64(r.OutputTokens))
	h = optional(h, r.Session)
	h = optional(h, r.Turn)
	h = optional(h, r.User)
	h = optional(h, r.TTFTNS)
	h = optional(h, r.E2ENS)
	for _, parent := range r.Parents {
		h = h.add(uint64(parent))
	}
	return uint64(h)
}

// A fold is a hash of the numbers that were added to it, in their order.
type fold uint64

func (h fold) add(v uint64) fold { return fold(mix(uint64(h)^v) + golden) }

// optional adds a number that may be missing, which differs from every number.
func optional[T int32 | int64](h fold, v *T) fold {
	if v == nil {
		return h.add(0)
	}
	return h.add(1).add(uint64(*v))
}
