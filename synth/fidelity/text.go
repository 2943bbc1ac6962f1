package fidelity

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// WriteText prints f and the checks of its gate for people: the verdict, then the checks
// that do not hold and the chief measures, in [textpage.AnswerLines] lines at most. With
// details it prints all measures, and what to know of them.
func (f Report) WriteText(w io.Writer, checks []Check, o textpage.Options) error {
	p := textpage.New(o)
	p.LineAtMost(3, "", gateVerdict(checks))
	if tier := trace.TierNote("report", f.Tier); tier != "" {
		p.Line("", tier)
	}
	if o.Details {
		f.writeDetails(p, checks)
	} else {
		f.writeAnswer(p, checks, o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

var measureHead = []string{"measure", "reference", "candidate", "distance", "limit", "check"}

// measureRow is the row of a measure, with its check where there is one.
func measureRow(m *Measure, checks []Check) []string {
	about := aboutMeasure(m.Name)
	row := []string{m.Name, about.form.print(m.Ref), about.form.print(m.Cand), asRatio.print(m.Distance), noValue, ""}
	for i := range checks {
		if c := &checks[i]; c.Name == m.Name {
			row[4], row[5] = strconv.FormatFloat(c.Limit, 'g', -1, 64), c.result()
			if m.Distance != nil {
				row[3] = page.Beside(*m.Distance, c.Limit)
			}
		}
	}
	return row
}

// writeAnswer prints the measures that are checked, those that do not hold first.
func (f Report) writeAnswer(p *textpage.Page, checks []Check, rest string) {
	var failed, held [][]string
	for i := range f.Measures {
		for _, c := range checks {
			if c.Name != f.Measures[i].Name || c.OK == nil {
				continue
			}
			if row := measureRow(&f.Measures[i], checks); c.Failed() {
				failed = append(failed, row)
			} else {
				held = append(held, row)
			}
		}
	}
	for _, c := range checks {
		if c.Failed() && c.Why != "" && p.Lines() < 6 {
			p.LineAtMost(2, "  ", c.Name+": "+c.Why)
		}
	}
	rows, more, head := append(failed, held...), 0, measureHead
	if p.Width() < 75 { // else a table would stand in two parts
		head = append(head[:1:1], head[3:]...)
		for i, row := range rows {
			rows[i] = append(row[:1:1], row[3:]...)
		}
	}
	if n := textpage.AnswerLines - p.Lines() - 6; len(rows) > n {
		rows, more = rows[:n], len(rows)-n
	}
	p.Columns(head, rows)
	if more > 0 {
		p.Line("", fmt.Sprintf("and %s", page.Many(int64(more), "more check")))
	}
	p.Blank()
	if n := len(f.Warnings); n > 0 {
		rest = strings.TrimSpace(page.Many(int64(n), "warning") + ". " + rest)
	}
	if rest != "" {
		p.LineAtMost(2, "", rest)
	}
}

// writeDetails prints all measures, and what to know of them.
func (f Report) writeDetails(p *textpage.Page, checks []Check) {
	for _, c := range checks {
		if c.OK == nil {
			p.Line("  ", "not applicable: "+c.Name+": "+c.Why)
		} else if c.Failed() && c.Why != "" {
			p.Line("  ", c.Name+": "+c.Why)
		}
	}
	var rows [][]string
	for i := range f.Measures {
		rows = append(rows, measureRow(&f.Measures[i], checks))
	}
	p.Table("Measures", measureHead, rows)
	rows = nil
	for _, one := range f.IDC {
		rows = append(rows, []string{strconv.FormatFloat(one.WindowS, 'g', -1, 64), asNumber.print(one.Ref), asNumber.print(one.Cand), one.LeftOut})
	}
	p.Table("IDC by scale", []string{"window, s", "reference", "candidate", "left out"}, rows)
	if f.Sessions != "" {
		p.Blank()
		p.Line("", fmt.Sprintf("Turns and turn gaps are of %s sessions.", f.Sessions))
	}
	for _, warning := range f.Warnings {
		p.Line("warning: ", warning.Message)
	}
}

// gateVerdict counts the checks.
func gateVerdict(checks []Check) string {
	var failed []string
	applied := 0
	for _, c := range checks {
		if c.OK != nil {
			applied++
		}
		if c.Failed() {
			failed = append(failed, c.Name)
		}
	}
	s := fmt.Sprintf("All %d checks hold", applied)
	if len(failed) > 0 {
		s = fmt.Sprintf("%d of %d checks do not hold: %s", len(failed), applied, strings.Join(failed, ", "))
	}
	if n := len(checks) - applied; n > 0 {
		s += fmt.Sprintf("; %d do not apply", n)
	}
	return s + "."
}
