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
// the first column. One whose words leave no room has a paragraph for each row.
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

// A column is a column of a table, and how wide it is set.
type column struct {
	at, width int
	words     bool
}

// draw writes a table by its style, in parts or as paragraphs where it is too wide.
func (p *Page) draw(style *table.Style, head []string, rows [][]string, words []int) {
	all := make([]column, len(head))
	for i := range all {
		all[i] = column{at: i, words: i == 0 || slices.Contains(words, i)}
		for _, row := range append([][]string{head}, rows...) {
			if i < len(row) {
				all[i].width = max(all[i].width, text.StringWidth(row[i]))
			}
		}
	}

	parts := p.parts(all, style)
	crowded := len(words) > 0 && (len(parts) > 1 || slices.ContainsFunc(parts[0], func(c column) bool {
		return c.words && all[c.at].width > tallest*c.width
	}))
	if crowded {
		p.paragraphs(head, rows)
		return
	}
	for _, part := range parts {
		p.drawPart(style, part, head, rows)
	}
}

// parts are the columns of each part of a table that is as wide as the page at most, with their widths:
// those that are wider than [narrowest] share what the others leave.
func (p *Page) parts(all []column, style *table.Style) (parts [][]column) {
	gap, frame := 2, -2
	if style == &framed {
		gap, frame = 3, 1
	}
	taken := func(part []column) int {
		sum := frame
		for i, c := range part {
			least := narrowest
			if i == 0 {
				least = p.width / 2 // names are wrapped as little as can be
			}
			sum += min(c.width, least) + gap
		}
		return sum
	}

	part := all[:1:1]
	for _, c := range all[1:] {
		if next := append(slices.Clone(part), c); taken(next) <= p.width || len(part) == 1 {
			part = next
		} else {
			parts, part = append(parts, part), []column{all[0], c}
		}
	}
	parts = append(parts, part)
	for i := range parts {
		parts[i] = slices.Clone(parts[i])
		share(parts[i], p.width-frame-gap*len(parts[i]))
	}
	return parts
}

// share brings the sum of the widths within the room that there is, by what the widest take.
func share(part []column, room int) {
	widest := slices.SortedFunc(slices.Values(part), func(a, b column) int { return cmp.Compare(a.width, b.width) })
	for i, c := range widest {
		width := max(min(c.width, room/(len(widest)-i)), 1)
		room -= width
		part[slices.IndexFunc(part, func(of column) bool { return of.at == c.at })].width = width
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

// paragraphs writes a row as what it is of, and a line for each further cell that says something.
func (p *Page) paragraphs(head []string, rows [][]string) {
	for _, row := range rows {
		p.Line("", row[0])
		for i, cell := range row[1:] {
			mark := "  "
			if head[i+1] != "" {
				mark += head[i+1] + ": "
			}
			p.Line(mark, cell)
		}
	}
}
