package page

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A glossary makes labels that lead to definitions, and remembers a name that
// it has none of.
type glossary struct {
	terms   []Term
	at      map[string]int
	unknown string
}

func newGlossary(terms []Term) *glossary {
	g := &glossary{terms: terms, at: make(map[string]int, len(terms))}
	for i, t := range terms {
		g.at[t.Name] = i
	}
	return g
}

func termID(i int) string { return fmt.Sprintf("term-%d", i+1) }

// label is text that stands for a term; "" is none.
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

func (g *glossary) plot(p *Plot) (chart, plotView) {
	c, remarks, spoken := newChart(p)
	return c, plotView{
		Title: g.label(p.Title, p.Term), Text: p.Text, Label: spoken, Remarks: remarks,
		XTitle: titled(p.XLabel, p.XUnit), YTitle: titled(p.YLabel, p.YUnit),
		Several: len(c.Series) > 1,
	}
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

// section lists the definitions, each where its labels lead.
func (g *glossary) section() sectionView {
	t := Table{Head: []string{"name", "unit", "definition", "formula"}, Align: []Align{Left, Left, Left, Left}}
	for _, d := range g.terms {
		t.Rows = append(t.Rows, []string{d.Name, d.Unit, d.Text, d.Formula})
	}
	v := g.table(&t)
	for i := range v.Rows {
		v.Rows[i].ID = termID(i)
	}
	return sectionView{ID: "definitions", Title: "Definitions", Tables: []tableView{v}}
}
