package synth

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"reprise/trace"
)

// categorised makes a row of a category that is drawn. One that cannot be had
// yet, since nothing came before, falls back to what begins with the global
// prefix alone.
func (t *partRows) categorised(x *turn) {
	r := &x.row
	switch trace.Categories()[t.category.draw()] {
	case trace.Cold:
		t.prompt(r, nil)
	case trace.Global:
		t.prompt(r, t.global)
	case trace.Branch:
		t.prompt(r, t.groups[t.group.draw()].prefix(x.at))
	case trace.Duplicate:
		if was := t.earlier(func(*trace.Request) bool { return true }); was != nil {
			r.Blocks, r.InputTokens = was.Blocks, was.InputTokens
			return
		}
		t.prompt(r, t.global)
	case trace.Continuation:
		t.next(r)
	}
}

// next makes a row the next turn of an earlier one, which then has its next
// turn: a second one would be a branch. Where lengths are those of whole prompts
// the earlier one must be short enough.
func (t *partRows) next(r *trace.Request) {
	var want int32
	if t.input != nil {
		want = t.input.Draw()
	}
	fits := func(was *trace.Request) bool {
		grown := int64(was.InputTokens) + int64(was.OutputTokens)
		return was.OutputTokens >= 0 && int(was.InputTokens) >= t.g.s.Block && grown < maxPrompt && (t.input == nil || grown < int64(want))
	}
	was := t.earlier(fits)
	if was == nil {
		t.prompt(r, t.global)
		return
	}
	r.InputTokens = want
	if t.input == nil {
		r.InputTokens = was.InputTokens + was.OutputTokens + max(1, t.own.Draw())
	}
	r.Blocks = t.g.fresh(t.full(was), r.InputTokens)
	was.OutputTokens = -1 // it has its next turn
}

// earlier is one of the recent rows that will do, or nil.
func (t *partRows) earlier(do func(*trace.Request) bool) *trace.Request {
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

func (t *partRows) remember(r *trace.Request) {
	window := t.Categories.Window
	if window == 0 {
		window = 1000
	}
	was := *r
	if len(t.recent) < window {
		t.recent = append(t.recent, &was)
		return
	}
	t.recent[t.oldest] = &was
	t.oldest = (t.oldest + 1) % window
}

// weights are the chances of a group's prefixes.
func (g PrefixGroup) weights() ([]float64, error) {
	weights := make([]float64, max(1, g.Count))
	name, arg, _ := strings.Cut(g.Popularity, ":")
	s, err := strconv.ParseFloat(arg, 64)
	switch {
	case g.Popularity == "" || g.Popularity == "uniform":
		s = 0
	case name != "zipf" || err != nil || !(s >= 0 && s <= 10):
		return nil, errors.New("want uniform or zipf:S with S from 0 to 10")
	}
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -s)
	}
	return weights, nil
}
