package synth

import (
	"math"
	"slices"
)

// Jitters are standard deviations of what is changed, at least of some tokens. That of
// the last block is small because many templates differ by a few tokens there.
const (
	swapJitter  = 0.05
	tailJitter  = 0.005
	tailLeast   = 2 // tokens that the last block is changed by at least, as a standard deviation
	jitterFrom  = 3 // tokens, up to which nothing is changed
	blocksFrom  = 4 // the same in blocks
	growthFrom  = 8 // and of tokens that a turn adds
	outputLeast = 1
	leafCells   = 4 // for each of k: prompts that none builds on, with which one exchanges its size
	besides     = 2 // amounts of a cell on each side of one, which say how close they are
)

// commonLengths are lengths that are nobody's: limits, as of windows, of documents that were cut and of answers
// that were, and defaults. At least 4k requests and one of fifty have each. They stay as they are.
type commonLengths struct {
	amounts [grownTokens]map[int64]bool // of what opens and branches, by what is measured
	outputs map[int32]bool
	longest int32 // output that another may get
	least   int   // requests of one length
}

func (t *swapping) commonLengths() commonLengths {
	c := commonLengths{longest: maxTokens / 2, least: max(4*t.k, len(t.places)/50)}
	longest, outputs := int32(0), map[int32]int{}
	var amounts [grownTokens]map[int64]int
	for _, what := range [...]measure{ownTokens, allTokens} {
		amounts[what] = map[int64]int{}
	}
	for i := range t.places {
		p := &t.places[i]
		outputs[p.output]++
		longest = max(longest, p.output)
		if p.class == opens || p.class == branches {
			amounts[ownTokens][t.amountOf(int32(i), ownTokens)]++
			amounts[allTokens][t.amountOf(int32(i), allTokens)]++
		}
	}
	c.outputs = often(outputs, c.least)
	for what := range amounts {
		c.amounts[what] = often(amounts[what], c.least)
	}
	if c.outputs[longest] {
		c.longest = longest
	}
	return c
}

// often are the values that are counted so often at least.
func often[T comparable](counts map[T]int, least int) map[T]bool {
	out := map[T]bool{}
	for v, n := range counts {
		if n >= least {
			out[v] = true
		}
	}
	return out
}

// measure says what of the size of a place is exchanged.
type measure uint8

const (
	noTokens    measure = iota // it repeats another prompt or a template
	ownTokens                  // those behind what it shares
	allTokens                  // those of the whole prompt
	moreTokens                 // how many more than the request it follows, which is about as long
	grownTokens                // how many more than its parent
)

// amountOf is what a place has of a measure, in the trace.
func (t *swapping) amountOf(i int32, what measure) int64 {
	switch p, sh := &t.places[i], &t.shapes[i]; what {
	case allTokens:
		return int64(sh.tokens)
	case moreTokens:
		return int64(sh.tokens) - int64(t.shapes[t.near[i]].tokens)
	default:
		return p.size.tokens(t.size)
	}
}

