package report

import (
	"reprise/replay/result"
	"reprise/trace/sample"
)

// A timing is a latency with its origin, FromSent where it has none.
type timing struct {
	name   string
	origin int
}

// Evidence is what the clauses of one scope are judged by. That of all requests holds
// what the summary does not have; its other figures are the summary's own.
type evidence struct {
	where             scope // nil is all
	timings           []timed
	succeeded, failed int64
	prompt, output    int64
	promptEstimates   int64 // successful requests whose prompt the server did not count
	outputEstimates   int64 // and those whose output a tokenizer counted
	cache             reuse
	good              []goodCount
}

type timed struct {
	timing
	sample *sample.Values
}

// A goodCount counts the requests that meet what a clause about goodput asks.
type goodCount struct {
	clause int
	slo    SLO
	origin int
	n      int64
}

// terms hold a contract against the results as they come.
type terms struct {
	contract *Contract
	run      *result.Run
	all      []*evidence
	of       []*evidence // by clause
	shared   []int64
}

// newTerms prepares for a contract that was checked. Clauses of one scope share
// their values.
func newTerms(c *Contract, opts Options, newReuse func() reuse, run *result.Run) *terms {
	t := &terms{contract: c, run: run}
	for i := range c.Clauses {
		clause := &c.Clauses[i]
		v := t.evidence(clause.where, newReuse)
		t.of = append(t.of, v)
		switch {
		case clause.quantity.kind == goodShare:
			slo := clause.slo
			if slo.Empty() {
				slo = opts.SLO
			}
			v.good = append(v.good, goodCount{i, slo, clause.origin, 0})
		case clause.quantity.latency() && v.where != nil && v.sample(clause.timing()) == nil:
			v.timings = append(v.timings, timed{clause.timing(), &sample.Values{Limit: opts.Exact}})
		}
	}
	return t
}

func (t *terms) evidence(where scope, newReuse func() reuse) *evidence {
	for _, v := range t.all {
		if v.where == nil && where == nil || v.where != nil && where != nil && v.where.String() == where.String() {
			return v
		}
	}
	v := &evidence{where: where, cache: newReuse()}
	t.all = append(t.all, v)
	return v
}

func (c *Clause) timing() timing {
	if c.quantity.kind == latencyWithin {
		return timing{c.quantity.name, FromSent}
	}
	return timing{c.quantity.name, c.origin}
}

// sample is that of a latency, nil when no clause of its scope asks for it.
func (v *evidence) sample(of timing) *sample.Values {
	for i := range v.timings {
		if v.timings[i].timing == of {
			return v.timings[i].sample
		}
	}
	return nil
}

// Add takes a result of the run's window.
func (t *terms) add(r *result.Result, end Outcome) {
	if end != Succeeded && end != Failed {
		return
	}
	var l *Durations
	for _, v := range t.all {
		if v.where != nil && !v.where.holds(r, t.run) {
			continue
		}
		if end == Failed {
			v.failed++
			continue
		}
		if l == nil {
			d := Derive(r)
			l = &d
			t.shared = t.shared[:0]
		}
		v.succeeded++
		for i := range v.good {
			if g := &v.good[i]; l.Meets(&g.slo, g.origin) {
				g.n++
			}
		}
		if v.where != nil {
			v.add(r, l, &t.shared)
		}
	}
}

// Add takes a successful result of a scope.
func (v *evidence) add(r *result.Result, l *Durations, shared *[]int64) {
	v.prompt += int64(InputTokens(r))
	if r.Output != nil {
		v.output += int64(*r.Output)
	}
	v.estimate(r)
	v.cache.add(r)
	for i := range v.timings {
		of, s := v.timings[i].timing, v.timings[i].sample
		switch of.name {
		case "ttft":
			addSpan(s, l.TTFT[of.origin])
		case "e2e":
			addSpan(s, l.E2E[of.origin])
		case "headers":
			addSpan(s, l.Headers[of.origin])
		case "tpot":
			addSpan(s, l.TPOT)
		case "itl":
			addAll(s, r.GapsNS)
		case "itl_token":
			*shared = perToken((*shared)[:0], r)
			addAll(s, *shared)
		}
	}
}

// estimate counts the estimates among the counts of tokens.
func (v *evidence) estimate(r *result.Result) {
	if r.Input == nil {
		v.promptEstimates++
	}
	if r.Output != nil && r.OutputFrom == result.FromTokenizer {
		v.outputEstimates++
	}
}

func addAll(to *sample.Values, values []int64) {
	for _, v := range values {
		to.Add(v)
	}
}

// whole completes the evidence of all requests by what the summary is made of.
func (c *collector) whole(v *evidence) {
	v.succeeded, v.failed = c.succeeded, c.failed
	v.prompt, v.output, v.cache = c.tokens.Prompt, c.tokens.Output, c.cache
	v.promptEstimates, v.outputEstimates = c.succeeded-c.tokens.PromptFromUsage, c.tokens.OutputSources[result.FromTokenizer]
	v.timings = nil
	for origin := range origins {
		v.timings = append(v.timings, timed{timing{"ttft", origin}, &c.ttft[origin]},
			timed{timing{"e2e", origin}, &c.e2e[origin]}, timed{timing{"headers", origin}, &c.headers[origin]})
	}
	v.timings = append(v.timings, timed{timing{"tpot", FromSent}, &c.tpot},
		timed{timing{"itl", FromSent}, &c.chunk}, timed{timing{"itl_token", FromSent}, &c.token})
}

// value is a statistic of a sample in milliseconds, nil when it has too few values.
func (s statistic) value(of *sample.Values) *float64 {
	if of.N < s.needed() {
		return nil
	}
	switch s {
	case meanOf:
		return milliseconds(of.Mean())
	case maxOf:
		return milliseconds(float64(of.Max))
	}
	num, den := int64(s), int64(millionths)
	for den > 1000 && num%10 == 0 { // as the summary asks, to the last nanosecond
		num, den = num/10, den/10
	}
	q := of.Order()
	return milliseconds(float64(q.At(num, den)))
}
