package contract

import (
	"fmt"
	"math"
	"slices"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// Scopes implements [report.Judge]. A contract has no more clauses than an uint64 has bits.
func (j *judge) Scopes(r *result.Result) (in uint64) {
	for i, s := range j.sessions {
		if s.holds(r, &j.in) {
			in |= 1 << i
		}
	}
	return in
}

// sessionClause judges a clause about sessions: those whose first request is in its scope,
// which is the at-th of such scopes.
//
// Sessions that the end of the run cut took longer than was seen of them, and may have
// failed or not. So a clause is held against both ends of what they can have made of the
// figure: it holds or fails where both agree, and cannot be judged where they do not.
func (j *judge) sessionClause(c *Clause, all *report.Evidence, at int, duration int64) report.ClauseResult {
	r := report.ClauseResult{Clause: c.String(), Allowed: c.allowed, Unit: string(c.unit())}
	sessions := all.Sessions
	if c.where != nil {
		r.Where = c.where.String()
		sessions = slices.DeleteFunc(slices.Clone(sessions), func(s report.JudgedSession) bool {
			return s.Scopes&(1<<at) == 0
		})
	}
	var succeeded, failed int64
	for _, s := range sessions {
		switch s.Outcome {
		case report.SessionSucceeded:
			succeeded++
		case report.SessionFailed:
			failed++
		case report.SessionCensored:
			r.Censored++
		}
	}
	var least, most *float64 // where nothing was cut, the same
	switch {
	case c.of.Spread:
		r.Needed = c.of.Statistic.Needed()
		least, most, r.Samples = c.sessionValues(sessions)
	case c.of.Unit == figure.Share:
		r.Samples = succeeded + failed + r.Censored
		least, most = report.Ratio(succeeded, r.Samples), report.Ratio(succeeded+r.Censored, r.Samples)
	case c.of.Unit == figure.PerSecond:
		r.Samples, r.Censored = succeeded, 0
		least, most = all.SessionsPerS, all.SessionsPerS
	case c.cost():
		r.Samples, r.Censored = succeeded, 0
		if n := all.SessionsPerS; n != nil && *n > 0 && duration > 0 {
			least = report.Rounded(j.cost(duration)/(*n*float64(duration)/1e9), 1e6)
			most = least
		}
	}
	c.between(&r, least, most, len(sessions))
	if r.Samples == 0 && c.of.Subject == figure.SessionSlowdown && all.SlowdownLacks != "" {
		r.Why = all.SlowdownLacks
	}
	return r
}

// between decides by both ends of what a figure may be. An end that is infinite is nil.
func (c *Clause) between(r *report.ClauseResult, least, most *float64, sessions int) {
	unjudged := func(format string, args ...any) {
		r.Outcome, r.Why, r.Measured, r.Margin = report.Unjudged, fmt.Sprintf(format, args...), nil, nil
	}
	bad, good := most, least
	if c.floor() {
		bad, good = least, most
	}
	switch {
	case sessions == 0 && r.Where != "":
		unjudged("no session that began in the measured window is in its scope")
		return
	case sessions == 0:
		unjudged("the run has no sessions")
		return
	case r.Samples < r.Needed && r.Samples > 0:
		unjudged("it takes %s, and there %s %s", doc.Many(r.Needed, "session"), doc.Was(r.Samples),
			doc.Brief(r.Samples))
		return
	case good == nil && r.Censored == 0:
		unjudged("no session has a value")
		return
	}
	if bad != nil {
		if r.Measured = bad; c.allows(*bad) { // even so
			c.decide(r)
			return
		}
	}
	if good != nil {
		if r.Measured = good; !c.allows(*good) { // at best
			c.decide(r)
			return
		}
	}
	unjudged("%s had requests left when the run ended, and it depends on them", doc.Many(r.Censored, "session"))
}

// allows says whether a measurement is within the limit.
func (c *Clause) allows(v float64) bool {
	if c.floor() {
		return v >= c.allowed
	}
	return v <= c.allowed
}

// sessionValues are the least and the most that a statistic of the sessions can be, and how
// many they are. Those that failed have no value. Nil is without a bound, or without a value.
func (c *Clause) sessionValues(sessions []report.JudgedSession) (least, most *float64, n int64) {
	var low, high []float64
	for _, s := range sessions {
		v, known := float64(s.NS), true
		if c.of.Subject == figure.SessionSlowdown {
			v, known = s.Slowdown*1e9, s.Slowdown > 0
		}
		switch {
		case s.Outcome == report.SessionCensored && known:
			low, high = append(low, v), append(high, math.Inf(1))
		case s.Outcome == report.SessionCensored && c.of.Subject == figure.SessionSlowdown && c.comparable(sessions):
			low, high = append(low, 0), append(high, math.Inf(1))
		case s.Outcome == report.SessionSucceeded && known:
			low, high = append(low, v), append(high, v)
		}
	}
	return ofFloats(c.of.Statistic, low), ofFloats(c.of.Statistic, high), int64(len(low))
}

// comparable says whether some session could be compared with the recorded one.
func (c *Clause) comparable(sessions []report.JudgedSession) bool {
	return slices.ContainsFunc(sessions, func(s report.JudgedSession) bool { return s.Slowdown > 0 })
}

// ofFloats is a statistic of nanoseconds in seconds, some of which may be infinite; nil
// where it is infinite itself, or there are too few values.
func ofFloats(s figure.Statistic, of []float64) *float64 {
	if int64(len(of)) < s.Needed() {
		return nil
	}
	slices.Sort(of)
	last := int64(len(of) - 1) // of the values that it takes
	if s > 0 {
		num, den := s.Fraction()
		last = (num*last + den - 1) / den
	}
	if math.IsInf(of[last], 1) {
		return nil
	}
	values := sample.Values{Limit: len(of)}
	for _, v := range of {
		values.Add(int64(min(v, report.MaxInstant)))
	}
	return report.Rounded(*statisticOf(s, &values)/1e3, 1e9)
}
