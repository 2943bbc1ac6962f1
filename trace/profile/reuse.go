package profile

import (
	"cmp"
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/block"
)

// DefaultExactBlocks is how many distinct blocks the LRU curve is exact for
// unless an option says otherwise: 16.8 million, 8.6 billion tokens of distinct
// prompts at 512 tokens a block.
const DefaultExactBlocks = 1 << 24

// ReuseOptions are the settings of a [Reuse].
type ReuseOptions struct {
	// ExactBlocks is the number of distinct blocks above which the LRU curve
	// comes from a sample of them. 0 means [DefaultExactBlocks].
	ExactBlocks int
	// WarmUp is the time from the first arrival until requests count for the
	// steady state. Nil is half of the duration; 0, or less, counts everything.
	WarmUp *time.Duration
	// WithoutErrors does not find how far the curve of a sample may be off, which takes as long as the curve.
	WithoutErrors bool
	// KVBytesPerToken is the memory that one token takes in a KV cache, such as
	// [ModelShape] tells. 0 is unknown: then nothing is told in GiB.
	KVBytesPerToken int64

	bound int // distinct blocks that are kept apart; 0 means DefaultExactBlocks, and tests have fewer
}

// A Reuse measures in one pass what a prefix cache would find of each prompt.
//
// The cache is one LRU cache of whole blocks in front of all rows, with vLLM's
// order: look up the whole request, then touch its blocks from the tail to the
// head, so that a leaf is evicted before the blocks it hangs on. Hits then
// always form a prefix, a larger cache always holds what a smaller one does,
// and the depths at which blocks lie in one LRU stack give the hit ratio of
// every capacity at once.
//
// Prompts alone are known at first. From the first row with OutputBlocks on, a
// second set of figures is kept beside the first, for a server that keeps the
// KV it generated: there the output's blocks are touched with the request, as
// the tail of its path.
//
// Memory: about 26 bytes for each distinct block while the curve is exact (4
// for its number, 4 for its position, 16 for the counts at its depth, the rest
// for bits), and a byte at most for each block more, beyond [DefaultExactBlocks]. A trace
// with output blocks needs 22 more for each block while the curve is exact. The steady state takes
// up to 1 MB, or 2, and a sample some 80 MB, or 160.
type Reuse struct {
	size      int
	ids       numbering
	bad       error    // of block ids that cannot be numbered
	path      []uint32 // numbers of the row's blocks
	output    []uint32 // numbers of its output blocks
	plain     *reusePass
	generated *reusePass // nil until output blocks are seen

	withOutputs int // leading blocks of the last row that earlier prompts and outputs carried
}

// NewReuse begins a pass over rows with blocks of blockSize tokens. With a
// blockSize below 1 the ratios that need tokens are null.
func NewReuse(blockSize int, opts ReuseOptions) *Reuse {
	exact := opts.ExactBlocks
	if exact <= 0 {
		exact = DefaultExactBlocks
	}
	return &Reuse{size: blockSize, ids: numbering{bound: cmp.Or(opts.bound, DefaultExactBlocks)},
		plain: &reusePass{size: blockSize, errorless: opts.WithoutErrors, kvBytes: opts.KVBytesPerToken,
			stack: newLRU(exact),
			time:  timeline{listed: listedCapacities(blockSize, opts.KVBytesPerToken), warmUp: opts.WarmUp}}}
}

// Err is why rows could not be measured: there are more than [DefaultExactBlocks] distinct
// blocks, and their ids are far larger than their number. Figures then end before that row.
func (u *Reuse) Err() error { return u.bad }

// Add takes the next row in order of arrival and returns its hit: how many of
// its leading blocks earlier prompts carried. Failed rows and rows without
// blocks are left out and hit nothing; the latter still are part of the duration.
func (u *Reuse) Add(r *trace.Request) int {
	if !isLoad(r) {
		return 0
	}
	u.plain.time.arrive(r.ArrivalNS)
	if u.generated != nil {
		u.generated.time.arrive(r.ArrivalNS)
	}
	if len(r.Blocks) == 0 {
		return 0
	}
	u.path = u.number(u.path[:0], r.Blocks)
	u.output = u.number(u.output[:0], r.OutputBlocks)
	if u.bad != nil {
		return 0
	}
	if len(u.output) > 0 && u.generated == nil {
		u.generated = u.plain.clone()
	}
	if u.generated != nil {
		u.withOutputs = u.generated.add(int(r.InputTokens), u.path, u.output)
	}
	hit := u.plain.add(int(r.InputTokens), u.path, nil)
	if u.generated == nil {
		u.withOutputs = hit
	}
	return hit
}

