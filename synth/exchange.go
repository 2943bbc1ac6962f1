package synth

import (
	"math"
)

// heats are those of the sweeps over all wires: mixed first, then cooled towards the
// lags of the trace. Cold from the beginning, half of the links would not move.
var heats = [...]float64{0, 0, .1, .2, .4, .8, 1.6, 3.2}

// turnsHeat is what a change of the numbers of turns is divided by, at first. Cooled as well: of few
// sessions, their standard deviation is more than a workload may be off.
const (
	turnsHeat   = .15
	turnsCooled = 2 // for each of the heat of the sweep
)

// An exchange has the wires of a swap while they are exchanged. A wire that is moved
// takes along how its request builds on the other: which place that is, and where on
// its prompt it leaves.
type exchange struct {
	*swapping
	to                 []int32 // by wire: the place that it leads to
	unit               []int32 // by wire: the wire whose link it has
	parent             []int32 // by place
	lags               lagEnergy
	sessions           *trees
	prompts            *trees  // the same where the source tells of no sessions
	longer, meanTokens float64 // tokens of all prompts more than before; of a prompt
}

// A trees has trees of places while links are exchanged: those of sessions, or those of
// prompts that build on each other.
type trees struct {
	up     []int32 // by place: above it
	under  []int32 // by place: it and all below it
	total  []int32 // by root: the places of the tree
	energy turnEnergy
}

func newTrees(places []place, sourced bool, want []int32) *trees {
	x := &trees{up: make([]int32, len(places)), under: subtrees(places, sourced), total: make([]int32, len(places))}
	for i := range places {
		if x.up[i] = places[i].upward(sourced); x.up[i] == none {
			x.total[i] = x.under[i]
		}
	}
	x.energy = newTurnEnergy(sessionTurns(places, x.under, sourced), want)
	return x
}

// exchangeLinks exchanges each wire with one of those alike, again and again. Whole
// subtrees move. An exchange is refused that leads forward in time, or that gives either
// its own link back. Four energies say how likely others are: by the lags
// between a request and its parent, by the tokens of all prompts together, by the
// numbers of turns that sessions have, and by the numbers of prompts on one prefix.
func (t *swapping) exchangeLinks() {
	sourced := t.sourced
	x := exchange{swapping: t, parent: make([]int32, len(t.places))}
	for i := range t.places {
		x.parent[i] = t.places[i].parent
	}
	x.sessions = newTrees(t.places, sourced, redrawn(t.turns, t.k, t.r))
	t.under = x.sessions.under
	if x.prompts = x.sessions; sourced {
		x.prompts = newTrees(t.places, false, redrawn(t.prompts, t.k, t.r))
	}
	for i := range t.shapes {
		x.meanTokens += (float64(t.shapes[i].tokens) + 1) / float64(len(t.shapes))
	}
	x.lags = t.swapper.lags.clone()
	for w := range t.wires {
		x.to, x.unit = append(x.to, t.wires[w].to(t.places)), append(x.unit, int32(w))
		x.lags.apply(x.lagMove(&x.lags, &t.wires[w], &t.wires[w], x.to[w], 1))
	}
	order := make([]int32, len(t.wires))
	for w := range order {
		order[w] = int32(w)
	}
	for _, heat := range heats {
		t.r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, w := range order {
			near := t.wires[w].near
			x.tryExchange(w, near[t.r.IntN(len(near))], heat)
		}
	}
	x.settle()
}

// sessionTurns are the turns of the sessions.
func sessionTurns(places []place, under []int32, sourced bool) []int32 {
	var turns []int32
	for i := range places {
		if places[i].upward(sourced) == none {
			turns = append(turns, under[i])
		}
	}
	return turns
}

// tryExchange exchanges wires w and v, unless that is refused.
func (x *exchange) tryExchange(w, v int32, heat float64) {
	i, j, a, b := x.wires[w].place, x.wires[v].place, x.to[w], x.to[v]
	if a == b || b >= i || a >= j || x.unit[v] == w || x.unit[w] == v {
		return
	}
	if x.early(i, b, &x.wires[x.unit[v]]) || x.early(j, a, &x.wires[x.unit[w]]) {
		return
	}
	change := x.lagChange(w, v)
	added := x.lengthened(w, v)
	leave := x.leaving(w) + x.leaving(v)
	cost := -leave + x.lags.cost(change[:]) + (math.Abs(x.longer+added)-math.Abs(x.longer))/x.meanTokens
	if cost > 0 && heat > 0 && x.r.Float64() >= math.Exp(-cost*heat) {
		return
	}
	if !x.moveTrees(&x.wires[w], i, j, a, b, -leave, heat) {
		return
	}
	x.lags.apply(change[:]...)
	x.longer += added
	x.to[w], x.to[v] = b, a
	x.unit[w], x.unit[v] = x.unit[v], x.unit[w]
	if !x.wires[w].session {
		x.parent[i], x.parent[j] = b, a
	}
}

// leaving is what an exchange gains that takes a wire from its own link, to which none
// brings it back: what is as in the trace has the least energy of all.
func (x *exchange) leaving(w int32) float64 {
	if x.unit[w] == w {
		return 2
	}
	return 0
}

