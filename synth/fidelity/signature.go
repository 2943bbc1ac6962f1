package fidelity

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/profile"
)

// Options are the settings of a [Signature].
type Options struct {
	// From is the share of the duration, from 0 up to 1, after which requests
	// count: 0.5 measures the second half with the first as its history. What
	// came before is known to caches, sessions and categories, and in no figure.
	From float64
	// WarmUp is the same as a time from the first arrival. The later of the two
	// holds.
	WarmUp time.Duration
	// BlockSize is the block size in tokens to measure by: 0 for that of the
	// trace, or a multiple of it, see [CommonBlockSize].
	BlockSize int
	// Brief leaves out what a benchmark feels: routing, queues, the rate of tokens, links
	// and copies beyond pairs of lengths.
	Brief bool
}

// A Signature gathers what [Compare] needs to know of a trace or a workload. It
// implements [trace.Writer]: give it all rows in order of arrival.
//
// Categories and sessions by links are not taken from the rows but found again,
// so that a real trace and a synthetic one are sorted by the same rule; of sessions, categories go by
// those that the rows have. That takes what most requests carry, and a warm-up may be a share of a
// duration not known yet: so the columns that count are kept, beyond 48 MiB in a
// private spill file, until the first [Compare] reads them. Nothing can be
// written from then on. A row that names fewer blocks than its length takes has
// others that nothing shares: they are completed as [synth.Unshared] does.
//
// Memory, beside that: some 30 bytes for each distinct block, up to 16,777,216 of them, and 4 for each more;
// 48 for each session, 16 for each distinct length, and at most 280 MB for what has a
// bound: the rows, or an even sample of them, for what correlates (see
// [sampleLimit]), the distinct pairs of lengths, and the first rows (see [keptRows]).
// Times are counted in the log-linear buckets of [profile.Histogram]. [Compare] takes, for
// each processor, up to 44 bytes for each distinct block of the first rows, some 190 MB.
//
// It is for one goroutine.
type Signature struct {
	meta   trace.Meta
	opts   Options
	size   int // tokens in a block as measured; 0 without blocks
	joined int // blocks of the trace in one of these

	rows        *trace.Sorter
	one         [1]trace.Request
	ids         trace.BlockNumbers
	numbers     []uint64          // of the blocks of a row
	named       uint64            // distinct blocks that rows name
	carriers    []uint32          // by block: requests that have it; nil once there are trees
	blocked     int64             // requests with blocks
	trees       *synth.TreeSample // of more blocks than are annotated; else nil
	read        int64             // rows so far
	failed      int64
	first, last int64 // arrivals of requests that did not fail
	at          int64 // arrival of the row before

	limits signatureLimits
	tally  *signatureTally // what was measured; nil before the first Compare
	err    error
}

// signatureLimits are up to how many of each are kept; tests lower them.
type signatureLimits struct {
	rows, pairs int
	blocks      int // beyond, a sample of trees is annotated, of a share of as many
	curve       int // distinct blocks; beyond, the LRU curve is of a sample
	kept        keptLimits
}

// treesShare is by how many times fewer blocks there are in a sample of trees than without
// one, at most: a block of a sample takes more memory.
const treesShare = 8

// curveExact is up to how many distinct blocks the LRU curve is exact. A sample of more takes half of the
// time, and a tenth of the memory.
const curveExact = 1 << 23

// sampleLimit is up to how many requests correlations and, counting distinct pairs of lengths, the pair match are
// exact. Of more
// requests, a sample of half to all of this number is taken, by a hash of their
// row; of more pairs, one by a hash of the pair, so that both traces keep the
// same ones.
const sampleLimit = 1 << 20

