package spec

import (
	"reprise/trace"
)

// A past is an earlier row that another may build on.
type past struct {
	trace.Request
	shared   int   // leading blocks that it did not bring itself
	again    bool  // it repeats an earlier one
	followed *bool // it has its next turn, or one of those that repeat it has
}

// categorised makes a row of a category that is drawn. One that cannot be had
// yet, since nothing came before, falls back to what begins with the global
// prefix alone.
func (t *partRows) categorised(x *turn) {
	r := &x.row
	switch trace.Categories()[t.category.draw()] {
	case trace.Cold:
		t.prompt(r, nil)
	case trace.Global:
		t.begin(x, t.global)
	case trace.Branch:
		t.begin(x, t.groups[t.group.draw()].prefix(x.at))
	case trace.Duplicate:
		// The earlier row is longer than the global prefix, or this one would count as
		// that. Duplicates of duplicates would in the end be of one prompt, which then
		// were the global prefix.
		was := t.earlier(func(was *past) bool { return !was.again && len(was.Blocks) > len(t.global) })
		if was == nil {
			t.begin(x, t.global)
			return
		}
		r.Blocks, r.InputTokens = was.Blocks, was.InputTokens
		x.past = past{shared: was.shared, again: true, followed: was.followed}
		*was.followed = false // a turn that follows this one is no branch
	case trace.Continuation:
		t.continueEarlier(x)
	}
}

// begin makes a prompt after blocks that others have as well.
func (t *partRows) begin(x *turn, shared []uint64) {
	t.prompt(&x.row, shared)
	x.past.shared = len(shared)
}

// continueEarlier makes a row the next turn of an earlier one, which then has its next
// turn: a second one would be a branch. So would one whose full blocks others
// have as well. Where lengths are those of whole prompts the earlier one must be
// short enough.
func (t *partRows) continueEarlier(x *turn) {
	var want int32
	if t.input != nil {
		want = t.input.Draw()
	}
	was := t.earlier(func(was *past) bool {
		grown := int64(was.InputTokens) + int64(was.OutputOr(0))
		return !*was.followed && len(t.full(&was.Request)) > max(was.shared, len(t.global)) && grown < maxPrompt && (t.input == nil || grown < int64(want))
	})
	if was == nil {
		t.begin(x, t.global)
		return
	}
	r := &x.row
	r.InputTokens = want
	if t.input == nil {
		r.InputTokens = was.InputTokens + was.OutputOr(0) + max(1, t.own.Draw())
	}
	r.Blocks = t.g.fresh(t.full(&was.Request), r.InputTokens)
	*was.followed = true
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
