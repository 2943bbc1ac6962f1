package synth

import (
	"cmp"
	"math"
	"slices"
)

// A template is a stretch of a prefix that many requests begin with: a system prompt, examples, a
// document. It goes on from another one, or begins a prompt. It has no length of its own: requests
// say how far they follow it. So all that follow it have its length in common, which is never
// dealt among them.
type template struct {
	up     int32 // the template that it goes on from, or none
	from   int32 // its blocks begin behind this depth
	shared bool  // all populations share it: more than half of the requests of a cache domain carry it
	cut    bool  // the populations of one user share it: a sample has a part of those that follow it

	rare   bool  // while it is fitted: fewer than k sessions leave it, and its length is dealt among templates
	blocks int32 // while it is fitted: how many it has
}

// templateAt is the template that holds a depth of the path of another.
func templateAt(templates []template, t, depth int32) int32 {
	for templates[t].from >= depth {
		t = templates[t].up
	}
	return t
}

// begunOn is the template that the first of all prompts which each builds on opened on, or none.
func begunOn(places []place) []int32 {
	on := make([]int32, len(places))
	for i := range places {
		if on[i] = places[i].template; places[i].parent != none {
			on[i] = on[places[i].parent]
		}
	}
	return on
}

// fewSessions are how many sessions, at least, a prefix is followed by different blocks in that is a
// template. Its length is kept where k are.
const fewSessions = 3

// findTemplates finds what is a template, and how much of each prompt is: down to the blocks that
// are followed by different ones in several sessions, or in as many requests without one, and
// the prefix that more than half of a domain carries. One conversation, however long, makes none,
// since each of its turns leaves the prompt of the one before at another block.
func (e *extractor) findTemplates(k int) {
	if k == 1 { // nothing is dealt
		e.levelTemplates(DefaultKSwap, DefaultKSwap)
		return
	}
	if e.levelTemplates(k, fewSessions); e.rareTemplates() < k { // these have none alike
		e.levelTemplates(k, k)
	}
}

// levelTemplates makes templates of what at least few sessions share, those of fewer than k rare.
func (e *extractor) levelTemplates(k, few int) {
	e.templates = nil
	runs := e.forest.runs
	// by run: down to where it is one
	to := [...][]int32{make([]int32, len(runs)), make([]int32, len(runs)), e.leftBySessions(k), e.leftBySessions(few)}
	for x, depth := range e.cuts {
		to[1][x] = min(depth, to[2][x])
	}
	domains := domainsOf(e.labels.values)
	of := make([]uint16, len(e.places))
	for i := range of {
		of[i] = domains[e.places[i].label]
	}
	for _, path := range e.forest.common(of, domainCount(domains)) {
		for _, s := range path {
			to[0][s.run] = max(to[0][s.run], s.to)
		}
	}
	for x := len(runs) - 1; x >= 0; x-- {
		for level := 1; level < len(to); level++ {
			to[level][x] = max(to[level-1][x], to[level][x])
		}
		for _, level := range to {
			if up := runs[x].parent; level[x] > 0 && up != none {
				level[up] = max(level[up], runs[x].start)
			}
		}
	}
	end := make([]int32, len(runs)) // by run: the template that it ends on
	for x, u := range runs {
		up, from := int32(none), u.start
		if u.parent != none && to[3][x] > 0 {
			up = templateAt(e.templates, end[u.parent], u.start)
		}
		for level, deep := range to {
			if deep[x] > from {
				e.templates = append(e.templates, template{up: up, from: from, shared: level == 0, cut: level == 1,
					rare: level == 3, blocks: deep[x] - from})
				up, from = int32(len(e.templates))-1, deep[x]
			}
		}
		end[x] = up
	}
	for i := range e.shapes {
		s := &e.shapes[i]
		s.template, s.trunk = none, 0
		depth := s.length
		for x := e.forest.leaf[i]; x != none; x = runs[x].parent {
			if deep := to[3][x]; deep > 0 {
				s.trunk = min(deep, depth)
				s.template = templateAt(e.templates, end[x], s.trunk)
				break
			}
			depth = runs[x].start
		}
	}
}

// rareTemplates counts them.
func (e *extractor) rareTemplates() (n int) {
	for _, t := range e.templates {
		if t.rare {
			n++
		}
	}
	return n
}

