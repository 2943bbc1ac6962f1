package anonymize

import (
	"reprise/trace"
	"reprise/trace/block"
)

// A chain is the prompt of the entry before, as far as its messages go, and the
// reply to it. The turns of a conversation follow each other, and each begins
// with the messages of the one before: these are neither tokenised nor hashed
// again, so that a conversation costs its length and not the square of it.
type chain struct {
	root     block.ID
	messages []cut
	full     []block.ID // of the full blocks of all messages
	reply    trace.Text
	tokens   []uint32 // of the reply
	scratch  []uint32
}

// A cut is a message, and how far the prompt goes behind it.
type cut struct {
	role trace.Role
	text trace.Text
	full int      // full blocks
	rest []uint32 // tokens behind these
}

// same says whether two texts are equal. Most that are have one origin.
func same(a, b trace.Text) bool { return a == b || a.Len() == b.Len() && a.Reveal() == b.Reveal() }

// known drops what of the chain does not belong to the messages, and returns
// how many of them are left.
func (c *chain) known(root block.ID, messages []trace.Message) int {
	n := 0
	for root == c.root && n < min(len(messages), len(c.messages)) &&
		messages[n].Role == c.messages[n].role && same(messages[n].Content, c.messages[n].text) {
		n++
	}
	c.root, c.messages = root, c.messages[:n]
	full, _ := c.end()
	c.full = c.full[:full]
	return n
}

// end is how far the messages go.
func (c *chain) end() (full int, rest []uint32) {
	if len(c.messages) == 0 {
		return 0, nil
	}
	last := &c.messages[len(c.messages)-1]
	return last.full, last.rest
}

// prompt leaves in the cutter what follows the full blocks of the chain, which
// then has all messages.
func (e *encoder) prompt(root block.ID, messages []trace.Message) {
	c := &e.chain
	tok, tmpl := e.p.Tokenizer, e.p.Template
	size := e.p.blockSize()
	for i := c.known(root, messages); i < len(messages); i++ {
		m := messages[i]
		full, rest := c.end()
		tokens := append(c.scratch[:0], rest...)
		tokens = tok.Append(tokens, tmpl.Header(m.Role.String()))
		if same(m.Content, c.reply) {
			tokens = append(tokens, c.tokens...) // what was the reply is history now
		} else {
			tokens = tok.Append(tokens, m.Content.Reveal())
		}
		tokens = tok.Append(tokens, tmpl.Footer())
		e.resume()
		e.cutter.Write(tokens)
		c.full = e.cutter.AppendFull(c.full)
		c.push(cut{role: m.Role, text: m.Content, full: full + len(tokens)/size}, tokens[len(tokens)-len(tokens)%size:])
		c.scratch = tokens
	}
	_, rest := c.end()
	e.resume()
	e.cutter.Write(rest)
}

// resume makes the cutter go on behind the full blocks of the chain.
func (e *encoder) resume() {
	last := e.chain.root
	if n := len(e.chain.full); n > 0 {
		last = e.chain.full[n-1]
	}
	e.cutter.Reset(last)
}

// push appends a message, in the memory of one that was dropped if there is one.
func (c *chain) push(m cut, rest []uint32) {
	n := len(c.messages)
	if n < cap(c.messages) {
		m.rest = c.messages[:n+1][n].rest[:0]
	}
	m.rest = append(m.rest, rest...)
	c.messages = append(c.messages, m)
}

// reply returns the tokens of a reply.
func (e *encoder) reply(t trace.Text) []uint32 {
	c := &e.chain
	c.reply, c.tokens = t, e.p.Tokenizer.Append(c.tokens[:0], t.Reveal())
	return c.tokens
}
