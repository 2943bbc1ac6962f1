package anonymize

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"reprise/anonymize/dp"
)

// cardWidth is how many columns the lines of a card for people take, where nothing says
// how wide they may be.
const cardWidth = 80

// WriteAnswer writes what a card says of a file in some 20 lines of at most width columns,
// 0 for 80: the tier, who is protected and how, and the first of the remaining risks.
func (c Card) WriteAnswer(w io.Writer, file string, width int) error {
	t := cardText{width: width}
	t.lines("", fmt.Sprintf("%s: tier %s: %s", file, c.Tier, c.about()))
	t.b.WriteByte('\n')
	t.fact("unit of privacy", c.Unit)
	if p := c.Sessions; p != nil {
		t.fact("this release", fmt.Sprintf("ε = %g, δ = %g; every session is drawn", p.Budget.Epsilon, p.Budget.Delta))
	}
	t.fact("times", c.Time)
	t.fact("lengths", c.Lengths)
	t.fact("text", "No word of a prompt or an answer is in the rows.")
	t.section("Remaining risks")
	for i, r := range c.Risks {
		before := t.b.Len()
		t.item(r)
		if strings.Count(t.b.String(), "\n") > 21 {
			said := t.b.String()[:before]
			t.b.Reset()
			t.b.WriteString(said)
			t.lines("  ", fmt.Sprintf("and %d more", len(c.Risks)-i))
			break
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// about says in a line what the file is.
func (c Card) about() string {
	if c.Former() {
		return "rows of real requests, made coarser by an earlier version. No version makes such releases any more, " +
			"since a few known requests single out many of their sessions. Make a new one of the source."
	}
	return tierWords[c.Tier]
}

// WriteText writes the card for people, such as a data protection officer, in lines of
// at most width columns, 0 for 80: what the file is, who is protected and how, what was
// done to each column, and the remaining risks.
func (c Card) WriteText(w io.Writer, width int) error {
	t := cardText{width: width}
	t.b.WriteString("PRIVACY CARD\n")
	t.section("What this is")
	t.fact("tier", c.Tier+": "+c.about())
	t.fact("unit of privacy", c.Unit)
	t.fact("made by", c.Tool)
	t.section("How it was made")
	t.fact("times", c.Time)
	t.fact("lengths", c.Lengths)
	if c.BlockSize > 0 {
		t.fact("prefix blocks", fmt.Sprintf("%d tokens each; requests that begin with the same tokens begin with the "+
			"same block ids", c.BlockSize))
	}
	t.fact("key of block ids", c.Key)
	if x := c.Confined; x != nil {
		t.fact("confined", fmt.Sprintf("while it was made: network %s; files %s; core dumps %s", x.Network,
			x.Files, x.CoreDumps))
	}
	t.fact("tokenizer", c.Tokenizer)
	t.fact("chat template", c.Template)
	t.fact("text", "The rows hold no word of a prompt or an answer. "+c.SourceFields.Words())
	if f := c.SourceFields; f != nil && f.Format != "" {
		t.fact("source", fmt.Sprintf(
			"It was read as %s. reprise audit --html lists its fields and how each was treated.", f.Format))
	}
	if c.Sessions != nil {
		t.sessions(c.Sessions)
	}
	if len(c.Decided) > 0 {
		t.section("By whose records the source was read")
		for _, d := range c.Decided {
			t.item(d.Rule + ": " + d.By)
		}
	}
	t.columns(c.Columns)
	t.section("Three questions of WP29 opinion 05/2014 on anonymisation")
	t.fact("singling out", c.WP29.SinglingOut)
	t.fact("linkability", c.WP29.Linkability)
	t.fact("inference", c.WP29.Inference)
	t.section("Remaining risks")
	for _, r := range c.Risks {
		t.item(r)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// WriteNotes writes the notes on a file that are not in its card, in lines of at most
// width columns.
func (c Card) WriteNotes(w io.Writer, notes []string, width int) error {
	if len(notes) == 0 {
		return nil
	}
	t := cardText{width: width}
	t.section("About this file")
	for _, n := range notes {
		t.item(n)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

// tierWords say what a tier is.
var tierWords = map[string]string{
	"raw": "the records with the text of their prompts. Nothing is hidden.",
	Internal: "pseudonymous records, one for each request. They are still personal data: use them only inside the " +
		"organisation that the traffic came from.",
	Partner: "sessions drawn from noisy counts, none of them real. For a partner under contract, not for publication.",
	Public: "differentially private. It may be published: it holds no record of the source, only noisy counts and " +
		"rows drawn from them.",
}

// A cardText puts a card into words.
type cardText struct {
	b     strings.Builder
	width int // in columns; 0 is cardWidth
}

func (t *cardText) section(title string) { fmt.Fprintf(&t.b, "\n%s\n", title) }

// lines writes words after a first mark, wrapped, and indented below it.
func (t *cardText) lines(mark, words string) {
	most := cmp.Or(t.width, cardWidth)
	width := len([]rune(mark))
	line, used := mark, width
	for word := range strings.FieldsSeq(words) {
		n := len([]rune(word))
		if used > width && used+1+n > most {
			t.b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, used = strings.Repeat(" ", width), width
		}
		if used > width {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	t.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

func (t *cardText) fact(name, words string) {
	if words != "" {
		t.lines(fmt.Sprintf("  %-16s ", name), words)
	}
}

func (t *cardText) say(format string, args ...any) { t.lines("  ", fmt.Sprintf(format, args...)) }
func (t *cardText) item(words string)              { t.lines("  - ", words) }

// guarantee says what differential privacy promises.
func (t *cardText) guarantee(protects string, b dp.Budget) {
	t.section("The guarantee")
	t.say("It protects %s. With or without any one of them, every outcome of this release is about equally likely: "+
		"within a factor of e^ε = %.2f, except with probability δ.", protects, math.Exp(b.Epsilon))
}

func (t *cardText) all(l *dp.Total) {
	if l != nil {
		t.fact("all releases", fmt.Sprintf("ε = %.4g, δ = %.3g: this release and %d before it of this source, "+
			"refused attempts included", l.Epsilon, l.Delta, l.Releases-1))
	}
}

func (t *cardText) sessions(s *dp.SessionStatement) {
	t.guarantee(s.Protects, s.Budget)
	t.fact("this release", fmt.Sprintf("ε = %g, δ = %g; %s noise, ρ = %.4g of zero-concentrated privacy for all "+
		"tables together", s.Budget.Epsilon, s.Budget.Delta, s.Mechanism, s.Rho))
	t.all(s.Ledger)
	t.fact("bounds", fmt.Sprintf("each %s adds a weight of 1 in all to each table, however many requests it has",
		s.Unit))
	t.fact("capture", fmt.Sprintf("a window of %v that the operator declared, from whose begin times count",
		time.Duration(s.CaptureNS)))
	t.fact("limits", fmt.Sprintf("%d input and %d output tokens; longer requests count as these",
		s.MaxInput, s.MaxOutput))
	if p := s.Trunks; p != nil {
		t.fact("shared prefixes",
			fmt.Sprintf("%d of at most %d blocks: blocks with a noisy count (one for each %s that has it) of "+
				"at least %d", p.Selected, p.Blocks, s.Unit, p.Threshold))
	}
	t.section("What was counted, its part of the budget, and its noise")
	fmt.Fprintf(&t.b, "  %-20s %7s %9s %9s\n", "table", "cells", "part of ρ", "noise, sd")
	for _, m := range s.Tables {
		fmt.Fprintf(&t.b, "  %-20s %7d %9.5f %9.2f\n", m.Name, m.Cells, m.Rho, m.Sigma)
	}
	t.section("What is taken as public, and not protected")
	for _, p := range s.Public {
		t.item(p)
	}
	e := s.Predicted
	t.section("How good it is")
	t.say("Typical errors are up to: requests %.1f %%, total input %.1f %%, total output %.1f %%, hit ratio %.3f. "+
		"They are more where few units send much of all, since each counts as one, or much is above the limits; how "+
		"sessions overlap is not predicted.",
		100*e.Requests, 100*e.Input, 100*e.Output, e.Hit)
}

func (t *cardText) columns(rules []Rule) {
	t.section("What was done with each column")
	for _, r := range rules {
		if r.Rule != dropped {
			t.fact(r.Column, r.Rule)
		}
	}
	if gone := droppedOf(rules); len(gone) > 0 {
		t.fact("dropped", strings.Join(gone, ", "))
	}
}
