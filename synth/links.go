package synth

import (
	"math"
	"slices"
)

// A wire is a link that may be exchanged with those alike: to the parent, or to the
// place whose session a request joins.
type wire struct {
	place   int32
	session bool    // to the place of its session
	turns   bool    // it makes the trees of sessions
	near    []int32 // wires alike; of a stray, places
}

// What is alike among wires, as deviations of logarithms that cost as much as each
// other.
const (
	alikeLag    = .3 // lags of both after the exchange, in blocks referenced between
	alikeLength = .1 // lengths that are reused
	alikeTurn   = .5 // turns up to it, or requests below it: the less unlike counts
	alikeRest   = .3 // what the parent has behind that

	// What costs links of prompts on different templates, and those that lead a session to one, which
	// are never exchanged with those on others: a session goes on on one.
	otherTemplate, otherInSession = 2, 20
)

const (
	nearWires   = 150    // on each side that are looked at first, and
	mostWires   = 10_000 // at most when these are too few
	passedWires = 64     // that are passed over together
	deepest     = 4096   // turns, beyond which a session is cut while swapping
	lagsOctave  = 6      // bins of a lag for each factor e
)

// prepareLinks finds the links alike for each, and cuts those that have fewer than k:
// the request then opens a session of its own. Before it does, it keeps what the swap is
// to come to.
func (s *swapper) prepareLinks() {
	s.sourced = slices.ContainsFunc(s.places, func(p place) bool { return p.join != joinless })
	s.pairs = map[lengthPair]bool{}
	for i := range s.places {
		pair := lengthPair{int64(s.shapes[i].tokens), s.places[i].output}
		s.pairs[pair], s.came = true, append(s.came, pair)
	}
	s.courses = coursesOf(s.places, s.shapes, s.size, s.k)
	s.rareEdits()
	sourced := s.sourced
	s.turns = sessionTurns(s.places, subtrees(s.places, sourced), sourced)
	s.prompts = sessionTurns(s.places, subtrees(s.places, false), false)
	depth := make([]int32, len(s.places))
	s.countBlocks()
	for i := range s.places {
		p := &s.places[i]
		up := p.upward(sourced)
		if up != none {
			depth[i] = depth[up] + 1
		}
		if depth[i] >= deepest {
			s.cutLink(int32(i), p.join == byPlace)
			depth[i], up = 0, none
		}
		if p.parent != none {
			s.wires = append(s.wires, wire{place: int32(i), turns: !sourced || p.join == byParent})
		}
		if p.after != none {
			s.wires = append(s.wires, wire{place: int32(i), session: true, turns: true})
		}
	}
	under := subtrees(s.places, sourced)
	s.begin = s.templatesOf()
	s.onward = make([]bool, len(s.places))
	for i := range s.places {
		p := &s.places[i]
		s.onward[i] = p.class == opens && p.after != none && p.template != none && p.template == s.begin[p.after]
	}
	f := features{s, depth, under}
	groups := map[[3]int32][]int32{}
	for w := range s.wires {
		g := s.groupOf(&s.wires[w])
		groups[g] = append(groups[g], int32(w))
	}
	for _, g := range groups {
		f.findNear(g)
	}
	s.cutLonely()
}

// groupOf tells wires that may be exchanged: of one domain and class, and of one way to
// join a session.
func (s *swapper) groupOf(w *wire) [3]int32 {
	p := &s.places[w.place]
	g := [3]int32{int32(s.domains[p.label]), int32(p.class), 0}
	if w.turns {
		g[2] = 1
	}
	if w.session {
		g[1] = int32(classes)
	}
	return g
}

// rareEdits makes branches of edits where a domain has too few of them to be exchanged.
func (s *swapper) rareEdits() {
	count := map[uint16]int{}
	for i := range s.places {
		if s.places[i].class == edits {
			count[s.domains[s.places[i].label]]++
		}
	}
	for i := range s.places {
		if p, sh := &s.places[i], &s.shapes[i]; p.class == edits && count[s.domains[p.label]] < 4*s.k {
			p.class = branches
			p.size = size{fresh: sh.length - sh.hit, tail: sh.tail}
		}
	}
}