// swapSizes permutes sizes among places alike. Those that are permuted with each other
// open prompts, continue, edit or branch, with or without turns to come, in cells of at
// least k by their own size or growth, their place in the order, the length of their
// prompt or the depth at which it leaves, and the turns to come.
func (t *swapping) swapSizes() {
	type kind struct {
		domain, template int32
		class            class
		inner            int8
		near             bool
	}
	// 1 where others build on it, or have about its length; 2 where it brings a full block
	inner := make([]int8, len(t.places))
	led := make([]int32, len(t.places))
	said := make([]int32, len(t.places)) // how often a prompt is sent
	for i := len(t.places) - 1; i >= 0; i-- {
		led[i]++
		p := &t.places[i]
		said[i]++
		if p.class == repeats {
			said[p.parent] += said[i]
		}
		if p.parent != none {
			inner[p.parent] = 1
		}
		if up := t.near[i]; up != none {
			led[up] += led[i]
			inner[up] = 1
		}
		if sh := &t.shapes[i]; inner[i] > 0 && sh.full(t.size) > sh.begin() {
			inner[i] = 2
		}
	}
	of := func(i int32) kind {
		p := &t.places[i]
		k := kind{int32(t.domains[p.label]), p.template, p.class, inner[i], t.near[i] != none}
		if p.wholeTemplate() || int(said[i]) >= t.common.least && t.near[i] == none { // it is nobody's
			k.class = repeats
		}
		return k
	}
	both := func(i int32) kind { k := of(i); k.inner = 0; return k }
	any := func(i int32) kind { k := both(i); k.template = 0; return k }
	all := func(i int32) kind { k := any(i); k.domain = 0; return k }
	var cells [][]int32
	for _, g := range grouped(len(t.places), 2*t.k, of, both, any, all) {
		if of(g[0]).class == repeats {
			continue
		}
		what := t.measureOf(g)
		points := make([]point, len(g))
		for a, i := range g {
			points[a] = point{i, t.sizePoint(i, what)}
			if inner[g[0]] > 0 {
				points[a].at = append(points[a].at, math.Log(float64(t.under[i]+led[i])))
			}
		}
		least := t.k
		if inner[g[0]] == 0 {
			least *= leafCells
		}
		for _, c := range mondrian(points, least) {
			cells = append(cells, t.swapCell(c, what))
		}
	}
	t.fitSizes(cells)
}

// measureOf says what a group of places exchanges. Prompts on different templates, or that leave others at different
// depths, exchange their lengths where these are closer to each other than what they bring, such as below a limit.
func (t *swapping) measureOf(g []int32) measure {
	p := &t.places[g[0]]
	one := p.class == opens
	for _, i := range g {
		one = one && t.places[i].template == p.template
	}
	switch {
	case t.near[g[0]] != none:
		return moreTokens
	case p.class == continues:
		return grownTokens
	case one:
		return ownTokens
	}
	other, far := ownTokens, 0.0
	if p.class == edits {
		other, far = grownTokens, math.Ln2/2*float64(len(g)) // two, of an edit and its parent's
	}
	apart := func(what measure) float64 {
		sum, amounts := 0.0, make([]int64, len(g))
		for a, i := range g {
			amounts[a] = t.amountOf(i, what)
		}
		slices.Sort(amounts)
		for a := t.k; a < len(g); a++ {
			sum += math.Log1p(float64(amounts[a] - amounts[a-t.k]))
		}
		return sum
	}
	if apart(allTokens) < apart(other)+far {
		return allTokens
	}
	return other
}

func signedLog(x float64) float64 { return math.Copysign(math.Log1p(math.Abs(x)), x) }

// sizePoint says how alike the size of a place is to others.
func (t *swapping) sizePoint(i int32, what measure) []float64 {
	sh := &t.shapes[i]
	at := []float64{float64(i), signedLog(float64(t.amountOf(i, what)))}
	switch {
	case what == moreTokens || what == grownTokens:
		at = append(at, math.Log1p(float64(sh.tokens)))
	case t.places[i].class == branches || what == allTokens:
		at = append(at, math.Log1p(float64(t.shared(i))))
	}
	return at
}

// shared is how many leading tokens a place shares, about.
func (t *swapping) shared(i int32) int64 {
	if p := &t.places[i]; p.class == opens {
		return int64(p.trunk) * int64(t.size)
	}
	return int64(t.shapes[i].hit) * int64(t.size)
}

