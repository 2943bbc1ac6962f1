package synth

// A population is one independent forest of sessions while it grows. It places requests
// one after the other: each builds on the prompt of its parent, whatever that became.
//
// What many sessions share, such as a system prompt, is a template, which grows with the first
// requests that follow it.
type population struct {
	size      int // tokens in a block; 0 when there are none
	forest    forest
	templates []template // of the model
	stems     map[stemKey]*stem

	// By request.
	times    []int64 // of arrivals, by the model's clock, of all requests to come as well
	places   []int32 // of the model
	tail     []int32 // tokens in the last block
	hit      []int32 // known blocks
	begin    []int32 // its own blocks begin behind this depth
	owner    []int32 // the request that last touched the deepest known block, or none
	template []int32 // that it follows, or its parent does, or none
	follows  []int32 // leading blocks on that
	overlap  []int32 // leading blocks that all populations share
	session  []int32 // none without one; nil where the source told no sessions
	prior    []int32 // the request whose session it joined, or none; nil as well
	told     int32   // sessions so far

	taken func(owner, n int32) // is told of nodes that change their last toucher; may be nil
}

// full is the depth of the last full block of request r.
func (p *population) full(r int32) int32 {
	if int(p.tail[r]) < p.size {
		return p.forest.length[r] - 1
	}
	return p.forest.length[r]
}

// tokens is how long the prompt of request r is.
func (p *population) tokens(r int32) int64 {
	return max(0, int64(p.forest.length[r])-1)*int64(p.size) + int64(p.tail[r])
}

// A base is the node that a request extends, and by what.
type base struct {
	run, owner int32 // none without a known block
	hit, fresh int32
	tail       int32
}

// addPlace adds the request of a place in a pass. parent and after are the requests of
// this population that the place builds on and whose session it joins, or none.
func (p *population) addPlace(t *place, pass int64, parent, after int32) {
	if parent == none {
		p.add(t, pass, p.open(t, pass), none)
	} else {
		p.add(t, pass, p.extend(t, parent), parent)
	}
	if p.session == nil {
		return
	}
	if t.join == byParent {
		after = parent
	}
	session := int32(none)
	switch {
	case t.join == joinless:
		after = none
	case t.join != begins && after != none:
		session = p.session[after]
	}
	if session == none && t.join != joinless {
		after = none
		session = p.told
		p.told++
	}
	p.session, p.prior = append(p.session, session), append(p.prior, after)
}

// add appends the request of a place at a base.
func (p *population) add(t *place, pass int64, b base, parent int32) {
	r := int32(len(p.tail))
	p.forest.appendRequest(b.run, b.hit, b.fresh, p.taken)
	p.tail = append(p.tail, b.tail)
	p.hit = append(p.hit, b.hit)
	p.owner = append(p.owner, b.owner)
	if parent != none {
		p.begin = append(p.begin, b.hit)
		p.template = append(p.template, p.template[parent])
		p.follows = append(p.follows, min(b.hit, p.follows[parent])) // it left the template where its parent did
		p.overlap = append(p.overlap, min(b.hit, p.overlap[parent]))
		return
	}
	p.begin = append(p.begin, min(t.trunk, b.hit+b.fresh))
	follows := p.follow(t, pass, r, b)
	p.template, p.follows = append(p.template, t.template), append(p.follows, follows)
	p.overlap = append(p.overlap, p.sharedDepth(t.template, follows))
}

// open is the base of a place that builds on nothing but a template: the last node there
// that it has.
func (p *population) open(t *place, pass int64) base {
	b := base{run: none, owner: none, tail: t.tail}
	length := t.trunk + t.fresh
	depth, tail := p.grown(t.template, pass)
	b.hit = min(t.trunk, depth)
	if b.hit == depth && b.hit < length && b.hit > 0 && int(tail) != p.size {
		b.hit-- // nothing hangs on a partial block
	}
	if b.fresh = length - b.hit; b.hit > 0 {
		b.run = p.runOf(t.template, pass, b.hit)
		b.owner = p.forest.owner(b.run, b.hit)
		if b.fresh == 0 { // it has the length of what it repeats
			if b.tail = int32(p.size); b.hit == depth {
				b.tail = tail
			}
		}
	}
	return b
}

// follow returns how many leading blocks of request r, which opens at b, are on its
// template. Where the place follows it further than it goes yet, it grows.
func (p *population) follow(t *place, pass int64, r int32, b base) int32 {
	depth, tail := p.grown(t.template, pass)
	if b.hit < depth || int(tail) != p.size {
		return b.hit
	}
	length := p.forest.length[r]
	to := max(min(t.trunk, length), b.hit)
	if tail = int32(p.size); to == length && b.fresh > 0 {
		tail = p.tail[r]
	}
	p.grow(t.template, pass, depth, to, p.forest.leaf[r], tail)
	return to
}

// extend is the base of a place that builds on request up: where it leaves, on the
// prompt that up has now, and what it adds.
func (p *population) extend(t *place, up int32) base {
	b := base{run: none, owner: none, hit: p.leave(t, up)}
	size := int64(p.size)
	switch t.class {
	case continues, edits:
		// The growth is that over the parent.
		tokens := max(int64(b.hit)*size+1, p.tokens(up)+int64(t.growth))
		tokens = min(tokens, max(maxBlocks*size, int64(b.hit)*size+1), int64(maxTokens))
		length := (tokens + size - 1) / size
		b.fresh, b.tail = int32(length)-b.hit, int32(tokens-(length-1)*size)
	case branches:
		b.fresh, b.tail = t.fresh, t.tail
	case repeats:
		if b.tail = int32(p.size); b.hit == p.forest.length[up] {
			b.tail = p.tail[up]
		}
	}
	if b.hit > 0 {
		b.run = p.forest.runAt(p.forest.leaf[up], b.hit)
		b.owner = p.forest.owner(b.run, b.hit)
	}
	return b
}

// maxTokens bounds what a prompt may grow to.
const maxTokens = 1<<31 - 1 - 1<<21

// leave is how many leading blocks of request up a place has. A part of the path is
// mapped onto what it became: the part that up shares, and its own behind that; an edit
// leaves as far from the end as it did.
func (p *population) leave(t *place, up int32) int32 {
	length, full, begin, over := p.forest.length[up], p.full(up), min(p.begin[up], p.full(up)), p.follows[up]
	hit := full
	switch {
	case t.class == repeats && (t.hit >= t.parentLength || full == 0): // a part of less than a block is none
		return length
	case t.class == continues:
		return full
	case t.class == repeats:
		hit = scaled(t.hit, full, t.parentFull)
	case t.hit <= t.parentHit:
		hit = scaled(t.hit, begin, t.parentHit)
	case t.class == edits:
		hit = max(begin, full-(t.parentFull-t.hit))
	default:
		hit = begin + scaled(t.hit-t.parentHit, full-begin, t.parentFull-t.parentHit)
	}
	if t.class != repeats && full > over+1 {
		hit = min(hit, full-1)
	}
	return min(full, max(hit, over+1))
}

// scaled is part·to/from, rounded to the nearest.
func scaled(part, to, from int32) int32 {
	if from <= 0 {
		return 0
	}
	return int32((int64(part)*int64(to)*2 + int64(from)) / (2 * int64(from)))
}

// release drops what only placing needs.
func (p *population) release() {
	p.begin, p.follows, p.stems, p.taken = nil, nil, nil, nil
	p.forest.steps = nil
}
