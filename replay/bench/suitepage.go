package bench

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// WriteText writes what a suite measured for people: whether it can be trusted, what went wrong, and
// the chief figures of every workload, however many there are. With details it has a table of each
// workload, with a column for each model.
func (r *SuiteResult) WriteText(w io.Writer, o textpage.Options) error {
	p := r.Page("")
	p.Headline = p.Title + ": " + p.Headline
	return p.WriteText(w, o)
}

// Page lays the suite out: first whether it can be trusted, what does not hold, the chief figures of
// each workload and a latency of all; below, the table across workloads, and for each its table, its
// hypothesis with what became of it, and links to the pages of its runs, as far as they are in the
// directory of the suite. The page is to lie there too.
func (r *SuiteResult) Page(dir string) *doc.Document {
	level, headline := r.verdict()
	out := &doc.Document{Title: cmp.Or(r.title, "Suite "+r.Suite), Headline: headline, Tag: trace.TierNote("result", r.Tier),
		Lead: strings.TrimSpace(printable(r.About) + " " + r.baselineNote()), Plot: r.firstPlot(), Long: true}
	if wrong := r.wrong(); len(wrong) > 0 {
		out.Verdict = append(out.Verdict, doc.Note{Level: max(level, doc.Warn), Text: "This does not hold:",
			Items: wrong})
	}
	for _, text := range append([]string{r.loosened().String()}, r.PresetWarnings...) {
		if text != "" {
			out.Verdict = append(out.Verdict, doc.Note{Level: doc.Warn, Text: strings.TrimSuffix(text, ".") + "."})
		}
	}

	columns, units := answerColumns, "Latencies in ms."
	across := doc.Section{Title: "All workloads"}
	var all []suiteColumn
	if r.bySession() {
		columns, units = sessionColumns, "Session times in s, latencies in ms."
		all = columnsOf(sessionMetrics)
	}
	if r.any(func(m *ModelResult) bool {
		return slices.ContainsFunc(m.Figures, func(f Figure) bool { return f.Largest })
	}) {
		units += " * the largest value: there are too few requests for the percentile."
	}
	first := r.table(columns)
	first.Caption = units
	out.Table = &first
	across.Tables = []doc.Table{r.table(append(all, columnsOf(acrossMetrics)...))}
	out.Sections = append(out.Sections, across)
	for i := range r.Rows {
		row := r.Rows[i].section()
		row.Links = r.links(os.DirFS(dir), r.Rows[i].Row)
		out.Sections = append(out.Sections, row)
	}

	made := report.SideBySide("", r.Models, r.made) // by the first run of each model
	out.Sections = append(out.Sections, doc.Section{Title: "Where it was made", Tables: []doc.Table{made}})
	return out
}

// verdict is what to know before any figure.
func (r *SuiteResult) verdict() (doc.Level, string) {
	switch {
	case !r.Trustworthy():
		return doc.Bad, r.untrusted()
	case r.Broken():
		return doc.Bad, "A contract is not met"
	case r.Regressed():
		return doc.Bad, "A workload is worse than the baseline by more than the limit"
	case r.Unjudged():
		return doc.Warn, "A contract cannot be judged"
	}
	return doc.Good, doc.Many(int64(len(r.Rows)), "workload") + ", " + doc.Many(int64(r.runs()), "run") +
		": every one is trustworthy"
}

// wrong is everything that does not hold, whole.
func (r *SuiteResult) wrong() (out []string) {
	r.each(func(row *RowResult, m *ModelResult) {
		name := r.name(row, m)
		if len(m.Reasons) > 0 {
			out = append(out, name+" is not trustworthy: "+strings.Join(m.Reasons, "; "))
		}
		if m.Contract != nil {
			for _, broken := range m.Contract.Broken {
				out = append(out, name+": "+broken)
			}
		}
		if m.Regression.refuted() {
			out = append(out, name+": "+m.Regression.Text)
		}
		if o := m.Hypothesis; o.refuted() {
			out = append(out, name+": hypothesis "+o.Text)
		}
	})
	return out
}

// each goes through the models of all workloads.
func (r *SuiteResult) each(do func(*RowResult, *ModelResult)) {
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			do(&r.Rows[i], &r.Rows[i].Models[j])
		}
	}
}

// name names a workload, and the model where there are several.
func (r *SuiteResult) name(row *RowResult, m *ModelResult) string {
	if len(r.Models) > 1 {
		return row.Row + ", " + m.Model
	}
	return row.Row
}

func (r *SuiteResult) baselineNote() string {
	if r.Baseline == "" {
		return ""
	}
	baseline := r.Baseline
	if len(r.BaselineReasons) > 0 {
		baseline += ", which is not trustworthy: " + strings.Join(r.BaselineReasons, "; ")
	}
	return "Changes are against " + baseline + ". They may be chance: reprise compare decides that."
}

// bySession says whether some row was under a load by session.
func (r *SuiteResult) bySession() bool {
	return r.any(func(m *ModelResult) bool { return m.Figure("sessions_per_s") != nil })
}

// A suiteColumn is a metric with its head in a table across workloads.
type suiteColumn struct{ metric, head string }

// answerColumns are the metrics of a workload in an answer, sessionColumns those of a suite with a
// load by session, and acrossMetrics those of the table across workloads.
var (
	answerColumns = []suiteColumn{{"output_tokens_per_s", "tok/s"}, {"p50_ttft", "TTFT p50"}, {"p99_ttft", "p99"},
		{"p99_itl", "ITL p99"}}
	sessionColumns = []suiteColumn{{"sessions_per_s", "sessions/s"}, {"p50_session_time", "time p50"},
		{"p95_session_time", "p95"}, {"session_success", "success %"}, {"p99_ttft", "TTFT p99"}}
	acrossMetrics = []string{"output_tokens_per_s", "p50_ttft", "p95_ttft", "p99_ttft", "p50_itl", "p99_itl", "p50_e2e"}
)

