package replay

import (
	"bytes"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
)

// A share is what is known of a threaded prompt: what was sent for the turn
// before, the reply to it but for the last token, which has no KV, and what
// another turn that goes on from the same reply has sent already. It is counted
// as prompts are sent.
type share struct {
	seen    int        // tokens, if no other has gone on from the reply
	whole   int        // tokens, with all of the reply
	turn    int        // of the template behind the reply
	size    int        // of blocks; 0 where they tell nothing
	aligned bool       // its own part begins where the reply is recorded to end
	beside  *followers // nil where there is no other
}

// followers are the turns that have gone on from one reply.
type followers struct {
	any    bool
	blocks [][]uint64 // of those whose own parts begin where the reply ends
}

// known counts the known tokens of a row's prompt, and has it known to those
// that follow.
func (s *share) known(row *trace.Request) int32 {
	known, f := s.seen, s.beside
	if f == nil {
		return int32(known)
	}
	if f.any {
		known = max(known, s.whole)
	}
	f.any = true
	if s.aligned && s.size > 0 {
		for _, blocks := range f.blocks {
			known = max(known, common(blocks, row, s.size)-s.turn)
		}
		f.blocks = append(f.blocks, row.Blocks)
	}
	return int32(known)
}

// common is the leading tokens that a row has in common with one of other
// blocks.
func common(blocks []uint64, row *trace.Request, size int) int {
	n := 0
	for n < len(blocks) && n < len(row.Blocks) && blocks[n] == row.Blocks[n] {
		n++
	}
	return min(n*size, int(row.InputTokens))
}

// Prompt implements [result.Prompter] for the turn at hand.
func (t *threads) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	b := t.now.before
	if b == nil {
		buf, err := t.prompts.Prompt(row, buf)
		if err == nil {
			t.said(buf, nil, buf)
		}
		return buf, err
	}
	for _, th := range b.path() {
		buf = append(append(buf, th.own.text...), th.reply.text...)
	}
	own := len(buf)
	buf, err := t.prompts.Continue(row, t.plan(0), false, buf)
	if err == nil {
		t.said(buf[own:], nil, buf)
	}
	return buf, err
}

// Tokens implements [result.Prompter] for the turn at hand.
func (t *threads) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	b := t.now.before
	if b == nil {
		buf, err := t.prompts.Tokens(row, buf)
		if err == nil {
			t.said(nil, buf, []byte(t.opt.Word))
		}
		return buf, err
	}
	for _, th := range b.path() {
		buf = append(append(buf, th.own.ids...), th.reply.ids...)
	}
	own := len(buf)
	buf, err := t.prompts.ContinueTokens(row, t.plan(0), buf)
	if err == nil {
		t.said(nil, buf[own:], []byte(t.opt.Word))
	}
	return buf, err
}

// Messages implements [result.Conversation] for the turn at hand. A user says a word at
// least.
func (t *threads) Messages(row *trace.Request, buf []byte, ends []int) ([]byte, []int, error) {
	own := 0
	var err error
	if b := t.now.before; b == nil {
		buf, err = t.prompts.Prompt(row, buf)
	} else {
		for _, th := range b.path() {
			buf = append(buf, th.own.text...)
			ends = append(ends, len(buf))
			buf = append(buf, th.reply.text...)
			ends = append(ends, len(buf))
		}
		own = len(buf)
		buf, err = t.prompts.Continue(row, t.plan(1), true, buf)
	}
	if err == nil {
		t.said(buf[own:], nil, nil)
	}
	return buf, append(ends, len(buf)), err
}

// path is the thread and those before it, the first one first.
func (th *thread) path() []*thread {
	var path []*thread
	for ; th != nil; th = th.before {
		path = append(path, th)
	}
	slices.Reverse(path)
	return path
}

// said keeps what the prompt at hand has of its own, if turns may follow, and
// how it ends, where the reply goes on from that.
func (t *threads) said(text []byte, ids []uint32, end []byte) {
	u := &t.now
	if u.before == nil {
		u.total = int(u.row.InputTokens)
	}
	if t.lineage.following(u.id) == 0 {
		return
	}
	u.own, u.ids = &said{slices.Clone(text), slices.Clone(ids)}, ids != nil
	if end = end[max(0, len(end)-256):]; len(end) > 0 {
		u.seam = string(end[max(0, bytes.LastIndexByte(end, ' ')):])
	}
}

// A handover takes a reply from its flight to the threads.
type handover struct {
	seam string // that it stands behind
	ids  bool   // the prompt was token ids, and so must the reply be

	reply  result.Reply
	said   *said // the reply, once it is settled; nil where there is none to repeat
	tokens int
	sure   bool // these are the tokens that were generated
	input  int  // the server's count of the prompt, 0 if unknown
}

// settle finds the tokens of a reply. It works in the flight's own goroutine.
func (a *handover) settle(encode func([]uint32, string) []uint32, r *result.Result) {
	if r.Input != nil {
		a.input = int(*r.Input)
	}
	s := new(said)
	s.text, s.ids = a.reply.Take()
	if len(s.text)+len(s.ids) == 0 || r.Failed() {
		return
	}
	generated := -1
	if r.Output != nil && r.OutputFrom == result.FromUsage {
		generated = int(*r.Output)
	}
	if a.ids && len(s.ids) == generated {
		s.text, a.tokens, a.sure = nil, generated, true
		a.said = s
		return
	}
	if s.ids = nil; len(s.text) == 0 {
		return
	}
	a.said = s
	a.encode(encode, s)
	// A stop token counts, and has no text.
	stopped := r.FinishReason == "stop" && a.tokens == generated-1
	a.sure = a.sure && (generated < 0 || a.tokens == generated || stopped)
}

// encode finds the tokens of a reply behind what it stands behind, and whether
// they end where it begins.
func (a *handover) encode(encode func([]uint32, string) []uint32, s *said) {
	before := encode(nil, a.seam)
	all := encode(nil, a.seam+string(s.text))
	a.sure = len(all) > len(before) && slices.Equal(all[:len(before)], before)
	switch {
	case a.ids && a.sure:
		s.ids = all[len(before):]
	case a.ids:
		s.ids, a.sure = encode(nil, string(s.text)), true
	}
	a.tokens = max(len(all)-len(before), 0)
	if a.ids {
		s.text, a.tokens = nil, len(s.ids)
	}
}
