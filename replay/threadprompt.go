package replay

import (
	"bytes"
	"slices"

	"reprise/trace"
)

// Prompt implements [result.Prompter] for the current turn.
func (t *threads) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	b := t.current.before
	if b == nil {
		buf, err := t.prompts.Prompt(row, buf)
		if err == nil {
			t.keepOwn(buf, nil, buf)
		}
		return buf, err
	}
	for _, th := range b.chain() {
		buf = append(append(buf, th.own.text...), th.reply.text...)
	}
	own := len(buf)
	buf, err := t.prompts.Continue(row, t.ownTokens(0), false, buf)
	if err == nil {
		t.keepOwn(buf[own:], nil, buf)
	}
	return buf, err
}

// Tokens implements [result.Prompter] for the current turn.
func (t *threads) Tokens(row *trace.Request, buf []uint32) ([]uint32, error) {
	b := t.current.before
	if b == nil {
		buf, err := t.prompts.Tokens(row, buf)
		if err == nil {
			t.keepOwn(nil, buf, []byte(t.opt.Word))
		}
		return buf, err
	}
	for _, th := range b.chain() {
		buf = append(append(buf, th.own.ids...), th.reply.ids...)
	}
	own := len(buf)
	buf, err := t.prompts.ContinueTokens(row, t.ownTokens(0), buf)
	if err == nil {
		t.keepOwn(nil, buf[own:], []byte(t.opt.Word))
	}
	return buf, err
}

// Messages implements [result.Conversation] for the current turn. A user says a word at
// least.
func (t *threads) Messages(row *trace.Request, buf []byte, ends []int) ([]byte, []int, error) {
	own := 0
	var err error
	if b := t.current.before; b == nil {
		buf, err = t.prompts.Prompt(row, buf)
	} else {
		for _, th := range b.chain() {
			buf = append(buf, th.own.text...)
			ends = append(ends, len(buf))
			buf = append(buf, th.reply.text...)
			ends = append(ends, len(buf))
		}
		own = len(buf)
		buf, err = t.prompts.Continue(row, t.ownTokens(1), true, buf)
	}
	if err == nil {
		t.keepOwn(buf[own:], nil, nil)
	}
	return buf, append(ends, len(buf)), err
}

// chain is the thread and those before it, the first one first.
func (th *thread) chain() []*thread {
	var chain []*thread
	for ; th != nil; th = th.before {
		chain = append(chain, th)
	}
	slices.Reverse(chain)
	return chain
}

// keepOwn keeps what the current prompt has of its own, if turns may follow, and how
// it ends, where the reply goes on from that.
func (t *threads) keepOwn(text []byte, ids []uint32, end []byte) {
	u := &t.current
	if u.before == nil {
		u.total = int(u.row.InputTokens)
	}
	if t.following(u.id) == 0 {
		return
	}
	u.own, u.ids = &segment{slices.Clone(text), slices.Clone(ids)}, ids != nil
	if end = end[max(0, len(end)-256):]; len(end) > 0 {
		u.seam = string(end[max(0, bytes.LastIndexByte(end, ' ')):])
	}
}
