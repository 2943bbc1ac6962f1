package report

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
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
	c := newCollector(run, opts)
	err = trace.Each(results, func(_ int64, r *result.Result) error {
		if err := CheckResult(r); err != nil {
			return err
		}
		return c.add(r)
	})
	if err != nil {
		return Summary{}, err
	}
	return c.summary()
}

// maxNames bounds the error classes and the categories that a file may have:
// both come from closed lists, and a file with more is not one of ours.
const maxNames = 64

var errNames = errors.New("report: more than 64 error classes or categories: these are not results of a replay")

// Input lengths from which the buckets of the length table begin.
var lengthBuckets = [...]int64{0, 128, 512, 2048, 8192, 32768, 131072}

// A collector holds what one pass keeps; see the package comment for its size.
type collector struct {
	run  result.Run
	opts Options

	before, after                                     int64 // outside the window
	unconnected, refused                              int64 // of the failed
	rows, succeeded, failed, cancelled, notSent, sent int64

	firstDue, lastDue, lastDone int64 // lastDone −1: nothing was done
	open                        sample.Moments
	headers, ttft, e2e          [origins]sample.Values
	chunk, token, tpot, lag     sample.Values
	good                        [origins]int64
	errors                      map[string]int64

	tokens        Tokens
	shared        []int64 // gaps per token of one row
	events, timed int64   // token events, and tokens of the rows that have both counts
	cache         reuse
	cachedZero    int64 // successful rows whose usage says that nothing was cached

	categories, classes   map[string]*group
	buckets               [len(lengthBuckets)]*group
	time                  timeline
	picks                 picks
	input, output, wanted lengths
	parts                 parts
	judge                 Judge       // nil without a contract
	stalls                *stallMeter // nil where the run was not watched

	promptsCut, outputsLonger int64 // what servers do without a word
}

// A group is a part of the results that gets a line of its own.
type group struct {
	rows, succeeded int64
	ttft, tpot, e2e sample.Values // the last two of successful requests, as the first
	cache           reuse
}

func newCollector(run result.Run, opts Options) *collector {
	c := &collector{run: run, opts: opts, lastDone: -1}
	c.errors, c.categories, c.classes = map[string]int64{}, map[string]*group{}, map[string]*group{}
	c.tokens.OutputSources = map[string]int64{}
	c.cache.block = c.block()
	c.stalls = newStallMeter(run.Stalls)
	for origin := range origins {
		c.headers[origin].Limit = opts.Exact
		c.ttft[origin].Limit = opts.Exact
		c.e2e[origin].Limit = opts.Exact
	}
	for _, s := range []*sample.Values{&c.chunk, &c.token, &c.tpot, &c.lag} {
		s.Limit = opts.Exact
	}
	for i := range c.buckets {
		c.buckets[i] = c.newGroup()
	}
	if opts.Contract != nil {
		c.judge = opts.Contract.Judge(&c.run, opts.SLO, func() *Evidence { return &Evidence{cache: c.newReuse(), exact: opts.Exact} })
	}
	return c
}

// block is the block size that expected reuse is counted in, 0 if unknown.
func (c *collector) block() int64 {
	return int64(max(cmp.Or(c.opts.ServerBlock, c.run.ServerBlock, c.run.BlockSize), 0))
}

func (c *collector) newReuse() reuse { return reuse{block: c.block()} }

// groupExact is how many values of a metric a group keeps exactly: there may be
// many of them.
const groupExact = 1 << 17

func (c *collector) newGroup() *group {
	limit := min(c.opts.Exact, groupExact)
	return &group{ttft: sample.Values{Limit: limit}, tpot: sample.Values{Limit: limit}, e2e: sample.Values{Limit: limit}, cache: c.newReuse()}
}

