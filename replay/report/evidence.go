package report

import (
	"reprise/replay/result"
	"reprise/trace/sample"
)

// A Timing names a latency: ttft, e2e, headers, tpot, itl or itl_token, and [FromSent]
// or [FromDue]. The last three have one origin, FromSent.
type Timing struct {
	Name   string
	Origin int
}

// Evidence is what a contract is judged by: counts of a set of requests, and the
// latencies that were asked for.
type Evidence struct {
	Succeeded, Failed int64
	Prompt, Output    int64 // tokens of the requests that succeeded
	PromptEstimates   int64 // of these, requests whose prompt the server did not count
	OutputEstimates   int64 // and those whose output a tokenizer counted

	cache     reuse
	exact     int // values of a latency that are kept exactly
	latencies []keptLatency
	perToken  []int64 // gaps per token of one row
}

type keptLatency struct {
	timing Timing
	values *sample.Values
}

// Keep makes the evidence keep a latency.
func (e *Evidence) Keep(t Timing) {
	if e.Values(t) == nil {
		e.latencies = append(e.latencies, keptLatency{t, &sample.Values{Limit: e.exact}})
	}
}

// Values returns a latency in nanoseconds, nil where it is not kept.
func (e *Evidence) Values(t Timing) *sample.Values {
	for i := range e.latencies {
		if e.latencies[i].timing == t {
			return e.latencies[i].values
		}
	}
	return nil
}

// HitRatio is the measured hit ratio of the prefix cache, nil where the server reports
// none, and the number of requests that it rests on. With zeros, a missing count of
// cached tokens is none.
func (e *Evidence) HitRatio(zeros bool) (ratio *float64, rows int64) {
	c := e.cache.summary(zeros)
	return c.Measured, c.Rows
}

// Add takes a successful result and its durations. It does not count in Succeeded.
func (e *Evidence) Add(r *result.Result, d *Durations) {
	e.Prompt += int64(InputTokens(r))
	if r.Input == nil {
		e.PromptEstimates++
	}
	if r.Output != nil {
		e.Output += int64(*r.Output)
		if r.OutputFrom == result.FromTokenizer {
			e.OutputEstimates++
		}
	}
	e.cache.add(r)
	for i := range e.latencies {
		t, values := e.latencies[i].timing, e.latencies[i].values
		switch t.Name {
		case "ttft":
			addSpan(values, d.TTFT[t.Origin])
		case "e2e":
			addSpan(values, d.E2E[t.Origin])
		case "headers":
			addSpan(values, d.Headers[t.Origin])
		case "tpot":
			addSpan(values, d.TPOT)
		case "itl":
			for _, gap := range r.GapsNS {
				values.Add(gap)
			}
		case "itl_token":
			e.perToken = perToken(e.perToken[:0], r)
			for _, gap := range e.perToken {
				values.Add(gap)
			}
		}
	}
}

// evidence is that of all requests: what the summary is made of.
func (c *collector) evidence() *Evidence {
	e := &Evidence{Succeeded: c.succeeded, Failed: c.failed, Prompt: c.tokens.Prompt, Output: c.tokens.Output, cache: c.cache,
		PromptEstimates: c.succeeded - c.tokens.PromptFromUsage, OutputEstimates: c.tokens.OutputSources[result.FromTokenizer]}
	for origin := range origins {
		e.latencies = append(e.latencies, keptLatency{Timing{"ttft", origin}, &c.ttft[origin]},
			keptLatency{Timing{"e2e", origin}, &c.e2e[origin]}, keptLatency{Timing{"headers", origin}, &c.headers[origin]})
	}
	e.latencies = append(e.latencies, keptLatency{Timing{"tpot", FromSent}, &c.tpot},
		keptLatency{Timing{"itl", FromSent}, &c.chunk}, keptLatency{Timing{"itl_token", FromSent}, &c.token})
	return e
}