// columnsOf are columns that have their metrics' own heads.
func columnsOf(metrics []string) (out []suiteColumn) {
	for _, m := range metrics {
		out = append(out, suiteColumn{m, heading(metric(m))})
	}
	return out
}

// table has a row for each workload and model, and its errors in the last column.
func (r *SuiteResult) table(columns []suiteColumn) doc.Table {
	t := doc.Table{Head: []string{"workload"}, Align: []doc.Align{doc.Left}}
	for _, c := range columns {
		t.Head, t.Align = append(t.Head, c.head), append(t.Align, doc.Right)
	}
	t.Head = append(t.Head, "errors")
	r.each(func(row *RowResult, m *ModelResult) {
		cells := []string{r.name(row, m)}
		for _, c := range columns {
			cells = append(cells, m.show(c.metric))
		}
		failures := int64(0)
		for _, e := range m.Errors {
			failures += e.Count
		}
		t.Rows = append(t.Rows, append(cells, doc.Count(failures)))
	})
	return t
}

// firstPlot draws the p99 of TTFT of every row and model; nil where none has it.
func (r *SuiteResult) firstPlot() *doc.Plot {
	out := doc.Plot{Title: "TTFT p99 of each workload",
		Text:   "Lower is faster. Where there are too few requests for the percentile, it is the largest value.",
		Kind:   doc.Points,
		XLabel: "workload", YLabel: "TTFT p99", YUnit: "ms", LogY: true}
	for _, model := range r.Models {
		out.Series = append(out.Series, doc.Series{Name: model})
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
	return out.OrNil()
}

func (r *SuiteResult) runs() (n int) {
	r.each(func(_ *RowResult, m *ModelResult) { n += m.Runs })
	return n
}

// untrusted says how many runs are not trustworthy. A result of an earlier version does not count them.
func (r *SuiteResult) untrusted() string {
	n, all := int64(0), int64(r.runs())
	r.each(func(_ *RowResult, m *ModelResult) { n += int64(m.Untrusted) })
	if n == 0 {
		return "A run is not trustworthy"
	}
	return report.UntrustedRuns(n, all)
}

// links are the pages of the runs of a row.
func (r *SuiteResult) links(dir fs.FS, row string) (out []doc.Link) {
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
			out = append(out, doc.Link{Text: text, Path: name})
		}
	}
	return out
}

// show is a metric of a model, – without it.
func (m *ModelResult) show(name string) string {
	f := m.Figure(name)
	if f == nil {
		return "–"
	}
	return format(metric(name), *f, doc.Short)
}

// section has the table of a workload, a column for each model, with changes against the first of
// them and against the baseline, and what became of each.
func (r *RowResult) section() doc.Section {
	title := r.Row
	if r.About != "" {
		title += ": " + r.About
	}
	head := []string{"Metric"}
	first := r.Models[0]
	for i := range r.Models {
		head = append(head, r.Models[i].Model)
		if i > 0 {
			head = append(head, "against "+first.Model)
		}
		if r.Models[i].Changes != nil {
			head = append(head, "baseline", "change")
		}
	}
	var rows [][]string
	for _, name := range r.metrics() {
		cells := []string{heading(metric(name))}
		if name == r.Primary {
			cells[0] += " ←"
		}
		for i := range r.Models {
			m := &r.Models[i]
			cells = append(cells, m.show(name))
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
	s := doc.Section{Title: title + " (" + r.Load + ")", Notes: r.notes(),
		Tables: []doc.Table{{Head: head, Rows: append(rows, r.requests(head)), Align: doc.FiguresOf(len(head))}}}
	if r.Hypothesis != "" {
		s.Text = []string{"Hypothesis: " + r.Hypothesis + "."}
	}
	return s
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
func (m *ModelResult) change(name string) []string {
	for _, c := range m.Changes {
		if c.Metric == name {
			return []string{format(metric(name), Figure{V: c.Was}, doc.Short), signed(c.Change)}
		}
	}
	return []string{"–", "–"}
}

// notes say what became of each model.
func (r *RowResult) notes() (out []doc.Note) {
	for i := range r.Models {
		m := &r.Models[i]
		say := func(level doc.Level, format string, args ...any) {
			out = append(out, doc.Note{Level: level, Text: m.Model + ": " + fmt.Sprintf(format, args...)})
		}
		if o := m.Hypothesis; o != nil {
			say(o.level(), "%s", o.Text)
		}
		switch o := m.Regression; {
		case o.refuted():
			say(doc.Bad, "%s", o.Text)
		case o != nil:
			say(doc.Info, "%s", o.Text)
		}
		for _, e := range m.Errors {
			say(doc.Warn, "errors: %d %s, %s of the requests", e.Count, e.Class, doc.Percent(e.Share))
		}
		switch c := m.Contract; {
		case c != nil && c.Holds && c.Name == "":
			say(doc.Good, "the contract is met")
		case c != nil && c.Holds:
			say(doc.Good, "the contract %q is met", c.Name)
		case c != nil:
			say(doc.Bad, "%s", strings.Join(c.Broken, "; "))
		}
		for _, reason := range m.Reasons {
			say(doc.Bad, "NOT TRUSTWORTHY: %s", reason)
		}
	}
	return out
}

// level is how what became of a hypothesis is meant.
func (o *Outcome) level() doc.Level {
	switch {
	case o.Held == nil:
		return doc.Info
	case *o.Held:
		return doc.Good
	}
	return doc.Warn
}
