package bench

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the suite out for a browser: the table across rows, and for each row its
// table, its hypothesis with what became of it, and links to the pages of its runs, as
// far as they are in the directory of the suite. The page is to lie there too.
func (r *SuiteResult) Page(dir string) *page.Page {
	out := &page.Page{Title: "Suite " + r.Suite, Lead: r.About}
	out.Verdict = []page.Note{r.verdict()} // what to know before any figure
	p := suitePage{html: out}
	p.heading("All workloads", 2)
	p.across(r)
	for i := range r.Rows {
		p.row(r, &r.Rows[i])
		p.section().Links = r.links(os.DirFS(dir), r.Rows[i].Row)
	}
	made := page.Table{Head: []string{""}, Align: []page.Align{page.Left}} // by the first run of each model, side by side
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
	out.Facts = []page.Fact{{Label: "Rows", Value: strconv.Itoa(len(r.Rows))}, {Label: "Models", Value: strconv.Itoa(len(r.Models))}, {Label: "Runs", Value: strconv.Itoa(r.runs())}}
	return out
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
		found, _ := fs.Glob(dir, path.Join(model, row, "repeat-*", reportName)) // the pattern is good: names have no marks
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
	return Metric{metric}.format(*f)
}

// acrossMetrics are those of the table across rows.
var acrossMetrics = []string{"output_tokens_per_s", "p50_ttft", "p95_ttft", "p99_ttft", "p50_itl", "p99_itl", "p50_e2e"}

// across is the table across rows.
func (p *suitePage) across(r *SuiteResult) {
	head := []string{"Workload", "Model"}
	for _, m := range acrossMetrics {
		head = append(head, Metric{m}.Label())
	}
	var rows [][]string
	for _, row := range r.Rows {
		for i := range row.Models {
			cells := []string{row.Row, row.Models[i].Model}
			for _, m := range acrossMetrics {
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
		cells := []string{Metric{name}.Label()}
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
				cells = append(cells, m.change(name)...)
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
	names := slices.Clone(suiteMetrics)
	if !slices.Contains(names, r.Primary) {
		names = append(names, r.Primary)
	}
	answers := r.Primary == "error_rate" || Metric{r.Primary}.inSeconds()
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
func (m *ModelResult) change(metric string) []string {
	for _, c := range m.Changes {
		if c.Metric == metric {
			return []string{Metric{metric}.format(Figure{V: c.Was}), signed(c.Change)}
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
