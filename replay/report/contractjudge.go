package report

import (
	"fmt"

	"reprise/trace/page"
)

// contract is what became of the contract.
func (c *collector) contract(duration int64, zeros bool) *ContractResult {
	for _, v := range c.terms.all {
		if v.where == nil {
			c.whole(v)
		}
	}
	return c.terms.judge(duration, zeros)
}

// judge holds the contract against what was collected. The run took so many
// nanoseconds; zeros tells whether a missing count of cached tokens is none.
func (t *terms) judge(duration int64, zeros bool) *ContractResult {
	out := &ContractResult{Name: t.contract.Name, Holds: true, Judged: true}
	for i := range t.contract.Clauses {
		r := t.clause(i, duration, zeros)
		out.Holds = out.Holds && r.Outcome == Holds
		out.Judged = out.Judged && r.Outcome != Unjudged
		out.Clauses = append(out.Clauses, r)
	}
	return out
}

// clause judges one clause.
func (t *terms) clause(i int, duration int64, zeros bool) ClauseResult {
	c, v := &t.contract.Clauses[i], t.of[i]
	r := ClauseResult{Clause: c.String(), Allowed: c.allowed, Unit: c.quantity.unit(), SLO: c.slo.String()}
	if c.where != nil {
		r.Where = c.where.String()
	}
	if c.quantity.hasOrigin() {
		r.From = originNames[c.origin]
	}
	slo := &c.slo
	switch c.quantity.kind {
	case latencyFrom, latencyWithin:
		s := v.sample(c.timing())
		r.Samples, r.Needed = s.N, c.statistic.needed()
		r.Measured = c.statistic.value(s)
	case goodShare:
		for _, g := range v.good {
			if g.clause == i {
				slo = &g.slo
				r.Samples, r.Measured, r.SLO = v.succeeded+v.failed, Ratio(g.n, v.succeeded+v.failed), g.slo.String()
			}
		}
	default:
		r.Measured, r.Samples = t.figure(c.quantity, v, duration, zeros)
	}
	r.Estimated = c.estimates(v, slo)
	r.hold(c)
	if r.Outcome == Unjudged {
		r.Why = r.why(c, v)
	}
	return r
}

// figure is a measure that has no statistic, and the requests that it rests on.
func (t *terms) figure(m *quantity, v *evidence, duration int64, zeros bool) (*float64, int64) {
	switch m.name {
	case errorRate:
		return Ratio(v.failed, v.succeeded+v.failed), v.succeeded + v.failed
	case "hit_ratio":
		c := v.cache.summary(zeros)
		return c.Measured, c.Rows
	case "requests_per_s":
		return PerSecond(v.succeeded, duration), v.succeeded
	case "prompt_tokens_per_s":
		return PerSecond(v.prompt, duration), v.succeeded
	case "output_tokens_per_s":
		return PerSecond(v.output, duration), v.succeeded
	}
	if v.output == 0 || duration <= 0 {
		return nil, v.succeeded
	}
	hours := float64(duration) / 3600e9
	return Rounded(t.contract.PricePerGPUHour*float64(t.contract.GPUs)*hours/(float64(v.output)/1e6), 1e6), v.succeeded
}

// hold compares what was measured with what is allowed.
func (r *ClauseResult) hold(c *Clause) {
	if r.Measured == nil {
		r.Outcome = Unjudged
		return
	}
	room := c.allowed - *r.Measured
	if c.quantity.floor {
		room = -room
	}
	r.Outcome = Fails
	if room >= 0 {
		r.Outcome = Holds
	}
	if c.allowed > 0 {
		r.Margin = Rounded(room/c.allowed, 1e6)
	}
}

// why says what is missing.
func (r *ClauseResult) why(c *Clause, v *evidence) string {
	switch {
	case c.where != nil && v.succeeded+v.failed == 0:
		return "no measured request is in its scope"
	case v.succeeded == 0:
		return "no request succeeded"
	case c.quantity.latency() && r.Samples > 0:
		return fmt.Sprintf("it takes %s, and there %s %s", page.Many(r.Needed, "value"), page.Was(r.Samples), page.Brief(r.Samples))
	case c.quantity.latency():
		return "no request has a value"
	case c.quantity.name == "hit_ratio":
		return "the server reports no cached tokens"
	case c.quantity.kind == costOf && v.output == 0:
		return "there are no output tokens"
	}
	return "the run has no duration"
}
