package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// A Decision is what a record of a tuning says beside its runs. What is empty was not
// given, and the record says so.
type Decision struct {
	Why             string   // the tuning stopped
	PricePerGPUHour float64  // in any currency
	Digests         []string // of the results files
}

// Accepted tells whether the figures can be trusted and the contract, if there is one,
// is kept.
func (s *Summary) Accepted() bool {
	return s.Verdict.Trustworthy && (s.Contract == nil || s.Contract.Holds)
}

// outcome is whether a setting is accepted, and all reasons why not.
func (s *Summary) outcome(preferred bool) string {
	switch {
	case !s.Verdict.Trustworthy:
		var why []string
		for _, r := range s.Verdict.Reasons {
			why = append(why, r.Text)
		}
		return "rejected, since it cannot be trusted: " + strings.Join(why, "; ")
	case !s.Accepted() && !s.Contract.Fails() && !s.Contract.Judged:
		return "not judged: " + s.Contract.String()
	case !s.Accepted():
		return "rejected: " + s.Contract.String()
	case preferred:
		return "accepted, and preferred"
	}
	return "accepted"
}

// DecisionRecord lays out a tuning: which settings it accepted and rejected, by what target, with the latencies and
// the cost of each. The preferred setting is the headline; the first screen has what was accepted and rejected, the
// main figures and the distributions of all runs.
func DecisionRecord(runs []Named, d Decision) (*doc.Document, error) {
	var all []*result.Run
	for i := range runs {
		all = append(all, &runs[i].Run)
	}
	differ, err := Differing(all...)
	if err != nil {
		return nil, err
	}
	best, rule := chosen(runs)
	p := &doc.Document{Title: "Decision record", Headline: decisionHeadline(runs, best),
		Lead: "Target: " + strings.Join(target(runs), "; "), Tag: trace.TierNote("record", Tier(runs)),
		Table: firstOverlay(runs), Terms: pageTerms()}

	why := []string{rationale(runs, d, best)}
	for i := range runs {
		r, level, name := &runs[i], doc.Good, textpage.Plain(runs[i].Name)
		if !r.Accepted() {
			level = doc.Bad
		}
		outcome := r.outcome(i == best && len(runs) > 1)
		short := outcome
		if reasons := r.Verdict.Reasons; len(reasons) > 1 {
			first, _, _ := strings.Cut(outcome, reasons[1].Text)
			short = first + doc.Many(int64(len(reasons)-1), "more reason") + " under Rationale"
			why = append(why, name+": "+outcome+".")
		}
		p.Verdict = append(p.Verdict, doc.Note{Level: level, Word: name, Text: r.Verdict.Loosened.Beside(short)})
		if w := Warned(r.Run.PresetWarning, r.Run.Extrapolates); w != "" {
			p.Notes = append(p.Notes, doc.Note{Level: doc.Warn, Text: name + ": " + textpage.Plain(w)})
		}
	}
	plots := distributions(runs)
	if len(plots) > 0 {
		p.Plot, plots = &plots[0], plots[1:]
	}

	var first [][]string // the settings that differ stand above the figures
	for _, row := range differ[:min(len(differ), 3)] {
		row = slices.Clone(row)
		row[0] = strings.ReplaceAll(row[0][strings.LastIndexByte(row[0], '.')+1:], "_", " ")
		first = append(first, row)
	}
	left := min(len(p.Table.Rows), firstScreenRows-len(first))
	p.Table.Rows = append(first, p.Table.Rows[:left]...)
	p.Table.RowTerms = append(make([]string, len(first)), p.Table.RowTerms[:left]...)

	head := append([]string{"setting"}, p.Table.Head[1:]...)
	settings := doc.Section{Title: "What differs", Text: []string{rule}}
	switch {
	case len(differ) > 0:
		settings.Tables = []doc.Table{{Head: head, Rows: differ}}
	case len(runs) > 1:
		settings.Text = append(settings.Text, "The results do not say what differs between the runs.")
	}
	p.Sections = []doc.Section{{Title: "Rationale", Text: why}, costSection(runs, d), settings, overlayFigures(runs),
		{Title: "Provenance", Tables: []doc.Table{provenance(runs, d)}},
		{Title: "Distributions", Plots: plots}}
	return p, nil
}

func decisionHeadline(runs []Named, best int) string {
	accepted := 0
	for i := range runs {
		if runs[i].Accepted() {
			accepted++
		}
	}
	of := doc.Many(int64(len(runs)), "setting")
	switch {
	case accepted == 0:
		return "None of " + of + " is accepted"
	case best < 0:
		return doc.Brief(int64(accepted)) + " of " + of + " accepted; without a target none is preferred"
	case len(runs) == 1:
		return textpage.Plain(runs[best].Name) + " is accepted"
	case runs[best].Contract != nil:
		return textpage.Plain(runs[best].Name) + " is preferred: the most output tokens/s within the contract"
	}
	return textpage.Plain(runs[best].Name) + " is preferred: the most goodput"
}