// upward is the place above p in the tree of its session, or none.
func (p *place) upward(sourced bool) int32 {
	if sourced && p.join != byParent {
		return p.after
	}
	return p.parent
}

// subtrees counts each place and all below it in the trees of sessions.
func subtrees(places []place, sourced bool) []int32 {
	under := make([]int32, len(places))
	for i := len(places) - 1; i >= 0; i-- {
		under[i]++
		if up := places[i].upward(sourced); up != none {
			under[up] += under[i]
		}
	}
	return under
}

// cutLink lets a place open a session of its own.
func (s *swapper) cutLink(i int32, session bool) {
	p := &s.places[i]
	s.cut++
	if p.join == byParent || session {
		p.seat = seat{join: begins, after: none}
	}
	if !session {
		p.openPrompt(&s.shapes[i])
	}
}

// to is where a wire of places leads.
func (w *wire) to(places []place) int32 {
	if w.session {
		return places[w.place].after
	}
	return places[w.place].parent
}

// features compare wires.
type features struct {
	*swapper
	depth, under []int32
}

// templatesOf are the templates that the prompts of all places begin with.
func (s *swapper) templatesOf() []int32 {
	of := make([]int32, len(s.places))
	for i := range of {
		if p := &s.places[i]; p.parent == none {
			of[i] = p.template
		} else {
			of[i] = of[p.parent]
		}
	}
	return of
}

// findNear finds for each wire of a group those alike: twice k of them, as some may be
// cut.
func (f *features) findNear(group []int32) {
	type feature struct{ length, lag, turn, under, rest float64 }
	fs := make([]feature, len(group))
	for a, w := range group {
		p, i, to := &f.places[f.wires[w].place], f.wires[w].place, f.wires[w].to(f.places)
		x := &fs[a]
		x.lag = math.Log(f.clock[i] - f.clock[to] + 1)
		x.turn, x.under = math.Log1p(float64(f.depth[i])), math.Log(float64(f.under[i]))
		switch {
		case f.wires[w].session:
			x.rest = math.Log1p(float64(p.pause.longest()) / 1e9)
		case p.class == branches:
			x.length, x.rest = math.Log(float64(max(1, p.hit))), math.Log1p(float64(p.parentLength-p.hit))
		default:
			x.length = math.Log(float64(max(1, f.shapes[to].tokens)))
			if p.class != continues {
				x.rest = math.Log1p(float64(p.parentLength - p.hit))
			}
		}
	}
	// The least place that wires of a stretch of the group lead to: beyond those near, few stretches have one
	// that an earlier request could lead to as well.
	least := make([]int32, (len(group)+passedWires-1)/passedWires)
	for b, v := range group {
		to := f.wires[v].to(f.places)
		if at := &least[b/passedWires]; b%passedWires == 0 || to < *at {
			*at = to
		}
	}
	found := nearest{most: 2 * f.k}
	for a, w := range group {
		i, up := f.wires[w].place, f.wires[w].to(f.places)
		x := &fs[a]
		// Those before the parent cannot lead to it.
		from, _ := slices.BinarySearchFunc(group[:a], up+1, func(v, place int32) int { return int(f.wires[v].place - place) })
		for span := nearWires; ; span *= 4 {
			found.of = found.of[:0]
			for b := max(0, a-span, from); b < min(len(group), a+span+1); b++ {
				if b > a && b%passedWires == 0 && least[b/passedWires] >= i {
					b += passedWires - 1
					continue
				}
				v := group[b]
				j, other := f.wires[v].place, f.wires[v].to(f.places)
				apart := f.begin[i] != f.begin[j] || f.begin[up] != f.begin[other]
				if b == a || other >= i || up >= j || apart && f.wires[w].session {
					continue
				}
				y := &fs[b]
				rest := math.Abs(x.length-y.length)/alikeLength + math.Abs(x.rest-y.rest)/alikeRest
				if found.beyond(rest) {
					continue
				}
				ours, theirs := math.Log(f.clock[i]-f.clock[other]+1), math.Log(f.clock[j]-f.clock[up]+1)
				off := min(math.Abs(ours-x.lag)+math.Abs(theirs-y.lag), math.Abs(ours-y.lag)+math.Abs(theirs-x.lag)) / alikeLag
				off += rest
				off += min(math.Abs(x.turn-y.turn), math.Abs(x.under-y.under)) / alikeTurn
				if f.hurried(w, v) || f.hurried(v, w) {
					off += 20
				}
				if apart {
					off += otherTemplate
				}
				found.add(off, v)
			}
			if len(found.of) == found.most || span >= min(len(group), mostWires) {
				break
			}
		}
		f.wires[w].near = found.list()
	}
}

