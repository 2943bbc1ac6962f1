package report

import (
	"cmp"
	"slices"

	"reprise/trace"
)

// summary ends the pass.
func (c *collector) summary() (Summary, error) {
	s := Summary{Schema: Schema, Run: c.run, Latency: Latency{}}
	s.Requests = Requests{
		Rows: c.rows, Succeeded: c.succeeded, Failed: c.failed, Cancelled: c.cancelled,
		NotSent: c.notSent, WarmUp: c.before, CoolDown: c.after, ErrorShare: Ratio(c.failed, c.succeeded+c.failed),
		Unconnected: c.unconnected, Refused: c.refused,
	}
	duration := max(c.lastDone-c.firstDue, 0)
	if c.rows > 0 && c.lastDone >= 0 {
		s.DurationS = Seconds(duration)
	}
	s.Throughput = Throughput{
		OfferedPerS:      PerSecond(c.rows-1, c.lastDue-c.firstDue),
		RequestsPerS:     PerSecond(c.succeeded, duration),
		PromptTokensPerS: PerSecond(c.tokens.Prompt, duration),
		OutputTokensPerS: PerSecond(c.tokens.Output, duration),
	}
	if !c.opts.SLO.Empty() {
		s.Goodput = &Goodput{SLO: c.opts.SLO, FromSent: c.goodput(FromSent, duration), FromDue: c.goodput(FromDue, duration)}
	}
	s.InFlight = InFlight{Max: c.run.MaxInFlight, HeldBack: c.run.HeldBack}
	if n := c.run.InFlightLimit; n > 0 {
		s.InFlight.Limit = &n
	}
	if c.open.N > 0 && duration > 0 {
		s.InFlight.Mean = Rounded(c.open.Mean()*float64(c.open.N)/float64(duration), 1e6)
	}
	s.Errors = c.errorCounts()
	s.Tokens = c.tokens
	s.Tokens.PerEvent = Ratio(c.timed, c.events)
	zeros := c.cache.zerosLeftOut(c.cachedZero)
	s.Cache = c.cache.summary(zeros)
	s.Cache.ExpectedFrom = expectedFrom(&c.run, &s.Cache)
	s.ByCategory = c.byCategory(zeros)
	s.ByInputLength, s.ByClass = c.byLength(), c.byClass()
	s.ByEndpoint, s.ByHeader, s.Retries = c.parts.endpoints(&c.run), c.parts.headers(&c.run), c.parts.retries.orNil()
	c.picks.finish()
	if drift := c.picks.drift(); drift.OK && c.run.Simulated == "" {
		s.LagDriftMS = milliseconds(float64(drift.NS))
	}
	s.Stalled = c.stalls.summary()
	c.describe(&s, zeros)
	if err := c.servers(&s); err != nil {
		return s, err
	}
	if c.judge != nil {
		s.Contract = c.judge.Result(c.evidence(), duration, zeros)
	}
	s.Warnings = c.warnings(&s, zeros)
	s.Verdict = judge(&s, c.opts.Limits)
	s.Efficiency = efficiency(&s, c.opts.GPUs)
	s.Checklist, s.Diagnoses = c.checklist(&s), c.diagnose(&s)
	return s, nil
}

func (c *collector) goodput(origin int, duration int64) Good {
	n := c.good[origin]
	return Good{Requests: n, PerS: PerSecond(n, duration), Share: Ratio(n, c.succeeded+c.failed)}
}

func (c *collector) errorCounts() []ErrorCount {
	out := []ErrorCount{}
	for class, n := range c.errors {
		out = append(out, ErrorCount{class, n, *Ratio(n, c.succeeded+c.failed)})
	}
	slices.SortFunc(out, func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return out
}

func (g *group) summary() Group {
	ttft, _ := StatOf(&g.ttft)
	tpot, _ := StatOf(&g.tpot)
	e2e, _ := StatOf(&g.e2e)
	return Group{Rows: g.rows, Succeeded: g.succeeded, TTFTCount: ttft.Count, TTFTP50: ttft.P50, TTFTP99: ttft.P99,
		TPOTP50: tpot.P50, TPOTP99: tpot.P99, E2EP50: e2e.P50, E2EP99: e2e.P99}
}

// byCategory lists the categories in their order of precedence, then any
// others by name.
func (c *collector) byCategory(zeros bool) []Category {
	out := []Category{}
	for name, g := range c.categories {
		out = append(out, Category{name, g.summary(), g.cache.summary(zeros)})
	}
	place := func(name string) int {
		if i := slices.Index(trace.Categories(), name); i >= 0 {
			return i
		}
		return len(trace.Categories())
	}
	slices.SortFunc(out, func(a, b Category) int {
		return cmp.Or(cmp.Compare(place(a.Category), place(b.Category)), cmp.Compare(a.Category, b.Category))
	})
	return out
}

// byClass lists the classes by name: nothing when no row has one.
func (c *collector) byClass() []Class {
	var out []Class
	for name, g := range c.classes {
		if name != "" || len(c.classes) > 1 {
			out = append(out, Class{name, g.summary()})
		}
	}
	slices.SortFunc(out, func(a, b Class) int { return cmp.Compare(a.Class, b.Class) })
	return out
}

func (c *collector) byLength() []LengthBucket {
	out := []LengthBucket{}
	for i, g := range c.buckets {
		if g.rows == 0 {
			continue
		}
		b := LengthBucket{Lo: lengthBuckets[i], Group: g.summary()}
		if i+1 < len(lengthBuckets) {
			b.Hi = trace.Ptr(lengthBuckets[i+1])
		}
		out = append(out, b)
	}
	return out
}