// NewSignature begins the signature of the trace that meta describes.
func NewSignature(meta trace.Meta, opts Options) *Signature {
	s := &Signature{meta: meta, opts: opts, size: meta.BlockSize, joined: 1,
		rows: trace.NewSorter(""), limits: signatureLimits{rows: sampleLimit, pairs: sampleLimit,
			blocks: profile.DefaultExactBlocks, curve: curveExact, kept: defaultKept}}
	if meta.BlockSize < 1 {
		s.size = 0
	} else if opts.BlockSize > 0 {
		s.size, s.joined = opts.BlockSize, opts.BlockSize/meta.BlockSize
		if opts.BlockSize%meta.BlockSize != 0 {
			s.err = fmt.Errorf("blocks of %d tokens cannot be measured as blocks of %d", meta.BlockSize, opts.BlockSize)
		}
	}
	return s
}

// CommonBlockSize is the block size in tokens by which the traces that ref and
// cand describe can be compared. Ids are chained, so the id of a block stands
// for all of the prompt up to its end: where one size is a multiple of the
// other, every so many-th id of the finer trace, and the last of a row, are the
// ids of the coarser blocks. Any other two sizes cut prompts at different
// places, and ids do not tell what lies between them: an error, as are
// different conventions. The size is 0 when either trace has no blocks.
func CommonBlockSize(ref, cand trace.Meta) (int, error) {
	fine, coarse := min(ref.BlockSize, cand.BlockSize), max(ref.BlockSize, cand.BlockSize)
	switch {
	case fine < 1:
		return 0, nil
	case ref.Convention != cand.Convention:
		return 0, errors.New("the two have different conventions for the last block of a prompt, so ids of " +
			"one cannot be turned into ids of the other: import both again")
	case coarse%fine != 0:
		return 0, fmt.Errorf("the reference has blocks of %d tokens and the candidate of %d: neither is a "+
			"multiple of the "+
			"other, so they cut prompts at different places; import both with the same --block-size",
			ref.BlockSize, cand.BlockSize)
	}
	return coarse, nil
}

// Write implements [trace.Writer]. It keeps nothing of the batch.
func (s *Signature) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		r := &rows[i]
		switch {
		case s.err != nil:
			return i, s.err
		case s.tally != nil:
			return i, errors.New("the signature was compared already: it takes no more rows")
		case s.read > 0 && r.ArrivalNS < s.at:
			return i, fmt.Errorf("row %d arrives before row %d: a trace must be sorted by arrival", s.read, s.read-1)
		case r.InputTokens < 0 || r.OutputOr(0) < 0:
			return i, fmt.Errorf("row %d: a token count is negative", s.read)
		}
		s.read++
		s.at = r.ArrivalNS
		if r.Status == trace.StatusFailed {
			s.failed++
			continue
		}
		if s.read-s.failed == 1 {
			s.first = r.ArrivalNS
		}
		s.last = r.ArrivalNS
		s.one[0] = trace.Request{ArrivalNS: r.ArrivalNS, InputTokens: r.InputTokens, OutputTokens: r.OutputTokens,
			ThinkNS: r.ThinkNS, Session: r.Session}
		var err error
		if s.one[0].Blocks, err = s.blocks(r); err != nil {
			return i, fmt.Errorf("row %d: %w", s.read-1, err)
		}
		s.named = uint64(s.ids.Len())
		s.countBlocks(&s.one[0])
		if _, err := s.rows.Write(s.one[:]); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// countedShift is of how many requests, as a power of two, one is counted where there are trees.
const countedShift = 3

// countBlocks counts who has the blocks of a row.
func (s *Signature) countBlocks(r *trace.Request) {
	if s.size == 0 {
		return
	}
	if len(r.Blocks) > 0 || r.InputTokens > 0 {
		s.blocked++
	}
	switch {
	case s.trees != nil:
		if inSample(scatter(uint64(s.read)), countedShift) {
			s.trees.CountFor(r, 1<<countedShift)
		}
		return
	case s.named > uint64(s.limits.blocks):
		s.trees = synth.NewTreeSample(false)
		s.trees.CountBefore(s.read-s.failed-1, s.carriers)
		s.carriers = nil
		return
	}
	s.carriers = append(s.carriers, make([]uint32, s.named-uint64(len(s.carriers)))...)
	for _, id := range r.Blocks {
		s.carriers[id]++
	}
}