// moveTrees exchanges place i below a and place j below b, as wires like w lead, in the
// trees that these make, if their energies allow it beside what it costs otherwise.
func (x *exchange) moveTrees(w *wire, i, j, a, b int32, cost, heat float64) bool {
	moved := w.treesOf(x.sessions, x.prompts)
	for _, t := range moved {
		if t != nil {
			cost += t.change(a, b, t.under[j]-t.under[i])
		}
	}
	if cost > 0 && x.r.Float64() >= math.Exp(-cost/turnsHeat*(1+turnsCooled*heat)) {
		for _, t := range moved {
			if t != nil {
				t.change(a, b, t.under[i]-t.under[j])
			}
		}
		return false
	}
	for _, t := range moved {
		if t != nil {
			t.settle(i, j, a, b)
		}
	}
	return true
}

// change lets the tree that place a is in grow by so many places, and that of place b
// shrink, and returns what that adds to the energy.
func (t *trees) change(a, b, grown int32) float64 {
	if grown == 0 {
		return 0
	}
	a, b = t.root(a), t.root(b)
	if a == b {
		return 0
	}
	cost := t.energy.change(t.total[a], t.total[a]+grown) + t.energy.change(t.total[b], t.total[b]-grown)
	t.total[a] += grown
	t.total[b] -= grown
	return cost
}

// move puts place i, and all below it, below another, and returns what that adds to the energy.
func (t *trees) move(i, to int32) float64 {
	from, n := t.up[i], t.under[i]
	cost := t.change(to, from, n)
	for a := from; a != none; a = t.up[a] {
		t.under[a] -= n
	}
	for a := to; a != none; a = t.up[a] {
		t.under[a] += n
	}
	t.up[i] = to
	return cost
}

// settle exchanges place i below a and place j below b, whose totals are changed.
func (t *trees) settle(i, j, a, b int32) {
	t.up[i], t.up[j] = b, a
	grown := t.under[j] - t.under[i]
	for ; a != none; a = t.up[a] {
		t.under[a] += grown
	}
	for ; b != none; b = t.up[b] {
		t.under[b] -= grown
	}
}

func (t *trees) root(i int32) int32 {
	for t.up[i] != none {
		i = t.up[i]
	}
	return i
}

// lengthened is how many tokens an exchange of wires w and v adds to all prompts together,
// about: those below both grow by what their parents differ.
func (x *exchange) lengthened(w, v int32) float64 {
	if c := x.places[x.wires[w].place].class; x.wires[w].session || c != continues && c != edits {
		return 0
	}
	more := x.under[x.wires[w].place] - x.under[x.wires[v].place]
	return float64(more) * (x.tokens(x.to[v]) - x.tokens(x.to[w]))
}

// tokens is about how long the prompt of a place is now.
func (x *exchange) tokens(i int32) float64 {
	n := int32(0)
	for ; x.parent[i] != none && (x.places[i].class == continues || x.places[i].class == edits); i = x.parent[i] {
		n += x.places[i].growth
	}
	return float64(max(1, n+x.shapes[i].tokens))
}

// early tells whether a request with the link of a wire would come before the pause that goes
// with it is over, after the request at place to.
func (s *swapper) early(place, to int32, link *wire) bool {
	pause := s.places[link.place].pause.longest()
	return link.turns && pause > 0 && pause > s.times[place]-s.times[to]
}

// lagChange is what exchanging wires w and v does to the lags.
func (x *exchange) lagChange(w, v int32) [4]lagMove {
	a, b, ua, ub := &x.wires[w], &x.wires[v], &x.wires[x.unit[w]], &x.wires[x.unit[v]]
	return [4]lagMove{
		x.lagMove(&x.lags, a, ua, x.to[w], -1), x.lagMove(&x.lags, b, ub, x.to[v], -1),
		x.lagMove(&x.lags, a, ub, x.to[v], 1), x.lagMove(&x.lags, b, ua, x.to[w], 1),
	}
}

// lagMove adds the lag of a wire that leads to a place with the link of another, or takes
// it away.
func (s *swapper) lagMove(e *lagEnergy, w, link *wire, to int32, by float64) lagMove {
	kind := 0
	if w.session {
		kind = 1
	}
	deciseconds := float64(s.times[w.place]-s.times[to]) / 1e8
	blocks, time := e.bin(kind, s.clock[w.place]-s.clock[to]), e.bin(kind, deciseconds)
	return lagMove{[lagWays]int{blocks, time, e.coarse(blocks), e.coarse(time)}, s.reuse(link), by}
}

// settle gives the places the links that they have now.
func (x *exchange) settle() {
	old := x.swapper.places
	for w := range x.wires {
		i, from := x.wires[w].place, x.wires[x.unit[w]].place
		p, q := &x.places[i], &old[from]
		if x.wires[w].session {
			p.after = x.to[w]
		} else {
			p.link = q.link
			p.parent = x.to[w]
		}
		if x.wires[w].turns {
			p.waits, p.pause = q.waits, q.pause
		}
		if x.unit[w] == int32(w) {
			x.did.Kept++
		}
	}
}
