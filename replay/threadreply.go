package replay

import (
	"slices"

	"reprise/replay/result"
	"reprise/trace"
)

// A segment is a piece of a conversation, as text or as token ids. It is kept by a
// pointer, since fmt would print an unexported field of another struct.
type segment struct {
	text []byte
	ids  []uint32
}

func (s *segment) bytes() int64 { return int64(len(s.text) + 4*len(s.ids)) }

// A threadReply takes a reply from its request to the threads.
type threadReply struct {
	seam string // the text that it follows
	ids  bool   // the prompt was token ids, and so must the reply be

	reply  result.Reply
	found  *segment // the reply with its tokens; nil where there is none to repeat
	tokens int
	sure   bool // these are the tokens that were generated
	same   int  // tokens at its begin that were generated, and have KV; -1 where it merges with what it follows
	input  int  // the server's count of the prompt, 0 if unknown
}

// findTokens finds the tokens of a reply. It runs in the request's own goroutine.
func (a *threadReply) findTokens(t *Threading, r *result.Result) {
	if r.Input != nil {
		a.input = int(*r.Input)
	}
	s := new(segment)
	var ends []int32
	s.text, s.ids, ends = a.reply.Take()
	if len(s.text)+len(s.ids) == 0 || r.Failed() {
		return
	}
	generated := -1
	if r.Output != nil && r.OutputFrom == result.FromUsage {
		generated = int(*r.Output)
	}
	if a.ids && len(s.ids) == generated {
		s.text, a.tokens, a.sure, a.same = nil, generated, true, generated-1
		a.found = s
		return
	}
	if s.ids = nil; len(s.text) == 0 {
		return
	}
	a.found = s
	// Its tokens are those after the text that it follows, if that text's tokens end
	// where the reply begins.
	before := t.Encode(nil, a.seam)
	all := t.Encode(nil, a.seam+string(s.text))
	apart := len(all) > len(before) && slices.Equal(all[:len(before)], before)
	a.tokens = max(len(all)-len(before), 0)
	if a.ids {
		if s.ids = t.Encode(nil, string(s.text)); apart {
			s.ids = all[len(before):]
		} else {
			apart, before, all = true, nil, s.ids
		}
		a.tokens = len(s.ids)
	}
	// A stop token counts, and has no text.
	stopped := r.FinishReason == "stop" && a.tokens == generated-1
	a.sure = apart && (generated < 0 || a.tokens == generated || stopped)
	switch {
	case !apart:
		a.same = -1
	case t.Decode != nil && len(ends) > 0 && len(ends) <= generated:
		a.same = t.sameTokens(all, len(before), s.text, ends)
		a.sure = a.sure && a.same == a.tokens
	case a.sure:
		a.same = a.tokens
	}
	if generated < 0 {
		generated = a.tokens
	}
	a.same = min(a.same, generated-1) // the last one has no KV
	if a.ids {
		s.text = nil
	}
}

// sameTokens counts the tokens of a reply, those of all from first on, up to the first that
// is not as the pieces say in which the text came. A piece is one token, or several that it
// encodes to by itself, as where a server sends two at once.
func (t *Threading) sameTokens(all []uint32, first int, text []byte, ends []int32) (same int) {
	var alone []uint32
	var one, two []byte
	start, next := 0, first // of the piece, and its first token
	for _, end := range ends {
		at, i := start, next
		for ; i < len(all) && at < int(end); i++ {
			// Some tokenizers write a token at the begin of a text without its space.
			from := max(i-1, 0)
			var err error
			if two, err = t.Decode(two[:0], all[from:i+1]); err == nil {
				one, err = t.Decode(one[:0], all[from:i])
			}
			if err != nil {
				return next - first
			}
			at += len(two) - len(one)
		}
		if at != int(end) {
			break
		}
		if i > next+1 {
			if alone = t.Encode(alone[:0], string(text[start:end])); !slices.Equal(alone, all[next:i]) {
				break
			}
		}
		start, next = int(end), i
	}
	return next - first
}

// A threadPrefix is what is known of a prompt that holds a reply: what was sent for the
// turn before, the reply to it without its last token, which has no KV, and what
// another turn that goes on from the same reply has sent already. It is counted
// as prompts are sent.
type threadPrefix struct {
	seen      int        // tokens, if no other has gone on from the reply
	whole     int        // tokens, with all of the reply
	after     int        // tokens of the template after the prompt
	size      int        // of blocks; 0 where they tell nothing
	aligned   bool       // its own part begins where the reply is recorded to end
	followers *followers // nil where there is no other
}

// followers are the turns that have gone on from one reply.
type followers struct {
	any    bool
	blocks [][]uint64 // of those whose own parts begin where the reply ends
}

// known counts the known tokens of a row's prompt, and makes the prompt known to those
// that follow.
func (p *threadPrefix) known(row *trace.Request) int32 {
	known, f := p.seen, p.followers
	if f == nil {
		return int32(known)
	}
	if f.any {
		known = max(known, p.whole)
	}
	f.any = true
	if p.aligned && p.size > 0 {
		for _, blocks := range f.blocks {
			n := 0 // leading blocks that both have
			for n < len(blocks) && n < len(row.Blocks) && blocks[n] == row.Blocks[n] {
				n++
			}
			known = max(known, min(n*p.size, int(row.InputTokens)-p.after))
		}
		f.blocks = append(f.blocks, row.Blocks)
	}
	return int32(known)
}
