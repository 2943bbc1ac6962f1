package synth

import (
	"math"
	"slices"
)

// heats are those of the sweeps over all wires: mixed first, then cooled towards the
// lags of the trace. Cold from the beginning, half of the links would not move.
var heats = [...]float64{0, 0, .1, .2, .4, .8, 1.6, 3.2}

// turnsHeat is what a change of the numbers of turns is divided by.
const turnsHeat = .15

// An exchange has the wires of a swap while they are exchanged. A wire that is moved
// takes along how its request builds on the other: which place that is, and where on
// its prompt it leaves.
type exchange struct {
	*swapping
	to                 []int32 // by wire: the place that it leads to
	unit               []int32 // by wire: the wire whose link it has
	up                 []int32 // by place: above it in the tree of its session
	parent             []int32 // by place
	lags               lagEnergy
	turns              turnEnergy
	longer, meanTokens float64 // tokens of all prompts more than before; of a prompt
	total              []int32 // by place that begins a session: its turns
}

// exchangeLinks exchanges each wire with one of those alike, again and again. Whole
// subtrees move. An exchange is refused that leads forward in time, or that gives either
// its own link back. Three energies say how likely others are: by the lags in the order
// between a request and its parent, by the tokens of all prompts together, and by the
// numbers of turns that sessions have.
func (t *swapping) exchangeLinks() {
	sourced := slices.ContainsFunc(t.places, func(p place) bool { return p.join != joinless })
	x := exchange{swapping: t, up: make([]int32, len(t.places)), parent: make([]int32, len(t.places))}
	t.under = subtrees(t.places, sourced)
	x.total = make([]int32, len(t.places))
	for i := range t.places {
		x.parent[i] = t.places[i].parent
		if x.up[i] = t.places[i].upward(sourced); x.up[i] == none {
			x.total[i] = t.under[i]
		}
	}
	for i := range t.shapes {
		x.meanTokens += (float64(t.shapes[i].tokens) + 1) / float64(len(t.shapes))
	}
	var reused float64
	for w := range t.wires {
		x.to, x.unit = append(x.to, t.wires[w].to(t.places)), append(x.unit, int32(w))
		reused += x.reuse(int32(w))
	}
	x.lags = newLagEnergy(len(t.wires), reused)
	x.turns = newTurnEnergy(sessionTurns(t.places, t.under, sourced), redrawn(t.turns, t.k, t.r))
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
	after := sessionTurns(t.places, t.under, sourced)
	t.did.Turns, t.did.WantTurns = int(slices.Max(after)), x.turns.longest
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

// reuse is how many blocks wire w, as it is, reuses.
func (x *exchange) reuse(w int32) float64 {
	if u := &x.wires[x.unit[w]]; !u.session {
		return float64(x.swapper.places[u.place].hit)
	}
	return 0
}

// tryExchange exchanges wires w and v, unless that is refused.
func (x *exchange) tryExchange(w, v int32, heat float64) {
	i, j, a, b := x.wires[w].place, x.wires[v].place, x.to[w], x.to[v]
	if a == b || b >= i || a >= j || x.unit[v] == w || x.unit[w] == v {
		return
	}
	if x.late(w, x.unit[v], b) || x.late(v, x.unit[w], a) {
		return
	}
	change := x.lagChange(w, v)
	added := x.lengthened(w, v)
	cost := x.lags.cost(change[:]) + (math.Abs(x.longer+added)-math.Abs(x.longer))/x.meanTokens
	if cost > 0 && heat > 0 && x.r.Float64() >= math.Exp(-cost*heat) {
		return
	}
	if grown := x.under[j] - x.under[i]; x.wires[w].turns && grown != 0 && !x.moveTurns(a, b, grown) {
		return
	}
	x.lags.apply(change[:])
	x.longer += added
	x.to[w], x.to[v] = b, a
	x.unit[w], x.unit[v] = x.unit[v], x.unit[w]
	if !x.wires[w].session {
		x.parent[i], x.parent[j] = b, a
	}
	if x.wires[w].turns {
		x.up[i], x.up[j] = b, a
	}
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

// late tells whether the request of wire w would come before the pause is over that
// goes with a link, after the request at place to.
func (x *exchange) late(w, unit, to int32) bool {
	if !x.wires[w].turns {
		return false
	}
	pause := x.swapper.places[x.wires[unit].place].pause.longest()
	return pause > 0 && pause > x.times[x.wires[w].place]-x.times[to]
}

// moveTurns lets the tree that place a is in grow by so many turns, and that of place b
// shrink, if the energy of turns allows it.
func (x *exchange) moveTurns(a, b, grown int32) bool {
	ra, rb := x.root(a), x.root(b)
	if ra != rb {
		ta, tb := x.total[ra], x.total[rb]
		cost := x.turns.change(ta, ta+grown) + x.turns.change(tb, tb-grown)
		if cost > 0 && x.r.Float64() >= math.Exp(-cost/turnsHeat) {
			x.turns.change(ta+grown, ta)
			x.turns.change(tb-grown, tb)
			return false
		}
		x.total[ra] += grown
		x.total[rb] -= grown
	}
	for ; a != none; a = x.up[a] {
		x.under[a] += grown
	}
	for ; b != none; b = x.up[b] {
		x.under[b] -= grown
	}
	return true
}

func (x *exchange) root(i int32) int32 {
	for x.up[i] != none {
		i = x.up[i]
	}
	return i
}

// lagChange is what exchanging wires w and v does to the lags.
func (x *exchange) lagChange(w, v int32) [4]lagMove {
	i, j := x.wires[w].place, x.wires[v].place
	uw, uv := x.lags.weight(x.reuse(w)), x.lags.weight(x.reuse(v))
	strand := 0
	if x.wires[w].session {
		strand = 1
	}
	at := func(i, up int32) int { return x.lags.bin(strand, x.clock[i]-x.clock[up]) }
	return [4]lagMove{{at(i, x.to[w]), -uw}, {at(j, x.to[v]), -uv}, {at(i, x.to[v]), uv}, {at(j, x.to[w]), uw}}
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
