package synth

// A population is one independent forest of sessions while it grows. It places
// tuples one after the other: finds the node that a tuple extends, by depth,
// class and stack distance, and adds what is fresh below it.
//
// Each domain has a trunk: the prefix that most of its requests carry, such as a
// system prompt. Where a tuple's known blocks are all on it, there is nothing to
// search. By distance alone such tuples would now and then take the head of
// another prompt, which then is a trunk beside the first, and the prefix that
// most requests carry would come apart.
type population struct {
	size    int // tokens in a block; 0 when there are none
	forest  forest
	domains []domain // by number

	// By request.
	times   []int64 // of arrivals, by the model's clock, of all requests to come as well
	tail    []int32 // tokens in the last block
	hit     []int32 // known blocks
	owner   []int32 // the request that last touched the deepest of them, or none
	overlap []int32 // leading blocks on the trunk
	domain  []uint16
	seat    []int32 // its place among those of its domain
	chain   []int32 // how many requests it builds on, one on the other; of the source's sessions, the turn
	sourced bool    // the tuples join the source's own sessions
	sessions
}

// Settings of the search, which are part of the output. They were chosen on the
// published Mooncake conversation trace: with a depthWeight of 2 hits fell short
// by 0.2 % of the blocks, with 128 the distances suffered; without a
// chainWeight one session in twenty gets another length, and twice as much
// costs the curve of hit ratios a tenth of its accuracy.
const (
	candidates  = 32                  // looked at on each side of the distance, for each depth and class
	depthWeight = 8 * logOne * 10 / 7 // cost of a depth that is off by its whole: 8 in natural logarithms
	chainWeight = 2                   // divides the cost of a chain of turns of another length
	turnWeight  = 2                   // multiplies the cost of another turn of a session of the source
	hurryWeight = 2                   // multiplies the cost of a turn that comes before its pause is over
)

// full is the depth of the last full block of request r.
func (p *population) full(r int32) int32 {
	if int(p.tail[r]) < p.size {
		return p.forest.length[r] - 1
	}
	return p.forest.length[r]
}

// place adds the request of tuple t in a domain.
func (p *population) place(t *tuple, dom uint16) {
	d := &p.domains[dom]
	b := p.base(t, d)
	r := int32(len(p.tail))
	p.forest.append(b.run, b.hit, b.fresh, p.taken)
	p.tail = append(p.tail, b.tail)
	p.hit = append(p.hit, b.hit)
	p.owner = append(p.owner, b.owner)
	p.domain = append(p.domain, dom)
	p.seat = append(p.seat, int32(len(d.members)))
	p.chain = append(p.chain, p.links(t, r, b.owner))
	p.overlap = append(p.overlap, p.follow(t, d, r, b))
	d.members = append(d.members, r)
	full := p.full(r)
	d.interior.append(0, full)
	if full > 0 {
		d.endpoints.add(full, p.seat[r])
	}
	if length := p.forest.length[r]; full < length {
		d.tails.add(length, p.seat[r])
	}
}

// links counts what request r builds on.
func (p *population) links(t *tuple, r, owner int32) int32 {
	switch {
	case p.sourced:
		return p.sessions.enter(t, r, owner, func(last int32) int64 { return p.hurry(t, r, last) })
	case t.category > global && owner != none:
		return p.chain[owner] + 1
	}
	return 0
}

// hurry is the cost of letting request r, which thinks or waits for tools
// before it comes, follow request last: how much longer that takes than the time
// between the two, by logarithms.
func (p *population) hurry(t *tuple, r, last int32) int64 {
	if t.pause == nil {
		return 0
	}
	pause := int64(0)
	for _, ns := range [...]*int64{t.pause.think, t.pause.tool} {
		if ns != nil {
			pause = max(pause, *ns)
		}
	}
	return hurryWeight * max(0, log2(pause)-log2(p.times[r]-p.times[last]))
}

// A base is the node that a request extends, and by what.
type base struct {
	run, owner int32 // none without a known block
	hit, fresh int32
	tail       int32
}

// base finds the node that t extends: where all that is known lies on the trunk,
// or nothing else was found, the last node there that t has.
func (p *population) base(t *tuple, d *domain) base {
	b := base{run: none, owner: none, tail: t.tail}
	length := t.hit + t.fresh
	f := found{owner: none}
	if t.hit > t.trunk {
		f = p.find(d, t)
	}
	if f.owner == none {
		// Even a tuple that knew less, since it was the first of the trace.
		b.hit = p.onTrunk(d, min(t.trunk, length), length)
		if b.fresh = length - b.hit; b.hit > 0 {
			b.run = d.trunk[b.hit-1]
			b.owner = p.forest.owner(b.run, b.hit)
		}
	} else {
		b.owner, b.hit, b.fresh = f.owner, f.depth, t.fresh
		b.run = p.forest.runAt(p.forest.leaf[b.owner], b.hit)
		if t.fresh > 0 && max(b.hit-t.hit, t.hit-b.hit) > t.hit/10 {
			// What is missing of the hit is made up for, and what is too much,
			// so that the length stays; small errors are not, so that depth and
			// fresh blocks keep their correlation.
			b.fresh = length - b.hit
		}
	}
	if b.fresh == 0 && b.hit > 0 {
		b.tail = p.tokens(d, b) // a duplicate has the length of what it repeats
	}
	return b
}

// onTrunk is the depth of the last node of the trunk that a prompt of some
// length has, which follows it so far; 0 for none.
func (p *population) onTrunk(d *domain, follows, length int32) int32 {
	n := int32(len(d.trunk))
	if h := min(follows, n); h < n || h == length || h == 0 || int(d.trunkTail) == p.size {
		return h
	}
	return n - 1 // nothing hangs on a partial block
}

// tokens is how many tokens the block at the end of a known path has.
func (p *population) tokens(d *domain, b base) int32 {
	switch {
	case b.hit == p.forest.length[b.owner]:
		return p.tail[b.owner]
	case int(b.hit) == len(d.trunk) && d.trunk[b.hit-1] == b.run:
		return d.trunkTail
	}
	return int32(p.size)
}

// follow returns how many leading blocks of request r, placed at b, are on the
// trunk. Where the tuple follows it further than it goes yet, it grows.
func (p *population) follow(t *tuple, d *domain, r int32, b base) int32 {
	if b.run != none && !(b.hit <= int32(len(d.trunk)) && d.trunk[b.hit-1] == b.run) {
		return p.overlap[b.owner] // it left the trunk where its base did
	}
	length := p.forest.length[r]
	whole := len(d.trunk) == 0 || int(d.trunkTail) == p.size
	if int(b.hit) < len(d.trunk) || !whole {
		return b.hit
	}
	to := max(min(t.trunk, length), b.hit)
	for len(d.trunk) < int(to) {
		d.trunk = append(d.trunk, p.forest.leaf[r])
		d.trunkTail = int32(p.size)
	}
	if to == length && b.fresh > 0 {
		d.trunkTail = p.tail[r]
	}
	return to
}

// taken keeps the index true when a request lost nodes.
func (p *population) taken(r, before int32) {
	low, full, length := p.forest.low[r], p.full(r), p.forest.length[r]
	d := &p.domains[p.domain[r]]
	d.interior.set(int(p.seat[r]), low, full)
	if before < full && full <= low {
		d.endpoints.drop(full, func(seat int32) bool { return p.forest.low[d.members[seat]] < full })
	}
	if full < length && before < length && length <= low {
		d.tails.drop(length, func(seat int32) bool { return p.forest.low[d.members[seat]] < length })
	}
}
