package textpage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	// narrowest is how many columns a cell that is wider has at least. The rest is wrapped.
	narrowest = 24

	// tallest is how many lines a cell of words takes at most: beyond, its row is easier to read as
	// a paragraph.
	tallest = 5
)

// framed and bare are the looks of tables.
var framed, bare = func() (framed, bare table.Style) {
	framed, bare = table.StyleLight, table.StyleLight
	bare.Options = table.OptionsNoBordersAndSeparators
	bare.Box.PaddingLeft, bare.Box.PaddingRight = "", "  "
	framed.Format.Header, bare.Format.Header = text.FormatDefault, text.FormatDefault
	return framed, bare
}()

// Table writes a title and a table in a frame, and nothing where there are no rows. The first column
// has names; the others have figures, to the right, but for those of words, which are named by their
// number from 0. A row may be shorter than the head, and a head without words is left out.
//
// A table of figures that is wider than the page is written in parts, one below the other, each with
// the first column. One of words for the most part, which leave no room, has a paragraph for each row.
func (p *Page) Table(title string, head []string, rows [][]string, words ...int) {
	if len(rows) == 0 {
		return
	}
	p.Blank()
	p.Line("", title)
	p.draw(&framed, head, rows, words)
}

// Columns writes names, figures and words as [Page.Table] does, but without a frame, for a few columns
// in an answer.
func (p *Page) Columns(head []string, rows [][]string, words ...int) {
	if len(rows) > 0 {
		p.Blank()
		p.draw(&bare, head, rows, words)
	}
}

// Facts writes a title and a table in a frame without a head: names, figures to the right, and words
// that say more.
func (p *Page) Facts(title string, rows [][]string) {
	if len(rows) > 0 {
		p.Table(title, make([]string, len(rows[0])), rows, 2)
	}
}

// A column is a column of a table: how wide it is set, how wide its widest cell is, and how narrow it
// may be, where its words are wrapped.
type column struct {
	at, width, natural, least int
	words                     bool
}

// columns are the columns of a table, as wide as they may be.
func (p *Page) columns(head []string, rows [][]string, words []int) []column {
	all := make([]column, len(head))
	for i := range all {
		c := &all[i]
		*c = column{at: i, words: i == 0 || slices.Contains(words, i), natural: text.StringWidth(head[i])}
		for _, row := range rows {
			if i < len(row) {
				c.least = max(c.least, text.StringWidth(row[i]))
			}
		}
		c.natural = max(c.natural, c.least)

		most := narrowest
		if i == 0 {
			most = p.width / 2 // names are wrapped as little as can be
		}
		c.least = min(c.least, most)
		for word := range strings.FieldsSeq(head[i]) {
			c.least = max(c.least, text.StringWidth(word))
		}
		c.width = c.natural
	}
	return all
}

// draw writes a table by its style, in parts or as paragraphs where it is too wide.
func (p *Page) draw(style *table.Style, head []string, rows [][]string, words []int) {
	parts := p.parts(p.columns(head, rows, words), style)
	if 2*(len(words)+1) > len(head) && (len(parts) > 1 || slices.ContainsFunc(parts[0], func(c column) bool {
		return c.words && c.natural > tallest*c.width
	})) {
		p.paragraphs(head, rows)
		return
	}
	for _, part := range parts {
		p.drawPart(style, part, head, rows)
	}
}

// parts are the columns of each part of a table that is as wide as the page at most, with their widths.
func (p *Page) parts(all []column, style *table.Style) (parts [][]column) {
	gap, frame := 2, -2
	if style == &framed {
		gap, frame = 3, 1
	}
	room := func(part []column) int {
		left := p.width - frame
		for _, c := range part {
			left -= c.least + gap
		}
		return left
	}

	part := all[:1:1]
	for _, c := range all[1:] {
		if next := append(slices.Clone(part), c); room(next) >= 0 || len(part) == 1 {
			part = next
		} else {
			parts, part = append(parts, part), []column{all[0], c}
		}
	}
	parts = append(parts, part)
	for i := range parts {
		parts[i] = slices.Clone(parts[i])
		share(parts[i], room(parts[i]))
	}
	return parts
}

// share sets the widths of columns: each has its least width, and the narrowest take first from the room
// that is left.
func share(part []column, room int) {
	for i := range part {
		part[i].width = part[i].least
	}
	for ; room > 0; room-- {
		next := -1
		for i, c := range part {
			if c.width < c.natural && (next < 0 || c.width < part[next].width) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		part[next].width++
	}
	for ; room < 0; room++ { // two columns that are too wide even so
		widest := slices.MaxFunc(part, func(a, b column) int { return cmp.Compare(a.width, b.width) })
		part[slices.Index(part, widest)].width--
	}
}

func (p *Page) drawPart(style *table.Style, part []column, head []string, rows [][]string) {
	var t table.Table
	t.SetStyle(*style)
	columns := make([]table.ColumnConfig, len(part))
	for i, c := range part {
		columns[i] = table.ColumnConfig{Number: i + 1, WidthMax: c.width, WidthMaxEnforcer: text.WrapSoft,
			Align: text.AlignRight, AlignHeader: text.AlignRight}
		if c.words {
			columns[i].Align, columns[i].AlignHeader = text.AlignLeft, text.AlignLeft
		}
	}
	t.SetColumnConfigs(columns)

	cells := func(row []string) (out table.Row) {
		for _, c := range part {
			cell := ""
			if c.at < len(row) {
				cell = Plain(row[c.at])
			}
			out = append(out, cell)
		}
		return out
	}
	if strings.Join(head, "") != "" {
		t.AppendHeader(cells(head))
	}
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	for line := range strings.SplitSeq(t.Render(), "\n") {
		p.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// paragraphs writes each row as a paragraph: its name, and a line for each further cell that says something. Where
// the first column has no head, the name is in the first two cells.
func (p *Page) paragraphs(head []string, rows [][]string) {
	for _, row := range rows {
		of := 1
		if head[0] == "" {
			of = 2
		}
		p.Line("", strings.Join(row[:of], " "))
		for i, cell := range row[of:] {
			mark := "  "
			if name := head[i+of]; name != "" {
				mark += name + ": "
			}
			p.Line(mark, cell)
		}
	}
}
