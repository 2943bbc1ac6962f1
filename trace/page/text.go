package page

import (
	"cmp"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/textpage"
)

// leastRows is how many rows of its table an answer shows, however much there is to warn of.
const leastRows = 5

// WriteText writes the page for a terminal. Without details it is the first screen: the headline,
// the verdict, the table with as many rows as [textpage.AnswerLines] leave room for, the facts, and
// every note that is no mere information. With details the notes, sections and provenance follow,
// without plots: what a plot shows is in a table of its section. It writes once, without colours.
func (p *Page) WriteText(w io.Writer, o textpage.Options) error {
	if err := p.check(); err != nil {
		return err
	}

	out := textpage.New(o)
	out.Line("", sentence(p.Headline))
	for _, n := range p.Verdict {
		n.write(out)
	}
	out.Line("", p.Lead)

	foot := textpage.New(o)
	writeFacts(foot, p.Facts)
	for _, n := range p.Notes {
		if o.Details || n.Level > Good {
			n.write(foot)
		}
	}
	foot.Blank()
	if o.Details {
		foot.Line("", p.Tag)
	} else {
		foot.Line("", strings.TrimSpace(p.Tag+" "+o.Rest))
	}

	p.writeFirstTable(out, o, cmp.Or(o.Lines, textpage.AnswerLines)-foot.Lines()-out.Lines())
	out.Append(foot)
	if o.Details {
		for i := range p.Sections {
			p.Sections[i].write(out)
		}
		for _, g := range p.About {
			out.Line("", g.Title)
			writeFacts(out, g.Facts)
		}
	}
	_, err := out.WriteTo(w)
	return err
}

// sentence ends words with a full stop where they have none.
func sentence(words string) string {
	if words == "" || strings.ContainsAny(words[len(words)-1:], ".:!?") {
		return words
	}
	return words + "."
}

// mark is the word before a note, of information its own one only.
func (n *Note) mark() string {
	if n.Word == "" && n.Level <= Good {
		return ""
	}
	return cmp.Or(n.Word, levels[n.Level].word) + ": "
}

// write writes a note behind its word, and its items below it.
func (n *Note) write(out *textpage.Page) {
	out.Line(n.mark(), n.Text)
	for _, item := range n.Items {
		out.Line("  - ", item)
	}
}

// writeFirstTable writes the table of the first screen, in an answer with as many rows as so many lines
// have room for.
func (p *Page) writeFirstTable(out *textpage.Page, o textpage.Options, lines int) {
	if p.Table == nil || len(p.Table.Rows) == 0 {
		return
	}

	all, shown := p.Table.Rows, len(p.Table.Rows)
	if !o.Details {
		shown = min(shown, max(lines, leastRows))
	}
	for ; ; shown-- {
		body := textpage.New(o)
		body.Line("", p.Table.Caption)
		body.Columns(p.Table.Head, all[:shown], p.Table.words()...)
		if more := len(all) - shown; more > 0 {
			body.Line("", "and "+Many(int64(more), "more row"))
		}
		if o.Details || shown <= leastRows || body.Lines()+2 <= lines { // with a blank line above and below
			out.Blank()
			out.Append(body)
			out.Blank()
			return
		}
	}
}

// words are the numbers of the columns beyond the first that hold no figures.
func (t *Table) words() (columns []int) {
	for i := 1; i < len(t.Head); i++ {
		if !t.right(i) {
			columns = append(columns, i)
		}
	}
	return columns
}

// writeFacts writes facts, a line each.
func writeFacts(out *textpage.Page, facts []Fact) {
	widest := 0
	for _, f := range facts {
		widest = max(widest, text.StringWidth(f.Label))
	}
	for _, f := range facts {
		out.Line(text.Pad(textpage.Plain(f.Label), widest+2, ' '), f.says())
	}
	out.Blank()
}

// says is the value with its note.
func (f *Fact) says() string {
	if f.Note == "" {
		return f.Value
	}
	return f.Value + " (" + f.Note + ")"
}

// drawn tells whether a section has plots alone: its words are about them.
func (s *Section) drawn() bool { return len(s.Tables)+len(s.Notes) == 0 && len(s.Plots) > 0 }

// write writes a section: its title over the first table, or over its words.
func (s *Section) write(out *textpage.Page) {
	if s.drawn() {
		return
	}

	out.Blank()
	out.Line("", s.Title)
	for _, words := range s.Text {
		out.Line("  ", words)
	}
	for i := range s.Notes {
		s.Notes[i].write(out)
	}
	for i := range s.Tables {
		out.Table(s.Tables[i].Caption, s.Tables[i].Head, s.Tables[i].Rows, s.Tables[i].words()...)
	}
	out.Blank()
}
