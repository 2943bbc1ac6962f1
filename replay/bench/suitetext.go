package bench

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// WriteSuite writes what a suite measured for people: whether it can be trusted, the
// chief figures of each workload and what went wrong. With details it writes a table of each row, with a column for
// each model.
func WriteSuite(w io.Writer, r *SuiteResult, o textpage.Options) error {
	p := textpage.New(o)
	p.Line("", "Suite "+r.Suite+": "+r.loosened().Beside(r.verdict().Text))
	if !o.Details {
		r.writeAnswer(p, o.Rest)
	} else {
		p.Line("", printable(r.About))
		r.write(&suitePage{text: p})
	}
	_, err := p.WriteTo(w)
	return err
}

// WriteMarkdown writes a suite with all its tables, as a page for a repository.
func WriteMarkdown(w io.Writer, r *SuiteResult) error {
	p := suitePage{markdown: new(bytes.Buffer)}
	p.heading(r.Suite, 1)
	p.line("%s", r.loosened().Beside(r.verdict().Text))
	p.line("%s", r.About)
	r.write(&p)
	_, err := w.Write(p.markdown.Bytes())
	return err
}

// verdict is what to know before any figure.
func (r *SuiteResult) verdict() page.Note {
	switch {
	case !r.Trustworthy():
		return page.Note{Level: page.Bad, Text: "A run is not trustworthy; its row says which and why."}
	case r.Broken():
		return page.Note{Level: page.Bad, Text: "A contract is not met; its row says by how much."}
	case r.Regressed():
		return page.Note{Level: page.Bad,
			Text: "A row is worse than the baseline by more than the limit; it says by how much."}
	case r.Unjudged():
		return page.Note{Level: page.Warn, Text: "A contract cannot be judged; its row says why."}
	}
	return page.Note{Level: page.Good, Text: "Every run is trustworthy."}
}

// write writes the table across rows, and that of each row.
func (r *SuiteResult) write(p *suitePage) {
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
		p.line("%s", largestNote)
	}
	if r.Baseline != "" {
		p.line("%s", r.baselineNote())
	}
}

const largestNote = "* the largest value: there are too few requests for the percentile."

func (r *SuiteResult) baselineNote() string {
	baseline := r.Baseline
	if says := r.BaselineLoosened.String(); says != "" {
		baseline += ", in which " + strings.TrimSuffix(says, ".")
	}
	return "Changes are against " + baseline + ". They may be chance: reprise compare decides that."
}

// answerColumns are the metrics of a workload in an answer.
var answerColumns = []struct{ metric, head string }{{"output_tokens_per_s", "tok/s"}, {"p50_ttft", "TTFT p50"},
	{"p99_ttft", "p99"}, {"p99_itl", "ITL p99"}}

// sessionColumns are those of a suite with a load by session.
var sessionColumns = []struct{ metric, head string }{{"sessions_per_s", "sessions/s"}, {"p50_session_time", "time p50"},
	{"p95_session_time", "p95"}, {"session_success", "success %"}, {"p99_ttft", "TTFT p99"}}

// bySession says whether some row was under a load by session.
func (r *SuiteResult) bySession() bool {
	return r.any(func(m *ModelResult) bool { return m.Figure("sessions_per_s") != nil })
}

// writeAnswer writes a line for each workload and model, and everything that went wrong: what
// was asked for is shown, however long it is.
func (r *SuiteResult) writeAnswer(p *textpage.Page, rest string) {
	for _, warning := range r.PresetWarnings {
		p.Line("Warning: ", warning+".")
	}
	foot := []string{"Latencies in ms."}
	head, columns := []string{"workload"}, answerColumns
	if r.bySession() {
		foot, columns = []string{"Session times in s, latencies in ms."}, sessionColumns
	}
	if p.Width() < 75 { // else they do not fit beside a name
		columns = columns[:3]
	}
	for _, c := range columns {
		head = append(head, c.head)
	}
	head = append(head, "errors")
	var rows [][]string
	var wrong []string
	cells := suitePage{} // knows what stands in for a percentile
	for i := range r.Rows {
		for j := range r.Rows[i].Models {
			m := &r.Rows[i].Models[j]
			name := r.Rows[i].Row
			if len(r.Models) > 1 {
				name += ", " + m.Model
			}
			row := []string{name}
			for _, c := range columns {
				row = append(row, cells.show(m, c.metric))
			}
			failures := int64(0)
			for _, e := range m.Errors {
				failures += e.Count
			}
			rows = append(rows, append(row, page.Count(failures)))
			for _, reason := range m.Reasons {
				wrong = append(wrong, name+" is not trustworthy: "+reason)
			}
			if c := m.Contract; c != nil {
				for _, broken := range c.Broken {
					wrong = append(wrong, name+": "+broken)
				}
			}
			if m.Regression.regressed() {
				wrong = append(wrong, name+": "+m.Regression.Text)
			}
			if o := m.Hypothesis; o != nil && o.Held != nil && !*o.Held {
				wrong = append(wrong, name+": hypothesis "+o.Text)
			}
		}
	}
	if cells.largest {
		foot = append(foot, largestNote)
	}
	if r.Baseline != "" {
		foot = append(foot, r.baselineNote())
	}
	foot = append(foot, trace.TierNote("table", r.Tier), rest)
	end := strings.Join(strings.Fields(strings.Join(foot, " ")), " ")
	p.Columns(head, rows)
	p.Blank()
	for _, w := range wrong {
		p.Line("- ", w)
	}
	p.Blank()
	p.Line("", end)
}

// A suitePage is where the tables of a suite go: one of the three.
type suitePage struct {
	text     *textpage.Page
	markdown *bytes.Buffer
	html     *page.Page // what is written goes into its last section
	largest  bool       // some figure stands in for a percentile
}

func (p *suitePage) heading(s string, level int) {
	if p.html != nil {
		p.html.Sections = append(p.html.Sections, page.Section{Title: s})
		return
	}
	if p.text != nil {
		p.text.Blank()
		p.text.Line("", s)
		return
	}
	p.markdown.WriteString("\n"[:min(p.markdown.Len(), 1)] + strings.Repeat("#", level) + " " + printable(s) + "\n\n")
}

func (p *suitePage) line(format string, args ...any) {
	s := printable(fmt.Sprintf(format, args...))
	switch {
	case s == "":
	case p.html != nil:
		last := p.section()
		last.Text = append(last.Text, s)
	case p.markdown != nil:
		p.markdown.WriteString(s + "\n\n")
	default:
		p.text.Line("", s)
	}
}

// say writes what is to be seen: as a line, or on a page as a note of this level.
func (p *suitePage) say(level page.Level, format string, args ...any) {
	if p.html != nil {
		last := p.section()
		last.Notes = append(last.Notes, page.Note{Level: level, Text: fmt.Sprintf(format, args...)})
		return
	}
	if p.markdown != nil {
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
	if p.text != nil {
		if left == 2 { // every part of a table that is too wide for one begins with its first column
			head = append([]string{head[0] + ", " + head[1]}, head[2:]...)
			rows = slices.Clone(rows)
			for i, row := range rows {
				rows[i] = append([]string{row[0] + ", " + row[1]}, row[2:]...)
			}
		}
		p.text.Table("", head, rows)
		return
	}
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
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
	p.markdown.WriteString(t.RenderMarkdown() + "\n\n")
}