// hurried tells whether a request that is joined by wire w would come before the pause
// is over that wire v has.
func (s *swapper) hurried(w, v int32) bool {
	pause := s.places[s.wires[v].place].pause.longest()
	return s.wires[w].turns && pause > 0 && pause > s.times[s.wires[w].place]-s.times[s.wires[v].to(s.places)]
}

// cutLonely takes the wires out that have fewer than k alike, until all others have k.
// Each is led to one of k places alike with every swap, see strays; without as many it
// is cut.
func (s *swapper) cutLonely() {
	lonely := make([]bool, len(s.wires))
	for again := true; again; {
		again = false
		for w := range s.wires {
			x := &s.wires[w]
			x.near = slices.DeleteFunc(x.near, func(v int32) bool { return lonely[v] })
			if !lonely[w] && len(x.near) < s.k {
				lonely[w], again = true, true
				x.near = nil
			}
		}
	}
	to := make([]int32, len(s.wires))
	kept := s.wires[:0:0]
	for w, x := range s.wires {
		if !lonely[w] {
			to[w] = int32(len(kept))
			kept = append(kept, x)
		} else if x.near = s.alike(&x); len(x.near) >= s.k {
			s.strays = append(s.strays, x)
		} else {
			s.cutLink(x.place, x.session)
		}
	}
	for w := range kept {
		x := &kept[w]
		x.near = x.near[:s.k]
		for i, v := range x.near {
			x.near[i] = to[v]
		}
	}
	s.wires = kept
	s.lags, s.strayLags = s.lagsOf(s.wires), s.lagsOf(s.strays)
}

// lagsOf is the energy that wires want as they are: what they have is none more.
func (s *swapper) lagsOf(wires []wire) lagEnergy {
	reused := 0.0
	for w := range wires {
		reused += s.reuse(&wires[w])
	}
	e := newLagEnergy(len(wires), reused)
	for w := range wires {
		e.apply(s.lagMove(&e, &wires[w], &wires[w], wires[w].to(s.places), -1))
	}
	return e
}

// leadStrays leads each stray to one of the places alike: drawn first, then cooled towards
// the lags that strays had, and the numbers of turns.
func (t *swapping) leadStrays() {
	lags := t.strayLags.clone()
	sessions := newTrees(t.places, t.sourced, t.turns)
	prompts := sessions
	if t.sourced {
		prompts = newTrees(t.places, false, t.prompts)
	}
	to := make([]int32, len(t.strays))
	for i := range t.strays {
		w := &t.strays[i]
		to[i] = w.near[t.r.IntN(len(w.near))]
		lags.apply(t.lagMove(&lags, w, w, to[i], 1))
		for _, trees := range w.treesOf(sessions, prompts) {
			if trees != nil {
				trees.move(w.place, to[i])
			}
		}
	}
	for _, heat := range heats {
		for range strayRounds * len(t.strays) {
			i := t.r.IntN(len(t.strays))
			w := &t.strays[i]
			next := w.near[t.r.IntN(len(w.near))]
			if next == to[i] || t.early(w.place, next, w) && !t.early(w.place, to[i], w) {
				continue
			}
			change := []lagMove{t.lagMove(&lags, w, w, to[i], -1), t.lagMove(&lags, w, w, next, 1)}
			if cost := lags.cost(change); cost > 0 && t.r.Float64() >= math.Exp(-cost*heat) {
				continue
			}
			turns, moved := 0.0, w.treesOf(sessions, prompts)
			for _, trees := range moved {
				if trees != nil {
					turns += trees.move(w.place, next)
				}
			}
			if turns > 0 && t.r.Float64() >= math.Exp(-turns/turnsHeat*(1+turnsCooled*heat)) {
				for _, trees := range moved {
					if trees != nil {
						trees.move(w.place, to[i])
					}
				}
				continue
			}
			lags.apply(change...)
			to[i] = next
		}
	}
	for i := range t.strays {
		if p := &t.places[t.strays[i].place]; t.strays[i].session {
			p.after = to[i]
		} else {
			p.parent = to[i]
		}
	}
}

