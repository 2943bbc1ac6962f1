package audit

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/doc"
)

// Page lays a result out for whoever must answer for a release, such as a data
// protection officer: whether a check failed and why, what became of each field of the
// source, rows as they were released, the checks, and what risks are left, in the terms of
// opinion 05/2014 of the Article 29 working party. It reads the output again; where
// the case holds what it was made of, totals of both stand side by side, and then
// the page is no more public than the source. What cannot be read leaves a note; only a stop is an error.
func Page(ctx context.Context, c *Case, r *Result) (*doc.Document, error) {
	card, err := anonymize.ParseCard(c.Output.Meta["card"], c.Output.Meta["card_sha256"])
	s := sheet{c: c, r: r, card: card, carded: err == nil}
	p := &doc.Document{
		Title: "Privacy audit", Headline: r.answer(), Verdict: s.findings(),
		Facts: s.facts(), Notes: s.notes(), Table: s.firstChecks(),
		About: []doc.Group{{Title: "Audit", Facts: s.about()}},
	}
	rows, err := s.rows()
	c.unread(&rows, "Rows as released", err)
	change, err := s.change(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.unread(&change, "Before and after", err)
	for _, section := range []doc.Section{s.checks(), s.measured(), s.sourceFields(), s.columns(), rows, change,
		s.hiding(), s.opinion(), s.risks()} {
		if len(section.Tables)+len(section.Plots)+len(section.Notes)+len(section.Text) > 0 {
			p.Sections = append(p.Sections, section)
		}
	}
	return p, nil
}

// unread says in place of a section why it could not be made.
func (c *Case) unread(section *doc.Section, title string, err error) {
	if err != nil {
		*section = doc.Section{Title: title, Notes: []doc.Note{{Level: doc.Warn,
			Text: sentence("what this section says could not be read: " + c.withoutPaths(err.Error()))}}}
	}
}

// A sheet is what a page is made of.
type sheet struct {
	c      *Case
	r      *Result
	card   anonymize.Card
	carded bool
}

func (s *sheet) facts() []doc.Fact {
	out := []doc.Fact{{Label: "Tier", Value: orNone(s.r.Tier), Note: tierWords[s.r.Tier]},
		{Label: "Kind of file", Value: s.r.Kind}}
	if of := s.card.Sessions; of != nil {
		out = append(out, doc.Fact{Label: "ε", Value: fmt.Sprintf("%g", of.Budget.Epsilon),
			Note: "for " + of.Protects})
	}
	if of := s.card.FormerPublic; of != nil {
		out = append(out, doc.Fact{Label: "ε", Value: fmt.Sprintf("%g", of.Budget.Epsilon),
			Note: "for " + of.Protects})
	}
	return out
}

// about is what was judged, and by what.
func (s *sheet) about() (out []doc.Fact) {
	if s.carded {
		out = append(out, doc.Fact{Label: "Unit of privacy", Value: s.card.Unit})
	}
	if s.r.Digest != "" {
		out = append(out, doc.Fact{Label: "Digest of the rows", Value: s.r.Digest})
	}
	return append(out, doc.Fact{Label: "SHA-256 of the file", Value: s.r.FileSHA256},
		doc.Fact{Label: "Audited by", Value: "reprise " + s.r.Version})
}

// firstChecks names the checks of each outcome, failures first, and why some were skipped; nil without any.
func (s *sheet) firstChecks() *doc.Table {
	t := doc.Table{Head: []string{"Checks", ""}, Align: []doc.Align{doc.Left, doc.Left}}
	for _, status := range []Status{Fail, Inconclusive, Pass, Skipped} {
		row := map[string]int{} // by the reason
		for _, f := range s.r.Findings {
			if f.Status != status {
				continue
			}
			why := ""
			if status == Skipped {
				why = ": " + f.Why
			}
			if at, ok := row[why]; ok {
				t.Rows[at][1] = strings.TrimSuffix(t.Rows[at][1], why) + ", " + f.Check + why
				continue
			}
			row[why] = len(t.Rows)
			t.Rows = append(t.Rows, []string{statusWords[status], f.Check + why})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &t
}

var tierWords = map[string]string{
	anonymize.Internal: "pseudonymous; for use inside your organisation",
	anonymize.Partner:  "sessions drawn from noisy counts, none of them real; for a partner under contract",
	anonymize.Public:   "made by a differentially private model; no row is real",
}

// findings are a note for each check that failed or was inconclusive: a reader has to look at these.
func (s *sheet) findings() (out []doc.Note) {
	for _, of := range []struct {
		Status
		doc.Level
		what string
	}{{Fail, doc.Bad, " failed"}, {Inconclusive, doc.Warn, " was inconclusive"}} {
		for _, f := range s.r.Findings {
			if f.Status == of.Status {
				out = append(out, doc.Note{Level: of.Level, Word: f.Check + of.what, Text: sentence(f.Why)})
			}
		}
	}
	return out
}

// notes are what else to know before the output is released.
func (s *sheet) notes() (out []doc.Note) {
	if s.r.Count(Fail) == 0 && s.r.Count(Pass) > 0 {
		out = append(out, doc.Note{Level: doc.Info,
			Text: "A check can refute and never prove: the risks that are left are below."})
	}
	if n := s.r.Count(Skipped); n > 0 && s.c.Log == nil && s.c.Internal == nil {
		out = append(out, doc.Note{Level: doc.Info,
			Text: "The audit had the output alone. Checks that compare it with its source were skipped; whoever has " +
				"the source can run them."})
	}
	if s.r.Tier == anonymize.Internal {
		out = append(out, doc.Note{Level: doc.Warn,
			Text: "Tier internal is pseudonymised data: it stays personal data, and is not for release."})
	}
	return out
}

// statusWords go before a check's name.
var statusWords = map[Status]string{Pass: "✓ passed", Fail: "✕ failed", Inconclusive: "? inconclusive",
	Skipped: "– skipped"}

func (s *sheet) checks() doc.Section {
	about := map[string]string{}
	for _, c := range Checks() {
		about[c.Name] = c.About
	}
	t := doc.Table{Head: []string{"", "Check", "What must hold", "What was found"},
		Align: []doc.Align{doc.Left, doc.Left, doc.Left, doc.Left}}
	for _, f := range s.r.Findings {
		t.Rows = append(t.Rows, []string{statusWords[f.Status], f.Check, sentence(about[f.Check]), sentence(f.Why)})
	}
	return doc.Section{Title: "Checks",
		Text:   []string{"Each of these tries to break the output the way somebody who got hold of it would."},
		Tables: []doc.Table{t}}
}

// measured has the figures of the checks.
func (s *sheet) measured() doc.Section {
	rows := s.r.figures()
	if len(rows) == 0 {
		return doc.Section{}
	}
	return doc.Section{Title: "What the checks measured", Tables: []doc.Table{{Caption: "Figures of each check",
		Folded: true, Head: []string{"Check", "Figure", "Value"}, Rows: rows,
		Align: []doc.Align{doc.Left, doc.Left, doc.Left}}}}
}

// sentence makes one of a clause.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

const shownRows = 20

// rows shows the first rows as they are.
func (s *sheet) rows() (doc.Section, error) {
	if s.c.Output.Trace == nil {
		return doc.Section{}, nil
	}
	src, err := s.c.Output.Trace.Reader()
	if err != nil {
		return doc.Section{}, err
	}
	rows := make([]trace.Request, shownRows)
	n, err := src.Read(rows)
	if err != nil && err != io.EOF {
		return doc.Section{}, err
	}
	var t doc.Table
	for _, c := range shownColumns {
		cells, any := make([]string, n), false
		for i := range n {
			cells[i] = c.cell(&rows[i])
			any = any || cells[i] != ""
		}
		if !any {
			continue
		}
		t.Head = append(t.Head, c.name)
		if t.Rows == nil {
			t.Rows = make([][]string, n)
		}
		for i := range n {
			t.Rows[i] = append(t.Rows[i], cells[i])
		}
	}
	if n == 0 {
		return doc.Section{}, nil
	}
	return doc.Section{Title: "Rows as released",
		Text: []string{fmt.Sprintf("The first %d rows of the file, in full: a column that is not here is empty in "+
			"all of them. Of long lists of blocks the beginning is shown.", n)},
		Tables: []doc.Table{t}}, nil
}

// A shownColumn is a column of the rows.
type shownColumn struct {
	name string
	cell func(r *trace.Request) string
}

var shownColumns = []shownColumn{
	{"arrival", func(r *trace.Request) string {
		return strconv.FormatFloat(float64(r.ArrivalNS)/1e9, 'f', 3, 64) + " s"
	}},
	{"session", func(r *trace.Request) string { return wholeCell(r.Session) }},
	{"thread", func(r *trace.Request) string { return shortCell(r.Thread) }},
	{"turn", func(r *trace.Request) string { return shortCell(r.Turn) }},
	{"parents", func(r *trace.Request) string { return list(r.Parents) }},
	{"think", func(r *trace.Request) string { return durationCell(r.ThinkNS) }},
	{"tool", func(r *trace.Request) string { return durationCell(r.ToolNS) }},
	{"user", func(r *trace.Request) string { return wholeCell(r.User) }},
	{"model", func(r *trace.Request) string { return r.Model }},
	{"adapter", func(r *trace.Request) string { return r.Adapter }},
	{"kind", func(r *trace.Request) string { return r.Kind }},
	{"class", func(r *trace.Request) string { return wordCell(r.Class) }},
	{"replica", func(r *trace.Request) string { return wordCell(r.Replica) }},
	{"category", func(r *trace.Request) string { return r.Category }},
	{"input", func(r *trace.Request) string { return strconv.Itoa(int(r.InputTokens)) }},
	{"output", func(r *trace.Request) string { return shortCell(r.OutputTokens) }},
	{"reasoning", func(r *trace.Request) string { return shortCell(r.ReasoningTokens) }},
	{"cached", func(r *trace.Request) string { return shortCell(r.CachedTokens) }},
	{"image tokens", func(r *trace.Request) string { return shortCell(r.ImageTokens) }},
	{"images", func(r *trace.Request) string { return shortCell(r.Images) }},
	{"max_tokens", func(r *trace.Request) string { return shortCell(r.MaxTokens) }},
	{"temperature", func(r *trace.Request) string {
		if r.Temperature == nil {
			return ""
		}
		return strconv.FormatFloat(float64(*r.Temperature), 'g', -1, 32)
	}},
	{"stream", func(r *trace.Request) string {
		if r.Stream == nil {
			return ""
		}
		return strconv.FormatBool(*r.Stream)
	}},
	{"status", func(r *trace.Request) string { return r.Status }},
	{"finish", func(r *trace.Request) string { return r.FinishReason }},
	{"TTFT", func(r *trace.Request) string { return durationCell(r.TTFTNS) }},
	{"E2E", func(r *trace.Request) string { return durationCell(r.E2ENS) }},
	{"blocks", func(r *trace.Request) string { return list(r.Blocks) }},
	{"length of", func(r *trace.Request) string { return r.LengthSource }},
	{"blocks of", func(r *trace.Request) string { return r.ReuseSource }},
	{"output blocks", func(r *trace.Request) string { return list(r.OutputBlocks) }},
}

func wholeCell(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}

func shortCell(v *int32) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(int(*v))
}

func durationCell(v *int64) string {
	if v == nil {
		return ""
	}
	return time.Duration(*v).String()
}

func wordCell(v *string) string {
	if v == nil {
		return ""
	}
	return *v
}

// list shows the beginning of a list of ids.
func list[T int64 | uint64](ids []T) string {
	const shown = 4
	var words []string
	for _, id := range ids[:min(len(ids), shown)] {
		words = append(words, fmt.Sprint(id))
	}
	if len(ids) > shown {
		words = append(words, fmt.Sprintf("… (%d)", len(ids)))
	}
	return strings.Join(words, " ")
}
