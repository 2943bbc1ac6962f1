package profile

// HitRatios are the four ways to say how much of the prompts a cache without
// limit would have held. They differ, so a hit ratio without its name says
// little. Null means that there was nothing to divide by.
type HitRatios struct {
	ByBlock          *float64 `json:"by_block"`           // hit blocks over all blocks, partial ones included
	ByToken          *float64 `json:"by_token"`           // tokens in hit blocks over all prompt tokens
	MeanOverRequests *float64 `json:"mean_over_requests"` // mean of each request's hit blocks over its blocks
	FullBlocksOnly   *float64 `json:"full_blocks_only"`   // as by block, without the partial last blocks
}

// A CurvePoint is the hit ratio of an LRU cache of one capacity, by block and by
// token: there a full block weighs its size and a partial one what is in it.
type CurvePoint struct {
	CapacityBlocks *int64 `json:"capacity_blocks"` // null is without limit
	// CapacityTokens is the memory in tokens: the blocks times their size, or a
	// round number of which CapacityBlocks is as many as fit. A partial block
	// takes the room of a whole one, as in paged KV memory. Null is without limit,
	// or blocks of unknown size.
	CapacityTokens *int64 `json:"capacity_tokens"`
	// CapacityGiB is the memory of these tokens in a KV cache; null is without
	// limit, or tokens that are of unknown number or size.
	CapacityGiB     *float64 `json:"capacity_gib"`
	HitRatio        float64  `json:"hit_ratio_by_block"`
	HitRatioByToken *float64 `json:"hit_ratio_by_token"` // null without tokens to divide by
}

// Sampling says that an LRU curve comes from a sample of the blocks.
type Sampling struct {
	Rate          float64 `json:"rate"`           // share of the blocks in the sample at the end
	TrackedBlocks int     `json:"tracked_blocks"` // blocks in the sample at the end
	// ResolutionBlocks is the capacity from which on the curve can be read: it
	// holds 16 blocks of the sample. Below it the curve is flat guesswork.
	ResolutionBlocks int64 `json:"resolution_blocks"`
	// MeanError is the mean absolute error of hit ratios that the authors of the
	// method found over their traces, with samples in 1 MB of memory.
	MeanError float64 `json:"mean_error_reported"`
}

// shardsError is from the abstract of the SHARDS paper: "approximate miss ratio
// errors averaging less than 0.01".
const shardsError = 0.01

// ReuseSummary is what a [Reuse] found.
type ReuseSummary struct {
	Requests         int64        `json:"requests"`           // load that carries blocks
	ReferencesBlocks int64        `json:"references_blocks"`  // blocks of all prompts
	HitBlocks        int64        `json:"hit_blocks"`         // of these, known and leading
	UniqueBlocks     int64        `json:"unique_blocks"`      // distinct blocks of prompts
	TouchedOnceShare *float64     `json:"touched_once_share"` // of the distinct blocks, those in one prompt only
	HitRatios        HitRatios    `json:"hit_ratios"`         // of a cache without limit
	Steady           SteadyState  `json:"steady_state"`       // the same, from the warm-up on
	LRUCurve         []CurvePoint `json:"lru_curve"`          // at round capacities in blocks or tokens, then without limit
	LRUCurveDense    []CurvePoint `json:"lru_curve_dense"`    // at 20 capacities a decade, for plots
	Sampling         *Sampling    `json:"sampling,omitempty"` // null when the curves are exact
}

// Summary returns the figures so far, for a cache that knows prompts only.
func (u *Reuse) Summary() ReuseSummary { return u.plain.summary() }

// WithGenerated returns the figures for a cache that also keeps the KV of
// outputs, or nil when no row had output blocks.
func (u *Reuse) WithGenerated() *ReuseSummary {
	if u.generated == nil {
		return nil
	}
	s := u.generated.summary()
	return &s
}

