package textpage

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// widestNote is how many columns a cell of words takes before it is wrapped.
const widestNote = 50

// narrowestName is how many columns the names of rows have at least.
const narrowestName = 12

// Table writes a title and a table in a frame, and nothing where there are no rows. The
// first column has names, the others figures, to the right. A row may be shorter than the
// head.
//
// A table that is wider than the page is written in parts, one below the other, each
// with the first column.
func (p *Page) Table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.title(title)
	for _, columns := range p.parts(widthsOf(append([][]string{head}, rows...)), 4, 3) {
		p.draw(pick(head, columns), pickAll(rows, columns), nil)
	}
}

// Facts writes a title and a table in a frame without a head: names, figures to the
// right, and words that say more, which are wrapped to what the page leaves.
func (p *Page) Facts(title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.title(title)
	p.draw(nil, rows, widthsOf(rows))
}

// Columns writes names and figures as [Page.Table] does, but without a frame, for a few
// columns in an answer. A name that leaves too little room for a figure is wrapped.
func (p *Page) Columns(head []string, rows [][]string) {
	all := append([][]string{head}, rows...)
	widths := widthsOf(all)
	for _, columns := range p.parts(widths, 0, 2) {
		names := p.width
		for _, i := range columns[1:] {
			names -= widths[i] + 2
		}
		names = min(widths[0], max(names, narrowestName))

		p.Blank()
		for _, row := range pickAll(all, columns) {
			name := strings.Split(text.WrapSoft(Plain(row[0]), names), "\n")
			line := text.Pad(name[0], names, ' ')
			for i, cell := range row[1:] {
				line += "  " + text.AlignRight.Apply(Plain(cell), widths[columns[i+1]])
			}
			p.b.WriteString(strings.TrimRight(line, " ") + "\n")
			for _, more := range name[1:] {
				p.Line("", more)
			}
		}
	}
}

func (p *Page) title(title string) {
	p.Blank()
	if title != "" {
		p.Line("", title)
	}
}

// parts are the columns of each part of a table, of columns of these widths, that is as
// wide as the page at most. frame is what the first column takes beside its width, gap
// what each further one takes.
func (p *Page) parts(widths []int, frame, gap int) (parts [][]int) {
	first := min(widths[0], p.width/2) + frame
	part, taken := []int{0}, first
	for i := 1; i < len(widths); i++ {
		if taken+widths[i]+gap > p.width && len(part) > 1 {
			parts = append(parts, part)
			part, taken = []int{0}, first
		}
		part, taken = append(part, i), taken+widths[i]+gap
	}
	return append(parts, part)
}

// draw writes a table in a frame. With the widths of its columns, it has no head.
func (p *Page) draw(head []string, rows [][]string, facts []int) {
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	var t table.Table
	t.SetStyle(style)
	columns := make([]table.ColumnConfig, len(rows[0]))
	widths, widest := widthsOf(rows), widestNote
	if facts == nil { // a column alone beside the names fits too
		widths = widthsOf(append([][]string{head}, rows...))
		widest = min(widest, p.width-7-min(widths[0], p.width/2))
	}
	for i := range columns {
		taken := 4 // by the frame and the other columns
		for j, w := range widths {
			if j != i {
				taken += 3 + min(w, widest)
			}
		}
		c := &columns[i]
		*c = table.ColumnConfig{Number: i + 1, WidthMax: widest, WidthMaxEnforcer: text.WrapSoft,
			Align: text.AlignLeft}
		if i > 0 && (facts == nil || i == 1) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		if i == 0 && facts == nil || facts != nil && i == len(columns)-1 { // words give way, figures do not
			c.WidthMax = max(narrowestName, p.width-taken)
		}
	}
	t.SetColumnConfigs(columns)
	if facts == nil {
		t.AppendHeader(cells(head))
	}
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	p.b.WriteString(t.Render() + "\n")
}

// widthsOf is the width of the widest cell of each column of the first row.
func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], text.StringWidth(cell))
		}
	}
	return widths
}

func pick(row []string, columns []int) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		if c < len(row) {
			out[i] = row[c]
		}
	}
	return out
}

func pickAll(rows [][]string, columns []int) [][]string {
	out := slices.Clone(rows)
	for i := range out {
		out[i] = pick(out[i], columns)
	}
	return out
}

func cells(row []string) table.Row {
	out := make(table.Row, len(row))
	for i := range row {
		out[i] = Plain(row[i])
	}
	return out
}
