package report

import (
	"fmt"
	"math"
	"strings"

	"reprise/trace/page"
)

// String says whether the contract holds, and by how much it does not.
func (r *ContractResult) String() string {
	var fails, unjudged []string
	for i := range r.Clauses {
		switch c := &r.Clauses[i]; c.Outcome {
		case Fails:
			fails = append(fails, c.fault())
		case Unjudged:
			unjudged = append(unjudged, c.subject()+": "+c.Why)
		}
	}
	what := "the contract"
	if r.Name != "" {
		what += ` "` + Plain(r.Name) + `"`
	}
	var says []string
	if len(fails) > 0 {
		says = append(says, what+" does not hold: "+strings.Join(fails, "; "))
		what = "it"
	}
	if len(unjudged) > 0 {
		says = append(says, what+" cannot be judged: "+strings.Join(unjudged, "; "))
	}
	if len(says) == 0 {
		return what + " holds, " + r.closest()
	}
	return strings.Join(says, "; ")
}

// closest counts the clauses and names that with the least room.
func (r *ContractResult) closest() string {
	out := "in " + page.Many(int64(len(r.Clauses)), "clause")
	least := math.Inf(1)
	var close *ClauseResult
	for i := range r.Clauses {
		if c := &r.Clauses[i]; c.Margin != nil && *c.Margin < least {
			close, least = c, *c.Margin
		}
	}
	if close != nil {
		out += fmt.Sprintf("; with the least to spare, %s is %s, %s within %s", close.subject(), close.figure(), room(least), close.limit())
	}
	return out
}

// fault says what is measured in place of what is allowed.
func (c *ClauseResult) fault() string {
	out := c.subject() + " is " + c.figure()
	switch {
	case c.Margin == nil:
		return out + ", with " + c.limit() + " allowed"
	case strings.Contains(c.Clause, " >= "):
		return out + ", " + room(-*c.Margin) + " short of " + c.limit()
	}
	return out + ", " + room(-*c.Margin) + " beyond " + c.limit()
}

// subject is what the clause is about, and limit what it allows.
func (c *ClauseResult) subject() string {
	subject, _ := c.parts()
	if c.From != "" {
		subject += " from " + c.From
	}
	if c.Where != "" {
		subject += " where " + Plain(c.Where)
	}
	return subject
}

func (c *ClauseResult) limit() string {
	_, limit := c.parts()
	return limit
}

func (c *ClauseResult) parts() (subject, limit string) {
	at := strings.IndexAny(c.Clause, "<>")
	if at < 1 {
		return c.Clause, ""
	}
	return c.Clause[:at-1], strings.TrimLeft(c.Clause[at:], "<>= ")
}

// figure is what was measured. What is not a time, a share or a rate has its unit in
// its name.
func (c *ClauseResult) figure() string {
	out := inUnit(c.Measured, c.Unit)
	if c.Measured != nil && c.Unit == "per million tokens" {
		out = page.Number(*c.Measured)
	}
	if c.Measured != nil && c.Estimated > 0 {
		out += " (estimate)"
	}
	return out
}

// name is the clause with all that belongs to it.
func (c *ClauseResult) name() string {
	out := c.Clause
	if c.SLO != "" {
		out += ", slo " + c.SLO
	}
	if c.From != "" {
		out += ", from " + c.From
	}
	if c.Where != "" {
		out += ", where " + Plain(c.Where)
	}
	return out
}

// verdict is the outcome with its margin. What is missing is in the sentence above.
func (c *ClauseResult) verdict() string {
	switch {
	case c.Margin == nil:
		return c.Outcome
	case c.Outcome == Fails:
		return c.Outcome + " by " + room(-*c.Margin)
	}
	return c.Outcome + ", " + room(*c.Margin) + " to spare"
}

// room prints a margin, which may be of any size, as a percentage.
func room(margin float64) string { return page.Number(margin*100) + " %" }

// contractLine is the sentence above the table.
func contractLine(s *Summary) string {
	line := s.Contract.String()
	line = strings.ToUpper(line[:1]) + line[1:] + "."
	if s.Contract.Holds && !s.Verdict.Trustworthy {
		line += " That is what the figures say, which cannot be trusted."
	}
	return line
}

var contractHead = []string{"clause", "measured", "outcome", "n"}

func contractRows(s *Summary) (rows [][]string) {
	if s.Contract == nil {
		return nil
	}
	for i := range s.Contract.Clauses {
		c := &s.Contract.Clauses[i]
		rows = append(rows, []string{c.name(), c.figure(), c.verdict(), page.Brief(c.Samples)})
	}
	return rows
}

// contractTitle says whose definitions the clauses have, where others are shown.
func contractTitle(s *Summary) string {
	if s.Peer != nil {
		return "Contract, under the definitions of reprise"
	}
	return "Contract"
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
	case !c.Holds || !s.Verdict.Trustworthy:
		level = page.Warn
	}
	return []page.Note{{Level: level, Text: contractLine(s)}}
}

func contractSection(s *Summary) page.Section {
	rows := contractRows(s)
	if rows == nil {
		return page.Section{}
	}
	return page.Section{Title: contractTitle(s), Tables: []page.Table{{Head: contractHead, Rows: rows, HeadTerms: repeat(termOf("contract.clauses.margin"), len(contractHead))}}}
}

var contractDefinitions = []Definition{
	{"contract.clauses.margin", "share",
		"How far a measurement is within what its clause of the contract allows, as a share of that; below zero it is beyond. Latencies are of the measured requests that succeeded; failed ones count for error_rate and goodput alone.",
		"(allowed − measured) ÷ allowed; (measured − allowed) ÷ allowed"},
	{"contract.cost_per_million_output_tokens", "price",
		"What the GPUs cost for the duration of the run, idle or not, for a million output tokens of the requests that succeeded.",
		"price per GPU-hour · GPUs · duration ÷ 3,600 s ÷ (Σ output ÷ 10⁶)"},
}
