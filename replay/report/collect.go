package report

import (
	"cmp"
	"net/http"
	"slices"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// Summarise reads all results and describes the run. The results may come in
// any order. It fails when they cannot be read, when a result contradicts
// itself (the error names the workload row), and on options without sense.
func Summarise(run result.Run, results trace.Reader[result.Result], opts Options) (Summary, error) {
	opts, err := opts.complete()
	if err != nil {
		return Summary{}, err
	}
	return readOnce(run, results, opts, nil)
}

// readOnce is the one pass of [Summarise]. It also adds what happened in a stretch of the
// run to in, unless that is nil.
func readOnce(run result.Run, results trace.Reader[result.Result], opts Options, in *inside) (Summary, error) {
	c := newCollector(run, opts)
	err := trace.Each(results, func(_ int64, r *result.Result) error {
		if err := CheckResult(r); err != nil {
			return err
		}
		if in != nil {
			in.add(r)
		}
		return c.add(r)
	})
	if err != nil {
		return Summary{}, err
	}
	if c.stalls.kernel && c.stalls.events > 0 && c.stalls.delays.N == 0 {
		return Summary{}, errNoStamps
	}
	return c.summary()
}

// A collector holds what one pass keeps; see the package comment for its size.
type collector struct {
	work float64 // of the requests that succeeded, see [workOf]
	run  result.Run
	opts Options

	requestCounts
	latencies
	tokenCounts
	groups  groupings
	retries Retries
	time    timeline
	picks   picks

	sessions sessionCollector

	judge  Judge // nil without a contract
	stalls *stallMeter
}

// requestCounts say how requests ended, and when the first and the last did.
type requestCounts struct {
	before, after                                     int64 // outside the window
	unconnected, refused                              int64 // of the failed
	rows, succeeded, failed, cancelled, notSent, sent int64

	firstDue, lastDue, lastDone int64 // lastDone −1: nothing was done
	open                        sample.Moments
	errors                      map[string]int64
}

// latencies are those of the successful requests, and the send lag of all.
type latencies struct {
	begun                   [][origins]sample.Values // as in the list [begun]
	chunk, token, tpot, lag sample.Values
	queue, prefill          sample.Values // as the answers say
	good                    [origins]int64
	shared                  []int64 // gaps per token of one row
	several                 int64   // answers of several tokens
	atOnce, inPieces        int64   // of these, those that came at once, or in two or three pieces
	// a gap per token was not that of its chunk: until then token is empty, and chunk has its values
	apart bool
}

func newCollector(run result.Run, opts Options) *collector {
	c := &collector{run: run, opts: opts}
	c.lastDone = -1
	c.errors = map[string]int64{}
	c.groups = newGroupings(&c.run, &c.opts, c.block())
	c.tokens.OutputSources = map[string]int64{}
	c.cache.block = c.block()
	if run.Prompts == result.PromptsVerbatim {
		c.cache.realBlock = int64(max(run.BlockSize, 1))
	}
	c.sessions.limit = sessionRequests
	c.stalls = newStallMeter(run.Stalls, &opts)
	c.latencies.begun = make([][origins]sample.Values, len(begun))
	for i := range begun {
		for origin := range origins {
			c.latencies.begun[i][origin].Limit = opts.Exact
		}
	}
	for _, s := range []*sample.Values{&c.chunk, &c.token, &c.tpot, &c.lag, &c.queue, &c.prefill} {
		s.Limit = opts.Exact
	}
	if opts.Contract != nil {
		c.judge = opts.Contract.Judge(&c.run, opts.SLO, opts.Steady,
			func() *Evidence { return &Evidence{cache: reuse{block: c.block()}, exact: opts.Exact} })
	}
	return c
}

// block is the block size that expected reuse is counted in, 0 if unknown.
func (c *collector) block() int64 {
	return int64(max(cmp.Or(c.opts.ServerBlock, c.run.ServerBlock, c.run.BlockSize), 0))
}

// add takes one result that passed check. One outside the run's window is only
// counted.
func (c *collector) add(r *result.Result) error {
	r = inServerTokens(&c.run, r)
	end, errorClass := OutcomeOf(r)
	var scopes uint64
	if c.judge != nil {
		scopes = c.judge.Scopes(r)
	}
	if before, after := c.run.Window.Holds(r); before || after {
		c.sessions.add(r, end, before, after, scopes)
		if before {
			c.before++
		} else {
			c.after++
		}
		return nil
	}
	if c.rows == 0 {
		c.firstDue, c.lastDue = r.DueNS, r.DueNS
	}
	c.rows++
	c.firstDue, c.lastDue = min(c.firstDue, r.DueNS), max(c.lastDue, r.DueNS)
	c.time.at(r.DueNS).due++
	read := r
	if c.stalls.kernel {
		r = c.stalls.kernelInstants(r)
	}
	c.stalls.meet(r)
	c.sessions.add(r, end, false, false, scopes)
	groups := c.groups.put(r, end)
	c.retries.add(r)
	c.retries.spread(r, &c.run)
	c.addSending(r)
	last := r.DoneNS
	if last == nil && end == Failed {
		last = r.SentNS // other tools do not tell when a failure ended: it was no earlier
	}
	if last != nil {
		c.lastDone = max(c.lastDone, *last)
	}

	if c.judge != nil && (end == Succeeded || end == Failed) {
		c.judge.Add(r, end == Failed)
	}
	switch end {
	case Failed:
		c.failed++
		c.errors[errorClass]++
		switch { // who refused whom
		case r.Error == result.KindConnect:
			c.unconnected++
		case r.Error == result.KindRateLimited || r.HTTPStatus != nil &&
			(*r.HTTPStatus == http.StatusTooManyRequests || *r.HTTPStatus == http.StatusServiceUnavailable):
			c.refused++
		}
	case Cancelled:
		c.cancelled++
	case NotSent:
		c.notSent++
	case Succeeded:
		c.succeeded++
		input, cached, output := int64(InputTokens(r)), int64(orUnknown(r.Cached)), int64(max(orUnknown(r.Output), 0))
		c.work += workOf(input, cached, output)
		c.stalls.add(read)
		c.addLatency(r, groups)
		c.addTokens(r)
		for _, g := range groups {
			g.addTokens(input, cached, output)
			g.cache.add(r)
		}
		c.time.addTokens(r, c.cache.block)
	}
	if len(c.errors) > maxNames || len(c.groups.category.groups) > maxNames {
		return errNames
	}
	return nil
}

// addSending takes what every request that was sent has, however it ended.
func (c *collector) addSending(r *result.Result) {
	if r.SentNS == nil {
		return
	}
	c.sent++
	sent, lag := *r.SentNS, *r.SentNS-r.DueNS
	s := c.time.at(sent)
	s.sent++
	if c.run.Timed() {
		c.lag.Add(lag)
		s.lag = longer(s.lag, Span{lag, true})
	}
	p := pick{due: r.DueNS, sent: sent}
	if end, _ := OutcomeOf(r); end == Succeeded {
		p.ttft, p.e2e = between(sent, r.FirstTokenNS), between(sent, r.DoneNS)
		s.ttft = longer(s.ttft, p.ttft)
	}
	c.picks.add(r.RowID, p)
	if r.DoneNS != nil {
		c.time.at(*r.DoneNS).done++
		c.open.Add(*r.DoneNS - sent)
	}
}

func (c *collector) addLatency(r *result.Result, groups []*group) {
	l := Derive(r)
	for origin := range origins {
		for i, latency := range begun {
			addSpan(&c.latencies.begun[i][origin], latency.spans(&l)[origin])
		}
		if l.Meets(&c.opts.SLO, origin) {
			c.good[origin]++
		}
	}
	addSpan(&c.tpot, l.TPOT)
	if r.QueueNS != nil {
		c.queue.Add(*r.QueueNS)
	}
	if r.PrefillNS != nil {
		c.prefill.Add(*r.PrefillNS)
	}
	for _, g := range groups {
		g.addSpans(l.TTFT[FromSent], l.TPOT, l.E2E[FromSent])
	}
	if r.Several() {
		c.several++
	}
	switch {
	case r.AtOnce():
		c.atOnce++
		return
	case r.InPieces():
		c.inPieces++
		return
	}
	if !c.apart && !tokenEach(r) {
		c.token, c.apart = c.chunk.Clone(), true
	}
	addGaps(&c.chunk, r)
	if c.apart {
		c.shared = perToken(c.shared[:0], r)
		c.token.AddAll(c.shared)
	}
}

// addGaps adds the gaps between token events whose instants are known well.
func addGaps(into *sample.Values, r *result.Result) {
	if r.Uncertain == nil && !r.Untimed() {
		into.AddAll(r.GapsNS)
		return
	}
	for _, gap := range r.Gaps {
		into.Add(gap)
	}
}

// buffered says that most answers came at once, or in two or three pieces: then the others do
// not tell how fast tokens come either.
func (l *latencies) buffered() bool { return 2*(l.atOnce+l.inPieces) > l.several }

// forgetGaps leaves nothing that was measured between tokens.
func (c *collector) forgetGaps() {
	none := sample.Values{Limit: c.opts.Exact}
	c.chunk, c.token, c.tpot = none, none, none
}

// summary ends the pass.
func (c *collector) summary() (Summary, error) {
	if c.buffered() {
		c.forgetGaps()
	}
	if !c.apart {
		c.token = c.chunk
	}

	s := Summary{Schema: schema, Run: c.run, ByCategory: []Category{}, ByInputLength: []LengthBucket{}}
	s.Requests = Requests{
		Rows: c.rows, Succeeded: c.succeeded, Failed: c.failed, Cancelled: c.cancelled,
		NotSent: c.notSent, WarmUp: c.before, CoolDown: c.after, ErrorShare: Ratio(c.failed, c.succeeded+c.failed),
		Unconnected: c.unconnected, Refused: c.refused,
	}

	duration := max(c.lastDone-c.firstDue, 0)
	if read := c.run.Read; read != nil && !read.Instants {
		duration = read.DurationNS
		c.time, c.picks = timeline{}, picks{} // nothing is known over time
	}
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
		s.Goodput = &Goodput{SLO: c.opts.SLO, FromSent: c.goodput(FromSent, duration),
			FromDue: c.goodput(FromDue, duration)}
	}
	s.InFlight, s.Errors = c.inFlight(duration), c.errorCounts()

	s.Tokens = c.tokens
	s.Tokens.PerEvent = Ratio(c.timed, c.events)
	if c.impossible.Rows > 0 {
		s.Tokens.Impossible = &c.impossible
	}
	if c.impossible.OutputRows > 0 {
		s.Throughput.OutputTokensPerS = nil // the sum lacks some
	}

	zeros := c.zerosLeftOut()
	s.Cache = c.cache.summary(zeros)
	s.Cache.ExpectedFrom = c.expectedFrom(s.Cache.Expected)
	if uncached, ok := c.cache.uncached(zeros); ok {
		s.Throughput.UncachedPerS = PerSecond(uncached, duration)
	}

	figures := c.bySession(&s, zeros)
	c.groups.summarise(&s, !c.buffered(), zeros)

	s.Retries = c.retries.orNil()
	c.picks.finish()
	if drift := c.picks.drift(); drift.OK && c.run.Timed() {
		s.LagDriftMS = milliseconds(float64(drift.NS))
	}
	s.Stalled, s.Receipt = c.stalls.summary(), c.stalls.receipt()

	c.describe(&s, zeros)
	if err := readServers(&s, c.opts.Metrics, c.firstDue, c.lastDone); err != nil {
		return s, err
	}
	if c.judge != nil {
		s.Contract = c.judge.Result(c.evidence(&s, figures), duration, zeros)
	}

	s.Warnings = warnings(&s, &c.tokenCounts, zeros)
	s.Warnings = append(s.Warnings, c.untimedWarnings()...)
	s.Verdict = judge(&s, c.opts.Limits)
	s.dropSaidWarnings()

	s.Efficiency = efficiency(&s, c.opts.GPUs)
	if s.Efficiency.GPUsFrom == gpusGiven {
		c.perGPU(figures, s.Efficiency.GPUs, duration)
	}
	s.Diagnoses = diagnose(&s, &c.time, c.firstDue, c.lastDue)
	return s, nil
}

