package profile

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/doc"
	"reprise/trace/fleet"
)

// summarySchema names the layout of a [Summary] as JSON. Fields may be added to
// it; none changes its meaning.
const summarySchema = "profile/1"

// A Summary describes a trace. Its field names in JSON are stable and end in
// their unit where they have one. All figures cover the load: rows that did not
// fail. A value that the trace does not give is null or absent.
type Summary struct {
	Schema string `json:"schema"`

	// From the trace's metadata.
	Tier            string `json:"tier,omitempty"`
	SourceFormat    string `json:"source_format,omitempty"`
	Tokenizer       string `json:"tokenizer,omitempty"`
	Digest          string `json:"digest,omitempty"`
	BlockSizeTokens int    `json:"block_size_tokens,omitempty"`
	// KVBytesPerToken is the memory of a token in a KV cache, as an option says;
	// everything in GiB follows from it.
	KVBytesPerToken *int64 `json:"kv_bytes_per_token"`

	Rows      int64    `json:"rows"`
	Requests  int64    `json:"requests"` // rows that are load
	Failed    int64    `json:"failed"`
	DurationS float64  `json:"duration_s"` // from the first arrival to the last
	Rate      *float64 `json:"requests_per_s"`

	InputTotal  int64  `json:"input_tokens_total"`
	OutputTotal *int64 `json:"output_tokens_total"` // of the requests that tell it; nil if none does
	// OutputUnknown counts the requests whose output length the source does not tell.
	OutputUnknown int64  `json:"output_tokens_unknown"`
	Input         *Stats `json:"input_tokens"`
	Output        *Stats `json:"output_tokens"`
	Reasoning     *Stats `json:"reasoning_tokens,omitempty"`
	Cached        *Stats `json:"cached_tokens,omitempty"` // as the source's server reported
	ImageTokens   *Stats `json:"image_tokens,omitempty"`
	Images        *Stats `json:"images,omitempty"`
	MaxTokens     *Stats `json:"max_tokens,omitempty"`

	InputOutput Correlation `json:"input_output_spearman"`
	Arrivals    Arrivals    `json:"arrivals"`

	Sessions *Sessions `json:"sessions,omitempty"`
	// SessionShares says how many requests name a session.
	SessionShares SessionShares `json:"session_identifiers"`
	Think         *Stats        `json:"think_s,omitempty"`
	Tool          *Stats        `json:"tool_s,omitempty"`
	TTFT          *Stats        `json:"ttft_s,omitempty"` // as recorded in production
	E2E           *Stats        `json:"e2e_s,omitempty"`  // as recorded in production

	Categories []CategoryShare `json:"categories,omitempty"`
	// version of the rule that gave them; several by commas
	CategoryRule  string         `json:"category_rule,omitempty"`
	Reuse         *ReuseSummary  `json:"reuse,omitempty"`
	InferredReuse *InferredReuse `json:"inferred_reuse,omitempty"` // absent where no blocks are inferred

	// ReuseWithGenerated is for a server that also keeps the KV of outputs;
	// absent when the trace has no output blocks.
	ReuseWithGenerated *ReuseSummary       `json:"reuse_with_generated_kv,omitempty"`
	GeneratedGain      *GeneratedGain      `json:"generated_kv_gain_points,omitempty"`
	Server             *ServerReuseSummary `json:"server_reuse,omitempty"`

	// Where the reuse is: null where the trace does not tell.
	OverTime   *OverTime     `json:"over_time"`
	ByCategory *GroupedReuse `json:"reuse_by_category"`
	ByModel    *GroupedReuse `json:"reuse_by_model"`
	ByClient   *GroupedReuse `json:"reuse_by_client"`
	Prefixes   *TopPrefixes  `json:"top_prefixes"`
	WorkingSet *WorkingSets  `json:"working_set"`
	// Routing is null unless options ask for it.
	Routing    *fleet.Summary    `json:"routing"`
	Waterfalls []fleet.Waterfall `json:"waterfalls"`

	// Breakers are where near-identical prompts part, as import found them.
	Breakers *breaker.Summary `json:"prefix_breakers,omitempty"`

	Warnings []Warning `json:"warnings"`
}

// A CategoryShare says how many requests have a reuse category, how many of the prompt tokens, and how much of
// all reuse they bring.
type CategoryShare struct {
	Category     string   `json:"category"`
	Requests     int64    `json:"requests"`
	RequestShare *float64 `json:"request_share"` // of all requests that have a category
	InputTokens  int64    `json:"input_tokens"`
	InputShare   *float64 `json:"input_token_share"` // of the prompt tokens of these
	HitBlocks    int64    `json:"hit_blocks"`
	HitShare     *float64 `json:"hit_block_share"` // of all their hit blocks
}

// A Warning is something that a reader of the numbers must know.
type Warning struct {
	Code    string `json:"code"` // one of a closed list, for programs
	Message string `json:"message"`
}

