package contract

import (
	"strings"

	"reprise/replay/figure"
	"reprise/replay/report"
)

// A Clause is one condition of a contract.
type Clause struct {
	of      figure.Figure
	allowed float64    // in [Clause.unit]
	origin  int        // of a latency, and of goodput
	slo     report.SLO // of goodput; empty takes that of the report
	where   scope      // nil is every request
}

// judged tells whether a contract can be about a figure: what requests and sessions were given, and what the servers
// say of them, but not how late the client was.
func judged(f figure.Figure) bool {
	return f.Better != figure.Neither && f.Statistic != figure.Min && f.Subject != figure.SendLag &&
		f.Subject != figure.SessionServerTime && (!f.Servers || report.Summarised(f))
}

func (c *Clause) latency() bool { return c.of.Spread && !c.of.Sessions && !c.of.Servers }
func (c *Clause) rate() bool    { return c.of.Unit == figure.PerSecond && !c.of.Sessions }
func (c *Clause) cost() bool {
	return c.of.Subject == figure.TokenCost || c.of.Subject == figure.SessionCost
}
func (c *Clause) hasOrigin() bool { return c.of.Origin || c.of.Subject == figure.Goodput }

// floor tells whether the figure has to be at least something; else at most.
func (c *Clause) floor() bool { return c.of.Better == figure.Higher }

// unit is that of the limit and of what was measured. Sessions take seconds and more.
func (c *Clause) unit() figure.Unit {
	if c.of.Sessions && c.of.Unit.IsTime() {
		return figure.Seconds
	}
	return c.of.Unit
}

func (c *Clause) operator() string {
	if c.floor() {
		return ">="
	}
	return "<="
}

// originNames are the words for report.FromSent and report.FromDue.
var originNames = [...]string{report.FromSent: "sent", report.FromDue: "due"}

// String writes the condition as parseClause reads it, without its scope.
func (c *Clause) String() string {
	if c.of.Subject == nil {
		return ""
	}
	limit := c.allowed
	if c.unit() == figure.Seconds {
		limit *= 1000
	}
	return c.of.Words() + " " + c.operator() + " " + c.of.FormatLimit(limit)
}

// Whole writes the clause with all that it says: also its scope, its objectives, and
// from where it counts when that is not from schedule.
func (c *Clause) Whole() string {
	out := c.String()
	if c.of.Subject != nil && c.hasOrigin() && c.origin != report.FromDue {
		out += " from " + originNames[c.origin]
	}
	if slo := c.slo.String(); slo != "" {
		out += " (" + slo + ")"
	}
	if c.where != nil {
		out += " where " + c.where.String()
	}
	return out
}

// parseClause reads a condition such as "p95 ttft <= 1s". Errors are misplaced.
func parseClause(s string) (Clause, error) {
	all, err := lex(s)
	if err != nil {
		return Clause{}, err
	}
	c, rest, err := parseSubject(all)
	if err != nil {
		return Clause{}, err
	}
	if op := rest[0]; op.kind != lexOperator || op.text != c.operator() {
		return Clause{}, misplacedf(op.at, "want %s after %s", c.operator(), c.of.Words())
	}
	value, rest := rest[1], rest[2:]
	if value.kind != lexWord {
		return Clause{}, misplacedf(value.at, "want a limit, such as %s", c.of.Example())
	}
	if unit := rest[0]; unit.kind == lexWord && strings.Trim(value.text, digits) == "" &&
		strings.IndexAny(unit.text, digits) != 0 {
		// 40 ms
		value.text += unit.text
		rest = rest[1:]
	}
	if rest[0].kind != lexEnd {
		return Clause{}, misplacedf(rest[0].at,
			"want nothing after the limit; which requests a clause is about is said by where")
	}
	if c.allowed, err = c.of.ParseLimit(value.text); err != nil {
		return Clause{}, &misplaced{value.at, err.Error()}
	}
	if c.unit() == figure.Seconds {
		c.allowed /= 1000
	}
	return c, nil
}

const digits = "0123456789."

// parseSubject reads what a clause is about, in any spelling, and returns what follows.
func parseSubject(all []lexeme) (c Clause, rest []lexeme, err error) {
	var name []string
	for rest = all; rest[0].kind == lexWord; rest = rest[1:] {
		name = append(name, rest[0].text)
	}
	if c.of, err = figure.Parse(strings.Join(name, " "), judged); err != nil {
		at := all[0].at
		if statistic, _ := figure.Split(strings.Join(name, " ")); statistic != 0 && len(name) > 1 &&
			figure.Find(name[1]) == nil {
			at = all[1].at
		}
		return c, nil, &misplaced{at, err.Error()}
	}
	if c.hasOrigin() {
		c.origin = report.FromDue
	}
	return c, rest, nil
}

// Percentile is the percentile that a clause is about as a share, 0.99 for a p99. It
// is not ok for a clause about something else.
func (c *Clause) Percentile() (share float64, ok bool) {
	return c.of.Statistic.Share()
}

// At is the same clause about another percentile, which is cut to a millionth; 1 is
// the maximum.
func (c Clause) At(share float64) Clause {
	c.of.Statistic = figure.Percentile(share)
	return c
}