// blocks returns the row's blocks as measured, numbered densely.
func (s *Signature) blocks(r *trace.Request) (out []uint64, err error) {
	if s.size == 0 {
		return nil, nil
	}
	out = s.numbers[:0]
	add := func(b uint64) {
		id, fault := s.ids.ID(b)
		out, err = append(out, id), errors.Join(err, fault)
	}
	for i := s.joined - 1; i < len(r.Blocks); i += s.joined {
		add(r.Blocks[i])
	}
	// The last id stands for a partial block only if no more were left away.
	n := len(r.Blocks)
	if n%s.joined != 0 && n >= block.Count(int(r.InputTokens), s.meta.BlockSize) {
		add(r.Blocks[n-1])
	}
	s.numbers = out
	return out, err
}

// warmUp is the time in ns from the first arrival until requests count.
func (s *Signature) warmUp() int64 {
	return max(int64(s.opts.From*float64(s.last-s.first)), int64(s.opts.WarmUp), 0)
}

// sourceSessions is the value of [trace.Meta].Sessions of a trace that has its
// source's own sessions.
const sourceSessions = "source"

// curveSteps is the number of steps between the capacities of the hit-ratio
// curve, which is compared from curveFrom to curveTo blocks, and to half of it for a
// reference of no more than curveTo block references.
const (
	curveSteps = 60
	curveFrom  = 100
	curveTo    = 200_000
)

// curveCapacities lists the 61 capacities in blocks, evenly spread on a
// logarithmic axis, up to a largest one.
func curveCapacities(to float64) []int64 {
	list := make([]int64, curveSteps+1)
	for i := range list {
		list[i] = int64(math.Round(curveFrom * math.Pow(to/curveFrom, float64(i)/curveSteps)))
	}
	return list
}

// Every signature has the hit ratios of both curves, since the reference says which one
// counts, and the one at pointCapacity.
const pointCapacity = 1000

// signatureCapacities lists the capacities of the curves, in ascending order.
func signatureCapacities() []int64 {
	list := append(curveCapacities(curveTo), curveCapacities(curveTo/2)...)
	list = append(list, pointCapacity)
	slices.Sort(list)
	return slices.Compact(list)
}

// A signaturePass reads the rows in their order and fills a tally.
type signaturePass struct {
	*signatureTally
	warmUp     int64
	first      int64
	source     bool
	categories *profile.Categorizer
	blocked    int64  // requests with blocks
	global     int    // blocks of the global prefix, that more than half of these requests have; with trees, so far
	globalEnd  uint64 // the last of them, with trees
	reuse      *profile.Reuse
	row        int64
	trees      *synth.TreeSample // nil where all blocks are annotated
	shift      int               // one in 2^shift of the trees is
	ids        trace.Renumber    // of the blocks of these
	path       []uint64          // blocks of the current row, by these ids
	timed      map[uint64]int64  // where there are trees: the same as touched, of a sample of all blocks
	touched    []int64           // by block: arrival of the request that last carried it
	linked     []int32           // by block: the session by links of that request
	links      int32             // such sessions so far
	capacities []int64
	before     curveHits // what the history hit
	brief      bool
}

// curveHits are the blocks that caches of so many capacities hit, and all
// references.
type curveHits struct {
	hits       []float64
	references float64
}

// End measures what was written, and drops it: no more rows are taken. What is wrong with them is told by
// [Compare].
func (s *Signature) End() {
	if s.tally == nil && s.err == nil {
		s.tally, s.err = s.measure()
	}
}

