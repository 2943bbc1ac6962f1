package doc

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
)

// A Document is a report. All of its strings are plain text and are escaped; only
// the title is required.
type Document struct {
	// The first screen: what was asked, and the answer.
	Title    string
	Tag      string // of the whole page, such as its privacy tier; beside the title
	Lead     string // a sentence or two under the title
	Headline string // the answer in a few words, such as 94 req/s within the contract
	Verdict  []Note // what to know before any figure; above the facts
	Table    *Table // of few rows and columns
	Facts    []Fact // shown as a grid, under the table
	Plot     *Plot  // the main one; beside table and facts where there is room
	Long     bool   // a terminal's answer has every row, such as each level of a sweep, however many lines that takes

	Notes    []Note    // about the page as a whole; under the first screen
	Sections []Section // more than three get a table of contents
	About    []Group   // where the figures come from; small, under the sections
	Terms    []Term    // what the figures mean; a last section lists them
}

// A Fact is a labelled value. The note is small print under the value.
type Fact struct {
	Label, Value, Note string
	Term               string // name of the [Term] that defines the value; "" is none
}

// A Group is facts of one kind, under a title. Long values take the whole line.
type Group struct {
	Title string
	Facts []Fact
}

// Add adds a fact, unless its value is empty: what is not known is left out.
func (g *Group) Add(label, value, note string) {
	if value != "" {
		g.Facts = append(g.Facts, Fact{Label: label, Value: value, Note: note})
	}
}

// A Term is a definition. Whatever names it links to its place at the end of the
// page and shows it to those who point at it.
type Term struct{ Name, Unit, Text, Formula string }

// A Section shows its parts in the order of the fields. What is empty takes no
// space; a section without a title gets no heading and no place in the contents.
type Section struct {
	Title  string
	Text   []string // paragraphs
	Notes  []Note
	Tables []Table
	Plots  []Plot
	Links  []Link // to files beside the page
	Asked  bool   // somebody asked for it: an answer on a terminal has it too
	Folded bool   // Markdown shows the title alone until it is asked for the rest
}

// A Note is a callout. Its level is shown by a word, a sign and a colour.
type Note struct {
	Level Level
	Text  string
	Word  string   // in place of the level's: Note, Good, Warning or Problem
	Items []string // a list under the text
	// Commands are shell commands under the text, written so that they can be copied.
	Commands []string
	Fits     bool // the short text has it where there is room, and else counts it
}

// A Level says how a [Note] is meant.
type Level uint8

const (
	Info Level = iota
	Good       // a check held
	Warn       // read the numbers with care
	Bad        // a check did not hold
)

// class is the CSS class, sign and word the visible marks.
var levels = [...]struct{ class, sign, word string }{
	Info: {"info", "i", "Note"},
	Good: {"good", "✓", "Good"},
	Warn: {"warn", "!", "Warning"},
	Bad:  {"bad", "✕", "Problem"},
}

// A Table has one head cell for each column, and rows as wide as the head.
// Without rows it says so. A cell of text that begins with the sign of a check that
// held or did not, ✓ or ✕, has its colour.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
	Align   []Align // of the columns; those beyond its end are Auto
	Folded  bool    // a browser shows the caption alone until it is asked for the rest

	// Names of the terms that define the columns and the rows, "" for none. Those
	// beyond the end of a list have none.
	HeadTerms, RowTerms []string
}

// An Align places the cells of a column. Right also sets digits of one width.
type Align uint8

const (
	Auto  Align = iota // Right when every cell that says something is a number, perhaps with a unit
	Left               // for text
	Right              // for numbers
)

// FiguresOf aligns so many columns, of names first and then of figures.
func FiguresOf(columns int) []Align {
	return append([]Align{Left}, slices.Repeat([]Align{Right}, columns-1)...)
}

// A Plot shows its series on common axes.
type Plot struct {
	Title  string
	Text   string // what to see in it; under the title
	Term   string // name of the term that defines what is drawn; "" is none
	XLabel string // without the unit
	YLabel string
	XUnit  string // as printed, such as "ms"; "s" on a long linear X axis is read as h:mm:ss
	YUnit  string
	Kind   Kind
	LogX   bool
	LogY   bool
	Zero   bool     // the Y axis has zero in it, however far from it the values are; of a linear one
	XNames []string // of the places 1, 2 and on of the X axis, in place of numbers; for points
	YNames []string // of the lanes 1, 2 and on, from the top
	Series []Series
	Marks  []Mark
}

