package anonymize

import (
	"slices"
	"time"

	"reprise/trace"
	"reprise/trace/block"
)

// Where a source has neither text nor hashes, the cached tokens that the server reported
// and the sessions tell something of what prompts share. An inferrer makes prefix blocks
// of that, for rows in order of arrival:
//
//   - A trunk for each cache domain (model, adapter and salt): what the first turns of several
//     sessions found in the cache, and took from no turn before. Where entries name what
//     they begin with, each name has a trunk: see [encoder.nameTrunk].
//   - A chain for each session: a turn that is at least as long as the one before and its
//     answer begins with both. One that is shorter was compacted, cut or is the first of
//     another agent: it keeps the trunk, or what the server found.
//   - A fresh rest.
//
// What the server found is a lower bound: every prompt shares at least that with an
// earlier one, where there was an earlier one that long. What a server did not find may
// have been there all the same, and evicted; so the growth of a session counts also where
// the server found nothing. What sessions share beyond the trunk, such as documents,
// nobody can know.
//
// An inferrer holds some 130 bytes for each turn of up to 8,192 sessions.
type inferrer struct {
	size    int
	next    uint64 // id of the next block
	limit   uint64
	apart   bool // a prompt shares blocks with those of its user alone
	told    map[owner]*told
	domains map[trunkDomain]*inferredDomain
	young   map[int64][]*inferredChain // by session, the latest last
	old     map[int64][]*inferredChain // of sessions that were not seen for long
	period  int64                      // since the epoch; with apart, sessions are old by the clock
	stopped bool                       // there were too many blocks
}

// An inferredDomain is what prompts of a model share.
type inferredDomain struct {
	trunks []int  // lengths that several sessions begin with, ascending
	common bool   // most sessions that could begin with the trunk do
	named  bool   // all do: their entries say so
	trunk  idRuns // of its full blocks
	used   int64  // when the trunk was last used; 0 before
	recent []*inferredChain
}

// An inferredChain is a prompt with its answer.
type inferredChain struct {
	of        *inferredDomain
	row       int64
	input     int
	length    int // with the answer
	reasoning int
	ids       idRuns // of full blocks
	continued bool   // a later one begins with all of it
}

// idRuns are ids of blocks in runs that count up: a chain has some two for each turn.
type idRuns []idRun

type idRun struct {
	first uint64
	n     int
}

func (s idRuns) count() (n int) {
	for _, run := range s {
		n += run.n
	}
	return n
}

// leading are the first n ids, or all.
func (s idRuns) leading(n int) (out idRuns) {
	for _, run := range s {
		if run.n = min(run.n, n); run.n > 0 {
			out = append(out, run)
			n -= run.n
		}
	}
	return out
}

// list appends the ids from the one with this index on.
func (s idRuns) list(dst []uint64, from int) []uint64 {
	for _, run := range s {
		for i := min(from, run.n); i < run.n; i++ {
			dst = append(dst, run.first+uint64(i))
		}
		from -= min(from, run.n)
	}
	return dst
}

const (
	trunkSessions = 3 // that begin with the same cached tokens, for a trunk
	trunkLife     = 5 * time.Minute
	recentChains  = 64      // of a domain, to look for what a server found
	sessionChains = 4       // of a session, to look for parents
	youngSessions = 1 << 12 // before the others are old
	youngPeriod   = int64(6 * time.Hour)
)

// fill gives a row its blocks, unless it has some.
func (f *inferrer) fill(row int64, r *trace.Request) {
	if r.Status == trace.StatusFailed || len(r.Blocks) > 0 || r.InputTokens <= 0 || f.stopped {
		return
	}
	name, _ := domainOf(r, f.apart)
	if !f.told[name.of].enough() {
		return
	}
	if f.domains[name] == nil {
		name.cluster = ""
	}
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
	c := &inferredChain{of: d, row: row, input: input, length: input + max(int(r.OutputOr(0)), 0)}
	if r.ReasoningTokens != nil {
		c.reasoning = int(*r.ReasoningTokens)
	}
	if f.next+uint64(block.Count(c.length, f.size))+1 > f.limit {
		f.stopped = true
		return
	}
	c.ids = from.leading(block.Full(min(kept, input), f.size))
	full := block.Full(input, f.size)
	c.ids = f.grow(c.ids, full)
	r.Blocks = c.ids.list(make([]uint64, 0, full+1), 0)
	if input%f.size > 0 {
		r.Blocks = append(r.Blocks, f.next)
		f.next++
	}
	if r.OutputOr(0) > 0 {
		c.ids = f.grow(c.ids, block.Full(c.length, f.size))
		r.OutputBlocks = c.ids.list([]uint64{}, full)
		if c.length%f.size > 0 {
			r.OutputBlocks = append(r.OutputBlocks, f.next)
			f.next++
		}
	}
	r.ReuseSource = trace.ReuseInferred
	f.keep(d, r, c)
}

// grow adds fresh blocks up to n.
func (f *inferrer) grow(ids idRuns, n int) idRuns {
	if missing := n - ids.count(); missing > 0 {
		ids = append(ids, idRun{f.next, missing})
		f.next += uint64(missing)
	}
	return ids
}

// begin returns what a prompt begins with, as ids of full blocks, and how many tokens of
// that it keeps.
func (f *inferrer) begin(d *inferredDomain, r *trace.Request, input, cached int) (from idRuns, kept int) {
	trunk := d.trunkOf(input, cached, r.ArrivalNS)
	if p := f.parent(d, r, input, cached); p != nil {
		kept = p.input
		switch {
		case input >= p.length && p.reasoning == 0:
			kept = p.length
		case input < p.input: // cut, or forked
			kept = 0
		}
		if kept = max(kept, min(cached, p.length)); kept >= max(trunk, cached) {
			p.continued = p.continued || kept >= p.input
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
	for i, length := range d.trunks {
		if length <= cached || i == 0 && d.named {
			n = length
		}
	}
	return n
}

// parent is the turn that a prompt goes on from: of those that had to be done before it or,
// where none of them is held, of its session the one that explains most of it. A call that
// waited for other agents goes on from its own conversation, which is longer than theirs.
func (f *inferrer) parent(d *inferredDomain, r *trace.Request, input, cached int) (best *inferredChain) {
	if r.Session == nil {
		return nil
	}
	chains := f.young[*r.Session]
	if chains == nil {
		chains = f.old[*r.Session]
	}
	awaited := func(c *inferredChain) bool { return c.of == d && slices.Contains(r.Parents, c.row) }
	some := slices.ContainsFunc(chains, awaited)
	// The longest that fits, the latest of these; else the latest.
	for _, c := range slices.Backward(chains) {
		switch {
		case c.of != d, some && !awaited(c):
		case best == nil, c.length <= input && best.length > input, c.length <= input && c.length > best.length &&
			c.length >= cached:
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
		chains = f.old[id]
	}
	// How many sessions others have must not tell when this one is forgotten.
	period := r.ArrivalNS / youngPeriod
	if f.apart && period != f.period || !f.apart && !young && len(f.young) >= youngSessions {
		f.old, f.young, f.period = f.young, map[int64][]*inferredChain{}, period
	}
	if chains = append(chains, c); len(chains) > sessionChains {
		drop := max(0, slices.IndexFunc(chains, func(c *inferredChain) bool { return c.continued }))
		chains = slices.Delete(slices.Clone(chains), drop, drop+1)
	}
	f.young[id] = chains
}
