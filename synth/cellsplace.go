package synth

import (
	"math/rand/v2"

	"reprise/trace"
)

// drawnFrom returns a copy of a model of cells with room for the places of requests that
// its populations draw, each in a stretch of its own.
func (m *Model) drawnFrom(counts []int64) *Model {
	drawn := *m
	drawn.labels, drawn.ends = []label{{stream: none}}, []end{{status: trace.StatusOK}}
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	drawn.places, drawn.templates = make([]place, total), []template{{up: none, shared: true}}
	return &drawn
}

// drawCells returns what adds the next request of population i of a model of cells.
func (g *generator) drawCells(i int, p *population) func(r int) {
	m, first := g.model, 0
	for _, n := range g.counts[:i] {
		first += int(n)
	}
	p.times = m.cells.times(g.stream("arrivals", i), int(g.counts[i]), g.span)
	d := cellPlacer{population: p, model: m, r: g.stream("cells", i)}
	p.taken = d.take
	return func(r int) {
		p.places = append(p.places, int32(first+r))
		d.addRequest(&m.places[first+r])
	}
}

// A cellPlacer finds the prompts that drawn requests build on: by their place in the LRU
// stack of what was generated so far.
//
// A request touches its path from the tail to the head, as vLLM frees blocks, so what is
// left of it in the stack is one stretch of its path: the depths above low, down to its
// length. The stack is then a list of requests with weights, length − low each.
type cellPlacer struct {
	*population
	model *Model
	r     *rand.Rand
	low   []int32 // by request: the depth down to which later ones touched its path
	stack weights // by request: length − low
	chain []int32 // by request: how many requests it builds on, one on the other
}

// Settings of the search, which are part of the output.
const (
	cellReach   = 1024                // requests on each side that are looked at
	depthWeight = 8 * logOne * 10 / 7 // cost of a depth that is off by its whole: 8 in natural logarithms
	chainWeight = 2                   // divides the cost of a chain of turns of another length
	takenWeight = 2 * logOne          // cost of a path that others touched since
	unfound     = 1 << 62             // a cost above all others
)

// take is told what a request lost to the one that is added.
func (c *cellPlacer) take(owner, n int32) {
	c.low[owner] += n
	c.stack.addWeight(int(owner), -int64(n))
}

// distance is the LRU stack distance of the node at a depth of the path of request r,
// which must own it: 1 for the block touched last.
func (c *cellPlacer) distance(r, depth int32) int64 {
	return c.stack.weightAfter(int(r)) + int64(depth-c.low[r])
}

// addRequest draws a request and adds it.
func (c *cellPlacer) addRequest(t *place) {
	d := c.model.cells.request(c.r, c.size)
	parent := int32(none)
	if d.hit > d.trunk {
		parent = c.find(&d)
	}
	*t = c.placeOf(&d, parent)
	chain := int32(0)
	if parent != none && d.category.turns() {
		chain = c.chain[parent] + 1
	}
	c.low, c.chain = append(c.low, 0), append(c.chain, chain)
	c.addPlace(t, 0, parent, none)
	c.stack.pushWeight(int64(c.forest.length[len(c.tail)-1]))
}

// placeOf makes a place of a request that builds on another, or on none.
func (c *cellPlacer) placeOf(d *cellDraw, parent int32) place {
	t := place{user: none, template: none, link: link{parent: none}, seat: seat{after: none},
		ending: ending{output: d.output}}
	length := d.hit + d.fresh
	tail := int32(d.tokens - max(0, int64(length)-1)*int64(c.size))
	if parent == none {
		t.template, t.size = 0, size{trunk: d.trunk, fresh: length - d.trunk, tail: tail}
		return t
	}
	t.link = link{parent: parent, hit: d.hit, parentHit: c.begin[parent], parentFull: c.full(parent),
		parentLength: c.forest.length[parent]}
	switch d.category {
	case duplicate:
		t.class, t.hit = repeats, t.parentLength
	case continuation:
		t.class, t.growth = continues, int32(d.tokens-c.tokens(parent))
	default:
		t.class, t.hit = branches, min(d.hit, max(1, t.parentFull-1))
		t.size = size{fresh: max(1, length-t.hit), tail: tail}
	}
	return t
}

// find returns the request that a drawn one builds on, or none: of those near its
// distance the one with the least sum of the errors of distance, depth and, less,
// turns. Errors of distances are differences of logarithms.
func (c *cellPlacer) find(d *cellDraw) int32 {
	if c.stack.total == 0 {
		return none
	}
	distance := min(d.distance, c.stack.total)
	at := int32(c.stack.placeAt(distance))
	want, best, found := log2(distance), int64(unfound), int32(none)
	for _, step := range [...]int32{-1, 1} {
		r := at
		if step > 0 {
			r++
		}
		for range cellReach {
			if r < 0 || int(r) >= len(c.tail) {
				break
			}
			if depth := c.depthOf(d, r); depth > c.overlap[r] && depth > c.low[r] {
				off := log2(c.distance(r, depth)) - want
				if abs(off) >= best && (off < 0) == (step > 0) {
					break // those behind it are further off
				}
				cost := abs(off) + int64(max(depth-d.hit, d.hit-depth))*depthWeight/int64(d.hit)
				cost += abs(log2(int64(c.chain[r])+2)-log2(int64(d.chain)+1)) / chainWeight
				// others touched the head of its path since
				cost += int64(max(0, c.low[r]-c.overlap[r])) * takenWeight / int64(depth)
				if cost < best {
					best, found = cost, r
				}
			}
			r += step
		}
	}
	return found
}

// depthOf is the depth at which a drawn request would leave request r.
func (c *cellPlacer) depthOf(d *cellDraw, r int32) int32 {
	switch full := c.full(r); d.category {
	case duplicate:
		return c.forest.length[r]
	case continuation:
		return full
	default:
		return min(d.hit, full-1)
	}
}
