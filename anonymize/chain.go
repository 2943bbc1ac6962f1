package anonymize

import (
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/breaker"
	"reprise/trace/token"
)

// A chain is the prompt of the entry before, and the reply to it. The turns of a
// conversation follow each other, and each begins with most of the prompt of the
// one before: that is neither tokenised nor hashed again, so that a conversation
// costs its length and not the square of it.
type chain struct {
	root    block.ID
	ratio   ratio // by which its tokens were stretched
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
	text int      // tokens of the text before it, as they were counted
	full int      // full blocks before it
	rest []uint32 // tokens after these

	spoken markedCut
}

// minCut is how many tokens lie between two cuts, but for the last. Fewer would
// cost more in cuts than they save when a conversation goes on elsewhere.
const minCut = 64

// keepCommon drops the part of the chain that is not in the prompt, and returns how many
// pieces are left of it. What the pieces share with the chain has mostly one
// origin, and comparing it costs nothing.
func (c *chain) keepCommon(root block.ID, by ratio, pieces []token.Piece) int {
	n, from := 0, 0
	for root == c.root && by == c.ratio && n < len(c.cuts) {
		end := c.cuts[n].end
		if end > len(pieces) || end < len(pieces) && !pieces[end].Starts() ||
			!slices.Equal(pieces[from:end], c.pieces[from:end]) {
			break
		}
		from = end
		n++
	}
	c.root, c.ratio, c.cuts = root, by, c.cuts[:n]
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

// counted is how many tokens the text has up to the last cut.
func (c *chain) counted() int {
	if len(c.cuts) == 0 {
		return 0
	}
	return c.cuts[len(c.cuts)-1].text
}

// lastCut is how far the cuts go.
func (c *chain) lastCut() (full int, rest []uint32) {
	if len(c.cuts) == 0 {
		return 0, nil
	}
	last := &c.cuts[len(c.cuts)-1]
	return last.full, last.rest
}

// markedPrompt is the prompt of an entry as a breaker finder takes it: with a mark
// where each message begins, up to the end of the last one. What a template puts
// after that, such as the header of the answer, is there but not passed on: the
// next turn goes on from the message.
type markedPrompt struct {
	tokens []uint32
	markedCut
	kept int // of what was passed on for the entry before
}

// A markedCut is how far a prompt has come.
type markedCut struct {
	length int // in tokens and marks
	said   int // of these, to the end of the last message that was seen
	next   int // the message that is looked for
}

// back goes back to a cut that the prompt at hand has in common with the one
// before.
func (s *markedPrompt) back(c markedCut) {
	s.kept = min(s.end(), c.length)
	s.tokens, s.markedCut = s.tokens[:c.length], c
}

// end is how much of the prompt is passed on: all of it while no message was
// recognised in what a template made of it.
func (s *markedPrompt) end() int {
	if s.next == 0 {
		return len(s.tokens)
	}
	return s.said
}

func (s *markedPrompt) cut() markedCut { return s.markedCut }

// ahead is how many messages are looked for in a piece at most: some leave no
// piece after, such as calls of tools that are put in other words.
const ahead = 4

// note takes the tokens of pieces that belong together. Templates do not say
// which message a piece is of: it is the next one whose content it holds.
func (s *markedPrompt) note(pieces []token.Piece, tokens []uint32, messages []trace.Message) {
	if len(s.tokens) == 0 && len(messages) > 0 {
		s.tokens = breaker.BeginMessage(s.tokens, messages[0].Role)
	}
	found := -1
	for i := s.next; i < min(len(messages), s.next+ahead) && found < 0; i++ {
		if holds(pieces, messages[i].Content.Reveal()) {
			found = i
		}
	}
	for i := max(1, s.next); i <= found; i++ { // the first is marked
		s.tokens = breaker.BeginMessage(s.tokens, messages[i].Role)
	}
	s.tokens = breaker.AppendMessage(s.tokens, tokens)
	s.length = len(s.tokens)
	if found >= 0 {
		s.said, s.next = s.length, found+1
	}
}

// holds reports whether one of the pieces is a content, or has it within. What
// is short is in many places by chance.
func holds(pieces []token.Piece, content string) bool {
	trimmed := strings.TrimSpace(content)
	for i := range pieces {
		text := pieces[i].Text
		switch {
		case content == "" || pieces[i].Special || len(text) < len(trimmed):
		case text == content, text == trimmed, len(trimmed) >= 16 && strings.Contains(text, trimmed):
			return true
		}
	}
	return false
}

// A promptPart is the beginning of a prompt on its way to the collector: so many
// tokens of the one before in its job, and these tokens of the job after them.
// So a conversation whose turns follow each other is passed on once.
type promptPart struct {
	root     block.ID
	kept     int
	from, to int
}

// jobTokens is room for most jobs: growing into it would cost more than all else.
const jobTokens = 32 << 10

// parts collect the prompts of a job. Its memory is used again.
type parts struct {
	tokens []uint32
	any    bool
}

func (p *parts) addPrompt(c *chain) promptPart {
	s := &c.spoken
	kept := min(s.kept, s.end())
	if !p.any { // another worker may have had the job before
		kept, p.any = 0, true
	}
	if p.tokens == nil {
		p.tokens = make([]uint32, 0, jobTokens)
	}
	from := len(p.tokens)
	p.tokens = append(p.tokens, s.tokens[kept:s.end()]...)
	return promptPart{c.root, kept, from, len(p.tokens)}
}
