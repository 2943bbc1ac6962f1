package prompt

import (
	"fmt"

	"reprise/trace"
)

// Continue appends the text of the last tokens of a row's prompt. It follows another
// text than the row's own: a conversation whose last reply a server has written. As
// after a shared tail, the block that the end begins in spells its id there, so that
// ends of equal blocks and lengths are equal, and others differ in their first three
// tokens. It ends where a template's tokens after the prompt begin. Bare drops the space
// before the first word, for the beginning of a message.
//
// After a text that the server tokenises as it stands, it encodes to exactly
// tokens tokens where no token of the server's reaches over the space between
// the two, which the split patterns of the usual tokenizers see to.
//
// The errors are those of [Prompter.Prompt], and that the row has fewer tokens.
func (p *Prompter) Continue(row *trace.Request, tokens int, bare bool, buf []byte) ([]byte, error) {
	c, err := p.beginEnd(row, tokens)
	if err != nil || tokens == 0 {
		return buf, err
	}
	return c.appendText(bare, buf), nil
}

// ContinueTokens appends the token ids of the same end, after a space.
func (p *Prompter) ContinueTokens(row *trace.Request, tokens int, buf []uint32) ([]uint32, error) {
	c, err := p.beginEnd(row, tokens)
	if err != nil || tokens == 0 {
		return buf, err
	}
	return c.appendTokens(false, buf), nil
}

// beginEnd returns the cursor at the last tokens of a row's prompt.
func (p *Prompter) beginEnd(r *trace.Request, tokens int) (cursor, error) {
	if tokens < 0 || tokens > int(r.InputTokens) {
		return cursor{}, fmt.Errorf("an end of %d tokens was asked for, and its input_tokens are %d",
			tokens, r.InputTokens)
	}
	c := cursor{p: p, left: tokens}
	if len(r.Blocks) == 0 {
		if tokens > 0 {
			c.alone(r)
		}
		return c, nil
	}
	if err := p.check(r); err != nil || tokens == 0 {
		return c, err
	}
	at := max(int(r.InputTokens)-p.after-tokens, 0)
	first := at / p.blockSize
	c.blocks, c.tokens = r.Blocks[first:], int(r.InputTokens)-first*p.blockSize
	c.next()
	at -= first * p.blockSize
	// What stands before it is like a tail that the block completes.
	c.partial, c.tail = 0, at
	c.seg.pos, c.seg.end = at, at
	return c, nil
}
