package bench

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the suite out for a browser: on the first screen whether it can be trusted, the
// main figures of each row and a latency of all; below, the table across rows, and for each row its
// table, its hypothesis with what became of it, and links to the pages of its runs, as
// far as they are in the directory of the suite. The page is to lie there too.
func (r *SuiteResult) Page(dir string) *page.Page {
	out := &page.Page{Title: "Suite " + r.Suite, Lead: r.About}
	verdict := r.verdict()
	out.Headline = page.Many(int64(len(r.Rows)), "workload") + ", " + page.Many(int64(r.runs()), "run") +
		": every one is trustworthy"
	if verdict.Level != page.Good {
		out.Headline, _, _ = strings.Cut(strings.TrimSuffix(verdict.Text, "."), ";")
		out.Verdict = []page.Note{verdict} // what to know before any figure
	}
	if says := r.loosened().String(); says != "" {
		out.Verdict = append(out.Verdict, page.Note{Level: page.Warn, Text: says})
	}
	p := suitePage{html: out}
	out.Table, out.Plot = p.firstTable(r), r.firstPlot()
	p.heading("All workloads", 2)
	p.across(r)
	for i := range r.Rows {
		p.row(r, &r.Rows[i])
		p.section().Links = r.links(os.DirFS(dir), r.Rows[i].Row)
	}
	// by the first run of each model, side by side
	made := page.Table{Head: []string{""}, Align: []page.Align{page.Left}}
	for i, model := range r.Models {
		made.Head, made.Align = append(made.Head, model), append(made.Align, page.Left)
		for _, f := range r.made[i] {
			row := slices.IndexFunc(made.Rows, func(row []string) bool { return row[0] == f.Label })
			if row < 0 {
				row = len(made.Rows)
				made.Rows = append(made.Rows, append([]string{f.Label}, make([]string, len(r.Models))...))
			}
			made.Rows[row][i+1] = f.Value
		}
	}
	out.Sections = append(out.Sections, page.Section{Title: "Where it was made", Tables: []page.Table{made}})
	note := func(given bool, level page.Level, text string) {
		if given {
			out.Notes = append(out.Notes, page.Note{Level: level, Text: text})
		}
	}
	tier := trace.TierNote("page", r.Tier)
	note(tier != "", page.Warn, tier)
	for _, w := range r.PresetWarnings {
		note(true, page.Warn, w)
	}
	note(p.largest, page.Info, largestNote)
	note(r.Baseline != "", page.Info, r.baselineNote())
	return out
}

// firstTable has the chief figures of as many rows as the first screen has room for.
func (p *suitePage) firstTable(r *SuiteResult) *page.Table {
	const room = 12
	t := &page.Table{Head: []string{"workload"}, Align: []page.Align{page.Left}, Caption: "Latencies in ms"}
	if len(r.Models) > 1 {
		t.Head, t.Align = append(t.Head, "model"), append(t.Align, page.Left)
	}
	columns := answerColumns[:3]
	for _, c := range columns {
		t.Head, t.Align = append(t.Head, c.head), append(t.Align, page.Right)
	}
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			row := []string{strings.ReplaceAll(r.Rows[i].Row, "_", " ")}
			if len(r.Models) > 1 {
				row = append(row, r.Rows[i].Models[j].Model)
			}
			for _, c := range columns {
				row = append(row, p.show(&r.Rows[i].Models[j], c.metric))
			}
			if len(t.Rows) < room {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	if n := len(r.Rows) * len(r.Models); n > room {
		t.Caption += fmt.Sprintf("; the first %d of %d lines", room, n)
	}
	return t
}

// firstPlot draws the p99 of TTFT of every row and model; nil where none has it.
func (r *SuiteResult) firstPlot() *page.Plot {
	out := page.Plot{Title: "TTFT p99 of each workload",
		Text:   "Lower is faster. Where there are too few requests for the percentile, it is the largest value.",
		Kind:   page.Points,
		XLabel: "workload", YLabel: "TTFT p99", YUnit: "ms", LogY: true}
	for _, model := range r.Models {
		out.Series = append(out.Series, page.Series{Name: model})
	}
	for i := range r.Rows {
		out.XNames = append(out.XNames, strings.ReplaceAll(r.Rows[i].Row, "_", " "))
		for j := range r.Rows[i].Models {
			if f := r.Rows[i].Models[j].Figure("p99_ttft"); f != nil && f.V > 0 {
				s := &out.Series[slices.Index(r.Models, r.Rows[i].Models[j].Model)]
				beside := 0.16 * (float64(j) - float64(len(r.Models)-1)/2) // so that equal ones are all seen
				s.X, s.Y = append(s.X, float64(i+1)+beside), append(s.Y, f.V)
			}
		}
	}
	drawn := page.Drawn(out)
	if len(drawn) == 0 {
		return nil
	}
	return &drawn[0]
}

func (r *SuiteResult) runs() (n int) {
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			n += r.Rows[i].Models[j].Runs
		}
	}
	return n
}