// strayRounds is how often each stray is tried at each heat.
const strayRounds = 4

// treesOf are those of two kinds of trees in which a wire counts; nil for none.
func (w *wire) treesOf(sessions, prompts *trees) (of [2]*trees) {
	if w.turns {
		of[0] = sessions
	}
	if !w.session && (prompts != sessions || !w.turns) {
		of[1] = prompts
	}
	return of
}

// reuse is how many blocks the link of a wire reuses.
func (s *swapper) reuse(w *wire) float64 {
	if w.session {
		return 0
	}
	return float64(s.places[w.place].hit)
}

// alike finds some 2k places that a wire could lead to, alike to the one that it leads to: as
// long before and as long. That one is none of them.
func (s *swapper) alike(w *wire) []int32 {
	p, up, i := &s.places[w.place], w.to(s.places), w.place
	lag := math.Log(s.clock[i] - s.clock[up] + 1)
	long := func(q int32) float64 { return math.Log1p(float64(s.shapes[q].tokens)) }
	length := long(up)
	found := nearest{most: 2 * s.k}
	for q := max(0, up-mostWires); q < min(i, up+mostWires); q++ {
		sh := &s.shapes[q]
		if q == up || s.domains[s.places[q].label] != s.domains[p.label] || !w.session && sh.full(s.size) <= sh.trunk {
			continue
		}
		if pause := p.pause.longest(); w.turns && pause > s.times[i]-s.times[q] {
			continue
		}
		if w.session && s.places[q].join == joinless || w.turns && !w.session && p.join == byParent && s.places[q].join == joinless {
			continue
		}
		off := 0.0
		switch apart := s.begin[q] != s.begin[up]; {
		case apart && w.session:
			off += otherInSession
		case apart:
			off += otherTemplate
		}
		if !w.session && !found.beyond(off) {
			off += math.Abs(long(q)-length) / alikeLength
		}
		if !found.beyond(off) {
			found.add(off+math.Abs(math.Log(s.clock[i]-s.clock[q]+1)-lag)/alikeLag, q)
		}
	}
	return found.list()
}

// A nearest keeps those that are least off, the nearest first.
type nearest struct {
	most int
	of   []offBy
}

type offBy struct {
	off float64
	id  int32
}

// beyond tells whether there are as many as there may be that are less off.
func (n *nearest) beyond(off float64) bool {
	return len(n.of) == n.most && off >= n.of[n.most-1].off
}

func (n *nearest) add(off float64, id int32) {
	if n.beyond(off) {
		return
	}
	if len(n.of) == n.most {
		n.of = n.of[:n.most-1]
	}
	i, _ := slices.BinarySearchFunc(n.of, off, func(o offBy, off float64) int {
		if o.off <= off { // of those as far the first comes first
			return -1
		}
		return 1
	})
	n.of = slices.Insert(n.of, i, offBy{off, id})
}

func (n *nearest) list() []int32 {
	var out []int32
	for _, o := range n.of {
		out = append(out, o.id)
	}
	return out
}