// A Mark is a dashed line across a plot, such as a limit.
type Mark struct {
	Axis   Axis
	At     float64 // on that axis
	Label  string  // beside the line
	Series int     // whose colour it has, counted from 1; 0 is none
	margin bool    // the label is beside the end of the line, where no curve is
}

// An Axis is the one that a [Mark] stands on.
type Axis uint8

const (
	AxisY Axis = iota // a horizontal line
	AxisX             // a vertical line
)

// A Kind says how the series of a [Plot] are drawn.
type Kind uint8

const (
	Line   Kind = iota // from point to point
	Step               // Y holds from its X to the next; for counts over time and for CDFs
	Bars               // histograms
	Points             // a scatter

	// CDF is a cumulative distribution: Y is the share of the values up to X, between 0
	// and 1, and X ascends. The plot chooses its X axis, marks p50, p95 and p99, and says
	// what they are.
	CDF

	// Lanes are bars from X to Hi, one beside the other in time, each in the lane of its Y:
	// 1 is the first of the plot's YNames, and the topmost.
	Lanes
)

var kinds = [...]struct{ code, name string }{
	Line:   {"line", "Line plot"},
	Step:   {"step", "Step plot"},
	Bars:   {"bars", "Bar chart"},
	Points: {"points", "Scatter plot"},
	CDF:    {"line", "Cumulative distribution"},
	Lanes:  {"lanes", "Timeline"},
}

// A Series is a list of points (X[i], Y[i]), in any order. A Y that is NaN or
// infinite is missing: lines and steps break there. A point whose X is so is
// dropped. Magnitudes over 1e16 count as infinite: choose a larger unit.
//
// For Bars, Y must be something that adds up (counts, shares), because
// neighbours are summed when there are more than 500 of them. A bar is centred
// on its X and as wide as the closest neighbours allow; with Hi, it reaches
// from X[i] to Hi[i], and so it does in Lanes. The other kinds have no Hi.
type Series struct {
	Name string
	X, Y []float64
	Hi   []float64
	Tone int   // its colour, 1 to 6; 0 goes by its place. So that a series that is left out takes none from the others
	Thin bool  // of lanes: thin bars, for time in which nothing happens
	N    int64 // values that a CDF is of; a percentile that takes more is not marked. 0 is enough.
}

// tones is the number of colours that series have.
const tones = 6

// check reports the first contradiction in the page.
func (p *Document) check() error {
	if p.Title == "" {
		return errors.New("page: no title")
	}
	for _, notes := range [][]Note{p.Verdict, p.Notes} {
		if err := checkNotes(notes); err != nil {
			return fmt.Errorf("page: %w", err)
		}
	}
	first := Section{}
	if p.Table != nil {
		first.Tables = []Table{*p.Table}
	}
	if p.Plot != nil {
		first.Plots = []Plot{*p.Plot}
	}
	if err := first.check(); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	for i := range p.Sections {
		if err := p.Sections[i].check(); err != nil {
			return fmt.Errorf("page: section %d, %w", i+1, err)
		}
	}
	return nil
}

// A Link leads to a file beside the page: a path relative to the page's directory and
// inside it, with slashes.
type Link struct{ Text, Path string }

func (s *Section) check() error {
	for i, l := range s.Links {
		if !fs.ValidPath(l.Path) || strings.ContainsRune(l.Path, '\\') || l.Text == "" {
			return fmt.Errorf("link %d: want a text, and the path of a file beside the page", i+1)
		}
	}
	if err := checkNotes(s.Notes); err != nil {
		return err
	}
	for i := range s.Tables {
		if err := s.Tables[i].check(); err != nil {
			return fmt.Errorf("table %d: %w", i+1, err)
		}
	}
	for i := range s.Plots {
		if err := s.Plots[i].check(); err != nil {
			return fmt.Errorf("plot %d: %w", i+1, err)
		}
	}
	return nil
}

