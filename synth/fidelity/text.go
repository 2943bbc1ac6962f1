package fidelity

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
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
	p.Line("", gateVerdict(checks))
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

// ofLimit is the distance of a check over its limit: above 1 it does not hold.
func (c Check) ofLimit() float64 {
	switch {
	case c.Value == nil:
		return math.Inf(1) // the candidate lacks what is measured
	case *c.Value == 0:
		return 0
	}
	return *c.Value / c.Limit
}

// nearestLimit lists the checks that apply: those that do not hold, the farthest off first,
// and then those nearest to their limit.
func nearestLimit(checks []Check) []Check {
	applied := slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.OK == nil })
	slices.SortStableFunc(applied, func(a, b Check) int { return cmp.Compare(b.ofLimit(), a.ofLimit()) })
	return applied
}

// writeAnswer prints the measures that are checked: those that do not hold, the farthest
// off first, and then those nearest to their limit.
func (f Report) writeAnswer(p *textpage.Page, checks []Check, rest string) {
	var rows [][]string
	for _, c := range nearestLimit(checks) {
		if m, ok := f.Measure(c.Name); ok {
			rows = append(rows, measureRow(&m, checks))
		}
	}
	for _, said := range reasons(checks) {
		p.Line("  ", said)
	}
	more, head := 0, measureHead
	if p.Width() < 75 { // else a table would stand in two parts
		head = append(head[:1:1], head[3:]...)
		for i, row := range rows {
			rows[i] = append(row[:1:1], row[3:]...)
		}
	}
	const least = 5 // rows, however much there is to say of checks that do not hold
	if n := max(textpage.AnswerLines-p.Lines()-6, least); len(rows) > n {
		rows, more = rows[:n], len(rows)-n
	}
	p.Columns(head, rows)
	if more > 0 {
		p.Line("", fmt.Sprintf("and %s, none nearer to its limit", page.Many(int64(more), "more check")))
	}
	p.Blank()
	if n := len(f.Warnings); n > 0 {
		rest = strings.TrimSpace(page.Many(int64(n), "warning") + ". " + rest)
	}
	if rest != "" {
		p.Line("", rest)
	}
}

// writeDetails prints all measures, and what to know of them.
func (f Report) writeDetails(p *textpage.Page, checks []Check) {
	for _, c := range checks {
		if c.OK == nil {
			p.Line("  ", "not applicable: "+c.Name+": "+c.Why)
		}
	}
	for _, said := range reasons(checks) {
		p.Line("  ", said)
	}
	var rows [][]string
	for i := range f.Measures {
		rows = append(rows, measureRow(&f.Measures[i], checks))
	}
	p.Table("Measures", measureHead, rows)
	rows = nil
	for _, one := range f.IDC {
		rows = append(rows, []string{strconv.FormatFloat(one.WindowS, 'g', -1, 64), asNumber.print(one.Ref),
			asNumber.print(one.Cand), one.LeftOut})
	}
	p.Table("IDC by scale", []string{"window, s", "reference", "candidate", "left out"}, rows)
	rows = nil
	for _, one := range f.Routes {
		rows = append(rows, []string{one.Router, page.Count(int64(one.Replicas)), page.Count(one.CapacityBlocks),
			asRatio.print(&one.Ref), asRatio.print(&one.Cand)})
	}
	p.Table("Hit ratio behind routers", []string{"router", "replicas", "blocks of each", "reference", "candidate"},
		rows)
	p.Table("TTFT of a queue, s", []string{"load", "p50, reference", "p90", "p99", "p50, candidate", "p90",
		"p99"}, f.queueRows())
	p.Table("Rates by window or lag", []string{"s", "CV of tokens, reference", "candidate",
		"IDC of requests, reference", "candidate",
		"autocorrelation, reference", "candidate"}, f.rateRows())
	if f.Sessions != "" {
		p.Blank()
		p.Line("", fmt.Sprintf("Turns and turn gaps are of %s sessions.", f.Sessions))
	}
	for _, warning := range f.Warnings {
		p.Line("warning: ", warning.Message)
	}
}

// queueRows has a row for each load at which either side has a queue.
func (f Report) queueRows() (rows [][]string) {
	for _, one := range f.Queues {
		row := []string{page.Percent(one.Load)}
		for _, q := range []*QueueTimes{one.Ref, one.Cand} {
			if q == nil {
				row = append(row, noValue, noValue, noValue)
			} else {
				row = append(row, page.Number(q.P50), page.Number(q.P90), page.Number(q.P99))
			}
		}
		if one.Ref != nil || one.Cand != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// rateRows has a row for each width that either side has windows of.
func (f Report) rateRows() (rows [][]string) {
	for _, one := range f.Rates {
		row := []string{page.Count(int64(one.Seconds))}
		for _, v := range []*float64{one.RefCV, one.CandCV, one.RefIDC, one.CandIDC, one.RefACF, one.CandACF} {
			row = append(row, asRatio.print(v))
		}
		if one.RefIDC != nil || one.CandIDC != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// reasons say why checks failed, where there is something to say, each reason once.
func reasons(checks []Check) []string {
	var said []string
	names := map[string][]string{}
	for _, c := range checks {
		if !c.Failed() || c.Why == "" {
			continue
		}
		if names[c.Why] == nil {
			said = append(said, c.Why)
		}
		names[c.Why] = append(names[c.Why], c.Name)
	}
	for i, why := range said {
		said[i] = strings.Join(names[why], ", ") + ": " + why
	}
	return said
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
