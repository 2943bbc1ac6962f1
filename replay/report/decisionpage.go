package report

import (
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// TierOfTried is the strictest tier of the runs, which the record inherits.
func TierOfTried(runs []Tried) string {
	return trace.Strictest(runs, func(r *Tried) string { return r.Summary.Run.Tier })
}

// DecisionPage is the record of a tuning: which settings it accepted and rejected, by what target, with the latencies
// and the cost of each. The preferred setting is the headline; the first screen has what was accepted and rejected, the
// main figures and the distributions of all runs.
func DecisionPage(runs []Tried, d Decision) (*doc.Document, error) {
	differ, err := differingSettings(runs)
	if err != nil {
		return nil, err
	}
	best, rule := chosen(runs)
	p := &doc.Document{Title: "Decision record", Lead: "Target: " + strings.Join(target(runs), "; ")}
	p.Headline = decisionHeadline(runs, best)
	head := []string{"setting"}
	why := []string{rationale(runs, d, best)}
	cdfOf := cdf("TTFT distribution", "From when a request was due. A curve further to the left is faster.", "TTFT")
	for i := range runs {
		level := doc.Good
		if !runs[i].Accepted() {
			level = doc.Bad
		}
		outcome, verdict := runs[i].verdict(i == best && len(runs) > 1), &runs[i].Summary.Verdict
		short := outcome
		if reasons := verdict.Reasons; len(reasons) > 1 {
			first, _, _ := strings.Cut(outcome, reasons[1].Text)
			short = first + doc.Many(int64(len(reasons)-1), "more reason") + " under Rationale"
			why = append(why, textpage.Plain(runs[i].Name)+": "+outcome+".")
		}
		p.Verdict = append(p.Verdict, doc.Note{Level: level, Word: textpage.Plain(runs[i].Name),
			Text: verdict.Loosened.Beside(short)})
		if w := Warned(runs[i].Summary.Run.PresetWarning, runs[i].Summary.Run.Extrapolates); w != "" {
			p.Notes = append(p.Notes,
				doc.Note{Level: doc.Warn, Text: textpage.Plain(runs[i].Name) + ": " + textpage.Plain(w)})
		}
		head = append(head, textpage.Plain(runs[i].Name))
		s := runs[i].Summary.Series.TTFTDue
		s.Name = textpage.Plain(runs[i].Name)
		cdfOf.Series = append(cdfOf.Series, s)
	}
	p.Tag = trace.TierNote("record", TierOfTried(runs))
	if drawn := doc.Drawn(cdfOf); len(drawn) > 0 {
		p.Plot = &drawn[0]
	}
	rows, right := decisionFigures(runs), doc.FiguresOf(len(head))
	p.Table = &doc.Table{Head: head, Align: right}
	for i, row := range differ {
		if i < 3 {
			row = slices.Clone(row)
			row[0] = strings.ReplaceAll(row[0][strings.LastIndexByte(row[0], '.')+1:], "_", " ")
			p.Table.Rows = append(p.Table.Rows, row)
		}
	}
	for _, row := range rows {
		switch row[0] {
		case "TTFT from schedule p50, ms", "TTFT from schedule p99, ms", "TPOT p99, ms", "E2E from schedule p99, ms",
			"output tokens/s", "failed":
			p.Table.Rows = append(p.Table.Rows, row)
		}
	}
	cost := doc.Section{Title: "Cost",
		Tables: []doc.Table{{Head: []string{"setting", "cost at the load of its run"},
			Align: []doc.Align{doc.Left, doc.Left}}}}
	for _, c := range costs(runs, d) {
		if c.run == "" {
			cost.Text = append(cost.Text, c.says)
			continue
		}
		cost.Tables[0].Rows = append(cost.Tables[0].Rows, []string{textpage.Plain(c.run), c.says})
	}
	if len(cost.Tables[0].Rows) == 0 {
		cost.Tables = nil
	}
	settings := doc.Section{Title: "What differs", Text: []string{rule}}
	if len(differ) > 0 {
		settings.Tables = []doc.Table{{Head: head, Rows: differ}}
	}
	p.Sections = []doc.Section{
		{Title: "Rationale", Text: why}, cost, settings,
		{Title: "Figures", Tables: []doc.Table{{Head: head, Rows: rows, Align: right}}},
		{Title: "Provenance", Tables: []doc.Table{{Head: head, Rows: provenance(runs)}}},
	}
	for i := range p.Sections {
		p.Sections[i].Asked = true // a record is read whole
	}
	return p, nil
}

func decisionHeadline(runs []Tried, best int) string {
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
	case runs[best].Summary.Contract != nil:
		return textpage.Plain(runs[best].Name) + " is preferred: the most output tokens/s within the contract"
	}
	return textpage.Plain(runs[best].Name) + " is preferred: the most goodput"
}