// measure reads what was written and drops it.
func (s *Signature) measure() (t *signatureTally, err error) {
	sorted, err := s.rows.Sort()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	if err := s.ids.Close(); err != nil { // its memory is wanted below
		return nil, err
	}
	s.ids = trace.BlockNumbers{}
	warmUp := time.Duration(s.warmUp())
	tally := &signatureTally{input: valueCounts{}, output: valueCounts{}, categories: map[string]int64{},
		blocks:   s.size > 0,
		pairs:    pairTally{limit: s.limits.pairs, n: map[lengthPair]pairCount{}},
		kept:     &keptRows{limit: s.limits.kept, begin: []uint32{0}},
		sample:   tupleSample{limit: s.limits.rows},
		arrivals: profile.NewProfiler(trace.Meta{}, profile.ProfilerOptions{})}
	p := &signaturePass{signatureTally: tally, warmUp: int64(warmUp), first: s.first,
		source:     s.meta.Sessions == sourceSessions,
		categories: profile.NewCategorizer(s.size, true),
		reuse: profile.NewReuse(s.size, profile.ReuseOptions{WarmUp: &warmUp, ExactBlocks: s.limits.curve,
			WithoutErrors: true}),
		capacities: signatureCapacities(), brief: s.opts.Brief, blocked: s.blocked, trees: s.trees}
	if p.trees != nil {
		for s.named>>p.shift > uint64(s.limits.blocks/treesShare) {
			p.shift++
		}
		p.oneIn, p.timed = 1<<p.shift, map[uint64]int64{}
		p.trees.Choose(p.shift)
	}
	for _, n := range s.carriers { // ids are chained, so that they lie on one path
		if 2*int64(n) > p.blocked {
			p.global++
		}
	}
	s.carriers, s.trees, p.kept.global = nil, nil, p.global
	if err := s.eachRow(sorted, p.addRow); err != nil {
		return nil, err
	}
	p.kept.finish()
	if !p.blocks || p.requests == 0 {
		return p.signatureTally, nil
	}
	// Reuse after the warm-up: hits of all rows less those of the history.
	reuse := p.reuse.Summary()
	p.ratios, p.unique, p.sampledCurve = reuse.Steady.HitRatios, reuse.UniqueBlocks, reuse.Sampling != nil
	all := p.hits()
	if all.references == p.before.references {
		return p.signatureTally, nil
	}
	p.curve = map[int64]float64{}
	p.references = all.references - p.before.references
	for i, n := range all.hits {
		if p.before.hits != nil {
			n -= p.before.hits[i]
		}
		p.curve[p.capacities[i]] = n / p.references
	}
	return p.signatureTally, nil
}

// eachRow reads the rows, completed, from the beginning.
func (s *Signature) eachRow(sorted *trace.Sorted, f func(*trace.Request) error) error {
	rows, err := sorted.Reader()
	if err != nil {
		return err
	}
	if s.size > 0 {
		rows = &synth.Unshared{Src: rows, BlockSize: s.size, Next: s.named}
	}
	return trace.Each(rows, func(_ int64, r *trace.Request) error { return f(r) })
}

// linkedBy is a row as links see it: in a sample of trees its blocks are numbered
// anew.
func (p *signaturePass) linkedBy(r *trace.Request) *trace.Request {
	if p.trees == nil {
		return r
	}
	p.path = p.path[:0]
	for _, b := range r.Blocks {
		p.path = append(p.path, p.ids.ID(b))
	}
	of := *r
	of.Blocks = p.path
	return &of
}

// growGlobal lets the global prefix grow where there are trees: who has a block is then known by its
// hash alone, so it is found with the first request that has it.
func (p *signaturePass) growGlobal(r *trace.Request) {
	if p.trees == nil {
		return
	}
	n := p.global
	if n > len(r.Blocks) || n > 0 && r.Blocks[n-1] != p.globalEnd {
		n = 0
	}
	for n < len(r.Blocks) && 2*int64(p.trees.Carriers(r.Blocks[n])) > p.blocked {
		n++
	}
	if n > p.global {
		p.global, p.kept.global, p.globalEnd = n, n, r.Blocks[n-1]
	}
}

