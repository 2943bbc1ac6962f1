package bench

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace"
	"reprise/trace/page"
)

// Page lays the suite out for a browser: the table across rows, and for each row its
// table, its hypothesis with what became of it, and links to the pages of its runs, as
// far as they are in the directory of the suite. The page is to lie there too.
func (r *SuiteResult) Page(dir string) *page.Page {
	out := &page.Page{Title: "Suite " + r.Suite, Lead: r.About}
	switch { // what to know before any figure
	case !r.Trustworthy():
		out.Verdict = []page.Note{{Level: page.Bad, Text: "A run is not trustworthy; its row says which and why."}}
	case r.Broken():
		out.Verdict = []page.Note{{Level: page.Bad, Text: "A contract does not hold; its row says by how much."}}
	case r.Regressed():
		out.Verdict = []page.Note{{Level: page.Bad, Text: "A row is worse than the baseline by more than the limit; it says by how much."}}
	case r.Unjudged():
		out.Verdict = []page.Note{{Level: page.Warn, Text: "A contract cannot be judged; its row says why."}}
	default:
		out.Verdict = []page.Note{{Level: page.Good, Text: "Every run is trustworthy."}}
	}
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
	note(p.largest, page.Info, "* the largest value: there are too few requests for the percentile.")
	note(r.Baseline != "", page.Info, "Changes are against "+r.Baseline+". They may be chance: reprise compare decides that.")
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

// suiteWidth is the widest line of text between tables, in columns.
const suiteWidth = 100

// WriteSuite writes the outcome of a suite for people: a table across rows, one for
// each row with a column for each model, and what became of hypotheses, contracts and
// trust. With markdown it is a page for a repository.
func WriteSuite(w io.Writer, r *SuiteResult, markdown bool) error {
	p := suitePage{markdown: markdown}
	p.heading(r.Suite, 1)
	p.line("%s", r.About)
	if tier := trace.TierNote("table", r.Tier); tier != "" {
		p.line("%s", tier)
	}
	for _, warning := range r.PresetWarnings {
		p.line("Warning: %s.", warning)
	}
	p.across(r)
	for i := range r.Rows {
		p.row(r, &r.Rows[i])
	}
	if p.largest {
		p.line("* the largest value: there are too few requests for the percentile.")
	}
	if r.Baseline != "" {
		p.line("Changes are against %s. They may be chance: reprise compare decides that.", r.Baseline)
	}
	_, err := w.Write(p.b.Bytes())
	return err
}

type suitePage struct {
	b        bytes.Buffer
	markdown bool
	html     *page.Page // when set, what is written goes into its last section
	largest  bool       // some figure stands in for a percentile
}

func (p *suitePage) heading(s string, level int) {
	if p.html != nil {
		p.html.Sections = append(p.html.Sections, page.Section{Title: s})
		return
	}
	if p.b.Len() > 0 {
		p.b.WriteByte('\n')
	}
	if p.markdown {
		s = strings.Repeat("#", level) + " " + s
	}
	p.b.WriteString(printable(s) + "\n")
	if p.markdown {
		p.b.WriteByte('\n')
	}
}

func (p *suitePage) line(format string, args ...any) {
	s := printable(fmt.Sprintf(format, args...))
	switch {
	case s == "":
	case p.html != nil:
		last := p.section()
		last.Text = append(last.Text, s)
	case p.markdown:
		p.b.WriteString(s + "\n\n")
	default:
		for _, part := range strings.Split(text.WrapSoft(s, suiteWidth), "\n") {
			p.b.WriteString(strings.TrimRight(part, " ") + "\n")
		}
	}
}

// say writes what is to be seen: as a line, or on a page as a note of this level.
func (p *suitePage) say(level page.Level, format string, args ...any) {
	if p.html != nil {
		last := p.section()
		last.Notes = append(last.Notes, page.Note{Level: level, Text: fmt.Sprintf(format, args...)})
		return
	}
	if p.markdown {
		format = "- " + format
	}
	p.line(format, args...)
}

func (p *suitePage) section() *page.Section { return &p.html.Sections[len(p.html.Sections)-1] }

func (p *suitePage) table(head []string, rows [][]string, left int) {
	if p.html != nil {
		t := page.Table{Head: head, Rows: rows}
		for i := range head {
			t.Align = append(t.Align, page.Right)
			if i < left {
				t.Align[i] = page.Left
			}
		}
		last := p.section()
		last.Tables = append(last.Tables, t)
		return
	}
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t := table.NewWriter()
	t.SetStyle(style)
	var columns []table.ColumnConfig
	cells := func(in []string) (out table.Row) {
		for _, s := range in {
			out = append(out, printable(s))
		}
		return out
	}
	for i := range head {
		c := table.ColumnConfig{Number: i + 1, Align: text.AlignLeft}
		if i >= left {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		columns = append(columns, c)
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(cells(head))
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	if p.markdown {
		p.b.WriteString(t.RenderMarkdown() + "\n\n")
		return
	}
	p.b.WriteString(t.Render() + "\n")
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
			say(page.Good, "the contract holds")
		case c != nil && c.Holds:
			say(page.Good, "the contract %q holds", c.Name)
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