// Summary describes the rows so far.
func (p *Profiler) Summary() Summary {
	l := &p.lengths
	s := Summary{
		Schema: summarySchema, Tier: p.meta.Tier, SourceFormat: p.meta.SourceFormat, Tokenizer: p.meta.Tokenizer,
		Digest: p.meta.Digest, BlockSizeTokens: p.meta.BlockSize,
		Rows: p.rows, Requests: p.rows - p.failed, Failed: p.failed,
		DurationS:  float64(p.arrivals.last-p.arrivals.first) / second,
		InputTotal: l.input.total, OutputUnknown: p.unknownOutputs,
		Input: l.input.stats(1), Output: l.output.stats(1), Reasoning: l.reasoning.stats(1), Cached: l.cached.stats(1),
		ImageTokens: l.imageTokens.stats(1), Images: l.images.stats(1), MaxTokens: l.maxTokens.stats(1),
		InputOutput: p.ranks.correlation(), Arrivals: p.arrivals.summary(),
		Sessions: p.sessions.summary(p.meta.Sessions, p.meta.SessionDoubt),
		Think:    l.think.stats(second), Tool: l.tool.stats(second), TTFT: l.ttft.stats(second),
		E2E: l.e2e.stats(second),
	}
	if s.Output != nil {
		s.OutputTotal = &l.output.total
	}
	var all categoryTally
	for _, c := range p.categories {
		all = categoryTally{all.requests + c.requests, all.hits + c.hits, all.input + c.input}
	}
	if all.requests > 0 {
		s.CategoryRule = cmp.Or(p.meta.Categories, trace.EarlierRule)
	}
	names := trace.CategoriesOf(s.CategoryRule)
	for i, c := range p.categories {
		if all.requests > 0 && (c.requests > 0 || slices.Contains(names, p.names[i])) {
			s.Categories = append(s.Categories, CategoryShare{Category: p.names[i], Requests: c.requests,
				RequestShare: share(c.requests, all.requests),
				InputTokens:  c.input, InputShare: share(c.input, all.input), HitBlocks: c.hits,
				HitShare: share(c.hits, all.hits)})
		}
	}
	if s.DurationS > 0 {
		s.Rate = new(float64(s.Requests) / s.DurationS)
	}
	s.SessionShares = p.sessions.shares(p.meta.Sessions, s.Requests)
	s.OverTime = p.overTime.overTime(&p.now.epoch)
	g := &p.groups
	s.ByCategory = g.category.summary(&p.now, len(g.categories))
	s.ByModel = g.model.summary(&p.now, len(g.models))
	s.ByClient = g.client.summary(&p.now, g.clients.Len())
	if p.opts.KVBytesPerToken > 0 {
		s.KVBytesPerToken = &p.opts.KVBytesPerToken
	}
	if reuse := p.reuse.Summary(); reuse.Requests > 0 {
		server := p.server.Summary()
		s.Reuse, s.ReuseWithGenerated, s.Server = &reuse, p.reuse.WithGenerated(), &server
		if g := s.ReuseWithGenerated; g != nil {
			s.GeneratedGain = &GeneratedGain{g.HitRatios.points(reuse.HitRatios),
				g.Steady.HitRatios.points(reuse.Steady.HitRatios)}
		}
		whole := &p.overTime.whole
		s.Prefixes = p.prefixes.top(whole.requests, whole.hitTokens)
		s.WorkingSet = p.working.summary(reuse.UniqueBlocks, p.meta.BlockSize, p.opts.KVBytesPerToken)
		s.Waterfalls = fleet.Waterfalls(p.routing, whole.inBlocks(), p.recorded)
		if p.routing != nil {
			s.Routing = p.routing.Summary(whole.inBlocks(), p.opts.KVBytesPerToken, p.meta.Sessions)
		}
	}
	s.InferredReuse = p.inferred.summary()
	s.Breakers = breaker.Summarize(&p.meta)
	s.Warnings = p.warnings(&s)
	return s
}