// links are the pages of the runs of a row.
func (r *SuiteResult) links(dir fs.FS, row string) (out []page.Link) {
	for _, model := range r.Models {
		// the pattern is good: names have no marks
		found, _ := fs.Glob(dir, path.Join(model, row, "repeat-*", reportName))
		if whole := path.Join(model, row, reportName); len(found) == 0 {
			found = []string{whole}
		}
		for _, name := range found {
			if _, err := fs.Stat(dir, name); err != nil {
				continue
			}
			text := "Report of " + model
			if run := path.Base(path.Dir(name)); run != row {
				text += ", " + run
			}
			out = append(out, page.Link{Text: text, Path: name})
		}
	}
	return out
}

// show is a metric of a model, – without it.
func (p *suitePage) show(m *ModelResult, metric string) string {
	f := m.Figure(metric)
	if f == nil {
		return "–"
	}
	p.largest = p.largest || f.Largest
	return p.print(metric, *f)
}

// print prints a figure, on a page with three digits.
func (p *suitePage) print(name string, f Figure) string {
	if p.html == nil {
		return format(metric(name), f, page.Number)
	}
	return format(metric(name), f, page.Short)
}

// acrossMetrics are those of the table across rows.
var acrossMetrics = []string{"output_tokens_per_s", "p50_ttft", "p95_ttft", "p99_ttft", "p50_itl", "p99_itl", "p50_e2e"}

// across is the table across rows.
func (p *suitePage) across(r *SuiteResult) {
	head := []string{"Workload", "Model"}
	metrics := acrossMetrics
	if r.bySession() {
		metrics = append(slices.Clone(sessionMetrics), metrics...)
	}
	for _, m := range metrics {
		head = append(head, heading(metric(m)))
	}
	var rows [][]string
	for _, row := range r.Rows {
		for i := range row.Models {
			cells := []string{row.Row, row.Models[i].Model}
			for _, m := range metrics {
				cells = append(cells, p.show(&row.Models[i], m))
			}
			failures := int64(0)
			for _, e := range row.Models[i].Errors {
				failures += e.Count
			}
			rows = append(rows, append(cells, fmt.Sprint(failures)))
		}
	}
	p.table(append(head, "Errors"), rows, 2)
}

