package doc

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"reprise/trace/textpage"
)

// A markdown is a page that is written as GitHub's Markdown.
type markdown struct{ bytes.Buffer }

// WriteMarkdown writes the whole page, without plots and links, for a repository or a comment on a pull request: the
// first screen is open, and sections that are folded, and where the figures come from, open on a click. It writes once.
func (p *Document) WriteMarkdown(w io.Writer) error {
	if err := p.check(); err != nil {
		return err
	}

	var out markdown
	out.paragraph("# ", p.Title)
	if p.Headline != "" {
		out.WriteString("**" + inMarkdown(sentence(p.Headline)) + "**\n\n")
	}
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
		out.section(s.Title, s.Folded, func() {
			for _, words := range s.Text {
				out.paragraph("", words)
			}
			out.notes(s.Notes)
			for j := range s.Tables {
				out.table(&s.Tables[j])
			}
		})
	}
	for _, g := range p.About {
		out.section(g.Title, true, func() { out.facts(g.Facts) })
	}
	_, err := w.Write(append(bytes.TrimRight(out.Bytes(), "\n"), '\n'))
	return err
}

// section writes a title and what is under it, perhaps folded away.
func (m *markdown) section(title string, folded bool, write func()) {
	if !folded || title == "" {
		m.paragraph("## ", title)
		write()
		return
	}
	m.WriteString("<details><summary>" + inMarkdown(title) + "</summary>\n\n")
	write()
	m.WriteString("</details>\n\n")
}

// paragraph writes words behind a mark, and nothing without words.
func (m *markdown) paragraph(mark, words string) {
	if words != "" {
		m.WriteString(mark + inMarkdown(words) + "\n\n")
	}
}

func (m *markdown) notes(notes []Note) {
	for i := range notes {
		m.WriteString("- " + inMarkdown(notes[i].mark()+notes[i].Text) + "\n")
		for _, item := range notes[i].Items {
			m.WriteString("  - " + inMarkdown(item) + "\n")
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
		m.WriteString("- " + inMarkdown(f.Label+": "+f.says()) + "\n")
	}
	if len(facts) > 0 {
		m.WriteString("\n")
	}
}

// table writes a table under its caption, with columns of figures to the right.
func (m *markdown) table(t *Table) {
	m.paragraph("", t.Caption)
	line := func(cells []string) {
		for _, cell := range cells {
			m.WriteString("| " + inMarkdown(cell) + " ")
		}
		m.WriteString("|\n")
	}

	line(t.Head)
	for i := range t.Head {
		rule := ":---"
		if t.right(i) {
			rule = "---:"
		}
		m.WriteString("| " + rule + " ")
	}
	m.WriteString("|\n")
	for _, row := range t.Rows {
		line(row)
	}
	m.WriteString("\n")
}

// markdownSigns are what GitHub would take for more than text: @ calls a person, and # links to an issue. <= begins no
// tag, and contracts are full of it.
var markdownSigns = strings.NewReplacer("<=", "<=", "&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;", "#", "&#35;",
	"|", `\|`, `\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "~", `\~`)

// inMarkdown makes a text mean nothing but itself. What does not print becomes a question mark, as on a terminal.
func inMarkdown(s string) string {
	return emphasis.ReplaceAllString(markdownSigns.Replace(textpage.Plain(s)), `$1\_`)
}

// emphasis finds underscores that begin a word, which GitHub takes for emphasis. Inside of a word they mean nothing.
var emphasis = regexp.MustCompile(`(^|[^\pL\pN])_`)
