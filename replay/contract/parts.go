package contract

import (
	"slices"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/trace/strictyaml"
)

// What belongs to a clause beside its condition. Each reads the text s of node n.

func (c *Clause) readWhere(n strictyaml.Node, s string) (err error) {
	switch {
	case c.cost():
		return n.Faultf("cost covers all requests: the cost of a GPU cannot be split by request")
	case c.of.Servers:
		return n.Faultf("what servers say is of all requests")
	case c.of.Sessions && c.of.Unit == figure.PerSecond:
		return n.Faultf("sessions_per_s covers all sessions")
	}
	if c.where, err = parseScope(s); err != nil {
		return placeIn(n, err)
	}
	if mentions(c.where, "state") && c.rate() && !onlySteady(c.where) {
		return n.Faultf("a rate in the steady state covers all requests: write where: state = steady alone")
	}
	return nil
}

func (c *Clause) readFrom(n strictyaml.Node, s string) error {
	if !c.hasOrigin() {
		return n.Faultf("%s does not begin when a request is due or sent", c.of.Words())
	}
	if c.origin = slices.Index(originNames[:], s); c.origin < 0 {
		return n.Faultf("from: want due or sent")
	}
	return nil
}

func (c *Clause) readSLO(n strictyaml.Node, s string) (err error) {
	if c.of.Subject != figure.Goodput {
		return n.Faultf("slo belongs to goodput")
	}
	if c.slo, err = report.ParseSLO(s); err != nil {
		return n.Faultf("%v", err)
	}
	return nil
}
