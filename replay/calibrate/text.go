package calibrate

import (
	"fmt"
	"io"
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
func errorTable(all []Level, metrics []string) (head []string, rows [][]string) {
	head = []string{"load", "requests"}
	for _, m := range metrics {
		head = append(head, label(m))
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
		rows = append(rows, row)
	}
	return head, rows
}

// WriteText writes what was fitted, how far it is from what it was not fitted to, and which
// loads are missing, in [textpage.AnswerLines] lines at most. With details it writes every
// figure.
func (c *Calibration) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	p.Line("", fmt.Sprintf("An engine for %s, %s.",
		strings.Replace(c.Model, unknownModel, "a model of unknown name", 1), c.about()))
	if warning := c.Warning(); warning != "" {
		p.Line("Warning: ", warning+".")
	}
	var costs [][]string
	var limits []string
	for _, q := range c.Parameters {
		known := q.From
		switch {
		case q.Low != "" && q.High != "":
			known = q.Low + " to " + q.High
		case q.Low+q.High != "":
			known += ", " + q.Low + q.High
		}
		if slices.Contains(c.Engine.Costs.Names(), q.Name) {
			costs = append(costs, []string{q.Name, q.Value, known})
		} else {
			limits = append(limits, fmt.Sprintf("%s %s (%s)", q.Name, q.Value, known))
		}
	}
	p.Columns([]string{"cost", "value", "95 % interval"}, costs)
	p.Line("", strings.Join(limits, "; ")+".")
	p.Line("", "Held out: "+c.HeldOut.Method+". Errors in %:")
	foot := textpage.New(textpage.Options{Width: p.Width()})
	c.Design.write(foot, o)
	if !o.Details && o.Rest != "" {
		foot.Line("", o.Rest)
	}
	if o.Details {
		head, rows := errorTable(c.HeldOut.Levels, shown)
		p.Table("", head, rows)
		c.writeFigures(p)
	} else {
		head, rows := errorTable(c.HeldOut.Levels, shownShort)
		more := 0
		if room := max(textpage.AnswerLines-p.Lines()-foot.Lines()-3, 2); len(rows) > room {
			more = len(rows) - room + 1
			rows = rows[:room-1]
		}
		p.Columns(head, rows)
		if more > 0 {
			p.Line("", "and "+doc.Many(int64(more), "more load"))
		}
	}
	p.Blank()
	c.Design.write(p, o)
	if !o.Details && o.Rest != "" {
		p.Line("", o.Rest)
	}
	_, err := p.WriteTo(w)
	return err
}

// writeFigures writes the measured and the predicted figures of each load.
func (c *Calibration) writeFigures(p *textpage.Page) {
	for _, l := range c.HeldOut.Levels {
		var rows [][]string
		for _, f := range l.Figures {
			rows = append(rows, []string{label(f.Metric), doc.Short(f.Measured), doc.Short(f.Predicted),
				signed(f.Error()) + " %"})
		}
		p.Table(l.Load+", held out; latencies in ms", []string{"metric", "measured", "predicted", "error"}, rows)
	}
	var rows [][]string
	for _, s := range c.Sources {
		rows = append(rows, []string{s.File, s.Load, doc.Count(int64(s.Requests)), s.Recorded, s.Server})
	}
	p.Table("Fitted to", []string{"file", "load", "requests", "recorded by", "server"}, rows)
	p.Line("", fmt.Sprintf("Covers prompts up to %s tokens, answers up to %s, %s requests in flight, %s tokens of "+
		"KV. Root mean square error of what was fitted to: %s (of logarithms).",
		doc.Count(int64(c.Covers.MaxPromptTokens)), doc.Count(int64(c.Covers.MaxOutputTokens)),
		doc.Count(int64(c.Covers.MaxInFlight)), doc.Count(int64(c.Covers.MaxKVTokens)), doc.Percent(c.Residual)))
}

// WriteText writes how far the runs are from the engine, in [textpage.AnswerLines] lines at
// most. With details it writes every figure of every load.
func (v *Validation) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
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
	p.Line("", says+".")
	if v.Untrusted != "" {
		p.Line("Not trustworthy: ", v.Untrusted+".")
	}
	p.Blank()
	most := len(v.Levels)
	if !o.Details {
		most = 1
		slices.SortStableFunc(v.Levels, func(a, b Validated) int { return len(b.Beyond) - len(a.Beyond) })
	}
	for _, l := range v.Levels[:most] {
		p.Line("", fmt.Sprintf("%s: %s, %s; latencies in ms", l.Load, doc.Many(int64(l.Runs), "run"),
			doc.Many(int64(l.Requests), "request")))
		var rows [][]string
		for _, f := range l.Figures {
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
			rows = append(rows, []string{label(f.Metric), doc.Short(f.Measured), doc.Short(f.Predicted),
				signed(f.Error()) + " %", spread, note})
		}
		p.Columns([]string{"metric", "measured", "predicted", "error", "spread", ""}, rows)
	}
	if more := len(v.Levels) - most; more > 0 {
		p.Line("", "and "+doc.Many(int64(more), "more load"))
	}
	p.Blank()
	p.Line("", "Spread is the standard deviation between runs. A figure is beyond where its error is above the limit "+
		"and above twice the spread. "+o.Rest)
	_, err := p.WriteTo(w)
	return err
}