// addRow measures one row.
func (p *signaturePass) addRow(r *trace.Request) error {
	counted := r.ArrivalNS-p.first >= p.warmUp
	if counted && p.requests == 0 && p.row > 0 {
		p.before = p.hits()
	}
	var hit, known int
	taken, session := false, r.Session
	if !p.source {
		session = nil
	}
	of := r
	if p.signatureTally.blocks {
		r.Category = p.categories.Category(r)
		p.growGlobal(r)
		if taken = len(r.Blocks) > 0 && (p.trees == nil || p.trees.Takes(r)); taken {
			of = p.linkedBy(r)
		}
		hit = p.reuse.Add(r)
		known = p.known(of, hit, taken)
	}
	if !p.brief {
		p.kept.add(r, p.first, session, hit, counted)
	}
	// Turns count twice: by the source's sessions, whose turns follow one another, and
	// by links, where a request that knows more than the global prefix follows the one that last
	// touched its deepest hit block.
	if session != nil {
		p.bySource.add(*session, r.ArrivalNS, nil, counted)
	}
	linked := p.links
	if taken {
		var parent *int64
		if known > p.global {
			parent, linked = &p.touched[of.Blocks[known-1]], p.linked[of.Blocks[known-1]]
		} else {
			p.links++
		}
		p.inferred.add(int64(linked), r.ArrivalNS, parent, counted)
	}
	p.pairs.add(lengthPair{r.InputTokens, r.OutputOr(-1)}, p.row, counted)
	if counted {
		if err := p.count(r, p.row, hit); err != nil {
			return err
		}
		if p.trees == nil {
			for _, id := range r.Blocks[:hit] {
				p.reuseTime.Add(r.ArrivalNS-p.touched[id], 1)
			}
		}
	}
	if p.trees != nil {
		p.timeBlocks(r, hit, counted)
	}
	if p.trees == nil || of != r {
		for _, id := range of.Blocks {
			if n := int(id) + 1 - len(p.touched); n > 0 {
				p.touched, p.linked = append(p.touched, make([]int64, n)...), append(p.linked, make([]int32, n)...)
			}
			p.touched[id], p.linked[id] = r.ArrivalNS, linked
		}
	}
	p.row++
	return nil
}

// timeBlocks takes the times to reuse of the blocks that came first, among which those are
// that most requests carry, and of a sample of the others, each for as many.
func (p *signaturePass) timeBlocks(r *trace.Request, hit int, counted bool) {
	for i, id := range r.Blocks {
		each := int64(1)
		if id >= firstBlocks {
			if !inSample(scatter(id), uint(p.shift)) {
				continue
			}
			each = p.oneIn
		}
		if i < hit && counted {
			p.reuseTime.Add(r.ArrivalNS-p.timed[id], each)
		}
		p.timed[id] = r.ArrivalNS
	}
}

// firstBlocks is of how many blocks, in order of appearance, all times to reuse are taken.
const firstBlocks = 1 << 16

// known is how many leading blocks were known of a row as links see it, which hit so
// many of all blocks. In a sample those have small numbers.
func (p *signaturePass) known(of *trace.Request, hit int, taken bool) (n int) {
	switch {
	case p.trees == nil:
		return hit
	case !taken:
		return 0
	}
	for n < len(of.Blocks) && of.Blocks[n] < uint64(len(p.touched)) {
		n++
	}
	return n
}

// hits returns the hits so far. The ratios are of whole numbers, which rounding
// finds again.
func (p *signaturePass) hits() curveHits {
	h := curveHits{hits: p.reuse.LRUHitRatios(p.capacities), references: float64(p.reuse.Summary().ReferencesBlocks)}
	for i, ratio := range h.hits {
		h.hits[i] = math.Round(ratio * h.references)
	}
	return h
}
