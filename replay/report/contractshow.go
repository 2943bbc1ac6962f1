package report

import (
	"fmt"
	"math"
	"strings"

	"reprise/trace/page"
)

// String says in a sentence or two whether the contract holds, and by how much it
// does not.
func (r *ContractResult) String() string {
	var fails, unjudged []string
	for i := range r.Clauses {
		switch c := &r.Clauses[i]; c.Outcome {
		case Fails:
			fails = append(fails, c.name()+" is "+inUnit(c.Measured, c.Unit)+c.beyond())
		case Unjudged:
			unjudged = append(unjudged, c.name()+": "+c.Why)
		}
	}
	what := "the contract"
	if r.Name != "" {
		what = "the contract " + r.Name
	}
	what = plain(what)
	var says []string
	if len(fails) > 0 {
		says = append(says, fmt.Sprintf("%s does not hold: %s", what, strings.Join(fails, "; ")))
	}
	if len(unjudged) > 0 {
		says = append(says, fmt.Sprintf("%s cannot be judged: %s", what, strings.Join(unjudged, "; ")))
	}
	if len(says) == 0 {
		return fmt.Sprintf("%s holds, in %s", what, r.closest())
	}
	return strings.Join(says, "; ")
}

// closest names the clause with the least room.
func (r *ContractResult) closest() string {
	says, least := many(int64(len(r.Clauses)), "clause"), math.Inf(1)
	name := ""
	for i := range r.Clauses {
		if c := &r.Clauses[i]; c.Margin != nil && *c.Margin < least {
			name, least = c.name(), *c.Margin
		}
	}
	if name != "" {
		says += fmt.Sprintf("; the closest is %s, with %s to spare", name, percent(least))
	}
	return says
}

// name is the clause with its scope.
func (c *ClauseResult) name() string {
	if c.Where == "" {
		return c.Clause
	}
	return c.Clause + " where " + plain(c.Where)
}

// beyond says by how much a clause fails.
func (c *ClauseResult) beyond() string {
	if c.Margin == nil {
		return ""
	}
	return ", " + percent(-*c.Margin) + " beyond"
}

// contractHead are the columns of contractRows.
var contractHead = []string{"clause", "measured", "margin", "n", ""}

func contractRows(s *Summary) [][]string {
	if s.Contract == nil {
		return nil
	}
	var rows [][]string
	for i := range s.Contract.Clauses {
		c := &s.Contract.Clauses[i]
		name := c.name()
		for _, more := range []struct{ word, what string }{{"from ", c.From}, {"", c.SLO}} {
			if more.what != "" {
				name += ", " + more.word + more.what
			}
		}
		margin := "–"
		if c.Margin != nil {
			margin = percent(*c.Margin)
		}
		rows = append(rows, []string{name, inUnit(c.Measured, c.Unit), margin, count(c.Samples), c.Outcome})
	}
	return rows
}

// contractLine is the sentence above the table, "" without a contract.
func contractLine(s *Summary) string {
	if s.Contract == nil {
		return ""
	}
	line := s.Contract.String()
	return strings.ToUpper(line[:1]) + line[1:] + "."
}

func contractNotes(s *Summary) []page.Note {
	c := s.Contract
	if c == nil {
		return nil
	}
	level := page.Good
	switch {
	case c.Fails():
		level = page.Bad
	case !c.Holds:
		level = page.Warn
	}
	return []page.Note{{Level: level, Text: contractLine(s)}}
}

func contractSection(s *Summary) page.Section {
	rows := contractRows(s)
	if rows == nil {
		return page.Section{}
	}
	return page.Section{Title: "Contract", Tables: []page.Table{{Head: contractHead, Rows: rows}}}
}
