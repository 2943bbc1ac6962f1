package profile

import "time"

// A SteadyState is what the requests from the warm-up on found. Everything
// earlier is known to them, but only they are counted: the first requests of a
// trace cannot hit what came before it, so the ratios over all of it understate
// those of a server that has long been running.
//
// Only the warm-up is taken away by this. Where traffic ramps up or follows the
// hours of the day, the later requests are also other requests than the earlier
// ones, and the two sets of ratios differ for that reason as well.
type SteadyState struct {
	// WarmUpS is the time in seconds from the first arrival to the first instant
	// that counts. Unless an option sets it, it is half of the duration, rounded
	// by at most a thousandth of the duration to where sums were kept apart; this
	// is the edge itself, and the sums are exact.
	WarmUpS          float64   `json:"warm_up_s"`
	Requests         int64     `json:"requests"` // load with blocks, from then on
	ReferencesBlocks int64     `json:"references_blocks"`
	HitBlocks        int64     `json:"hit_blocks"`
	HitRatios        HitRatios `json:"hit_ratios"` // of a cache without limit
	// LRUCurve has the capacities of the curve over the whole trace, in the same
	// order. It is null when no request is left.
	LRUCurve []CurvePoint `json:"lru_curve"`
}

// sums are what the hit ratios of some requests are made of.
type sums struct {
	requests, references, hits int64
	tokens, hitTokens          int64
	fullReferences, fullHits   int64
	shares                     float64 // sum over requests of hit/blocks
}

func (s *sums) add(o *sums) {
	s.requests += o.requests
	s.references += o.references
	s.hits += o.hits
	s.tokens += o.tokens
	s.hitTokens += o.hitTokens
	s.fullReferences += o.fullReferences
	s.fullHits += o.fullHits
	s.shares += o.shares
}

func (s *sums) hitRatios() HitRatios {
	r := HitRatios{
		ByBlock:        share(s.hits, s.references),
		ByToken:        share(s.hitTokens, s.tokens),
		FullBlocksOnly: share(s.fullHits, s.fullReferences),
	}
	if s.requests > 0 {
		r.MeanOverRequests = new(s.shares / float64(s.requests))
	}
	return r
}

// A span is what the requests of one stretch of time found. Its hits are also
// counted by listed capacity: each at the smallest that would have held the
// block, and at the end those that none would.
type span struct {
	sums
	within []tally
}

// A tally counts hits.
type tally struct{ blocks, tokens int64 }

func newSpan(capacities int) *span { return &span{within: make([]tally, capacities+1)} }

func (s *span) add(o *span) {
	s.sums.add(&o.sums)
	for i, n := range o.within {
		s.within[i].blocks += n.blocks
		s.within[i].tokens += n.tokens
	}
}

// curve returns the hits of caches of the first n listed capacities. What a
// sample has too many or too few is corrected as in [reusePass.within].
func (s *span) curve(n int) (blocks, tokens []int64) {
	sum := tally{s.hits, s.hitTokens}
	for _, t := range s.within {
		sum.blocks -= t.blocks
		sum.tokens -= t.tokens
	}
	for _, t := range s.within[:n] {
		sum.blocks += t.blocks
		sum.tokens += t.tokens
		blocks = append(blocks, min(max(sum.blocks, 0), s.hits))
		tokens = append(tokens, min(max(sum.tokens, 0), s.hitTokens))
	}
	return blocks, tokens
}

// summary describes the steady state, its curve at the given first ones of the
// listed capacities.
func (t *timeline) summary(capacities []capacity, kvBytes int64) SteadyState {
	warmUp, s := t.steady()
	state := SteadyState{WarmUpS: float64(warmUp) / second, Requests: s.requests, ReferencesBlocks: s.references,
		HitBlocks: s.hits, HitRatios: s.hitRatios()}
	if s.requests > 0 {
		hits, tokens := s.curve(len(capacities))
		state.LRUCurve = append(s.points(capacities, kvBytes, hits, tokens), s.unlimited())
	}
	return state
}

// A timeline finds the sums of the second half of a trace in one pass, though
// where that begins shows only at the end. It keeps the sums of each span of its
// epoch, about 1 MB.
//
// With a warm-up that is given there are two spans: before its end, and after.
type timeline struct {
	listed []capacity
	warmUp *time.Duration

	epoch
	spans []*span // from first on; nil where there were no requests
	spare []*span // empty ones
}

// arrive moves the clock to ns.
func (t *timeline) arrive(ns int64) {
	t.epoch.arrive(ns)
	for t.warmUp == nil && t.elapsed()>>t.shift >= maxSpans {
		t.fold()
	}
}

// now returns the span that the clock is in.
func (t *timeline) now() *span {
	var i uint64
	if t.warmUp == nil {
		i = t.elapsed() >> t.shift
	} else if t.elapsed() >= uint64(max(*t.warmUp, 0)) {
		i = 1
	}
	if n := int(i) + 1 - len(t.spans); n > 0 {
		t.spans = append(t.spans, make([]*span, n)...)
	}
	if t.spans[i] == nil {
		if n := len(t.spare); n > 0 {
			t.spans[i], t.spare = t.spare[n-1], t.spare[:n-1]
		} else {
			t.spans[i] = newSpan(len(t.listed))
		}
	}
	return t.spans[i]
}

// fold makes one span of every two.
func (t *timeline) fold() {
	t.shift++
	for i, s := range t.spans {
		t.spans[i] = nil
		switch into := &t.spans[i/2]; {
		case s == nil:
		case *into == nil:
			*into = s
		default:
			(*into).add(s)
			clear(s.within)
			s.sums = sums{}
			t.spare = append(t.spare, s)
		}
	}
	t.spans = t.spans[:(len(t.spans)+1)/2]
}

// steady returns the sum of the spans from the warm-up on, and its end in ns:
// the edge that is nearest to the middle of the time so far.
func (t *timeline) steady() (warmUp uint64, sum *span) {
	sum = newSpan(len(t.listed))
	edge := uint64(1)
	if t.warmUp != nil {
		warmUp = uint64(max(*t.warmUp, 0))
	} else {
		edge = t.middle()
		warmUp = edge << t.shift
	}
	for _, s := range t.spans[min(edge, uint64(len(t.spans))):] {
		if s != nil {
			sum.add(s)
		}
	}
	return warmUp, sum
}

func (t *timeline) clone() timeline {
	c := *t
	c.spans, c.spare = make([]*span, len(t.spans)), nil
	for i, s := range t.spans {
		if s != nil {
			c.spans[i] = newSpan(len(t.listed))
			c.spans[i].add(s)
		}
	}
	return c
}
