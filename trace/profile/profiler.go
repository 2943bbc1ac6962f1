package profile

import (
	"cmp"
	"fmt"
	"slices"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/fleet"
)

// DefaultServerBlock is the block size in tokens that [Summary].Server is
// computed for unless an option says otherwise: vLLM's default.
const DefaultServerBlock = 16

// ProfilerOptions are the settings of a [Profiler].
type ProfilerOptions struct {
	ReuseOptions
	// ServerBlock is the block size in tokens of the server whose reachable hit
	// ratio is computed. 0 means [DefaultServerBlock].
	ServerBlock int
	// Replicas and ReplicaBlocks are those of [fleet.Options]. Without either, no
	// routing is simulated.
	Replicas      []int
	ReplicaBlocks int64
}

// A Profiler reads the rows of a trace and describes them. It implements
// [trace.Writer] of requests.
//
// Memory follows what is distinct and not the rows, up to a bound: some 42 bytes for each
// of [DefaultExactBlocks] blocks (see [Reuse], and 16 for who carried it when) and less than
// one for each block more, 24 for each of 4.2 million sessions, 16
// for each length, 8 for each client and a name for each model, and up to 150 MB
// for what has a bound of its own: exact quantiles of times, ranks, the search
// for ticks, histograms. Above these bounds the LRU curve, reuse times, turns
// and their gaps are of samples, [Summary].Warnings says so, and all else is exact. The breakdowns by model and by
// client take 80 bytes for each stretch of a thousandth of the trace in which a group is active, for 1,024 groups at
// most: up to 80 MB each.
//
// A simulation of replicas takes what [fleet.New] says.
type Profiler struct {
	meta trace.Meta
	opts ProfilerOptions
	bad  error // of the options
	rows int64
	last int64 // arrival of the row before

	failed, negative, blockless, overCached, unknownOutputs int64

	lengths  lengths
	ranks    ranks
	arrivals arrivals
	sessions sessions

	categories [categories]categoryTally
	reuse      *Reuse
	server     *ServerReuse
	prefixes   prefixes
	working    workingSets
	routing    *fleet.Simulation // nil when none is simulated

	now      moment
	overTime trail
	groups   breakdowns
	recorded fleet.Traffic // of the rows whose cached tokens can be compared
	inferred inferredTally

	histograms HistogramSet
	all        *rowHistograms
	of         [categories]*rowHistograms
	sets       [2]*rowHistograms // of the current row
	names      []string          // of the categories
}

// categories is the number of reuse categories, those of earlier versions too.
const categories = 6

type categoryTally struct{ requests, hits, input int64 }

// lengths are the columns that are summarised by themselves.
type lengths struct {
	input, output, reasoning, cached, imageTokens, images, maxTokens distribution
	think, tool, ttft, e2e                                           distribution
}

// NewProfiler begins a profile of the trace that meta describes. Options that
// are out of their range are an error of the first Write.
func NewProfiler(meta trace.Meta, opts ProfilerOptions) *Profiler {
	if opts.ServerBlock <= 0 {
		opts.ServerBlock = DefaultServerBlock
	}
	p := &Profiler{meta: meta, opts: opts, ranks: ranks{limit: exactRanks}, arrivals: newArrivals(),
		sessions: sessions{bound: exactSessions, ids: numbering{bound: exactSessions + 1},
			gaps: distribution{limit: exactValues}},
		reuse: NewReuse(meta.BlockSize, opts.ReuseOptions), server: NewServerReuse(opts.ServerBlock),
		prefixes: newPrefixes(meta.BlockSize, cmp.Or(opts.bound, DefaultExactBlocks)), now: moment{warmUp: opts.WarmUp},
		names: trace.AllCategories()}
	p.routing, p.bad = fleet.New(fleet.Options{BlockSize: meta.BlockSize, ServerBlock: opts.ServerBlock,
		Replicas: opts.Replicas, ReplicaBlocks: opts.ReplicaBlocks})
	for _, d := range []*distribution{&p.lengths.think, &p.lengths.tool, &p.lengths.ttft, &p.lengths.e2e} {
		d.limit = exactValues
	}
	for i, width := range workingWindows {
		p.working.sets[i].width = width
	}
	p.all = newRowHistograms(&p.histograms, "")
	for i, c := range p.names {
		p.of[i] = newRowHistograms(&p.histograms, c)
	}
	return p
}

