package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

// A view is a page as the template reads it: no decisions left but those of layout.
type view struct {
	Title, Lead string
	Facts       []Fact
	Notes       []noteView
	Sections    []sectionView
	Contents    []sectionView // the titled sections, if there are enough for a list
	Plots       int           // plots with data
	Data        template.JS   // of these plots, a JSON array
}

type noteView struct{ Class, Sign, Word, Text string }

type sectionView struct {
	ID, Title string
	Text      []string
	Notes     []noteView
	Tables    []tableView
	Plots     []plotView
}

type tableView struct {
	Caption string
	Head    []cell
	Rows    [][]cell
}

// A cell is Right if it is set in the style of numbers, a Row if it names its row.
type cell struct {
	Text       string
	Right, Row bool
}

type plotView struct {
	Title, Text    string
	ID             string // "" if there is nothing to draw
	XTitle, YTitle string
	Label          string
	Remarks        []string
	Several        bool // more than one series is drawn
}

// newView checks the page and prepares all that is on it.
func newView(p *Page) (*view, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	v := &view{Title: p.Title, Lead: p.Lead, Facts: p.Facts, Notes: newNotes(p.Notes)}
	var charts []chart
	for i := range p.Sections {
		s := &p.Sections[i]
		sv := sectionView{ID: fmt.Sprintf("section-%d", i+1), Title: s.Title, Text: s.Text, Notes: newNotes(s.Notes)}
		for j := range s.Tables {
			sv.Tables = append(sv.Tables, newTable(&s.Tables[j]))
		}
		for j := range s.Plots {
			c, pv := newPlot(&s.Plots[j])
			if len(c.Series) > 0 {
				charts = append(charts, c)
				pv.ID = fmt.Sprintf("plot-%d", len(charts))
			}
			sv.Plots = append(sv.Plots, pv)
		}
		v.Sections = append(v.Sections, sv)
		if s.Title != "" {
			v.Contents = append(v.Contents, sv)
		}
	}
	if len(v.Contents) <= 3 {
		v.Contents = nil
	}
	// json escapes <, >, &, U+2028 and U+2029, so no name can end the script element.
	data, err := json.Marshal(charts)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	v.Plots, v.Data = len(charts), template.JS(data)
	return v, nil
}

func newNotes(notes []Note) []noteView {
	var out []noteView
	for _, n := range notes {
		l := levels[n.Level]
		out = append(out, noteView{l.class, l.sign, l.word, n.Text})
	}
	return out
}

func newPlot(p *Plot) (chart, plotView) {
	c, remarks, label := newChart(p)
	return c, plotView{
		Title: p.Title, Text: p.Text, Label: label, Remarks: remarks,
		XTitle: titled(p.XLabel, p.XUnit), YTitle: titled(p.YLabel, p.YUnit),
		Several: len(c.Series) > 1,
	}
}

func newTable(t *Table) tableView {
	v := tableView{Caption: t.Caption}
	right := make([]bool, len(t.Head))
	for col := range t.Head {
		align := Auto
		if col < len(t.Align) {
			align = t.Align[col]
		}
		right[col] = align == Right || align == Auto && t.numeric(col)
		v.Head = append(v.Head, cell{Text: t.Head[col], Right: right[col]})
	}
	for _, row := range t.Rows {
		cells := make([]cell, len(row))
		for col, text := range row {
			cells[col] = cell{Text: text, Right: right[col], Row: col == 0 && !right[col]}
		}
		v.Rows = append(v.Rows, cells)
	}
	return v
}

// number is a figure with an optional sign or bound before it and a short unit
// after it: 1,234; -0.5; < 1 %; ±3.2e-5; 12.5 ms; 3.4×.
var number = regexp.MustCompile(`^[~≈<>≤≥±+−-]*\s?[0-9][0-9,. \x{00a0}\x{202f}]*([eE][+−-]?[0-9]+)?\s?[\pL%/µ·×²]{0,6}$`)

// numeric tells whether a column holds numbers: at least one, and besides them
// only cells that say there is none.
func (t *Table) numeric(col int) bool {
	found := false
	for _, row := range t.Rows {
		switch text := strings.TrimSpace(row[col]); text {
		case "", "-", "–", "—", "n/a":
		default:
			if !number.MatchString(text) {
				return false
			}
			found = true
		}
	}
	return found
}
