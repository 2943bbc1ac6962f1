package contract

import (
	"fmt"
	"slices"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// A judge implements [report.Judge].
type judge struct {
	contract *Contract
	in       report.Circumstances
	steady   *report.Steady
	scopes   []*scoped
	byClause []*scoped
	sessions []scope // of the clauses about sessions that have one
}

// A scoped is the evidence of the clauses that have one scope.
type scoped struct {
	*report.Evidence
	own   bool  // the evidence is its own, else the summary's, but for what follows
	where scope // nil is all
	good  []goodCount
}

// A goodCount counts the requests that meet what a clause about goodput asks.
type goodCount struct {
	clause int
	slo    report.SLO
	origin int
	n      int64
}

// Judge implements [report.Contract] for a contract that was checked. Clauses of one
// scope share their evidence.
func (c *Contract) Judge(run *result.Run, slo report.SLO, steady *report.Steady,
	newEvidence func() *report.Evidence) report.Judge {
	j := &judge{contract: c, in: report.Circumstances{Run: run}, steady: steady}
	if steady != nil && steady.Reason == "" {
		j.in.Steady = steady.Interval()
	}
	for i := range c.Clauses {
		clause := &c.Clauses[i]
		if clause.of.Sessions {
			j.byClause = append(j.byClause, nil)
			if clause.where != nil {
				j.sessions = append(j.sessions, clause.where)
			}
			continue
		}
		same := slices.IndexFunc(j.scopes, func(v *scoped) bool {
			if v.where == nil || clause.where == nil {
				return v.where == nil && clause.where == nil
			}
			return v.where.String() == clause.where.String()
		})
		if same < 0 {
			same = len(j.scopes)
			j.scopes = append(j.scopes, &scoped{where: clause.where, own: clause.where != nil, Evidence: newEvidence()})
		}
		v := j.scopes[same]
		j.byClause = append(j.byClause, v)
		v.take(i, clause, slo)
	}
	return j
}

// take makes the scope keep what its i-th clause of the contract is judged by.
func (v *scoped) take(i int, c *Clause, slo report.SLO) {
	switch {
	case c.of.Subject == figure.Goodput:
		if !c.slo.Empty() {
			slo = c.slo
		}
		v.good = append(v.good, goodCount{i, slo, c.origin, 0})
	case c.latency() && v.own:
		v.Keep(c.timing())
	}
}

func (c *Clause) timing() report.Timing {
	if !c.of.Origin {
		return report.Timing{Of: c.of.Subject, Origin: report.FromSent}
	}
	return report.Timing{Of: c.of.Subject, Origin: c.origin}
}

// Add implements [report.Judge].
func (j *judge) Add(r *result.Result, failed bool) {
	var d report.Durations
	if !failed {
		d = report.Derive(r)
	}
	for _, v := range j.scopes {
		if v.where == nil || v.where.holds(r, &j.in) {
			v.add(r, failed, &d)
		}
	}
}

func (v *scoped) add(r *result.Result, failed bool, d *report.Durations) {
	if failed {
		v.Failed++
		return
	}
	v.Succeeded++
	for i := range v.good {
		if g := &v.good[i]; d.Meets(&g.slo, g.origin) {
			g.n++
		}
	}
	if v.own {
		v.Evidence.Add(r, d)
	}
}

// Result implements [report.Judge].
func (j *judge) Result(all *report.Evidence, durationNS int64, zeros bool) *report.ContractResult {
	out := &report.ContractResult{Name: j.contract.Name, Holds: true, Judged: true}
	for _, v := range j.scopes {
		if !v.own {
			v.Evidence = all
		}
	}
	scopes := 0
	for i := range j.contract.Clauses {
		var r report.ClauseResult
		switch clause := &j.contract.Clauses[i]; {
		case !clause.of.Sessions:
			r = j.clause(i, j.byClause[i], durationNS, zeros)
		default:
			r = j.sessionClause(clause, all, scopes, durationNS)
			if clause.where != nil {
				scopes++
			}
		}
		out.Holds = out.Holds && r.Outcome == report.Holds
		out.Judged = out.Judged && r.Outcome != report.Unjudged
		out.Clauses = append(out.Clauses, r)
	}
	return out
}

// clause judges one clause.
func (j *judge) clause(i int, v *scoped, duration int64, zeros bool) report.ClauseResult {
	c := &j.contract.Clauses[i]
	r := report.ClauseResult{Clause: c.String(), Allowed: c.allowed, Unit: string(c.unit()), SLO: c.slo.String()}
	if c.where != nil {
		r.Where = c.where.String()
	}
	if c.hasOrigin() {
		r.From = originNames[c.origin]
	}
	if c.where != nil && mentions(c.where, "state") && j.in.Steady == nil {
		r.Outcome, r.Why = report.Unjudged, "the steady state was not looked for"
		if j.steady != nil {
			r.Why = "there is no steady state: " + j.steady.Reason
		}
		return r
	}
	slo := &c.slo
	switch {
	case c.latency():
		s := v.Values(c.timing())
		r.Samples, r.Needed = s.N, c.of.Statistic.Needed()
		r.Measured = statisticOf(c.of.Statistic, s)
	case c.of.Subject == figure.Goodput:
		for _, g := range v.good {
			if g.clause == i {
				slo = &g.slo
				r.Samples, r.Measured, r.SLO = v.Succeeded+v.Failed,
					report.Ratio(g.n, v.Succeeded+v.Failed), g.slo.String()
			}
		}
	case c.of.Servers:
		r.Measured, r.Samples = v.Summary.Figure(c.of), v.Summary.Values(c.of)
	default:
		r.Measured, r.Samples = j.figure(c.of.Subject, v, duration, zeros)
		if c.rate() && c.where != nil && onlySteady(c.where) {
			r.Measured, r.Samples = j.steadyRate(c.of.Subject)
		}
	}
	r.Estimated = c.estimates(v, slo)
	if r.Measured == nil {
		r.Outcome, r.Why = report.Unjudged, c.missing(&r, v)
		return r
	}
	c.decide(&r)
	return r
}

// decide says whether a measurement is allowed.
func (c *Clause) decide(r *report.ClauseResult) {
	room := c.allowed - *r.Measured
	if c.floor() {
		room = -room
	}
	r.Outcome = report.Fails
	if room >= 0 {
		r.Outcome = report.Holds
	}
	if c.allowed > 0 {
		r.Margin = report.Rounded(room/c.allowed, 1e6)
	}
}

// figure is a measure that has no statistic, and the requests that it rests on.
func (j *judge) figure(of *figure.Subject, v *scoped, duration int64, zeros bool) (*float64, int64) {
	switch of {
	case figure.ErrorRate:
		return report.Ratio(v.Failed, v.Succeeded+v.Failed), v.Succeeded + v.Failed
	case figure.HitRatio:
		return v.HitRatio(zeros)
	case figure.RequestRate:
		return report.PerSecond(v.Succeeded, duration), v.Succeeded
	case figure.PromptRate:
		return report.PerSecond(v.Prompt, duration), v.Succeeded
	case figure.OutputRate:
		if v.OutputImpossible > 0 {
			return nil, v.Succeeded
		}
		return report.PerSecond(v.Output, duration), v.Succeeded
	}
	if v.Output == 0 || v.OutputImpossible > 0 || duration <= 0 {
		return nil, v.Succeeded
	}
	return report.Rounded(j.cost(duration)/(float64(v.Output)/1e6), 1e6), v.Succeeded
}

// steadyRate is a rate in the steady state, which counts what happened inside, whatever was
// only partly there.
func (j *judge) steadyRate(of *figure.Subject) (*float64, int64) {
	s := j.steady
	return map[*figure.Subject]*float64{figure.RequestRate: s.RequestsPerS, figure.PromptRate: s.PromptTokensPerS,
		figure.OutputRate: s.OutputTokensPerS}[of], s.Finished
}

// cost is that of all GPUs for the run.
func (j *judge) cost(duration int64) float64 {
	return j.contract.PricePerGPUHour * float64(j.contract.GPUs) * float64(duration) / 3600e9
}

// missing says why a clause has no measurement.
func (c *Clause) missing(r *report.ClauseResult, v *scoped) string {
	switch {
	case c.of.Servers:
		return "no server said it, or of too few requests; --scrape auto asks them"
	case c.where != nil && v.Succeeded+v.Failed == 0:
		return "no measured request is in its scope"
	case v.Succeeded == 0:
		return "no request succeeded"
	case c.latency() && r.Samples > 0:
		return fmt.Sprintf("it takes %s, and there %s %s", doc.Many(r.Needed, "value"), doc.Was(r.Samples),
			doc.Brief(r.Samples))
	case c.latency():
		return "no request has a value"
	case c.of.Subject == figure.HitRatio:
		return "the server reports no cached tokens"
	case v.OutputImpossible > 0:
		return fmt.Sprintf("the server's output counts of %s are impossible", doc.Many(v.OutputImpossible, "answer"))
	case c.cost() && v.Output == 0:
		return "there are no output tokens"
	}
	return "the run has no duration"
}

// estimates is how many of the requests that the clause rests on have a count of
// tokens that is an estimate, where it matters to what the clause is about.
func (c *Clause) estimates(v *scoped, slo *report.SLO) int64 {
	switch c.of.Subject {
	case figure.PromptRate:
		return v.PromptEstimates
	case figure.OutputRate, figure.TokenCost, figure.TPOT, figure.TokenITL:
		return v.OutputEstimates
	case figure.Goodput:
		if slo.TPOT != nil {
			return v.OutputEstimates
		}
	}
	return 0
}

// statisticOf is a statistic of a sample in milliseconds, nil when it has too few values.
func statisticOf(s figure.Statistic, of *sample.Values) *float64 {
	if of.N < s.Needed() {
		return nil
	}
	milliseconds := func(ns float64) *float64 { return report.Rounded(ns/1e6, 1e6) }
	switch s {
	case figure.Mean:
		return milliseconds(of.Mean())
	case figure.Max:
		return milliseconds(float64(of.Max))
	}
	num, den := s.Fraction()
	q := of.Order()
	return milliseconds(float64(q.At(num, den)))
}
