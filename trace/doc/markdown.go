package doc

import (
	"bytes"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/textpage"
)

// A markdown is a page that is written as GitHub's Markdown. What does not print becomes a question
// mark in it, as on a terminal.
type markdown struct{ bytes.Buffer }

// WriteMarkdown writes the whole page, without plots and links, for a repository or a comment. It
// writes once.
func (p *Document) WriteMarkdown(w io.Writer) error {
	if err := p.check(); err != nil {
		return err
	}

	var out markdown
	out.paragraph("# ", p.Title)
	out.paragraph("", sentence(p.Headline))
	out.notes(p.Verdict)
	out.paragraph("", p.Lead)
	if p.Table != nil {
		out.table(p.Table)
	}
	out.facts(p.Facts)
	out.notes(p.Notes)
	out.paragraph("", p.Tag)

	for i := range p.Sections {
		s := &p.Sections[i]
		if s.drawn() {
			continue
		}
		out.paragraph("## ", s.Title)
		for _, words := range s.Text {
			out.paragraph("", words)
		}
		out.notes(s.Notes)
		for j := range s.Tables {
			out.table(&s.Tables[j])
		}
	}
	for _, g := range p.About {
		out.paragraph("## ", g.Title)
		out.facts(g.Facts)
	}
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

// paragraph writes words behind a mark, and nothing without words.
func (m *markdown) paragraph(mark, words string) {
	if words != "" {
		m.WriteString(mark + textpage.Plain(words) + "\n\n")
	}
}

func (m *markdown) notes(notes []Note) {
	for i := range notes {
		m.WriteString("- " + textpage.Plain(notes[i].mark()+notes[i].Text) + "\n")
		for _, item := range notes[i].Items {
			m.WriteString("  - " + textpage.Plain(item) + "\n")
		}
		for _, command := range notes[i].Commands {
			m.WriteString("\n  ```\n  " + textpage.Plain(command) + "\n  ```\n")
		}
	}
	if len(notes) > 0 {
		m.WriteString("\n")
	}
}

func (m *markdown) facts(facts []Fact) {
	for _, f := range facts {
		m.WriteString("- " + textpage.Plain(f.Label+": "+f.says()) + "\n")
	}
	if len(facts) > 0 {
		m.WriteString("\n")
	}
}

func (m *markdown) table(t *Table) {
	m.paragraph("", t.Caption)
	out := table.NewWriter()
	out.Style().Format.Header = text.FormatDefault
	columns := make([]table.ColumnConfig, len(t.Head))
	for i := range columns {
		columns[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignLeft}
		if t.right(i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	out.SetColumnConfigs(columns)

	row := func(cells []string) (r table.Row) {
		for _, c := range cells {
			r = append(r, textpage.Plain(c))
		}
		return r
	}
	out.AppendHeader(row(t.Head))
	for _, cells := range t.Rows {
		out.AppendRow(row(cells))
	}
	m.WriteString(out.RenderMarkdown() + "\n\n")
}
