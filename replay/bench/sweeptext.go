package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// WriteText writes the sweep for people: the highest load, how sure it is, and the levels
// around it, in [textpage.AnswerLines] lines at most. With details it writes every level,
// and why each ended as it did.
func (r *SweepResult) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	p.LineAtMost(2, "", r.answer())
	if warning := r.warned(); warning != "" {
		p.LineAtMost(o.AtMost(4), "Warning: ", warning+".")
	}
	if l := r.Untrusted(); l != nil {
		p.LineAtMost(o.AtMost(2), "Not trustworthy: ", fmt.Sprintf("at %s the client was the limit: %s", l.Name, l.Why))
	}
	for _, says := range r.Says()[1:] { // the answer says the first
		p.LineAtMost(o.AtMost(2), "  ", says)
	}
	if r.Hypothesis != "" {
		p.LineAtMost(o.AtMost(2), "  ", "Hypothesis: "+r.Hypothesis)
	}
	if o.Details {
		r.writeDetails(p)
	} else {
		r.writeAnswer(p, o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

// answer is the highest load, and what bounds it.
func (r *SweepResult) answer() string {
	answer := r.Headline()
	if len(r.Contract) > 0 {
		answer += " (" + strings.Join(r.Contract, "; ") + ")"
	}
	if r.Highest.Load != nil && r.Highest.Sustained {
		answer += ", sustained by a longer run"
	}
	return answer + "."
}

// writeAnswer writes the levels next to the highest load, as many as there is room for.
func (r *SweepResult) writeAnswer(p *textpage.Page, rest string) {
	below := []string{"Latencies in ms, TTFT from the schedule. " + r.chanceNote()}
	switch {
	case r.bySession():
		below[0] = r.caption() + ". " + r.chanceNote()
	case r.Closed:
		below[0] = "Latencies in ms. " + r.chanceNote() + " A closed loop hides saturation."
	}
	if tier := trace.TierNote("table", r.Tier); tier != "" {
		below = append(below, tier)
	}
	if rest != "" {
		below = append(below, rest)
	}
	foot := textpage.New(textpage.Options{Width: p.Width()})
	foot.LineAtMost(4, "", strings.Join(below, " "))
	head, rows := r.table(slices.DeleteFunc(slices.Clone(r.columns()), func(c sweepColumn) bool { return !c.answers }))
	levels := r.sorted()
	for i := range rows { // the role stands behind the load
		if levels[i].Role != roleLevel {
			rows[i][0] += " " + levels[i].Role
		}
	}
	more := 0
	for room := textpage.AnswerLines - p.Lines() - foot.Lines() - 4; len(rows) > max(room, 1); more++ {
		i := r.farthest(levels)
		levels, rows = slices.Delete(levels, i, i+1), slices.Delete(rows, i, i+1)
	}
	p.Columns(head, rows)
	if more > 0 {
		p.Line("", "and "+page.Many(int64(more), "more level"))
	}
	p.Blank()
	p.LineAtMost(4, "", strings.Join(below, " "))
}

// farthest is the level whose load is farthest from the highest one, or, where none
// holds, the last.
func (r *SweepResult) farthest(levels []*Level) int {
	if r.Highest.Load == nil {
		return len(levels) - 1
	}
	far := slices.MaxFunc(levels, func(a, b *Level) int {
		return cmp.Compare(math.Abs(a.Load-*r.Highest.Load), math.Abs(b.Load-*r.Highest.Load))
	})
	return slices.Index(levels, far)
}

// writeDetails writes every level with all its figures. Columns that say nothing are left
// out: errors where there are none, and what a closed loop offered, which is what it
// achieved.
func (r *SweepResult) writeDetails(p *textpage.Page) {
	if note := r.loopNote(); note != "" {
		p.Line("  ", note)
	}
	failed := slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Requests.ErrorShare != nil && *l.Requests.ErrorShare > 0 })
	head, rows := r.table(slices.DeleteFunc(slices.Clone(r.columns()), func(c sweepColumn) bool {
		return c.head == "errors" && !failed || c.head == "offered/s" && r.Closed
	}))
	for i, l := range r.sorted() {
		if l.Role != roleLevel {
			rows[i][0] += " " + l.Role
		}
	}
	p.Table("Levels, "+strings.ToLower(r.caption()[:1])+r.caption()[1:], head, rows)
	p.Blank()
	p.Line("", r.levelsNote())
	for _, line := range r.remarks() {
		p.Line("  - ", line)
	}
	if tier := trace.TierNote("table", r.Tier); tier != "" {
		p.Line("", tier)
	}
}