// warnings lists what must be known beside the numbers, in a fixed order.
func (p *Profiler) warnings(s *Summary) []Warning {
	list := []Warning{}
	warn := func(code, format string, args ...any) {
		list = append(list, Warning{code, fmt.Sprintf(format, args...)})
	}
	if s.Breakers == nil && p.meta.Breakers != "" {
		warn("breakers_unreadable", "the metadata has prefix breakers that this version cannot read")
	}
	if s.Requests == 0 {
		warn("no_requests", "the trace has no requests, or all failed")
		return list
	}
	if s.Failed > 0 {
		warn("failed_rows", "%s of %s rows failed; they are left out of every other figure", doc.Count(s.Failed),
			doc.Count(s.Rows))
	}
	if p.meta.Timing != "" {
		warn("made_up_times", "the source has no times: arrivals were made up, and their figures describe that choice")
	} else if s.DurationS == 0 && s.Requests > 1 {
		warn("one_instant", "all requests arrive at one instant: there is no rate and no dispersion")
	}
	if c := s.Arrivals.Clock; c != nil {
		warn("clock_ticks", "the clock of the trace is quantised: %.1f %% of the gaps between requests are 0, the "+
			"others are "+
			"multiples of %s s; the CV of gaps and every figure over less than %d ticks are artefacts of the clock",
			100*c.ZeroShare, doc.Number(c.TickS), minTicks)
	}
	if p.unknownOutputs > 0 {
		warn("unknown_outputs", "%s of %s have no output length; a replay of them needs --output-tokens",
			doc.Count(p.unknownOutputs), doc.Many(s.Requests, "request"))
	}
	if p.negative > 0 {
		warn("negative_values", "%s recorded counts or times are below 0; they are left out", doc.Count(p.negative))
	}
	for _, st := range []*Stats{s.Arrivals.InterArrival, s.Think, s.Tool, s.TTFT, s.E2E, turnGap(s.Sessions)} {
		if st != nil && st.Approximate {
			warn("approximate_quantiles",
				"times have more than %s distinct values: some quantiles are approximate, within 1 %%",
				doc.Count(exactValues))
			break
		}
	}
	if s.InputOutput.Method == "cells" {
		warn("rank_cells", "more than %s requests: the rank correlation takes lengths as equal within 1 %%",
			doc.Count(exactRanks))
	}
	if s.Reuse == nil {
		warn("no_blocks", "the trace has no prefix blocks or no block size: reuse, hit ratios and categories are "+
			"unknown, not 0")
		return list
	}

	p.reuseWarnings(s, warn)
	if s.Sessions != nil && s.Sessions.Sampling != nil {
		warn("sampled_sessions",
			"more than %s sessions: their number (±%s), turns and the gaps between turns are of one session in %s",
			doc.Count(int64(p.sessions.bound)), doc.Percent(s.Sessions.Sampling.Error),
			doc.Count(p.sessions.sampled.weight()))
	}
	return list
}

// reuseWarnings are about the blocks of a trace that has some.
func (p *Profiler) reuseWarnings(s *Summary, warn func(code, format string, args ...any)) {
	if i := s.InferredReuse; i != nil {
		warn("inferred_reuse", "the blocks of %s of %s requests are inferred from cached tokens, sessions and tools: "+
			"their hit ratios are estimates",
			doc.Count(i.Requests), doc.Count(s.Requests))
	}
	if p.blockless > 0 {
		warn("rows_without_blocks", "%s of %s requests have no blocks; reuse is computed from the others",
			doc.Count(p.blockless), doc.Count(s.Requests))
	}
	if p.overCached > 0 {
		warn("cached_over_prompt", "%s requests have more cached tokens than prompt tokens; they are left out of the "+
			"comparison with reusable tokens",
			doc.Count(p.overCached))
	}
	if g := s.ByClient; g != nil && g.NotToldApart > 0 {
		warn("clients_pooled", "%s requests are from clients that appeared after the first %s; they are pooled "+
			"as the rest",
			doc.Count(g.NotToldApart), doc.Count(apartGroups))
	}
	if n := p.reuse.plain.miscounted; n > 0 {
		warn("block_count", "%s requests have more or fewer blocks than their length needs; their hit ratios by "+
			"token are inexact", doc.Count(n))
	}
	var annotated int64
	for _, c := range p.categories {
		annotated += c.requests
	}
	if annotated < s.Reuse.Requests {
		warn("no_category", "%s of %s requests with blocks have no reuse category",
			doc.Count(s.Reuse.Requests-annotated), doc.Count(s.Reuse.Requests))
	}
	if s.CategoryRule != "" && s.CategoryRule != trace.CategoryRule {
		warn("earlier_categories",
			"categories are by the rule of an earlier version, by blocks alone and not by sessions: import the "+
				"source again to renew them")
	}
	if sm := s.Reuse.Sampling; sm != nil {
		warn("sampled_curve", "the LRU curve is estimated from one block in %s (SHARDS; its authors report a mean "+
			"error below %g; here it is at most "+
			"%s at 95 %%, by the spread of %d disjoint parts of the sample) and cannot be read below %s blocks; the "+
			"ratios of a cache without limit are exact",
			doc.Count(int64(1/sm.Rate)), sm.MeanError, doc.Number(sm.LargestError), sampleParts,
			doc.Count(sm.ResolutionBlocks))
	}
	if x := &p.prefixes; x.beyond {
		warn("sampled_blocks", "more than %s distinct blocks: times of reuse are of one block in %s, and a prefix is "+
			"listed as far as it "+
			"is of the blocks that came first", doc.Count(int64(x.bound)), doc.Count(x.later.weight()))
	}
}

func turnGap(s *Sessions) *Stats {
	if s == nil {
		return nil
	}
	return s.TurnGap
}
