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
	tuples  []int32 // of the model
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

// full is the depth of the last full block of request r.
func (p *population) full(r int32) int32 {
	if int(p.tail[r]) < p.size {
		return p.forest.length[r] - 1
	}
	return p.forest.length[r]
}

// placeTuple adds the request of tuple t in a domain.
func (p *population) placeTuple(t *tuple, dom uint16) {
	d := &p.domains[dom]
	b := p.base(t, d)
	r := int32(len(p.tail))
	p.forest.appendRequest(b.run, b.hit, b.fresh, p.taken)
	p.tail = append(p.tail, b.tail)
	p.hit = append(p.hit, b.hit)
	p.owner = append(p.owner, b.owner)
	p.domain = append(p.domain, dom)
	p.seat = append(p.seat, int32(len(d.members)))
	chain := int32(0)
	switch {
	case p.sourced:
		chain = p.sessions.enterSession(t, r, b.owner, func(last int32) int64 { return p.hurry(t, r, last) })
	case t.category > global && b.owner != none:
		chain = p.chain[b.owner] + 1
	}
	p.chain = append(p.chain, chain)
	p.overlap = append(p.overlap, p.follow(t, d, r, b))
	d.members = append(d.members, r)
	full := p.full(r)
	d.interior.appendSpan(0, full)
	if full > 0 {
		d.endpoints.addPlace(full, p.seat[r])
	}
	if length := p.forest.length[r]; full < length {
		d.tails.addPlace(length, p.seat[r])
	}
}

// release drops what only placing needs.
func (p *population) release() {
	for i := range p.domains {
		p.domains[i] = domain{trunk: p.domains[i].trunk}
	}
	p.seat, p.chain = nil, nil
	p.sessions = sessions{session: p.session}
	p.forest.low, p.forest.steps, p.forest.stack = nil, nil, weights{}
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
		trunk := int32(len(d.trunk))
		b.hit = min(t.trunk, length, trunk)
		if b.hit == trunk && b.hit < length && b.hit > 0 && int(d.trunkTail) != p.size {
			b.hit-- // nothing hangs on a partial block
		}
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
		// A duplicate has the length of what it repeats.
		switch {
		case b.hit == p.forest.length[b.owner]:
			b.tail = p.tail[b.owner]
		case int(b.hit) == len(d.trunk) && d.trunk[b.hit-1] == b.run:
			b.tail = d.trunkTail
		default:
			b.tail = int32(p.size)
		}
	}
	return b
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
	d.interior.setSpan(int(p.seat[r]), low, full)
	if before < full && full <= low {
		d.endpoints.dropPlace(full, func(seat int32) bool { return p.forest.low[d.members[seat]] < full })
	}
	if full < length && before < length && length <= low {
		d.tails.dropPlace(length, func(seat int32) bool { return p.forest.low[d.members[seat]] < length })
	}
}

// sessions are those of one population, where the source told them: who joined
// which, and when each was active.
type sessions struct {
	session []int32 // by request; none without one
	turns   []int32 // by session: requests so far
	active  weights // by request: 1 when it is the latest of its session
	last    []int32 // by session: its latest request
}

// enterSession puts request r, placed below owner, into the session that its tuple asks
// for: that of the request that it extends, or else one that was active as long
// ago; hurry is the cost of following a request so soon. It returns the turn.
func (s *sessions) enterSession(t *tuple, r, owner int32, hurry func(last int32) int64) int32 {
	session := int32(none)
	switch t.join {
	case joinless:
		s.session = append(s.session, none)
		s.active.pushWeight(0)
		return 0
	case byTree:
		if owner != none {
			session = s.session[owner]
		}
	case byRecency:
		session = s.recent(t, hurry)
	}
	if session == none {
		session = int32(len(s.turns))
		s.turns, s.last = append(s.turns, 0), append(s.last, none)
	} else {
		s.active.addWeight(int(s.last[session]), -1)
	}
	s.session = append(s.session, session)
	s.active.pushWeight(1)
	s.last[session] = r
	s.turns[session]++
	return s.turns[session] - 1
}

// recent looks among the sessions that were active about as long ago as the
// tuple says for the one that has most nearly as many turns.
func (s *sessions) recent(t *tuple, hurry func(last int32) int64) int32 {
	n := s.active.total
	if n == 0 {
		return none
	}
	back := max(1, min(t.back, n))
	best, found := int64(unfound), int32(none)
	for o := range int64(candidates) {
		for _, b := range [2]int64{back + o, back - o} {
			if b < 1 || b > n {
				continue
			}
			session := s.session[s.active.placeAt(b)]
			cost := hurry(s.last[session]) + abs(log2(b)-log2(back)) + turnWeight*abs(log2(int64(s.turns[session])+1)-log2(int64(t.turn)+1))
			if cost < best {
				best, found = cost, session
			}
		}
	}
	return found
}
