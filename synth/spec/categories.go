package spec

import (
	"reprise/trace"
)

// A past is an earlier row that another may build on.
type past struct {
	trace.Request
	shared   int  // leading blocks that it did not bring itself
	followed bool // it has its next turn
	of       *pastSession
}

// A pastSession is one of a row of a category: a prompt and its next turns.
type pastSession struct {
	id     int64
	copied bool // another session has blocks that this one brought
}

// categorised makes a row of a category that is drawn. One that cannot be had
// yet, since nothing came before, falls back to a template.
func (t *partRows) categorised(x *turn) {
	r := &x.row
	x.past.of = &pastSession{id: -1}
	switch trace.Categories()[t.category.draw()] {
	case trace.Cold:
		t.prompt(r, nil)
	case trace.Template:
		t.begin(x, t.template(x.at))
	case trace.Branch:
		t.branchFrom(x)
	case trace.Duplicate:
		was := t.earlier(func(*past) bool { return true })
		if was == nil {
			t.begin(x, t.template(x.at))
			break
		}
		r.Blocks, r.InputTokens = was.Blocks, was.InputTokens
		x.past.shared, x.past.of.copied, was.of.copied = len(was.Blocks), true, true
	case trace.Continuation:
		t.continueEarlier(x)
	}
	if t.Categories.Continuation > 0 {
		of := x.past.of
		if r.Turn == nil {
			of.id, r.Turn = t.g.sessions, trace.Ptr(int32(0))
			t.g.sessions++
		}
		r.Session = trace.Ptr(of.id)
	}
}

// begin makes a prompt after blocks that others have as well.
func (t *partRows) begin(x *turn, shared []uint64) {
	t.prompt(&x.row, shared)
	x.past.shared = len(shared)
}

// branchFrom makes a row that leaves the own part of another session. A second one from there would count
// as on a template.
func (t *partRows) branchFrom(x *turn) {
	was := t.earlier(func(was *past) bool { return !was.of.copied && len(t.full(&was.Request)) > was.shared })
	if was == nil {
		t.begin(x, t.template(x.at))
		return
	}
	own := len(t.full(&was.Request)) - was.shared
	t.begin(x, was.Blocks[:was.shared+1+t.any.IntN(own)])
	was.of.copied = true
}

// continueEarlier makes a row the next turn of the last one of a session. Where lengths are those of whole
// prompts the earlier one must be short enough.
func (t *partRows) continueEarlier(x *turn) {
	var want int32
	if t.input != nil {
		want = t.input.Draw()
	}
	was := t.earlier(func(was *past) bool {
		grown := int64(was.InputTokens) + int64(was.OutputOr(0))
		return !was.followed && len(t.full(&was.Request)) > 0 && grown < maxPrompt &&
			(t.input == nil || grown < int64(want))
	})
	if was == nil {
		t.begin(x, t.template(x.at))
		return
	}
	r := &x.row
	r.InputTokens, r.Turn = want, trace.Ptr(*was.Turn+1)
	if t.input == nil {
		r.InputTokens = was.InputTokens + was.OutputOr(0) + max(1, t.own.Draw())
	}
	r.Blocks = t.g.fresh(t.full(&was.Request), r.InputTokens)
	x.past.shared, x.past.of, was.followed = len(t.full(&was.Request)), was.of, true
}

// earlier is one of the recent rows that will do, or nil.
func (t *partRows) earlier(do func(*past) bool) *past {
	if len(t.recent) == 0 {
		return nil
	}
	from := t.any.IntN(len(t.recent))
	for i := range t.recent {
		if was := t.recent[(from+i)%len(t.recent)]; do(was) {
			return was
		}
	}
	return nil
}
