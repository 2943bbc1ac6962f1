package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/textpage"
)

// WriteText writes the sweep for people: the highest load, how sure it is, and the main figures of
// every level. With details it writes all figures, and why each level ended as it did.
func (r *SweepResult) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	p.Line("", r.Loosened().Beside(r.answer()))
	if warning := r.warned(); warning != "" {
		p.Line("Warning: ", warning+".")
	}
	if l := r.Untrusted(); l != nil {
		p.Line("Not trustworthy: ", fmt.Sprintf("at %s the client was the limit: %s", l.Name, l.Why))
	}
	for _, says := range r.Says()[1:] { // the answer says the first
		p.Line("  ", says)
	}
	if r.Hypothesis != "" {
		p.Line("  ", "Hypothesis: "+r.Hypothesis)
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

// writeAnswer writes the main columns of every level.
func (r *SweepResult) writeAnswer(p *textpage.Page, rest string) {
	below := []string{"Latencies in ms, TTFT and E2E from the schedule. " + r.chanceNote()}
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
	for short := 1; ; short++ {
		head, rows := r.table(short)
		if head == nil {
			break
		}
		if short > 1 {
			p.Blank()
		}
		p.Columns(head, rows)
	}
	p.Blank()
	p.Line("", strings.Join(below, " "))
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

// writeDetails writes every level with all its figures.
func (r *SweepResult) writeDetails(p *textpage.Page) {
	if note := r.loopNote(); note != "" {
		p.Line("  ", note)
	}
	head, rows := r.table(0)
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