// dealTemplates deals the lengths of rare templates among at least k alike, by their length and
// by how many prompts open on them, and jitters them. All that follow one change with it.
func (t *swapping) dealTemplates() {
	prompts := make([]int32, len(t.templates))
	for i := range t.places {
		if at := t.places[i].template; at != none {
			prompts[at]++
		}
	}
	var rare []point
	for i, m := range t.templates {
		if m.rare {
			rare = append(rare, point{int32(i),
				[]float64{math.Log(float64(m.blocks)), math.Log1p(float64(prompts[i]))}})
		}
	}
	now := slices.Clone(t.templates)
	for _, cell := range mondrian(rare, t.k) {
		for a, from := range permuted(cell, t.r) {
			now[cell[a].place].blocks = t.jitter(t.templates[from.place].blocks, blocksFrom, swapJitter, 0)
		}
	}
	moved := func(at, depth int32) int32 { // where a depth on a template is now
		was, is := t.templates[at], now[at]
		return is.from + max(1, scaled(depth-was.from, is.blocks, was.blocks))
	}
	for i := range now {
		if up := now[i].up; up != none {
			now[i].from = moved(up, t.templates[i].from)
		}
	}
	for i := range t.places {
		if p := &t.places[i]; p.template != none && p.class == opens {
			whole := p.wholeTemplate()
			p.trunk = moved(p.template, p.trunk)
			if whole && now[p.template].rare && int(p.tail) < t.size {
				p.tail = min(t.jitter(p.tail, jitterFrom, tailJitter, tailLeast), int32(t.size)-1)
			}
		}
	}
	t.templates = now
}

// leftBySessions finds, in each run, the deepest block after which the prompts of k sessions
// left, with blocks that were new or by their end; 0 where there is none. A request without a
// session counts as one, and those that repeat a whole prompt together: they may be one person's samples.
func (e *extractor) leftBySessions(k int) []int32 {
	type leave struct{ run, depth, session int32 }
	leaves := make([]leave, 0, len(e.places))
	for i := range e.places {
		l := leave{e.forest.leaf[i], e.forest.length[i], e.session[i]}
		if l.run == none {
			continue
		}
		hit := e.shapes[i].hit
		switch repeats := hit == l.depth; {
		case l.session != none:
		case repeats:
			l.session = math.MinInt32
		default:
			l.session = -int32(i) - 2
		}
		if hit < l.depth { // its run is new, and hangs where it left
			l.run, l.depth = e.forest.runs[l.run].parent, hit
		}
		if l.run != none {
			leaves = append(leaves, l)
		}
	}
	slices.SortFunc(leaves, func(a, b leave) int {
		return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.depth, b.depth), cmp.Compare(a.session, b.session))
	})
	deep, sessions := make([]int32, len(e.forest.runs)), 0
	for i, l := range leaves {
		switch {
		case i == 0 || l.run != leaves[i-1].run || l.depth != leaves[i-1].depth:
			sessions = 1
		case l.session != leaves[i-1].session:
			sessions++
		}
		if sessions >= k {
			deep[l.run] = l.depth
		}
	}
	return deep
}

// A stem is what has grown of a template so far, by depth from its first block: the run of each
// block. The last may be a part of a block.
type stem struct {
	runs []int32
	tail int32 // tokens in the last block
}

// A stemKey names a template in a pass over the places. What several populations share is the same in
// every pass; other templates are of their time, as sessions are.
type stemKey struct {
	template int32
	pass     int64
}

// stem is what has grown of a template in a pass, never nil.
func (p *population) stem(t int32, pass int64) *stem {
	if p.templates[t].several() {
		pass = 0
	}
	key := stemKey{t, pass}
	s := p.stems[key]
	if s == nil {
		if p.stems == nil {
			p.stems = map[stemKey]*stem{}
		}
		s = &stem{tail: int32(p.size)}
		p.stems[key] = s
	}
	return s
}

// grown is how deep the path of a template goes so far, and how many tokens its last block has.
func (p *population) grown(t int32, pass int64) (depth, tail int32) {
	most := int32(maxBlocks)
	for ; t != none; t = p.templates[t].up {
		from, s := p.templates[t].from, p.stem(t, pass)
		if n := int32(len(s.runs)); n > 0 {
			tail = int32(p.size)
			if from+n <= most {
				tail = s.tail
			}
			return min(most, from+n), tail
		}
		most = from
	}
	return 0, int32(p.size)
}

// runOf is the run of a depth of the path of a template, which goes as deep.
func (p *population) runOf(t int32, pass int64, depth int32) int32 {
	t = templateAt(p.templates, t, depth)
	return p.stem(t, pass).runs[depth-p.templates[t].from-1]
}

// grow lets the path of a template, which goes down to a depth, go on with blocks of a run.
func (p *population) grow(t int32, pass int64, depth, to, run, tail int32) {
	for ; t != none && to > depth; t = p.templates[t].up {
		from := p.templates[t].from
		if to <= from {
			continue
		}
		s := p.stem(t, pass)
		for range to - max(depth, from) {
			s.runs = append(s.runs, run)
		}
		s.tail = tail
		to, tail = from, int32(p.size)
	}
}

// several tells whether several populations share it.
func (t *template) several() bool { return t.shared || t.cut }

// sharedDepth is how much of the first blocks on the path of a template several populations share.
func (p *population) sharedDepth(t, depth int32) int32 {
	for ; t != none && !p.templates[t].several(); t = p.templates[t].up {
		depth = min(depth, p.templates[t].from)
	}
	if t == none {
		return 0
	}
	return depth
}