// rowHistograms are the histograms of one category, looked up once.
type rowHistograms struct {
	input, output, think, tool, turnGap, hit, fresh, distance, reuseTime *Histogram
}

func newRowHistograms(s *HistogramSet, category string) *rowHistograms {
	get := func(metric string) *Histogram { return s.Get(metric, category) }
	return &rowHistograms{get(MetricInput), get(MetricOutput), get(metricThink), get(metricTool), get(metricTurnGap),
		get(MetricHitBlocks), get(MetricNewBlocks), get(MetricReuseDistance), get(metricReuseTime)}
}

// Write implements [trace.Writer]: rows in order of arrival. It keeps nothing of
// the batch.
func (p *Profiler) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		if err := p.write(&rows[i]); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

func (p *Profiler) write(r *trace.Request) error {
	if p.bad != nil {
		return p.bad
	}
	if p.rows > 0 && r.ArrivalNS < p.last {
		return fmt.Errorf("row %d arrives before row %d: a trace must be sorted by arrival", p.rows, p.rows-1)
	}
	if r.InputTokens < 0 || r.OutputOr(0) < 0 {
		return fmt.Errorf("row %d: a token count is negative", p.rows)
	}
	p.rows++
	p.last = r.ArrivalNS
	if !isLoad(r) {
		p.failed++
		return nil
	}
	sets := append(p.sets[:0], p.all)
	category := slices.Index(p.names, r.Category)
	if category >= 0 {
		sets = append(sets, p.of[category])
	}
	p.addLengths(r, sets)
	if gap, ok := p.arrivals.add(r.ArrivalNS); ok {
		p.histograms.Get(MetricInterArrival, "").Add(gap, 1)
	}
	p.now.arrive(r.ArrivalNS)
	p.working.arrive(r.ArrivalNS - p.arrivals.first)
	hit, parent := p.addBlocks(r, sets)
	if err := p.reuse.Err(); err != nil {
		return fmt.Errorf("row %d: %w", p.rows-1, err)
	}
	p.addTraffic(r, hit)
	if category >= 0 {
		p.categories[category].requests++
		p.categories[category].hits += int64(hit)
		p.categories[category].input += int64(r.InputTokens)
	}
	if r.Session == nil {
		return nil
	}
	if p.meta.Sessions != originInferred {
		parent = -1
	}
	if gap, weight := p.sessions.add(*r.Session, r.ArrivalNS, parent); weight > 0 {
		for _, h := range sets {
			h.turnGap.Add(gap, weight)
		}
	}
	return nil
}

func (p *Profiler) addLengths(r *trace.Request, sets []*rowHistograms) {
	l := &p.lengths
	l.input.add(int64(r.InputTokens))
	if r.OutputTokens != nil {
		l.output.add(int64(*r.OutputTokens))
		p.ranks.add(r.InputTokens, *r.OutputTokens)
	} else {
		p.unknownOutputs++
	}
	note(p, &l.reasoning, r.ReasoningTokens)
	note(p, &l.cached, r.CachedTokens)
	note(p, &l.imageTokens, r.ImageTokens)
	note(p, &l.images, r.Images)
	note(p, &l.maxTokens, r.MaxTokens)
	note(p, &l.ttft, r.TTFTNS)
	note(p, &l.e2e, r.E2ENS)
	think, tool := note(p, &l.think, r.ThinkNS), note(p, &l.tool, r.ToolNS)
	for _, h := range sets {
		h.input.Add(int64(r.InputTokens), 1)
		if r.OutputTokens != nil {
			h.output.Add(int64(*r.OutputTokens), 1)
		}
		if think {
			h.think.Add(*r.ThinkNS, 1)
		}
		if tool {
			h.tool.Add(*r.ToolNS, 1)
		}
	}
}