// rationale is why the tuning stopped.
func rationale(runs []Named, d Decision, best int) string {
	switch {
	case d.Why != "":
		return d.Why
	case runs[0].Contract == nil:
		return "Not given."
	case best >= 0:
		return runs[best].Name + " keeps to the contract, which is the stopping rule."
	}
	return "The tuning has not ended: no run keeps to the contract."
}

// target is the contract, or the objectives, that the runs were held against.
func target(runs []Named) (lines []string) {
	s := &runs[0].Summary
	if c := s.Contract; c != nil {
		for i := range c.Clauses {
			lines = append(lines, c.Clauses[i].name())
		}
		return lines
	}
	if s.Goodput != nil {
		return []string{"Requests that meet " + s.Goodput.SLO.String() + ": the more per second, the better."}
	}
	return []string{"None was given: neither a contract nor objectives."}
}

// chosen is the index of the run that the target prefers, -1 for none, and the rule.
func chosen(runs []Named) (best int, rule string) {
	var of func(*Summary) *float64
	switch s := &runs[0].Summary; {
	case s.Contract != nil:
		of, rule = func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS },
			"Of the runs that keep to the contract, that with the most output tokens per second is preferred."
	case s.Goodput != nil:
		of, rule = goodputOf, "Of the runs that can be trusted, that with the most goodput from schedule is preferred."
	default:
		return -1, "Without a target no run is preferred; untrustworthy runs are rejected."
	}
	best = -1
	for i := range runs {
		v := of(&runs[i].Summary)
		if runs[i].Accepted() && v != nil && (best < 0 || *v > *of(&runs[best].Summary)) {
			best = i
		}
	}
	return best, rule
}

func goodputOf(s *Summary) *float64 {
	if s.Goodput == nil {
		return nil
	}
	return s.Goodput.FromDue.PerS
}

// sameLoad is the share by which the offered rates of runs of one load may differ.
const sameLoad = 0.05

// costSection says what a million output tokens cost in each accepted run at its load, or what
// is missing to say so. Runs of one load on as many GPUs cost the same, whatever their
// settings: what these save shows at the highest load that each can serve.
func costSection(runs []Named, d Decision) doc.Section {
	sec := doc.Section{Title: "Cost"}
	if !(d.PricePerGPUHour > 0) {
		sec.Text = []string{"Not given: the price of a GPU for an hour."}
		return sec
	}

	t := doc.Table{Head: []string{"setting", "cost at the load of its run"}, Align: []doc.Align{doc.Left, doc.Left}}
	type served struct {
		gpus int
		rate float64
	}
	var seen []served
	alike := false
	for i := range runs {
		s := &runs[i].Summary
		gpus, says := 0, ""
		if e := s.Efficiency; e != nil && e.GPUsFrom == gpusGiven {
			gpus = e.GPUs
		}
		switch per := s.Throughput.OutputTokensPerS; {
		case !s.Verdict.Trustworthy:
			says = "not known, since the run cannot be trusted"
		case !s.Accepted():
			says = "fails the contract at this load: needs more GPUs"
		case gpus == 0:
			says = "not known, since the results do not say how many GPUs served"
		case per == nil || *per == 0:
			says = "not known, since there is no output"
		default:
			if rate := s.Throughput.OfferedPerS; rate != nil {
				alike = alike || slices.ContainsFunc(seen, func(o served) bool {
					return o.gpus == gpus && math.Abs(o.rate-*rate) <= sameLoad**rate
				})
				seen = append(seen, served{gpus, *rate})
			}
			says = fmt.Sprintf("%s per million output tokens at this load, %s requests/s (%s, %s each per hour)",
				doc.Number(d.PricePerGPUHour*float64(gpus)/3600 / *per * 1e6), numberOrDash(s.Throughput.OfferedPerS),
				doc.Many(int64(gpus), "GPU"), doc.Number(d.PricePerGPUHour))
		}
		t.Rows = append(t.Rows, []string{textpage.Plain(runs[i].Name), says})
	}
	sec.Tables = []doc.Table{t}

	if alike {
		sec.Text = append(sec.Text, "Runs of the same load on the same GPUs cost the same, but for how long their last "+
			"answers took: that does not say which setting is cheaper.")
	}
	if len(runs) > 1 {
		sec.Text = append(sec.Text, "What a setting costs at the highest load that it can serve: reprise capacity.")
	}
	return sec
}

// provenance tells runs and workloads apart, and puts side by side where the runs were
// measured.
func provenance(runs []Named, d Decision) doc.Table {
	var names []string
	var of [][]doc.Fact
	for i := range runs {
		r, g := &runs[i].Run, doc.Group{}
		if i < len(d.Digests) {
			g.Add("results", d.Digests[i], "")
		}
		for _, f := range [][2]string{{"note", r.Note}, {"workload", r.Workload}, {"seed", r.Seed}} {
			g.Facts = append(g.Facts, doc.Fact{Label: f[0], Value: f[1]})
		}
		names, of = append(names, textpage.Plain(runs[i].Name)), append(of, append(g.Facts, Made(runs[i].Summary)...))
	}
	return SideBySide("setting", names, of)
}