// row is the table of a row, a column for each model, with changes against the
// first of them and against the baseline.
func (p *suitePage) row(r *SuiteResult, row *RowResult) {
	title := row.Row
	if row.About != "" {
		title += ": " + row.About
	}
	p.heading(title+" ("+row.Load+")", 2)
	head := []string{"Metric"}
	first := row.Models[0]
	for i := range row.Models {
		head = append(head, row.Models[i].Model)
		if i > 0 {
			head = append(head, "against "+first.Model)
		}
		if row.Models[i].Changes != nil {
			head = append(head, "baseline", "change")
		}
	}
	var rows [][]string
	for _, name := range row.metrics() {
		cells := []string{heading(metric(name))}
		if name == row.Primary {
			cells[0] += " ←"
		}
		for i := range row.Models {
			m := &row.Models[i]
			cells = append(cells, p.show(m, name))
			if i > 0 {
				change := "–"
				if was, is := first.Figure(name), m.Figure(name); was != nil && is != nil && was.V != 0 {
					change = signed(is.V/was.V - 1)
				}
				cells = append(cells, change)
			}
			if m.Changes != nil {
				cells = append(cells, p.change(m, name)...)
			}
		}
		rows = append(rows, cells)
	}
	p.table(head, append(rows, row.requests(head)), 1)
	p.says(row)
}

// answerMetrics are those of whole answers that only a row about these shows.
var answerMetrics = []string{"min_e2e", "p90_e2e", "p95_e2e", "max_e2e"}

// metrics are those that the table of the row shows, where some model has them.
func (r *RowResult) metrics() []string {
	names := append(slices.Clone(sessionMetrics), suiteMetrics...)
	if !slices.Contains(names, r.Primary) {
		names = append(names, r.Primary)
	}
	answers := r.Primary == errorRate || inSeconds(metric(r.Primary))
	return slices.DeleteFunc(names, func(name string) bool {
		if !answers && slices.Contains(answerMetrics, name) {
			return true
		}
		return !slices.ContainsFunc(r.Models, func(m ModelResult) bool {
			f := m.Figure(name)
			return f != nil && (f.Hi > 0 || name != "hit_ratio")
		})
	})
}

// requests is the line with the requests that succeeded of those that were measured.
func (r *RowResult) requests(head []string) []string {
	cells := []string{"Succeeded"}
	for i := range r.Models {
		cells = append(cells, fmt.Sprintf("%d of %d", r.Models[i].Succeeded, r.Models[i].Requests))
		if i > 0 {
			cells = append(cells, "")
		}
		if r.Models[i].Changes != nil {
			cells = append(cells, "", "")
		}
	}
	return cells[:len(head)]
}

// change are the cells of a metric against the baseline.
func (p *suitePage) change(m *ModelResult, metric string) []string {
	for _, c := range m.Changes {
		if c.Metric == metric {
			return []string{p.print(metric, Figure{V: c.Was}), signed(c.Change)}
		}
	}
	return []string{"–", "–"}
}

// says are the sentences below the table of a row.
func (p *suitePage) says(row *RowResult) {
	if row.Hypothesis != "" {
		p.line("Hypothesis: %s.", row.Hypothesis)
	}
	for i := range row.Models {
		m := &row.Models[i]
		say := func(level page.Level, format string, args ...any) { p.say(level, m.Model+": "+format, args...) }
		if o := m.Hypothesis; o != nil {
			say(o.level(), "%s", o.Text)
		}
		switch o := m.Regression; {
		case o.regressed():
			say(page.Bad, "%s", o.Text)
		case o != nil:
			say(page.Info, "%s", o.Text)
		}
		for _, e := range m.Errors {
			say(page.Warn, "errors: %d %s, %s of the requests", e.Count, e.Class, page.Percent(e.Share))
		}
		switch c := m.Contract; {
		case c != nil && c.Holds && c.Name == "":
			say(page.Good, "the contract is met")
		case c != nil && c.Holds:
			say(page.Good, "the contract %q is met", c.Name)
		case c != nil:
			say(page.Bad, "%s", strings.Join(c.Broken, "; "))
		}
		for _, reason := range m.Reasons {
			say(page.Bad, "NOT TRUSTWORTHY: %s", reason)
		}
	}
}

// level is how what became of a hypothesis is meant.
func (o *Outcome) level() page.Level {
	switch {
	case o.Held == nil:
		return page.Info
	case *o.Held:
		return page.Good
	}
	return page.Warn
}
