package doc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A view is a page as the template reads it. The template decides on the layout
// alone.
type view struct {
	Title, Tag, Lead, Headline string

	Verdict     []noteView
	Facts       []factView
	First       sectionView // table and plot of the first screen, one of each at most
	Notes       []noteView
	About       []groupView
	Sections    []sectionView
	Definitions []sectionView // one or none
	Contents    []sectionView // the titled sections, if there are enough for a list
	Plots       int           // plots with data
	Data        template.JS   // of these plots, a JSON array
}

type noteView struct {
	Class, Sign, Word, Text string
	Items, Commands         []string
}

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
	Folded  bool
	Wide    bool // has many columns, which stand closer
	Widest  bool // has so many that they are set small on paper
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
	Values         []string // of the percentiles of a CDF
	Remarks        []string
	First          bool   // it is on the first screen, where no section has a title before it
	Drawing        string // class of the legend: line, bars or points
	Several        bool   // more than one series is drawn
	Whole          bool   // it has the whole width of the page
}

// newView checks a page and prepares everything on it.
func newView(p *Document) (*view, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	terms := &glossary{terms: p.Terms, at: make(map[string]int, len(p.Terms))}
	for i, t := range p.Terms {
		terms.at[t.Name] = i
	}
	v := &view{Title: p.Title, Tag: p.Tag, Lead: p.Lead, Headline: withUnits.ReplaceAllString(whole(p.Headline),
		"$1\u00a0$2"), Verdict: newNotes(p.Verdict), Facts: terms.facts(p.Facts), Notes: newNotes(p.Notes)}
	for _, g := range p.About {
		v.About = append(v.About, groupView{g.Title, terms.facts(g.Facts)})
	}
	var charts []chart
	first := Section{}
	if p.Table != nil {
		first.Tables = []Table{*p.Table}
	}
	if p.Plot != nil {
		first.Plots = []Plot{*p.Plot}
	}
	v.First = terms.section(&first, "", &charts)
	if p.Table != nil && p.Plot != nil && p.Table.large() {
		v.Sections = []sectionView{{ID: "table", Tables: v.First.Tables}}
		v.First.Tables = nil
	}
	for i := range p.Sections {
		v.Sections = append(v.Sections, terms.section(&p.Sections[i], fmt.Sprintf("section-%d", i+1), &charts))
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
		v.Definitions = []sectionView{{ID: "definitions", Title: "Definitions", Tables: []tableView{tv}}}
	}
	if terms.unknown != "" {
		return nil, fmt.Errorf("page: no definition of the term %q", terms.unknown)
	}
	for _, s := range v.Sections {
		if s.Title != "" {
			v.Contents = append(v.Contents, s)
		}
	}
	if len(v.About) > 0 {
		v.Contents = append(v.Contents, sectionView{ID: "about", Title: "Provenance"})
	}
	v.Contents = append(v.Contents, v.Definitions...)
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

// section prepares a section, and adds its plots that have a point to the charts.
func (g *glossary) section(s *Section, id string, charts *[]chart) sectionView {
	v := sectionView{ID: id, Title: s.Title, Notes: newNotes(s.Notes)}
	for _, text := range s.Text {
		v.Text = append(v.Text, whole(text))
	}
	for i := range s.Tables {
		v.Tables = append(v.Tables, g.table(&s.Tables[i]))
	}
	for _, l := range s.Links {
		v.Links = append(v.Links, linkView{l.Text, (&url.URL{Path: l.Path}).String()})
	}
	for i := range s.Plots {
		plot := &s.Plots[i]
		c, remarks, spoken := newChart(plot)
		line, values, _ := plot.fitted()
		pv := plotView{
			Title: g.label(plot.Title, plot.Term), Text: plot.Text, Label: spoken, Values: values, Remarks: remarks,
			XTitle: titled(line.XLabel, line.XUnit), YTitle: titled(line.YLabel, line.YUnit),
			First: id == "", Drawing: strings.Replace(c.Kind, kinds[Step].code, kinds[Line].code, 1),
			Several: len(c.Series) > 1, Whole: plot.Kind == Lanes,
		}
		if len(c.Series) > 0 {
			*charts = append(*charts, c)
			pv.ID = fmt.Sprintf("plot-%d", len(*charts))
		}
		v.Plots = append(v.Plots, pv)
	}
	return v
}

// whole keeps a per cent sign on the line of its number.
func whole(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }

// withUnits finds what a headline keeps on one line: a figure and its unit, a percentile
// and its metric.
var withUnits = regexp.MustCompile(`(\d) (ms|s|µs|min|req/s|GPUs?|TTFT|ITL|TPOT|E2E)\b`)

func newNotes(notes []Note) []noteView {
	var out []noteView
	for _, n := range notes {
		l := levels[n.Level]
		v := noteView{Class: l.class, Sign: l.sign, Word: cmp.Or(n.Word, l.word), Text: whole(n.Text),
			Commands: n.Commands}
		for _, item := range n.Items {
			v.Items = append(v.Items, whole(item))
		}
		out = append(out, v)
	}
	return out
}

// number is a figure with an optional sign or bound before it and a short unit
// after it: 1,234; -0.5; < 1 %; ±3.2e-5; 12.5 ms; 3.4×.
var number = regexp.MustCompile(
	`^[~≈<>≤≥±+−-]*\s?[0-9][0-9,. \x{00a0}\x{202f}]*([eE][+−-]?[0-9]+)?\s?[\pL%/µ·×²]{0,6}$`)

// bareNumber is a figure of a terminal's narrow column, which a page sets apart in thousands.
var bareNumber = regexp.MustCompile(`^-?[0-9]{4,7}\*?$`)

// numeric tells whether a column holds numbers, or cells that say there is none.
func (t *Table) numeric(col int) bool {
	found := false
	for _, row := range t.Rows {
		switch text := strings.TrimSpace(row[col]); text {
		case "":
		case "-", "–", "—", "n/a":
			found = true
		default:
			if !number.MatchString(text) {
				return false
			}
			found = true
		}
	}
	return found
}

// right tells whether a column is set to the right.
func (t *Table) right(col int) bool {
	if col < len(t.Align) && t.Align[col] != Auto {
		return t.Align[col] == Right
	}
	return t.numeric(col)
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
		out = append(out, factView{g.label(f.Label, f.Term), f.Value, f.Note,
			utf8.RuneCountInString(f.Value) > longValue})
	}
	return out
}