func (u *Reuse) number(to []uint32, ids []uint64) []uint32 {
	for _, b := range ids {
		n, err := u.ids.number(b)
		if err != nil {
			u.bad = err
			return to
		}
		to = append(to, n)
	}
	return to
}

// A bitset is a set of block numbers.
type bitset []uint64

func (b bitset) has(i uint32) bool { return int(i/64) < len(b) && b[i/64]>>(i%64)&1 != 0 }

func (b *bitset) put(i uint32) {
	if n := int(i/64) + 1 - len(*b); n > 0 {
		*b = append(*b, make([]uint64, n)...)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

// A reusePass is one set of figures: with prompts known, or with outputs too.
type reusePass struct {
	size    int
	kvBytes int64  // of a token; 0 is unknown
	known   bitset // blocks that earlier rows touched
	asked   bitset // blocks that prompts referred to
	again   bitset // blocks that prompts referred to more than once
	stack   *lru
	// found counts the hits by depth in the stack, and foundTokens the tokens in
	// them. Sampled hits count as many as they stand for, at their depth in the
	// sample.
	found, foundTokens []int64
	parts              *curveParts // of a sample; nil without
	errorless          bool        // nobody asks how far the curve of a sample is off

	depths []int64 // of the known leading blocks of the last row; 0 outside the sample
	weight int64   // how many blocks each of these stands for

	sums          // over the whole trace
	time timeline // and over its parts

	unique, repeated, miscounted int64
}

func (u *reusePass) clone() *reusePass {
	c := *u
	c.known = append(bitset(nil), u.known...)
	c.asked = append(bitset(nil), u.asked...)
	c.again = append(bitset(nil), u.again...)
	c.found = append([]int64(nil), u.found...)
	c.foundTokens = append([]int64(nil), u.foundTokens...)
	c.depths = nil
	c.parts = u.parts.clone()
	c.stack = u.stack.clone()
	c.time = u.time.clone()
	return &c
}

func (u *reusePass) add(tokens int, path, output []uint32) int {
	hit := 0
	for hit < len(path) && u.known.has(path[hit]) {
		hit++
	}
	now := u.time.now()
	row := u.count(tokens, path, hit)
	u.sums.add(&row)
	now.sums.add(&row)
	u.look(path[:hit], tokens, now)
	for i := len(output) - 1; i >= 0; i-- {
		u.touch(output[i])
	}
	for i := len(path) - 1; i >= 0; i-- {
		u.touch(path[i])
	}
	for u.stack.full() {
		u.thin(u.stack.fitting())
	}
	if u.stack.shift > 0 && u.parts == nil && !u.errorless {
		u.parts = newCurveParts(u)
	}
	return hit
}

func (u *reusePass) touch(id uint32) {
	u.known.put(id)
	u.stack.touch(id)
	if u.parts != nil && u.stack.sampled(id) {
		u.parts.of(id).stack.touch(id)
	}
}

// count returns what the row adds to the ratios of a cache without limit, and
// counts its blocks.
func (u *reusePass) count(tokens int, path []uint32, hit int) sums {
	row := sums{requests: 1, references: int64(len(path)), hits: int64(hit), shares: float64(hit) / float64(len(path))}
	if u.size >= 1 {
		full := min(block.Full(tokens, u.size), len(path))
		row.fullReferences = int64(full)
		row.fullHits = int64(min(hit, full))
		row.tokens = int64(tokens)
		row.hitTokens = int64(block.Known(hit, tokens, u.size))
		if len(path) != block.Count(tokens, u.size) {
			u.miscounted++
		}
	}
	for _, id := range path {
		switch {
		case !u.asked.has(id):
			u.asked.put(id)
			u.unique++
		case !u.again.has(id):
			u.again.put(id)
			u.repeated++
		}
	}
	return row
}

// look finds how deep the known blocks lie, and counts them there and in the
// current span. A block is of use only with all before it, so the depth that
// counts is the deepest so far; on a chain that is always its own.
func (u *reusePass) look(hit []uint32, prompt int, now *span) {
	u.depths, u.weight = u.depths[:0], 1<<u.stack.shift
	deepest, slot, left := 0, 0, prompt
	if u.parts != nil {
		u.parts.begin()
	}
	for _, id := range hit {
		held := max(min(left, u.size), 0) // tokens in the block; the sum over the hit is block.Known
		left -= held
		d := u.stack.depth(id)
		if d == 0 {
			u.depths = append(u.depths, 0)
			continue
		}
		deepest = max(deepest, d)
		if deepest >= len(u.found) {
			n := max(deepest+1, min(len(u.found)*3/2, u.stack.limit+1)) // append's own quarter copies twice as often
			u.found = append(make([]int64, 0, n), u.found...)[:n]
			u.foundTokens = append(make([]int64, 0, n), u.foundTokens...)[:n]
		}
		depth, tokens := int64(deepest-1)*u.weight+1, int64(held)*u.weight
		for slot < len(u.time.listed) && u.time.listed[slot].blocks < depth {
			slot++
		}
		if u.parts != nil {
			u.parts.look(id, u.weight, tokens)
		}
		u.found[deepest] += u.weight
		u.foundTokens[deepest] += tokens
		now.within[slot].blocks += u.weight
		now.within[slot].tokens += tokens
		u.depths = append(u.depths, depth)
	}
}

// thin lowers the rate of the sample to one in 2^shift. There are d−1 other blocks above a block
// at depth d, and half as many of them in a sample of half of the rate.
func (u *reusePass) thin(shift uint) {
	for range shift - u.stack.shift {
		u.found, u.foundTokens = halve(u.found), halve(u.foundTokens)
		if u.parts != nil {
			u.parts.halve()
		}
	}
	u.stack.thin(shift)
	if u.parts != nil {
		for i := range u.parts.parts {
			u.parts.parts[i].stack.thin(shift)
		}
	}
}

func halve(byDepth []int64) []int64 {
	half := make([]int64, len(byDepth)/2+1)
	for d, n := range byDepth {
		half[(d+1)/2] += n
	}
	return half
}

// hitsWithin returns for every capacity, in ascending order, how many block
// references a cache of so many blocks would have hit.
func (u *reusePass) hitsWithin(capacities []int64) []int64 {
	return u.within(capacities, u.found, u.hits)
}

// within adds up counts by depth up to every capacity.
//
// With a sample, the hits it lacks or has too many are added at depth 1: they
// come from frequent blocks, which lie near the top (the correction that the
// SHARDS paper calls SHARDS-adj). Since the hits of a cache without limit are
// known exactly here, as total, they take the place of the expected number of
// references.
func (u *reusePass) within(capacities, byDepth []int64, total int64) []int64 {
	return hitsUpTo(capacities, byDepth, u.stack.shift, total)
}

// hitsUpTo is [reusePass.within] of a sample of one in 2^shift. A cache of c blocks holds
// some (c−1)÷2^shift of the sample above a block that it just still holds. Where that lies
// between two whole numbers and a half, so do the hits, in proportion: of blocks at depth c,
// as many have one more of the sample above them as have one less. Blocks with none of it
// above them are hit by any cache.
func hitsUpTo(capacities, byDepth []int64, shift uint, total int64) []int64 {
	sum := total
	for _, n := range byDepth {
		sum -= n
	}
	hits := make([]int64, len(capacities))
	d, half := 0, int64(1)<<shift/2 // 0 where all blocks are kept: the depths are exact
	for i, c := range capacities {
		for ; d < len(byDepth) && (int64(d-1)<<shift+half < c || d <= 1 && c > 0); d++ {
			sum += byDepth[d]
		}
		if c <= 0 {
			continue
		}
		next := int64(0)
		if above := c - 1 - (int64(d-2)<<shift + half); shift > 0 && d < len(byDepth) && d > 1 && above > 0 {
			next = int64(float64(byDepth[d]) * float64(above) / float64(int64(1)<<shift))
		}
		hits[i] = min(max(sum+next, 0), total)
	}
	return hits
}

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
	// round number, into which CapacityBlocks whole blocks fit. A partial block
	// takes the room of a whole one, as in paged KV memory. Null is without limit,
	// or blocks of unknown size.
	CapacityTokens *int64 `json:"capacity_tokens"`
	// CapacityGiB is the memory of these tokens in a KV cache; null is without
	// limit, or tokens whose number or size is unknown.
	CapacityGiB     *float64 `json:"capacity_gib"`
	HitRatio        float64  `json:"hit_ratio_by_block"`
	HitRatioByToken *float64 `json:"hit_ratio_by_token"` // null without tokens to divide by
	// Error is how far either ratio may be off where the curve is of a sample: half of the
	// wider 95 % interval, from the spread of 8 disjoint parts of the sample and their
	// difference from the whole. Absent where
	// the curve is exact, below [Sampling].ResolutionBlocks, and of a steady state.
	Error *float64 `json:"hit_ratio_error,omitempty"`
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
	// LargestError is the largest of the errors of both curves from ResolutionBlocks on.
	LargestError float64 `json:"largest_error"`
}

// resolution is how many blocks of a sample a cache holds whose hit ratio can be read.
const resolution = 16

// shardsError is from the abstract of the SHARDS paper: "approximate miss ratio
// errors averaging less than 0.01".
const shardsError = 0.01

// ReuseSummary is what a [Reuse] found.
type ReuseSummary struct {
	Requests         int64       `json:"requests"`           // load that carries blocks
	ReferencesBlocks int64       `json:"references_blocks"`  // blocks of all prompts
	HitBlocks        int64       `json:"hit_blocks"`         // of these, known and leading
	UniqueBlocks     int64       `json:"unique_blocks"`      // distinct blocks of prompts
	TouchedOnceShare *float64    `json:"touched_once_share"` // of the distinct blocks, those in one prompt only
	HitRatios        HitRatios   `json:"hit_ratios"`         // of a cache without limit
	Steady           SteadyState `json:"steady_state"`       // the same, from the warm-up on
	// at round capacities in blocks or tokens, then without limit
	LRUCurve      []CurvePoint `json:"lru_curve"`
	LRUCurveDense []CurvePoint `json:"lru_curve_dense"`    // at 20 capacities a decade, for plots
	Sampling      *Sampling    `json:"sampling,omitempty"` // null when the curves are exact
}

// Summary returns the figures so far, for a cache that knows prompts only.
func (u *Reuse) Summary() ReuseSummary { return u.plain.summary() }

// WithGenerated returns the figures for a cache that also keeps the KV of
// outputs, or nil when no row had output blocks.
func (u *Reuse) WithGenerated() *ReuseSummary {
	if u.generated == nil {
		return nil
	}
	return new(u.generated.summary())
}

// GeneratedGain is how many points of hit ratio, hundredths, a cache without
// limit gains that also keeps the KV of outputs.
type GeneratedGain struct {
	Whole  HitRatios `json:"whole"`
	Steady HitRatios `json:"steady_state"`
}

// points is how many points h lies above o.
func (h HitRatios) points(o HitRatios) HitRatios {
	above := func(a, b *float64) *float64 {
		if a == nil || b == nil {
			return nil
		}
		return new(100 * (*a - *b))
	}
	return HitRatios{ByBlock: above(h.ByBlock, o.ByBlock), ByToken: above(h.ByToken, o.ByToken),
		MeanOverRequests: above(h.MeanOverRequests, o.MeanOverRequests), FullBlocksOnly: above(h.FullBlocksOnly,
			o.FullBlocksOnly)}
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
	points := u.sums.points(capacities, u.kvBytes, u.hitsWithin(blocks), u.within(blocks, u.foundTokens, u.hitTokens))
	if u.parts != nil {
		for i, e := range u.parts.errors(blocks, u.stack.shift, u) {
			if blocks[i] >= resolution<<u.stack.shift {
				points[i].Error = &e
			}
		}
	}
	return points
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
			ResolutionBlocks: resolution << shift, MeanError: shardsError}
		for _, p := range slices.Concat(s.LRUCurve, s.LRUCurveDense) {
			if p.Error != nil {
				s.Sampling.LargestError = max(s.Sampling.LargestError, *p.Error)
			}
		}
	}
	return s
}

// share returns part/whole, or nil without a whole.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(float64(part) / float64(whole))
}