// Add takes one result that passed check. One outside the run's window is only
// counted.
func (c *collector) add(r *result.Result) error {
	if before, after := c.run.Window.Holds(r); before || after {
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
	length, begins := slices.BinarySearch(lengthBuckets[:], int64(InputTokens(r)))
	if !begins { // within the bucket before
		length--
	}
	category, bucket := c.categories[r.Category], c.buckets[length]
	if category == nil {
		category = c.newGroup()
		c.categories[r.Category] = category
	}
	category.rows++
	bucket.rows++
	ofClass := c.classOf(r)
	ofClass.rows++
	places := c.parts.of(r, c.newGroup)
	c.parts.retries.spread(r, &c.run)
	c.addSending(r)
	if r.DoneNS != nil {
		c.lastDone = max(c.lastDone, *r.DoneNS)
	}

	end, class := OutcomeOf(r)
	if c.judge != nil && (end == Succeeded || end == Failed) {
		c.judge.Add(r, end == Failed)
	}
	switch end {
	case Failed:
		c.failed++
		c.errors[class]++
		c.addFailure(r)
	case Cancelled:
		c.cancelled++
	case NotSent:
		c.notSent++
	case Succeeded:
		c.succeeded++
		c.stalls.add(r)
		c.addLatency(r, append(places, category, bucket, ofClass)...)
		c.addTokens(r, category)
		c.addOverTime(r)
	}
	if len(c.errors) > maxNames || len(c.categories) > maxNames {
		return errNames
	}
	return nil
}

// classOf is the group of a row's class. Classes beyond maxNames are one.
func (c *collector) classOf(r *result.Result) *group {
	name := r.Class
	if c.classes[name] == nil && len(c.classes) >= maxNames {
		name = "(others)"
	}
	if c.classes[name] == nil {
		c.classes[name] = c.newGroup()
	}
	return c.classes[name]
}

// addFailure tells apart who refused whom.
func (c *collector) addFailure(r *result.Result) {
	status := int32(0)
	if r.HTTPStatus != nil {
		status = *r.HTTPStatus
	}
	switch {
	case r.Error == result.KindConnect:
		c.unconnected++
	case r.Error == result.KindRateLimited || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		c.refused++
	}
}

// cut says that a server took so much less of a prompt than was sent that it must have
// left some out: a tokenizer that differs, or a template that was measured too long,
// makes less of a difference.
func cut(got, want int32) bool { return want-got >= 16 && float64(got) < 0.9*float64(want) }

// InputTokens is the length of a prompt: what the server counted, else what was asked for.
func InputTokens(r *result.Result) int32 {
	if r.Input != nil {
		return *r.Input
	}
	return r.WantInput
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
	if c.run.Simulated == "" { // where nobody sent, nobody was on time
		c.lag.Add(lag)
		s.lag = longer(s.lag, Span{lag, true})
	}
	p := pick{due: r.DueNS, sent: sent}
	if end, _ := OutcomeOf(r); end == Succeeded {
		p.ttft = between(sent, r.FirstTokenNS)
		s.ttft = longer(s.ttft, p.ttft)
	}
	c.picks.add(r.RowID, p)
	if r.DoneNS != nil {
		c.time.at(*r.DoneNS).done++
		c.open.Add(*r.DoneNS - sent)
	}
}

func (c *collector) addLatency(r *result.Result, groups ...*group) {
	l := Derive(r)
	for origin := range origins {
		addSpan(&c.headers[origin], l.Headers[origin])
		addSpan(&c.ttft[origin], l.TTFT[origin])
		addSpan(&c.e2e[origin], l.E2E[origin])
		if l.Meets(&c.opts.SLO, origin) {
			c.good[origin]++
		}
	}
	addSpan(&c.tpot, l.TPOT)
	for _, g := range groups {
		g.succeeded++
		addSpan(&g.ttft, l.TTFT[FromSent])
		addSpan(&g.tpot, l.TPOT)
		addSpan(&g.e2e, l.E2E[FromSent])
	}
	for _, gap := range r.GapsNS {
		c.chunk.Add(gap)
	}
	c.shared = perToken(c.shared[:0], r)
	for _, gap := range c.shared {
		c.token.Add(gap)
	}
}

func (c *collector) addTokens(r *result.Result, category *group) {
	t := &c.tokens
	input := InputTokens(r)
	t.Prompt += int64(input)
	c.input.add(input)
	c.wanted.add(r.WantOutput)
	if r.Input != nil {
		t.PromptFromUsage++
		t.PromptError.add(*r.Input, r.WantInput)
		if cut(*r.Input, r.WantInput) {
			c.promptsCut++
		}
	}
	source := "none"
	if r.Output != nil {
		if source = r.OutputFrom; source != result.FromUsage && source != result.FromTokenizer {
			source = "other"
		}
		t.Output += int64(*r.Output)
		t.OutputMiss.add(*r.Output, r.WantOutput)
		c.output.add(*r.Output)
		if r.OutputFrom == result.FromUsage && *r.Output > max(r.WantOutput, 1) { // one is the least that is asked for
			c.outputsLonger++
		}
		if r.Events > 0 {
			c.events += int64(r.Events)
			c.timed += int64(*r.Output)
		}
	}
	t.OutputSources[source]++
	if r.Input != nil && r.Cached != nil && *r.Cached == 0 {
		c.cachedZero++
	}
	c.cache.add(r)
	category.cache.add(r)
}

// summary ends the pass.
func (c *collector) summary() (Summary, error) {
	s := Summary{Schema: schema, Run: c.run, Latency: Latency{}}
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