// A table of wideTable columns or more stands closer, so that it fits a page.
const wideTable = 10

// One of widestTable columns or more is set small on paper, where it cannot scroll.
const widestTable = 15

// large tells whether a table leaves no room for a plot beside it. It then stands under the first
// screen, and the plot has the whole width.
func (t *Table) large() bool {
	characters := 0
	for i, head := range t.Head {
		widest := utf8.RuneCountInString(head)
		for _, row := range t.Rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		characters += widest
	}
	return len(t.Rows) > 12 || len(t.Head) > 5 && characters > 55
}

// nth is the element of a list that may be too short.
func nth(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func (g *glossary) table(t *Table) tableView {
	v := tableView{Caption: t.Caption, Folded: t.Folded, Wide: len(t.Head) >= wideTable,
		Widest: len(t.Head) >= widestTable}
	right := make([]bool, len(t.Head))
	for col := range t.Head {
		right[col] = t.right(col)
		v.Head = append(v.Head, cell{Label: g.label(t.Head[col], nth(t.HeadTerms, col)), Right: right[col]})
	}
	for i, row := range t.Rows {
		cells := make([]cell, len(row))
		for col, text := range row {
			for _, l := range levels {
				if rest, ok := strings.CutPrefix(text, l.sign+" "); ok { // which stays with its word
					text = l.sign + "\u00a0" + rest
				}
			}
			if right[col] && bareNumber.MatchString(text) {
				text = apart(strings.TrimSuffix(text, "*")) + text[len(strings.TrimSuffix(text, "*")):]
			}
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
	case slices.ContainsFunc(strings.Fields(c.Label.Text), func(word string) bool { return len(word) > longWord }):
		return "unbroken"
	}
	return ""
}

// longWord is the number of letters from which a word, such as a digest, may break anywhere.
const longWord = 40
