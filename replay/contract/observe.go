package contract

import (
	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
)

// Counts says what a clause counts of single requests, see [Clause.Values]: a percentile of
// latencies, a share of requests, or neither. Percentiles of sessions are neither, nor is what
// takes the steady state.
func (c *Clause) Counts() (percentile float64, share bool) {
	switch {
	case c.where != nil && mentions(c.where, "state"):
	case c.latency() && c.of.Statistic > 0:
		percentile, _ = c.of.Statistic.Share()
		return percentile, false
	case c.of.Subject == figure.ErrorRate || c.of.Subject == figure.Goodput:
		return 0, true
	}
	return 0, false
}

// Needs is how many requests that succeed the clauses take to be judged, and the clause that takes most of them: a p99
// takes 100. Gaps between tokens are not counted, since a request has many.
func (c *Contract) Needs() (requests int64, clause string) {
	for i := range c.Clauses {
		l := &c.Clauses[i]
		byGap := l.of.Subject == figure.ITL || l.of.Subject == figure.TokenITL
		if _, ok := l.Percentile(); !ok || !l.latency() || byGap {
			continue
		}
		if n := l.of.Statistic.Needed(); n > requests {
			requests, clause = n, l.String()
		}
	}
	return requests, clause
}

// Latencies are those of requests that the clauses measure, goodput without objectives of its own by those of slo. It
// is not ok where a clause rests on more of a run.
func (c *Contract) Latencies(slo report.SLO) (of []*figure.Subject, ok bool) {
	for i := range c.Clauses {
		switch l := &c.Clauses[i]; {
		case l.latency():
			of = append(of, l.of.Subject)
		case l.of.Subject == figure.Goodput && l.slo.Empty():
			of = append(of, slo.Latencies()...)
		case l.of.Subject == figure.Goodput:
			of = append(of, l.slo.Latencies()...)
		case l.of.Subject != figure.ErrorRate:
			return nil, false
		}
	}
	return of, true
}

// CountsSessions says what a clause counts of whole sessions, of all of them: a percentile of
// their times, the share that succeeded, or neither.
func (c *Clause) CountsSessions() (percentile float64, success bool) {
	switch {
	case c.where != nil:
	case c.of.Subject == figure.SessionTime && c.of.Statistic > 0:
		percentile, _ = c.of.Statistic.Share()
		return percentile, false
	case c.of.Sessions && c.of.Unit == figure.Share:
		return 0, true
	}
	return 0, false
}

// Values appends what a clause counts of a request of a run: a latency in nanoseconds, of
// itl one for each gap, or, of a share of requests, 1 where the request failed or missed its
// objectives, which are slo where the clause has none of its own, and 0 where not. Requests
// outside the measured window or the scope of the clause add nothing.
func (c *Clause) Values(dst []int64, run *result.Run, r *result.Result, slo *report.SLO) []int64 {
	end, _ := report.OutcomeOf(r)
	failed := end == report.Failed
	if before, after := run.Window.Holds(r); before || after || end != report.Succeeded && !failed ||
		c.where != nil && !c.where.holds(r, &report.Circumstances{Run: run}) {
		return dst
	}
	_, share := c.Counts()
	if share && (failed || c.of.Subject == figure.ErrorRate) {
		return append(dst, bit(failed))
	}
	if failed {
		return dst
	}
	d := report.Derive(r)
	if share {
		if !c.slo.Empty() {
			slo = &c.slo
		}
		return append(dst, bit(!d.Meets(slo, c.origin)))
	}
	return d.Append(dst, r, c.timing())
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Met tells whether a measurement in the unit of the clause is within its limit.
func (c *Clause) Met(measured float64) bool {
	if c.floor() {
		return measured >= c.allowed
	}
	return measured <= c.allowed
}

// Remeasure puts another measurement, in the unit of the clause, into its result.
func (c *Clause) Remeasure(r *report.ClauseResult, measured float64, samples int64) {
	r.Measured, r.Samples, r.Why = &measured, samples, ""
	c.decide(r)
}

// Floor tells whether a figure has to be at least its limit; else at most.
func (c *Clause) Floor() bool { return c.floor() }

// Scope is which requests the clause is about, "" for all.
func (c *Clause) Scope() string {
	if c.where == nil {
		return ""
	}
	return c.where.String()
}
