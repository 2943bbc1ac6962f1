package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A view is a page as the template reads it. The template decides on the layout
// alone.
type view struct {
	Title, Lead string
	Verdict     []noteView
	Facts       []factView
	Notes       []noteView
	About       []groupView
	Sections    []sectionView
	Contents    []sectionView // the titled sections, if there are enough for a list
	Plots       int           // plots with data
	Data        template.JS   // of these plots, a JSON array
}

type noteView struct{ Class, Sign, Word, Text string }

// A label is text that links to the definition of its term, if it has one.
type label struct{ Text, Ref, Tip string }

type factView struct {
	Label       label
	Value, Note string
	Long        bool // takes a line of its own
}

type groupView struct {
	Title string
	Facts []factView
}

type sectionView struct {
	ID, Title string
	Text      []string
	Notes     []noteView
	Tables    []tableView
	Links     []linkView
	Plots     []plotView
}

type linkView struct{ Text, Href string }

type tableView struct {
	Caption string
	Head    []cell
	Rows    []rowView
}

type rowView struct {
	ID    string // "" is none
	Cells []cell
}

// A cell is Right if it is set in the style of numbers, a Row if it names its row.
type cell struct {
	Label      label
	Right, Row bool
}

type plotView struct {
	Title          label
	Text           string
	ID             string // "" if there is nothing to draw
	XTitle, YTitle string
	Label          string
	Remarks        []string
	Several        bool // more than one series is drawn
}

// newView checks a page and prepares everything on it.
func newView(p *Page) (*view, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	terms := &glossary{terms: p.Terms, at: make(map[string]int, len(p.Terms))}
	for i, t := range p.Terms {
		terms.at[t.Name] = i
	}
	v := &view{Title: p.Title, Lead: p.Lead, Verdict: newNotes(p.Verdict), Facts: terms.facts(p.Facts), Notes: newNotes(p.Notes)}
	for _, g := range p.About {
		v.About = append(v.About, groupView{g.Title, terms.facts(g.Facts)})
	}
	var charts []chart
	for i := range p.Sections {
		s := &p.Sections[i]
		sv := sectionView{ID: fmt.Sprintf("section-%d", i+1), Title: s.Title, Notes: newNotes(s.Notes)}
		for _, text := range s.Text {
			sv.Text = append(sv.Text, whole(text))
		}
		for j := range s.Tables {
			sv.Tables = append(sv.Tables, terms.table(&s.Tables[j]))
		}
		for _, l := range s.Links {
			sv.Links = append(sv.Links, linkView{l.Text, (&url.URL{Path: l.Path}).String()})
		}
		for j := range s.Plots {
			plot := &s.Plots[j]
			c, remarks, spoken := newChart(plot)
			pv := plotView{
				Title: terms.label(plot.Title, plot.Term), Text: plot.Text, Label: spoken, Remarks: remarks,
				XTitle: titled(plot.XLabel, plot.XUnit), YTitle: titled(plot.YLabel, plot.YUnit),
				Several: len(c.Series) > 1,
			}
			if len(c.Series) > 0 {
				charts = append(charts, c)
				pv.ID = fmt.Sprintf("plot-%d", len(charts))
			}
			sv.Plots = append(sv.Plots, pv)
		}
		v.Sections = append(v.Sections, sv)
	}
	if len(p.Terms) > 0 {
		// The definitions, each where its labels link to.
		t := Table{Head: []string{"name", "unit", "definition", "formula"}, Align: []Align{Left, Left, Left, Left}}
		for _, d := range p.Terms {
			t.Rows = append(t.Rows, []string{d.Name, d.Unit, d.Text, d.Formula})
		}
		tv := terms.table(&t)
		for i := range tv.Rows {
			tv.Rows[i].ID = termID(i)
		}
		v.Sections = append(v.Sections, sectionView{ID: "definitions", Title: "Definitions", Tables: []tableView{tv}})
	}
	if terms.unknown != "" {
		return nil, fmt.Errorf("page: no definition of the term %q", terms.unknown)
	}
	for _, s := range v.Sections {
		if s.Title != "" {
			v.Contents = append(v.Contents, s)
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

// whole keeps a per cent sign on the line of its number.
func whole(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }

func newNotes(notes []Note) []noteView {
	var out []noteView
	for _, n := range notes {
		l := levels[n.Level]
		out = append(out, noteView{l.class, l.sign, l.word, whole(n.Text)})
	}
	return out
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

// A glossary makes labels that link to definitions. unknown is a name without a
// definition, if any.
type glossary struct {
	terms   []Term
	at      map[string]int
	unknown string
}

func termID(i int) string { return fmt.Sprintf("term-%d", i+1) }

// label makes the label for a text that a term defines; "" is no term.
func (g *glossary) label(text, term string) label {
	if term == "" {
		return label{Text: text}
	}
	i, ok := g.at[term]
	if !ok {
		g.unknown = term
		return label{Text: text}
	}
	t := &g.terms[i]
	tip := t.Text
	if t.Formula != "" {
		tip += "\nFormula: " + t.Formula
	}
	if t.Unit != "" {
		tip += "\nUnit: " + t.Unit
	}
	return label{text, termID(i), tip}
}

// A value of more characters than longValue would make a narrow tower.
const longValue = 60

func (g *glossary) facts(facts []Fact) []factView {
	var out []factView
	for _, f := range facts {
		out = append(out, factView{g.label(f.Label, f.Term), f.Value, f.Note, utf8.RuneCountInString(f.Value) > longValue})
	}
	return out
}

// nth is the element of a list that may be too short.
func nth(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func (g *glossary) table(t *Table) tableView {
	v := tableView{Caption: t.Caption}
	right := make([]bool, len(t.Head))
	for col := range t.Head {
		align := Auto
		if col < len(t.Align) {
			align = t.Align[col]
		}
		right[col] = align == Right || align == Auto && t.numeric(col)
		v.Head = append(v.Head, cell{Label: g.label(t.Head[col], nth(t.HeadTerms, col)), Right: right[col]})
	}
	for i, row := range t.Rows {
		cells := make([]cell, len(row))
		for col, text := range row {
			cells[col] = cell{Label: label{Text: text}, Right: right[col], Row: col == 0 && !right[col]}
		}
		cells[0].Label = g.label(row[0], nth(t.RowTerms, i))
		v.Rows = append(v.Rows, rowView{Cells: cells})
	}
	return v
}

// Class is the style of a cell: of numbers, or of the sign that it begins with.
func (c cell) Class() string {
	switch {
	case c.Right:
		return "num"
	case strings.HasPrefix(c.Label.Text, levels[Good].sign):
		return levels[Good].class
	case strings.HasPrefix(c.Label.Text, levels[Bad].sign):
		return levels[Bad].class
	}
	return ""
}
