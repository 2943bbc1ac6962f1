package contract

import (
	"slices"
	"strconv"
	"strings"

	"reprise/replay/report"
	units "reprise/trace/quantity"
	"reprise/trace/strictyaml"
)

// What belongs to a clause beside its condition. Each reads the text s of node n.

func (c *Clause) readWhere(n strictyaml.Node, s string) (err error) {
	switch {
	case c.quantity.cost():
		return n.Faultf("cost is that of all requests: what a GPU costs cannot be told apart by request")
	case c.quantity.kind == sessionRate:
		return n.Faultf("sessions_per_s is that of all sessions")
	}
	if c.where, err = parseScope(s); err != nil {
		return placeIn(n, err)
	}
	if mentions(c.where, "state") && c.quantity.kind == rateOf && !onlySteady(c.where) {
		return n.Faultf("a rate in the steady state is that of all requests: write where: state = steady alone")
	}
	return nil
}

func (c *Clause) readEach(n strictyaml.Node, s string) error {
	switch {
	case !slices.Contains(eachFields, s):
		return n.Faultf("each: want one of %s", strings.Join(eachFields, ", "))
	case c.quantity.cost() || c.quantity.ofSessions():
		return n.Faultf("each: %s is that of all requests", c.quantity.name)
	case c.quantity.kind == rateOf && c.where != nil && onlySteady(c.where):
		return n.Faultf("each: a rate in the steady state is that of all requests")
	}
	c.each = &scopeFields[slices.IndexFunc(scopeFields, func(f field) bool { return f.name == s })]
	return nil
}

func (c *Clause) readFrom(n strictyaml.Node, s string) error {
	if !c.quantity.hasOrigin() {
		return n.Faultf("%s does not begin when a request is due or sent", c.quantity.name)
	}
	if c.origin = slices.Index(originNames[:], s); c.origin < 0 {
		return n.Faultf("from: want due or sent")
	}
	return nil
}

func (c *Clause) readSLO(n strictyaml.Node, s string) (err error) {
	if !c.quantity.hasSLO() {
		return n.Faultf("slo belongs to goodput, attainment, burn_rate or error_budget_spent")
	}
	if c.slo, err = report.ParseSLO(s); err != nil {
		return n.Faultf("%v", err)
	}
	return nil
}

func (c *Clause) readTarget(n strictyaml.Node, s string) error {
	if !c.quantity.ofBudget() {
		return n.Faultf("target belongs to burn_rate and error_budget_spent")
	}
	figure, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(figure), 64)
	if !ok || err != nil || !(v > 0 && v <= 99.9999) {
		return n.Faultf("target: want a percentage above 0%% and up to 99.9999%%, such as 99%%")
	}
	c.target = *report.Rounded(v/100, billionth)
	if c.target == 0 {
		return n.Faultf("target: want a percentage above 0%%, such as 99%%")
	}
	return nil
}

func (c *Clause) readWindows(n strictyaml.Node, s string) (err error) {
	if c.quantity.kind != burnRate {
		return n.Faultf("windows belong to burn_rate")
	}
	if c.windows, err = parseWindows(s); err != nil {
		return n.Faultf("windows: %v", err)
	}
	return nil
}

func (c *Clause) readPeriod(n strictyaml.Node, s string) (err error) {
	if c.quantity.kind != budgetSpent {
		return n.Faultf("period belongs to error_budget_spent")
	}
	if c.period, err = units.Duration(s); err != nil || c.period <= 0 {
		return n.Faultf("period: want a time above 0, such as 30d")
	}
	return nil
}
