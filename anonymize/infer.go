package anonymize

import (
	"maps"
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/block"
)

// Where a source has neither text nor hashes, the cached tokens that the server reported
// and the sessions tell something of what prompts share. An inferrer makes prefix blocks
// of that, for rows in order of arrival:
//
//   - A trunk for each cache domain (model and adapter): what the first turns of several
//     sessions found in the cache, and took from no turn before.
//   - A chain for each session: a turn that is at least as long as the one before and its
//     answer begins with both. One that is shorter was compacted or cut: it keeps the
//     trunk, or what the server found.
//   - A fresh rest.
//
// What the server found is a lower bound: every prompt shares at least that with an
// earlier one, where there was an earlier one that long. What a server did not find may
// have been there all the same, and evicted; so the growth of a session counts also where
// the server found nothing. What sessions share beyond the trunk, such as documents,
// nobody can know.
type inferrer struct {
	size    int
	next    uint64 // id of the next block
	limit   uint64
	domains map[[2]string]*inferredDomain
	young   map[int64][]*inferredChain // by session, the latest last
	old     map[int64][]*inferredChain // of sessions that were not seen for long
	stopped bool                       // there were too many blocks
}

// An inferredDomain is what prompts of a model share.
type inferredDomain struct {
	trunks []int    // lengths that several sessions begin with, ascending
	common bool     // most sessions that could begin with the trunk do
	trunk  []uint64 // ids of its full blocks
	used   int64    // when the trunk was last used; 0 before
	recent []*inferredChain
}

// An inferredChain is a prompt with its answer.
type inferredChain struct {
	row       int64
	input     int
	length    int // with the answer
	reasoning int
	ids       []uint64 // of full blocks
}

const (
	trunkSessions  = 3 // that begin with the same cached tokens, for a trunk
	trunkLife      = 5 * time.Minute
	recentChains   = 64          // of a domain, to look for what a server found
	sessionChains  = 4           // of a session, to look for parents
	youngSessions  = 1 << 12     // before the others are old
	inferredBlocks = maxDistinct // that are made at the most
)

// A trunkSurvey finds the trunks: it takes all rows before any is filled.
type trunkSurvey struct {
	first   map[[2]string]map[int]int // first turns by domain and cached tokens
	seen    map[int64]bool
	without int64 // rows that have no blocks
	counted int64 // of these, that have cached tokens
	found   int64 // above 0
}

func (s *trunkSurvey) note(r *trace.Request) {
	if r.Status == trace.StatusFailed || len(r.Blocks) > 0 {
		return
	}
	s.without++
	if r.CachedTokens == nil {
		return
	}
	s.counted++
	if *r.CachedTokens > 0 {
		s.found++
	}
	if r.Session == nil || s.seen[*r.Session] {
		return
	}
	if s.first == nil {
		s.first, s.seen = map[[2]string]map[int]int{}, map[int64]bool{}
	}
	s.seen[*r.Session] = true
	domain := [2]string{r.Model, r.Adapter}
	if s.first[domain] == nil {
		s.first[domain] = map[int]int{}
	}
	s.first[domain][int(*r.CachedTokens)]++
}

// tells reports whether the rows tell enough: half of those without blocks say what was
// cached, and something was.
func (s *trunkSurvey) tells() bool { return s.found > 0 && 2*s.counted >= s.without }

// newInferrer makes an inferrer whose blocks are numbered from next.
func (s *trunkSurvey) newInferrer(size int, next uint64) *inferrer {
	f := &inferrer{size: size, next: next, limit: next + inferredBlocks, domains: map[[2]string]*inferredDomain{},
		young: map[int64][]*inferredChain{}, old: map[int64][]*inferredChain{}}
	for domain, counts := range s.first {
		d := &inferredDomain{}
		all, with := 0, 0
		for _, cached := range slices.Sorted(maps.Keys(counts)) {
			n := counts[cached]
			if cached > 0 && n >= trunkSessions {
				d.trunks = append(d.trunks, cached)
			}
			if all += n; len(d.trunks) > 0 {
				with += n
			}
		}
		d.common = 2*with >= all
		f.domains[domain] = d
	}
	return f
}

