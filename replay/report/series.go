package report

import (
	"reprise/trace/page"
	"reprise/trace/sample"
)

// Series are what the plots of [Page] draw, in seconds since the start of the
// run, milliseconds and tokens. None has more than a few thousand points.
type Series struct {
	Input, Output, Wanted page.Series // token lengths, as bars
	DuePerS, SentPerS     page.Series // requests per second over time
	InFlight              page.Series // at the end of each bin
	CoarseS               float64     // width of the bins of what follows
	PromptPerS            page.Series // tokens per second, by the first token of a prompt
	OutputPerS            page.Series // tokens per second, by the events of an output
	Hits, HitsAllowed     page.Series // hit ratios over the time of sending, as shares
	BinS                  float64     // width of the bins of time

	TTFTSent, TTFTDue    page.Series // cumulative distributions
	E2ESent, E2EDue      page.Series
	ITLChunk, ITLToken   page.Series
	TPOT, Lag            page.Series
	TTFTPoints, TTFTMax  page.Series // over the time of sending: sampled requests, slowest of each bin
	LagPoints, LagMax    page.Series // over the due time, over the time of sending
	Running, Waiting     page.Series // at the servers, over time, from here on
	KVUse, ServerHits    page.Series // shares
	Generated, Prefilled page.Series // tokens per second
	Preempted            page.Series // per second
	GPUUse, GPUPower     page.Series // share, watts
	Sampled, SampledFrom int64       // requests drawn as points, and those that were sent
}

// minDrawnMS is where gaps and lags stop on a logarithmic axis, which has no place for
// zero: a microsecond.
const minDrawnMS = 1e-3

// describe finishes the samples, into the statistics and the curves.
func (c *collector) describe(s *Summary, zeros bool) {
	l, p := &s.Latency, &s.Series
	curve := func(into *page.Series, name string, of *sample.Values, stat *Stat, atLeast float64) {
		var q sample.Order
		*stat, q = StatOf(of)
		into.Name = name
		into.X, into.Y = distributionOf(&q, atLeast)
	}
	var unused page.Series
	curve(&p.TTFTSent, "from sent", &c.ttft[FromSent], &l.FromSent.TTFT, 0)
	curve(&p.TTFTDue, "from due", &c.ttft[FromDue], &l.FromDue.TTFT, 0)
	curve(&p.E2ESent, "from sent", &c.e2e[FromSent], &l.FromSent.E2E, 0)
	curve(&p.E2EDue, "from due", &c.e2e[FromDue], &l.FromDue.E2E, 0)
	curve(&unused, "", &c.headers[FromSent], &l.FromSent.Headers, 0)
	curve(&unused, "", &c.headers[FromDue], &l.FromDue.Headers, 0)
	curve(&p.ITLChunk, "between events (chunk ITL)", &c.chunk, &l.ITLChunk, minDrawnMS)
	curve(&p.ITLToken, "per token (token-normalised ITL)", &c.token, &l.ITLToken, minDrawnMS)
	curve(&p.TPOT, "TPOT", &c.tpot, &l.TPOT, 0)
	curve(&p.Lag, "sent − due", &c.lag, &l.SendLag, minDrawnMS)

	p.Input, p.Output, p.Wanted = c.input.series("prompt tokens"), c.output.series("output tokens"), c.wanted.series("as the workload asks")
	p.BinS = c.time.seconds()
	p.DuePerS = c.time.rate("due", func(s slot) int64 { return s.due })
	p.SentPerS = c.time.rate("sent", func(s slot) int64 { return s.sent })
	p.InFlight = c.time.inFlight("in flight")
	coarse := c.time.coarse()
	p.CoarseS = coarse.seconds()
	p.PromptPerS = coarse.rate("prompt tokens", func(s slot) int64 { return s.prompt })
	p.OutputPerS = coarse.rate("output tokens", func(s slot) int64 { return s.output })
	p.Hits, p.HitsAllowed = coarse.hits(zeros)
	p.TTFTPoints = c.picks.points("a request", func(q pick) int64 { return q.sent }, func(q pick) Span { return q.ttft })
	p.TTFTMax = c.time.largest("slowest of each bin", func(s slot) Span { return s.ttft })
	if c.run.Simulated == "" {
		p.LagPoints = c.picks.points("a request", func(q pick) int64 { return q.due }, func(q pick) Span { return Span{q.lag(), true} })
		p.LagMax = c.time.largest("latest of each bin", func(s slot) Span { return s.lag })
	}
	p.Sampled, p.SampledFrom = int64(len(c.picks.held)), c.sent
}
