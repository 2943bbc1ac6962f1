package synth

import (
	"cmp"
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
}

// templateAt is the template that holds a depth of the path of another.
func templateAt(templates []template, t, depth int32) int32 {
	for templates[t].from >= depth {
		t = templates[t].up
	}
	return t
}

// findTemplates finds what is a template, and how much of each prompt is: down to the blocks that
// are followed by different ones in at least k sessions, or in as many requests without one, and
// the prefix that more than half of a domain carries. One conversation, however long, makes none,
// since each of its turns leaves the prompt of the one before at another block.
func (e *extractor) findTemplates(k int) {
	deep := e.leftBySessions(k) // by run: down to where it is a template
	trunk := make([]int32, len(deep))
	domains := domainsOf(e.labels.values)
	of := make([]uint16, len(e.places))
	for i := range of {
		of[i] = domains[e.places[i].label]
	}
	for _, path := range e.forest.common(of, domainCount(domains)) {
		for _, s := range path {
			trunk[s.run] = max(trunk[s.run], s.to)
			deep[s.run] = max(deep[s.run], s.to)
		}
	}
	runs := e.forest.runs
	for x := len(runs) - 1; x >= 0; x-- {
		if up := runs[x].parent; deep[x] > 0 && up != none {
			deep[up] = max(deep[up], runs[x].start)
		}
	}
	end := make([]int32, len(runs)) // by run: the template that it ends on, of two if its trunk ends before
	at := func(x, depth int32) int32 {
		if t := end[x]; depth > e.templates[t].from {
			return t
		}
		return e.templates[end[x]].up
	}
	for x, u := range runs {
		if deep[x] == 0 {
			continue
		}
		t := template{up: none, from: u.start, shared: trunk[x] > 0}
		if u.parent != none {
			t.up = at(u.parent, u.start)
		}
		e.templates = append(e.templates, t)
		if t.shared && trunk[x] < deep[x] {
			e.templates = append(e.templates, template{up: int32(len(e.templates)) - 1, from: trunk[x]})
		}
		end[x] = int32(len(e.templates)) - 1
	}
	for i := range e.shapes {
		s := &e.shapes[i]
		s.template = none
		depth := s.length
		for x := e.forest.leaf[i]; x != none; x = runs[x].parent {
			if deep[x] > 0 {
				s.trunk = min(deep[x], depth)
				s.template = at(x, s.trunk)
				break
			}
			depth = runs[x].start
		}
	}
}

// leftBySessions finds, in each run, the deepest block after which the prompts of k sessions
// left, with blocks that were new or by their end; 0 where there is none. A request without a
// session counts as one.
func (e *extractor) leftBySessions(k int) []int32 {
	type leave struct{ run, depth, session int32 }
	leaves := make([]leave, 0, len(e.places))
	for i := range e.places {
		l := leave{e.forest.leaf[i], e.forest.length[i], e.session[i]}
		if l.run == none {
			continue
		}
		if hit := e.shapes[i].hit; hit < l.depth { // its run is new, and hangs where it left
			l.run, l.depth = e.forest.runs[l.run].parent, hit
		}
		if l.session == none {
			l.session = -int32(i) - 2
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

// A stemKey names a template in a pass over the places. What all populations share is the same in
// every pass; other templates are of their time, as sessions are.
type stemKey struct {
	template int32
	pass     int64
}

// stem is what has grown of a template in a pass, never nil.
func (p *population) stem(t int32, pass int64) *stem {
	if p.templates[t].shared {
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

// grown is how deep the path of a template goes so far, the run of its last block, and how many
// tokens that has.
func (p *population) grown(t int32, pass int64) (depth, run, tail int32) {
	most := int32(maxBlocks)
	for ; t != none; t = p.templates[t].up {
		from, s := p.templates[t].from, p.stem(t, pass)
		if n := int32(len(s.runs)); n > 0 {
			tail = int32(p.size)
			if from+n <= most {
				tail = s.tail
			}
			depth = min(most, from+n)
			return depth, s.runs[depth-from-1], tail
		}
		most = from
	}
	return 0, none, int32(p.size)
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

// sharedDepth is how much of the first blocks on the path of a template all populations share.
func (p *population) sharedDepth(t, depth int32) int32 {
	for ; t != none && !p.templates[t].shared; t = p.templates[t].up {
		depth = min(depth, p.templates[t].from)
	}
	if t == none {
		return 0
	}
	return depth
}
