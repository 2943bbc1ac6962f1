package anonymize

import (
	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/token"
)

// A chain is the prompt of the entry before, and the reply to it. The turns of a
// conversation follow each other, and each begins with most of the prompt of the
// one before: that is neither tokenised nor hashed again, so that a conversation
// costs its length and not the square of it.
type chain struct {
	root    block.ID
	pieces  []token.Piece
	cuts    []cut
	full    []block.ID // of the full blocks up to the last cut
	reply   string     // the last, if it is encoded by itself
	tokens  []uint32   // of the last reply
	scratch []uint32
	spoken  markedPrompt
}

// A cut is a place in the prompt where the tokens before do not depend on what
// follows.
type cut struct {
	end  int      // pieces before it
	full int      // full blocks before it
	rest []uint32 // tokens behind these

	spoken markedCut
}

// minCut is how many tokens lie between two cuts, but for the last. Fewer would
// cost more in cuts than they save when a conversation goes on elsewhere.
const minCut = 64

// keepCommon drops what of the chain is not of the prompt, and returns how many
// pieces are left of it. What the pieces share with the chain has mostly one
// origin, and comparing it costs nothing.
func (c *chain) keepCommon(root block.ID, pieces []token.Piece) int {
	n, from := 0, 0
	for root == c.root && n < len(c.cuts) && c.reaches(c.cuts[n].end, from, pieces) {
		from = c.cuts[n].end
		n++
	}
	c.root, c.cuts = root, c.cuts[:n]
	full, _ := c.lastCut()
	c.full = c.full[:full]
	if n > 0 {
		c.spoken.back(c.cuts[n-1].spoken)
	} else {
		c.spoken.back(markedCut{})
	}
	c.pieces = append(c.pieces[:from], pieces[from:]...)
	return from
}

// reaches reports whether pieces are those of the chain up to a cut, and may be
// cut there too.
func (c *chain) reaches(end, from int, pieces []token.Piece) bool {
	if end > len(pieces) || end < len(pieces) && !pieces[end].Starts() {
		return false
	}
	for i := from; i < end; i++ {
		if pieces[i] != c.pieces[i] {
			return false
		}
	}
	return true
}

// lastCut is how far the cuts go.
func (c *chain) lastCut() (full int, rest []uint32) {
	if len(c.cuts) == 0 {
		return 0, nil
	}
	last := &c.cuts[len(c.cuts)-1]
	return last.full, last.rest
}

// cutPrompt leaves in the cutter what follows the full blocks of the chain, which
// then has all pieces.
func (e *encoder) cutPrompt(root block.ID, pieces []token.Piece, messages []trace.Message) {
	c := &e.chain
	size := e.p.blockSize()
	for i := c.keepCommon(root, pieces); i < len(pieces); {
		full, rest := c.lastCut()
		tokens := append(c.scratch[:0], rest...)
		enough := len(tokens) + minCut
		for i < len(pieces) && len(tokens) < enough {
			start := i
			for i++; i < len(pieces) && !pieces[i].Starts(); i++ {
			}
			before := len(tokens)
			tokens = e.tokens(tokens, pieces[start:i], start == 0)
			c.spoken.note(pieces[start:i], tokens[before:], messages)
		}
		e.resume()
		e.cutter.Write(tokens)
		c.full = e.cutter.AppendFull(c.full)
		c.push(cut{end: i, full: full + len(tokens)/size, spoken: c.spoken.cut()}, tokens[len(tokens)-len(tokens)%size:])
		c.scratch = tokens
	}
	_, rest := c.lastCut()
	e.resume()
	e.cutter.Write(rest)
}

// tokens appends those of pieces that belong together. What was the reply is
// history now.
func (e *encoder) tokens(dst []uint32, pieces []token.Piece, begin bool) []uint32 {
	if p := &pieces[0]; len(pieces) == 1 && p.Alone && p.Text == e.chain.reply {
		return append(dst, e.chain.tokens...)
	}
	n := len(dst)
	dst = token.AppendPieces(dst, e.p.Tokenizer, pieces, begin)
	e.p.Renaming.tokens(dst[n:])
	return dst
}

// resume makes the cutter go on behind the full blocks of the chain.
func (e *encoder) resume() {
	last := e.chain.root
	if n := len(e.chain.full); n > 0 {
		last = e.chain.full[n-1]
	}
	e.cutter.Reset(last)
}

// push appends a cut, in the memory of one that was dropped if there is one.
func (c *chain) push(m cut, rest []uint32) {
	n := len(c.cuts)
	if n < cap(c.cuts) {
		m.rest = c.cuts[:n+1][n].rest[:0]
	}
	m.rest = append(m.rest, rest...)
	c.cuts = append(c.cuts, m)
}

// replyTokens returns the tokens of a reply.
func (e *encoder) replyTokens(pieces []token.Piece) []uint32 {
	c := &e.chain
	c.reply, c.tokens = "", e.p.Renaming.tokens(token.AppendPieces(c.tokens[:0], e.p.Tokenizer, pieces, false))
	if len(pieces) == 1 && pieces[0].Alone {
		c.reply = pieces[0].Text
	}
	return c.tokens
}