// GeneratedGain is how many points of hit ratio, hundredths, a cache without
// limit gains that also keeps the KV of outputs.
type GeneratedGain struct {
	Whole  HitRatios `json:"whole"`
	Steady HitRatios `json:"steady_state"`
}

func generatedGain(plain, generated *ReuseSummary) *GeneratedGain {
	if generated == nil {
		return nil
	}
	return &GeneratedGain{generated.HitRatios.points(plain.HitRatios), generated.Steady.HitRatios.points(plain.Steady.HitRatios)}
}

// points is how many points h lies above o.
func (h HitRatios) points(o HitRatios) HitRatios {
	above := func(a, b *float64) *float64 {
		if a == nil || b == nil {
			return nil
		}
		points := 100 * (*a - *b)
		return &points
	}
	return HitRatios{ByBlock: above(h.ByBlock, o.ByBlock), ByToken: above(h.ByToken, o.ByToken),
		MeanOverRequests: above(h.MeanOverRequests, o.MeanOverRequests), FullBlocksOnly: above(h.FullBlocksOnly, o.FullBlocksOnly)}
}

// LRUHitRatios returns the hit ratio by block of LRU caches of so many blocks,
// prompts only. Capacities must ascend. Without references the ratios are 0.
func (u *Reuse) LRUHitRatios(capacities []int64) []float64 { return u.plain.curve(capacities) }

func (u *reusePass) curve(capacities []int64) []float64 {
	ratios := make([]float64, len(capacities))
	if u.references == 0 {
		return ratios
	}
	for i, hits := range u.hitsWithin(capacities) {
		ratios[i] = float64(hits) / float64(u.references)
	}
	return ratios
}

func (u *reusePass) points(capacities []capacity) []CurvePoint {
	blocks := make([]int64, len(capacities))
	for i, c := range capacities {
		blocks[i] = c.blocks
	}
	return u.sums.points(capacities, u.kvBytes, u.hitsWithin(blocks), u.hitTokensWithin(blocks))
}

// points returns the ratios of caches that hit so many blocks and tokens.
func (s *sums) points(capacities []capacity, kvBytes int64, hits, tokens []int64) []CurvePoint {
	points := make([]CurvePoint, len(capacities))
	for i, c := range capacities {
		points[i] = CurvePoint{CapacityBlocks: &c.blocks, HitRatioByToken: share(tokens[i], s.tokens)}
		if c.tokens > 0 {
			points[i].CapacityTokens = &c.tokens
			points[i].CapacityGiB = c.inGiB(kvBytes)
		}
		if s.references > 0 {
			points[i].HitRatio = float64(hits[i]) / float64(s.references)
		}
	}
	return points
}

// unlimited returns the end of the curve. There must be requests.
func (s *sums) unlimited() CurvePoint {
	r := s.hitRatios()
	return CurvePoint{HitRatio: *r.ByBlock, HitRatioByToken: r.ByToken}
}

func (u *reusePass) summary() ReuseSummary {
	listed := upTo(u.time.listed, u.unique)
	s := ReuseSummary{
		Requests: u.requests, ReferencesBlocks: u.references, HitBlocks: u.hits, UniqueBlocks: u.unique,
		TouchedOnceShare: share(u.unique-u.repeated, u.unique),
		HitRatios:        u.hitRatios(),
		Steady:           u.time.summary(listed, u.kvBytes),
		LRUCurve:         u.points(listed),
		LRUCurveDense:    u.points(denseCapacities(u.unique, u.size)),
	}
	if u.requests > 0 {
		s.LRUCurve = append(s.LRUCurve, u.unlimited())
	}
	if shift := u.stack.shift; shift > 0 {
		s.Sampling = &Sampling{Rate: 1 / float64(uint64(1)<<shift), TrackedBlocks: u.stack.live,
			ResolutionBlocks: 16 << shift, MeanError: shardsError}
	}
	return s
}

// share returns part/whole, or nil without a whole.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	f := float64(part) / float64(whole)
	return &f
}