// swapCell permutes the sizes of one cell, and returns its places.
func (t *swapping) swapCell(c []point, what measure) []int32 {
	cell, trunks := make([]int32, len(c)), make([]int32, len(c))
	least, most := int64(math.MaxInt64), int64(0)
	for a, at := range c {
		cell[a], trunks[a] = at.place, t.places[at.place].trunk
		least, most = min(least, t.amountOf(at.place, allTokens)), max(most, t.shared(at.place))
	}
	if what == allTokens && least <= most {
		what = ownTokens
		if t.places[cell[0]].class == edits {
			what = grownTokens
		}
	}
	amounts, sorted := make([]int64, len(c)), make([]int64, len(c))
	for a, i := range cell {
		amounts[a] = t.amountOf(i, what)
	}
	copy(sorted, amounts)
	slices.Sort(sorted)
	for a, from := range t.r.Perm(len(c)) {
		i, j := cell[a], cell[from]
		t.by[i], t.from[i], t.amount[i] = what, []int32{j}, t.varied(amounts[from], what, sorted)
		if p := &t.places[i]; what == ownTokens && p.class == opens && p.template == t.places[j].template {
			p.trunk = trunks[from]
		}
	}
	return cell
}

// varied changes an amount by a twentieth, but by no more than those of its cell are apart that are next to it: what
// crowds below a limit stays there. Few blocks stay as many.
func (t *swapping) varied(x int64, what measure, sorted []int64) int64 {
	if what == moreTokens || what == grownTokens {
		return int64(t.jitter(int32(x), growthFrom, swapJitter, 0))
	}
	if x <= jitterFrom || t.common.amounts[what][x] {
		return x
	}
	at, _ := slices.BinarySearch(sorted, x)
	apart := float64(sorted[min(at+besides, len(sorted)-1)]-sorted[max(at-besides, 0)]) / 2
	now := int64(t.jitter(int32(x), jitterFrom, min(swapJitter, apart/float64(x)), tailLeast))
	if t.size == 0 {
		return now
	}
	block := int64(t.size)
	n := (x + block - 1) / block
	switch {
	case x%block == 0 && n <= blocksFrom:
		return x
	case x%block == 0: // a whole block stays one, and so does a part
		return max(1, (now+block/2)/block) * block
	case n <= blocksFrom:
		return max((n-1)*block+1, min(now, n*block-1))
	case now%block == 0:
		return now - 1
	}
	return now
}

// settled gives all places the sizes of their amounts, and returns the prompts that they make.
func (t *swapping) settled() *population {
	m := &Model{places: t.places, templates: t.templates, labels: t.labels, ends: t.ends}
	m.meta.BlockSize = t.size
	return &replayed(m, make([]int64, len(t.places)), t.settle).populations[0]
}

// settle gives a place the size of its amount, when the prompts before it stand.
func (t *swapping) settle(p *population, i int32) {
	q, own := &t.places[i], t.amount[i]
	shared := q.trunk
	if q.class == branches {
		shared = p.leave(q, q.parent)
	}
	switch t.by[i] {
	case noTokens:
		return
	case grownTokens:
		q.growth = int32(own)
		return
	}
	if q.class == edits {
		q.growth = int32(own - p.tokens(q.parent))
		return
	}
	switch t.by[i] {
	case moreTokens:
		own = max(1, own+p.tokens(t.near[i])-int64(shared)*int64(t.size))
	case allTokens:
		own = max(1, own-int64(shared)*int64(t.size))
	}
	own = min(own, maxTokens/2)
	if q.fresh, q.tail = 0, int32(own); t.size > 0 && own > 0 {
		q.fresh = int32((own + int64(t.size) - 1) / int64(t.size))
		q.tail = int32(own - int64(q.fresh-1)*int64(t.size))
	}
}

// jitter changes n by a normal deviate of a share of it, of least at least, unless it is
// at most from. The sign stays.
func (s *swapper) jitter(n, from int32, deviation, least float64) int32 {
	size := math.Abs(float64(n))
	if size <= float64(from) {
		return n
	}
	x := math.Round(size + max(least, deviation*size)*s.r.NormFloat64())
	x = max(1, min(x, maxTokens/2))
	if n < 0 {
		return -int32(x)
	}
	return int32(x)
}
