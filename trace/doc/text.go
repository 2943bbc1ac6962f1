package doc

import (
	"cmp"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/trace/textpage"
)

// leastRows is how many rows of its table an answer shows, however much there is to warn of.
const leastRows = 5

// surestFacts is how many lines of facts an answer shows even where warnings leave no room, such as throughput, errors
// and output of a run. The table gives up to so many rows for them.
const surestFacts, rowsForThem = 4, 2

// leastFacts is how many lines of facts an answer shows, however much there is to warn of.
const leastFacts = 5

// WriteText writes the page for a terminal. Without details it is the first screen: the headline, the
// verdict, the table with as many rows as [textpage.AnswerLines] leave room for, the first facts and
// as many more as have room beside the warnings, which are whole. With details the notes, sections and
// provenance follow, without plots: what a plot shows is in a table of its section. It writes once,
// without colours.
func (p *Document) WriteText(w io.Writer, o textpage.Options) error {
	if err := p.check(); err != nil {
		return err
	}

	lines := cmp.Or(o.Lines, textpage.AnswerLines)
	if p.Long {
		lines = math.MaxInt32
	}
	out, foot := textpage.New(o), textpage.New(o)
	out.Line("", sentence(p.Headline))
	for i := range p.Verdict {
		p.Verdict[i].write(out)
	}
	lines += max(out.Lines()-leastRows, 0) // long reasons take no room from the figures
	out.Line("", p.Lead)

	room := lines - out.Lines() - p.leastLines() - 3 // for the last line and blank ones
	notes := textpage.New(o)
	left := p.writeNotes(notes, o, room-1-min(len(p.Facts), leastFacts))
	if notes.Lines() > 0 {
		room-- // for the blank line before them
	}
	writeFacts(foot, p.Facts, o.AtMost(max(room-notes.Lines(), min(room, leastFacts), surestFacts)))
	foot.Append(notes)
	foot.Blank()
	foot.Line("", p.lastLine(o, left))
	least := leastRows - min(max(surestFacts-room, 0), rowsForThem)
	p.writeFirstTable(out, o, lines-foot.Lines()-out.Lines(), least)
	for i := range p.Sections {
		if p.Sections[i].Asked && !o.Details {
			p.Sections[i].write(out)
		}
	}
	out.Append(foot)
	if o.Details {
		for i := range p.Sections {
			p.Sections[i].write(out)
		}
		for _, g := range p.About {
			out.Line("", g.Title)
			writeFacts(out, g.Facts, math.MaxInt)
		}
	}
	_, err := out.WriteTo(w)
	return err
}

// leastLines is how many lines the table of the first screen takes at least.
func (p *Document) leastLines() int {
	if p.Table == nil {
		return 0
	}
	return 3 + min(len(p.Table.Rows), leastRows)
}

// writeNotes writes the notes: with details all, and else each warning, whole but for [Note.Fits] where so many
// lines have no room for it. It counts the warnings that an answer leaves out.
func (p *Document) writeNotes(out *textpage.Page, o textpage.Options, lines int) (left int64) {
	for i := range p.Notes {
		n, one := &p.Notes[i], textpage.New(o)
		n.write(one)
		switch {
		case o.Details || n.Level > Good && (!n.Fits || out.Lines()+one.Lines() <= lines):
			out.Append(one)
		case n.Level > Good:
			left += int64(max(len(n.Items), 1))
		}
	}
	return left
}

// lastLine says how public the document is and, of an answer, how much more there is and where.
func (p *Document) lastLine(o textpage.Options, left int64) string {
	if o.Details {
		return p.Tag
	}
	more := ""
	if left > 0 {
		more = Many(left, "more warning") + ". "
	}
	return strings.TrimSpace(more + strings.TrimSpace(p.Tag+" "+o.Rest))
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

// longMark is the length of a mark from which further lines are not indented by it.
const longMark = 16

// write writes a note behind its word, and its items below it.
func (n *Note) write(out *textpage.Page) {
	mark, words := n.mark(), n.Text
	if len(mark) > longMark {
		mark, words = "", mark+words
	}
	out.Line(mark, words)
	for _, item := range n.Items {
		out.Line("  - ", item)
	}
	for _, command := range n.Commands {
		mark := "  "
		for _, line := range CommandLines(command, out.Width()-len("    ")) {
			out.Line(mark, line)
			mark = "    "
		}
	}
}

// CommandLines breaks a shell command before its flags where it is longer than a line, so that a shell takes it as one.
func CommandLines(command string, width int) (lines []string) {
	for {
		at := -1
		if text.StringWidth(command) > width {
			at = strings.LastIndex(command[:min(width-1, len(command))], " -")
		}
		if at <= 0 {
			return append(lines, command)
		}
		lines, command = append(lines, command[:at]+" \\"), command[at+1:]
	}
}

// writeFirstTable writes the table of the first screen, in an answer with as many rows as so many lines
// have room for, and at least so many rows.
func (p *Document) writeFirstTable(out *textpage.Page, o textpage.Options, lines, least int) {
	if p.Table == nil || len(p.Table.Rows) == 0 {
		return
	}

	all, shown := p.Table.Rows, len(p.Table.Rows)
	if !o.Details {
		shown = min(shown, max(lines, least))
	}
	for ; ; shown = min(shown, len(all)-1) - 1 {
		if len(all)-shown == 1 {
			shown++ // in place of a line that there is one more
		}
		body, table := textpage.New(o), textpage.New(o)
		body.Line("", p.Table.Caption)
		table.Columns(p.Table.Head, all[:shown], p.Table.words()...)
		body.Append(table)
		if more := len(all) - shown; more > 0 {
			body.Line("", "and "+Many(int64(more), "more row"))
		}
		if o.Details || shown <= least+1 || body.Lines()+2 <= lines { // with a blank line above and below
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

// writeFacts writes facts, a line each, as far as so many lines have room for them.
func writeFacts(out *textpage.Page, facts []Fact, lines int) {
	widest := 0
	for _, f := range facts {
		widest = max(widest, text.StringWidth(f.Label))
	}
	for _, f := range facts {
		one := textpage.New(textpage.Options{Width: out.Width()})
		if one.Line(text.Pad(textpage.Plain(f.Label), widest+2, ' '), f.says()); out.Lines()+one.Lines() <= lines {
			out.Append(one)
		}
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
