package calibrate

import (
	"fmt"
	"slices"
	"strings"

	"reprise/replay/figure"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// label is a metric for people, such as TTFT p95.
func label(metric string) string {
	f, err := figure.Parse(metric, known)
	if err != nil {
		return textpage.Plain(metric)
	}
	return f.Title()
}

// signed prints an error.
func signed(share float64) string { return fmt.Sprintf("%+.1f", 100*share) }

// shown are the metrics of a table of errors, and shownShort those of the short one.
var (
	shown      = figure.Offered(known)
	shownShort = []string{"p50_ttft", "p95_ttft", "p50_itl", "p95_itl", "mean_e2e", tokensPerS}
)

// errorTable is the errors of each load.
func errorTable(all []Level, metrics []string) doc.Table {
	t := doc.Table{Head: []string{"load", "requests"}}
	for _, m := range metrics {
		t.Head = append(t.Head, label(m))
	}
	for i := range all {
		l := &all[i]
		row := []string{l.Load, doc.Count(int64(l.Requests))}
		for _, m := range metrics {
			cell := "–"
			if f, ok := l.Figure(m); ok {
				cell = signed(f.Error())
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Align = doc.FiguresOf(len(t.Head))
	return t
}

// Document lays out what was fitted, how far it is from what it was not fitted to, and which loads are missing.
func (c *Calibration) Document() *doc.Document {
	d := &doc.Document{Title: "Calibration", Lead: "Costs have 95 % intervals.", Facts: c.facts(), Headline: fmt.Sprintf("An engine for %s, %s",
		strings.Replace(c.Model, unknownModel, "a model of unknown name", 1), c.about())}
	if warning := c.Warning(); warning != "" {
		d.Verdict = []doc.Note{{Level: doc.Warn, Text: warning + "."}}
	}

	first := errorTable(c.HeldOut.Levels, shownShort)
	first.Caption = "Held out: " + c.HeldOut.Method + ". Errors in %:"
	d.Table = &first
	if missing := c.Design.note(); missing.Text != "" {
		d.Notes = []doc.Note{missing}
	} else {
		d.Lead += " No load is missing."
	}

	all := errorTable(c.HeldOut.Levels, shown)
	all.Caption = "Errors in %"
	held := doc.Section{Title: "Held out", Tables: []doc.Table{all}}
	for i := range c.HeldOut.Levels {
		held.Tables = append(held.Tables, c.HeldOut.Levels[i].table())
	}
	d.Sections = []doc.Section{held, c.fittedTo()}
	return d
}

// facts are the costs and limits of the engine, with how well they are known.
func (c *Calibration) facts() (facts []doc.Fact) {
	for _, q := range c.Parameters {
		known := q.From
		switch {
		case q.Low != "" && q.High != "":
			known = q.Low + " to " + q.High
		case q.Low+q.High != "":
			known += ", " + q.Low + q.High
		}
		facts = append(facts, doc.Fact{Label: q.Name, Value: q.Value, Note: known})
	}
	return facts
}

// table has the measured and the predicted figures of a load.
func (l *Level) table() doc.Table {
	t := doc.Table{Caption: l.Load + "; latencies in ms", Head: []string{"metric", "measured", "predicted", "error"},
		Align: doc.FiguresOf(4)}
	for i := range l.Figures {
		f := &l.Figures[i]
		t.Rows = append(t.Rows, []string{label(f.Metric), doc.Short(f.Measured), doc.Short(f.Predicted),
			signed(f.Error()) + " %"})
	}
	return t
}

// fittedTo has the runs that the engine was fitted to, and what they cover.
func (c *Calibration) fittedTo() doc.Section {
	t := doc.Table{Head: []string{"file", "load", "requests", "recorded by", "server"}}
	for _, s := range c.Sources {
		t.Rows = append(t.Rows, []string{s.File, s.Load, doc.Count(int64(s.Requests)), s.Recorded, s.Server})
	}
	covers := fmt.Sprintf("Covers prompts up to %s tokens, answers up to %s, %s requests in flight, %s tokens of "+
		"KV. Root mean square error over the fitted results: %s (of logarithms).",
		doc.Count(int64(c.Covers.MaxPromptTokens)), doc.Count(int64(c.Covers.MaxOutputTokens)),
		doc.Count(int64(c.Covers.MaxInFlight)), doc.Count(int64(c.Covers.MaxKVTokens)), doc.Percent(c.Residual))
	return doc.Section{Title: "Fitted to", Text: []string{covers}, Tables: []doc.Table{t}}
}

// note says which loads are missing; it is without words where none is.
func (d *Design) note() doc.Note {
	n := doc.Note{Level: doc.Warn, Word: "Missing loads", Commands: d.Commands}
	switch {
	case len(d.Commands) > 0:
		n.Text = strings.Join(d.Why, "; ") + ". These would tell:"
	case len(d.Why) > 0:
		n.Word, n.Text = "Not known well", strings.Join(d.Why, "; ")+"."
	}
	return n
}

// Document lays out how far the runs are from the engine: first the load with most figures beyond the limit.
func (v *Validation) Document() *doc.Document {
	d := &doc.Document{Title: "Validation", Headline: v.headline(),
		Lead: "Spread is the standard deviation between runs. A figure is beyond where its error is above the limit " +
			"and above twice the spread."}
	if v.Untrusted != "" {
		d.Headline = "Not trustworthy: " + d.Headline
		d.Verdict = []doc.Note{{Level: doc.Bad, Text: v.Untrusted + "."}}
	}

	others := doc.Section{Title: "Other loads"}
	for i, l := range slices.SortedStableFunc(slices.Values(v.Levels), func(a, b Validated) int {
		return len(b.Beyond) - len(a.Beyond)
	}) {
		if t := l.table(); i == 0 {
			d.Table = &t
		} else {
			others.Tables = append(others.Tables, t)
		}
	}
	if more := len(others.Tables); more > 0 {
		d.Table.Caption += ", and " + doc.Many(int64(more), "more load")
		d.Sections = []doc.Section{others}
	}
	return d
}

// headline says whether the engine predicts the runs, and the largest error.
func (v *Validation) headline() string {
	load, worst := v.Worst()
	answer := "within"
	if !v.Holds() {
		answer = "not within"
	}
	says := fmt.Sprintf("The engine predicts these runs %s %s", answer, doc.Percent(v.Limit))
	if slices.ContainsFunc(v.Levels, func(l Validated) bool { return l.Runs > 1 }) {
		says += " or twice the spread between them"
	}
	if worst.Metric != "" {
		says += fmt.Sprintf("; the largest error is %s %% (%s at %s)", signed(worst.Error()), label(worst.Metric), load)
	}
	return says
}

// table has the figures of a load, and which of them are beyond the limit.
func (l *Validated) table() doc.Table {
	t := l.Level.table()
	t.Caption = fmt.Sprintf("%s: %s, %s; latencies in ms", l.Load, doc.Many(int64(l.Runs), "run"),
		doc.Many(int64(l.Requests), "request"))
	t.Head, t.Align = append(t.Head, "spread", ""), append(doc.FiguresOf(5), doc.Left)

	for i, f := range l.Figures {
		spread, note := "–", ""
		if l.Runs > 1 {
			spread = doc.Percent(f.Spread)
		}
		switch {
		case slices.Contains(l.Beyond, f.Metric):
			note = "beyond"
		case !slices.Contains(l.Judged, f.Metric):
			note = "too few to judge"
		}
		t.Rows[i] = append(t.Rows[i], spread, note)
	}
	return t
}