// perGPU gives sessions their price, and the sessions of a GPU in an hour.
func (c *collector) perGPU(sessions *sessionFigures, gpus int, duration int64) {
	if c.opts.PricePerGPUHour > 0 && c.impossible.Rows == 0 {
		sessions.cost(c.opts.PricePerGPUHour*float64(gpus)*float64(duration)/3600e9, c.work)
	}
	if o := &sessions.out; o.PerS != nil {
		o.PerGPU = Rounded(*o.PerS*3600/float64(gpus), 1e6)
	}
}

func (c *collector) inFlight(duration int64) InFlight {
	f := InFlight{Max: c.run.MaxInFlight, HeldBack: c.run.HeldBack}
	if n := c.run.InFlightLimit; n > 0 {
		f.Limit = &n
	}
	if c.open.N > 0 && duration > 0 {
		f.Mean = Rounded(c.open.Mean()*float64(c.open.N)/float64(duration), 1e6)
	}
	return f
}

// errorCounts has the most frequent class first.
func (c *collector) errorCounts() []ErrorCount {
	out := []ErrorCount{}
	for class, n := range c.errors {
		out = append(out, ErrorCount{class, n, *Ratio(n, c.succeeded+c.failed), saidOf(&c.run, class)})
	}
	slices.SortFunc(out, func(a, b ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// zerosLeftOut tells a server that reports cached tokens but never a zero, which means none by a missing count: vLLM
// leaves prompt_tokens_details out of the usage of a request without a hit (its bug report 44377).
func (c *collector) zerosLeftOut() bool {
	with, without := c.cache.sums[1], c.cache.sums[0]
	return with[0].rows+with[1].rows > 0 && without[0].rows+without[1].rows > 0 && c.cachedZero == 0 &&
		c.impossible.CachedRows == 0
}

// expectedFrom says what the expected hit ratio comes from, empty without one.
func (c *collector) expectedFrom(expected *float64) string {
	switch {
	case expected == nil:
		return ""
	case c.run.Cache != nil && c.run.Cache.Done == result.CacheWarmPass:
		return fromWarmUp
	case c.run.Thread != nil:
		return fromReplies
	}
	return fromPrompts
}

// evidence is what the clauses of the contract are judged by.
func (c *collector) evidence(s *Summary, sessions *sessionFigures) *Evidence {
	all := &Evidence{Succeeded: c.succeeded, Failed: c.failed, Prompt: c.tokens.Prompt, Output: c.tokens.Output,
		OutputImpossible: c.impossible.OutputRows, cache: c.cache,
		PromptEstimates: s.PromptEstimates(), OutputEstimates: s.OutputEstimates(), Sessions: sessions.judged,
		SessionsPerS: sessions.out.PerS, SlowdownLacks: sessions.out.SlowdownLacks, Summary: s}

	for i, latency := range begun {
		for origin := range origins {
			all.latencies = append(all.latencies,
				keptLatency{Timing{latency.of, origin}, &c.latencies.begun[i][origin]})
		}
	}
	all.latencies = append(all.latencies, keptLatency{Timing{figure.TPOT, FromSent}, &c.tpot},
		keptLatency{Timing{figure.ITL, FromSent}, &c.chunk}, keptLatency{Timing{figure.TokenITL, FromSent}, &c.token})
	return all
}

func (c *collector) goodput(origin int, duration int64) Good {
	n := c.good[origin]
	return Good{Requests: n, PerS: PerSecond(n, duration), Share: Ratio(n, c.succeeded+c.failed)}
}

// efficiency divides what was measured by a number of GPUs.
func efficiency(s *Summary, gpus int) *Efficiency {
	e := &Efficiency{GPUs: cmp.Or(gpus, s.Run.Environment.GPUCount()), GPUsFrom: gpusGiven}
	if e.GPUs == 0 {
		e.GPUs, e.GPUsFrom = cmp.Or(s.Run.Instances, max(len(s.Run.Endpoints), 1)), gpusInstances
	}
	if t := s.Throughput.OutputTokensPerS; t != nil {
		e.PerGPU = Rounded(*t/float64(e.GPUs), 1e6)
	}
	if m := s.Latency.TPOT.Mean; m != nil && *m > 0 {
		e.PerUser = Rounded(1000 / *m, 1e6)
	}
	return e
}

// describe finishes the samples, into the statistics and the curves.
func (c *collector) describe(s *Summary, zeros bool) {
	l, p := &s.Latency, &s.Series
	curve := func(into *doc.Series, name string, of *sample.Values, stat *Stat, atLeast float64) {
		var q sample.Order
		*stat, q = StatOf(of)
		into.Name = name
		into.X, into.Y = distributionOf(&q, atLeast)
		into.N = of.N
	}
	for i, latency := range begun {
		into := [origins]*doc.Series{new(doc.Series), new(doc.Series)} // which nobody draws
		if latency.curves != nil {
			into = latency.curves(p)
		}
		of := &c.latencies.begun[i]
		curve(into[FromSent], "from sent", &of[FromSent], latency.stat(&l.FromSent), 0)
		curve(into[FromDue], "from schedule", &of[FromDue], latency.stat(&l.FromDue), 0)
	}
	curve(&p.ITLChunk, "between events (chunk ITL)", &c.chunk, &l.ITLChunk, minDrawnMS)
	curve(&p.ITLToken, "per token (token-normalised ITL)", &c.token, &l.ITLToken, minDrawnMS)
	curve(&p.TPOT, "TPOT", &c.tpot, &l.TPOT, 0)
	curve(&p.Lag, "sent − due", &c.lag, &l.SendLag, minDrawnMS)
	curve(new(doc.Series), "", &c.queue, &l.QueueTime, 0)
	curve(new(doc.Series), "", &c.prefill, &l.PrefillTime, 0)

	p.Input, p.Output, p.Wanted = c.input.series("prompt tokens"), c.output.series("output tokens"),
		c.wanted.series("as the workload asks")
	p.BinS = c.time.seconds()
	p.DuePerS = c.time.rate("due", func(s slot) int64 { return s.due })
	p.SentPerS = c.time.rate("sent", func(s slot) int64 { return s.sent })
	var open int64
	p.InFlight = c.time.series("in flight", func(s slot) float64 {
		open += s.sent - s.done
		return float64(open)
	}, false)
	for i := range p.InFlight.X { // at the end of each slot
		p.InFlight.X[i] += c.time.seconds()
	}
	coarse := c.time.coarse()
	p.CoarseS = coarse.seconds()
	p.PromptPerS = coarse.rate("prompt tokens", func(s slot) int64 { return s.prompt })
	p.OutputPerS = coarse.rate("output tokens", func(s slot) int64 { return s.output })
	p.Hits, p.HitsAllowed = coarse.hits(zeros)
	p.TTFTPoints = c.picks.points("TTFT", func(q pick) int64 { return q.sent }, func(q pick) Span { return q.ttft })
	p.E2EPoints = c.picks.points("E2E", func(q pick) int64 { return q.sent }, func(q pick) Span { return q.e2e })
	p.TTFTMax = c.time.largest("slowest TTFT of each bin", func(s slot) Span { return s.ttft })
	if c.run.Timed() {
		p.LagPoints = c.picks.points("a request", func(q pick) int64 { return q.due },
			func(q pick) Span { return Span{q.lag(), true} })
		p.LagMax = c.time.largest("latest of each bin", func(s slot) Span { return s.lag })
	}
	p.Sampled, p.SampledFrom = int64(len(c.picks.held)), c.sent
}