// fill gives a row its blocks, unless it has some.
func (f *inferrer) fill(row int64, r *trace.Request) {
	if r.Status == trace.StatusFailed || len(r.Blocks) > 0 || r.InputTokens <= 0 || f.stopped {
		return
	}
	name := [2]string{r.Model, r.Adapter}
	d := f.domains[name]
	if d == nil {
		d = &inferredDomain{}
		f.domains[name] = d
	}
	input, cached := int(r.InputTokens), 0
	if r.CachedTokens != nil {
		cached = min(int(*r.CachedTokens), input)
	}
	from, kept := f.begin(d, r, input, cached)
	c := &inferredChain{row: row, input: input, length: input + max(int(r.OutputTokens), 0)}
	if r.ReasoningTokens != nil {
		c.reasoning = int(*r.ReasoningTokens)
	}
	if f.next+uint64(block.Count(c.length, f.size))+1 > f.limit {
		f.stopped = true
		return
	}
	c.ids = slices.Clone(from[:min(block.Full(min(kept, input), f.size), len(from))])
	c.ids = f.grow(c.ids, block.Full(input, f.size))
	r.Blocks = slices.Clone(c.ids)
	if input%f.size > 0 {
		r.Blocks = f.grow(r.Blocks, len(r.Blocks)+1)
	}
	if full := len(c.ids); r.OutputTokens > 0 {
		c.ids = f.grow(c.ids, block.Full(c.length, f.size))
		r.OutputBlocks = slices.Clone(c.ids[full:])
		if c.length%f.size > 0 {
			r.OutputBlocks = f.grow(r.OutputBlocks, len(r.OutputBlocks)+1)
		}
	}
	r.ReuseSource = trace.ReuseInferred
	f.keep(d, r, c)
}

// grow adds fresh blocks up to n.
func (f *inferrer) grow(ids []uint64, n int) []uint64 {
	for len(ids) < n {
		ids = append(ids, f.next)
		f.next++
	}
	return ids
}

// begin returns what a prompt begins with, as ids of full blocks, and how many tokens of
// that it keeps.
func (f *inferrer) begin(d *inferredDomain, r *trace.Request, input, cached int) (from []uint64, kept int) {
	trunk := d.trunkOf(input, cached, r.ArrivalNS)
	if p := f.parent(r, input, cached); p != nil {
		kept = p.input
		switch {
		case input >= p.length && p.reasoning == 0:
			kept = p.length
		case input < p.input: // compacted, cut, or another agent
			kept = 0
		}
		if kept = max(kept, min(cached, p.length)); kept >= max(trunk, cached) {
			return p.ids, kept
		}
	}
	if cached > trunk {
		for i := len(d.recent) - 1; i >= 0; i-- {
			if d.recent[i].length >= cached {
				return d.recent[i].ids, cached
			}
		}
	}
	d.trunk = f.grow(d.trunk, block.Full(trunk, f.size))
	if trunk > 0 {
		d.used = r.ArrivalNS
	}
	return d.trunk, trunk
}

// trunkOf is how long the trunk is that a prompt without a turn before begins with. One of
// which nothing was cached may begin with it all the same, if the trunk was not there any
// more, or if most do.
func (d *inferredDomain) trunkOf(input, cached int, at int64) (n int) {
	if len(d.trunks) == 0 || input < d.trunks[0] {
		return 0
	}
	if cached == 0 {
		if d.common || d.used == 0 || at-d.used > int64(trunkLife) {
			n = d.trunks[0]
		}
		return n
	}
	for _, length := range d.trunks {
		if length <= cached {
			n = length
		}
	}
	return n
}

// parent is the turn that a prompt goes on from: the last that had to be done before it,
// or the one of its session that explains most of it.
func (f *inferrer) parent(r *trace.Request, input, cached int) (best *inferredChain) {
	if r.Session == nil {
		return nil
	}
	chains := f.young[*r.Session]
	if chains == nil {
		chains = f.old[*r.Session]
	}
	if len(r.Parents) > 0 {
		last := slices.Max(r.Parents)
		for _, c := range chains {
			if c.row == last {
				return c
			}
		}
	}
	// The longest that fits, the latest of these; else the latest.
	for _, c := range slices.Backward(chains) {
		switch {
		case best == nil, c.length <= input && best.length > input, c.length <= input && c.length > best.length && c.length >= cached:
			best = c
		}
	}
	return best
}

// keep remembers a prompt for those that go on from it.
func (f *inferrer) keep(d *inferredDomain, r *trace.Request, c *inferredChain) {
	d.recent = append(d.recent, c)
	if len(d.recent) > 2*recentChains {
		d.recent = slices.Clone(d.recent[recentChains:])
	}
	if r.Session == nil {
		return
	}
	id := *r.Session
	chains, young := f.young[id]
	if !young {
		if chains = f.old[id]; len(f.young) >= youngSessions {
			f.old, f.young = f.young, map[int64][]*inferredChain{}
		}
	}
	if chains = append(chains, c); len(chains) > sessionChains {
		chains = slices.Clone(chains[1:])
	}
	f.young[id] = chains
}