func checkNotes(notes []Note) error {
	for i, n := range notes {
		if int(n.Level) >= len(levels) {
			return fmt.Errorf("note %d: unknown level %d", i+1, n.Level)
		}
	}
	return nil
}

func (t *Table) check() error {
	if len(t.Head) == 0 {
		return errors.New("no head")
	}
	if len(t.Align) > len(t.Head) {
		return fmt.Errorf("%d alignments for %d columns", len(t.Align), len(t.Head))
	}
	if len(t.HeadTerms) > len(t.Head) || len(t.RowTerms) > len(t.Rows) {
		return fmt.Errorf("%d terms for %d columns, %d for %d rows", len(t.HeadTerms), len(t.Head),
			len(t.RowTerms), len(t.Rows))
	}
	for i, a := range t.Align {
		if a > Right {
			return fmt.Errorf("column %d: unknown alignment %d", i+1, a)
		}
	}
	for i, row := range t.Rows {
		if len(row) != len(t.Head) {
			return fmt.Errorf("row %d has %d cells, the head has %d", i+1, len(row), len(t.Head))
		}
	}
	return nil
}

func (p *Plot) check() error {
	if int(p.Kind) >= len(kinds) {
		return fmt.Errorf("unknown kind %d", p.Kind)
	}
	if p.Kind == Lanes && (p.LogX || p.LogY) {
		return errors.New("lanes have no logarithmic axes")
	}
	for i, m := range p.Marks {
		if m.Axis > AxisX || !finite(m.At) || m.Series < 0 || m.Series > len(p.Series) {
			return fmt.Errorf("mark %d: want a finite place on an axis, and the number of a series", i+1)
		}
	}
	for i, s := range p.Series {
		switch {
		case len(s.X) != len(s.Y):
			return fmt.Errorf("series %d: %d X and %d Y", i+1, len(s.X), len(s.Y))
		case s.Hi != nil && p.Kind != Bars && p.Kind != Lanes:
			return fmt.Errorf("series %d: only bars and lanes have a Hi", i+1)
		case p.Kind == Lanes && (len(s.Hi) != len(s.X) ||
			slices.ContainsFunc(s.Y, func(y float64) bool {
				return y != math.Trunc(y) || y < 1 || int(y) > len(p.YNames)
			})):
			return fmt.Errorf("series %d: want bars with both ends, each in one of %d lanes", i+1, len(p.YNames))
		case s.Tone < 0 || s.Tone > tones:
			return fmt.Errorf("series %d: there are %d colours", i+1, tones)
		case s.Hi != nil && len(s.Hi) != len(s.X):
			return fmt.Errorf("series %d: %d X and %d Hi", i+1, len(s.X), len(s.Hi))
		}
	}
	return nil
}

// Plots are all plots of the page, that of the first screen before those of the sections.
func (p *Document) Plots() []*Plot {
	var out []*Plot
	if p.Plot != nil {
		out = append(out, p.Plot)
	}
	for i := range p.Sections {
		for j := range p.Sections[i].Plots {
			out = append(out, &p.Sections[i].Plots[j])
		}
	}
	return out
}

// OrNil is the plot as [Drawn] returns it, nil where it has no point.
func (p Plot) OrNil() *Plot {
	if drawn := Drawn(p); len(drawn) > 0 {
		return &drawn[0]
	}
	return nil
}

// Drawn returns the plots that have a point, without the series that have none, and
// without their marks.
func Drawn(plots ...Plot) []Plot {
	var out []Plot
	for _, p := range plots {
		var series []Series
		at := make([]int, len(p.Series)+1) // where a series goes, counted from 1; 0 is nowhere
		for i, s := range p.Series {
			if len(s.X) > 0 {
				series = append(series, s)
				at[i+1] = len(series)
			}
		}
		var marks []Mark
		for _, m := range p.Marks {
			if m.Series == 0 || at[m.Series] > 0 {
				m.Series = at[m.Series]
				marks = append(marks, m)
			}
		}
		p.Marks = marks
		if p.Series = series; len(series) > 0 {
			out = append(out, p)
		}
	}
	return out
}