// note counts an optional value. One below 0 is an error of the source: it is
// left out and warned of.
func note[T int32 | int64](p *Profiler, d *distribution, v *T) bool {
	if v == nil {
		return false
	}
	if *v < 0 {
		p.negative++
		return false
	}
	d.add(int64(*v))
	return true
}

// addBlocks measures the row's reuse. It returns its hit, and the arrival of
// the request that last touched the deepest hit block, or -1.
func (p *Profiler) addBlocks(r *trace.Request, sets []*rowHistograms) (hit int, parent int64) {
	parent = -1
	if p.meta.BlockSize >= 1 {
		hit = p.reuse.Add(r) // one without blocks too: it has its part in the duration
	}
	if len(r.Blocks) == 0 || p.meta.BlockSize < 1 {
		p.blockless++
		return 0, parent
	}
	if p.reuse.Err() != nil {
		return 0, parent
	}
	path := p.reuse.path
	p.server.Add(hitTokens(hit, r, p.meta.BlockSize), r.InputTokens)
	p.prefixes.grow(p.reuse.ids.next)
	p.prefixes.beyond = p.reuse.ids.beyond()
	if hit > 0 && !p.prefixes.beyond {
		parent, _ = p.prefixes.touched(path[hit-1])
	}
	found := p.reuse.plain
	for _, h := range sets {
		h.hit.Add(int64(hit), 1)
		h.fresh.Add(int64(len(path)-hit), 1)
		for i, depth := range found.depths {
			if weight, ok := p.prefixes.kept(path[i]); ok {
				if at, ok := p.prefixes.touched(path[i]); ok {
					h.reuseTime.Add(r.ArrivalNS-at, weight)
				}
			}
			if depth > 0 {
				h.distance.Add(depth, found.weight)
			}
		}
	}
	p.prefixes.carry(r, path, hit, &p.working, p.arrivals.first)
	if p.routing != nil {
		p.routing.Add(r, path)
	}
	return hit, parent
}

// addTraffic counts the row over time, with its groups, and where its cached
// tokens were recorded among those that are compared with them.
func (p *Profiler) addTraffic(r *trace.Request, hit int) {
	t := traffic{load: 1, input: int64(r.InputTokens), output: int64(r.OutputOr(0))}
	if len(r.Blocks) > 0 && p.meta.BlockSize >= 1 {
		known := hitTokens(hit, r, p.meta.BlockSize)
		t.requests, t.references, t.hits = 1, int64(len(r.Blocks)), int64(hit)
		t.promptTokens, t.hitTokens = t.input, int64(known)
		t.serverTokens = int64(block.Reusable(int(known), int(r.InputTokens), p.opts.ServerBlock))
	}
	if r.ReuseSource == trace.ReuseInferred {
		p.inferred.add(r, p.reuse.withOutputs, p.meta.BlockSize)
	}
	p.overTime.add(&p.now.epoch, &t)
	p.groups.add(&p.now, r, &t)
	switch {
	case t.requests == 0 || r.CachedTokens == nil:
	case fleet.Recorded(r):
		p.recorded.Requests++
		p.recorded.PromptTokens += t.promptTokens
		p.recorded.HitTokens += t.hitTokens
		p.recorded.ServerTokens += t.serverTokens
		p.recorded.CachedTokens += int64(*r.CachedTokens)
	case *r.CachedTokens > r.InputTokens:
		p.overCached++
	}
}

// Histograms returns the distributions of the rows so far, in the order of
// [HistogramSet.Rows]. Once the LRU curve is sampled, so are the distances of
// reuse: their counts then are estimates.
func (p *Profiler) Histograms() []HistogramRow {
	var s HistogramSet
	s.Merge(&p.histograms)
	if depth := p.prefixes.common(p.rows - p.failed - p.blockless); depth > 0 {
		s.Get(MetricCommonBlocks, "").Add(depth, p.rows-p.failed-p.blockless)
	}
	p.sessions.eachTurns(func(turns, weight int64) { s.Get(MetricTurns, "").Add(turns, weight) })
	return s.Rows()
}
