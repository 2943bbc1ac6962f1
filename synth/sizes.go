package synth

import "math"

// Jitters are standard deviations of what is changed, at least of some tokens. That of
// the last block is small because many templates differ by a few tokens
// there: at 5 % their peak in the input lengths was smeared. Without any, prompts of one
// rare length kept it.
const (
	swapJitter  = 0.05
	tailJitter  = 0.005
	tailLeast   = 2 // tokens that the last block is changed by at least, as a standard deviation
	jitterFrom  = 3 // tokens, up to which nothing is changed
	blocksFrom  = 4 // the same in blocks
	growthFrom  = 8 // and of tokens that a turn adds
	outputLeast = 1
)

// commonLengths are lengths that are nobody's: limits, as of documents that were cut and of answers
// that were, and defaults. At least 4k requests and one of fifty have each. They stay as they are.
type commonLengths struct {
	sizes   map[size]bool // what opens and branches bring, without a trunk
	outputs map[int32]bool
	longest int32 // output that another may get
}

func (s *swapper) commonLengths() commonLengths {
	sizes, outputs := map[size]int{}, map[int32]int{}
	c := commonLengths{sizes: map[size]bool{}, outputs: map[int32]bool{}, longest: maxTokens / 2}
	longest := int32(0)
	for i := range s.places {
		p := &s.places[i]
		sizes[p.brought()]++
		outputs[p.output]++
		longest = max(longest, p.output)
	}

	least := max(4*s.k, len(s.places)/50)
	for z, n := range sizes {
		if n >= least {
			c.sizes[z] = true
		}
	}
	for output, n := range outputs {
		if n >= least {
			c.outputs[output] = true
		}
	}
	if c.outputs[longest] {
		c.longest = longest
	}
	return c
}

// brought is a size without what it has of a template.
func (s size) brought() size {
	s.trunk = 0
	return s
}

// swapSizes permutes sizes among places alike. Those that are permuted with each other
// open prompts, continue, edit or branch, with or without turns to come, in cells of at
// least k by their own size or growth, their place in the order, the length of their
// prompt or the depth at which it leaves, and the turns to come. Blocks, last block
// and growth are permuted each for itself, as in Anatomy (Xiao and Tao, VLDB 2006).
func (t *swapping) swapSizes() {
	old := make([]size, len(t.places))
	for i := range t.places {
		old[i] = t.places[i].size
	}
	type kind struct {
		domain, template int32
		class            class
		inner            bool
	}
	extended := make([]bool, len(t.places)) // by a prompt that needs a full block of it
	for i := range t.places {
		if p := &t.places[i]; p.parent != none && p.class != repeats {
			extended[p.parent] = true
		}
	}
	of := func(i int32) kind {
		p := &t.places[i]
		k := kind{int32(t.domains[p.label]), p.template, p.class, extended[i]}
		if p.wholeTemplate() {
			k.class = repeats
		}
		return k
	}
	narrow := of
	both := func(i int32) kind { k := of(i); k.inner = false; return k }
	any := func(i int32) kind { k := both(i); k.template = 0; return k }
	all := func(i int32) kind { k := any(i); k.domain = 0; return k }
	var cells [][]int32
	for _, g := range grouped(len(t.places), 2*t.k, narrow, both, any, all) {
		if of(g[0]).class == repeats {
			continue
		}
		inner := extended[g[0]]
		points := make([]point, len(g))
		for a, i := range g {
			points[a] = point{i, t.sizePoint(i, inner)}
		}
		for _, c := range mondrian(points, t.k) {
			t.swapCell(c, old)
			cell := make([]int32, len(c))
			for a, at := range c {
				cell[a] = at.place
			}
			cells = append(cells, cell)
		}
	}
	t.fitSizes(cells)
}

func signedLog(x float64) float64 { return math.Copysign(math.Log1p(math.Abs(x)), x) }

// sizePoint says how alike the size of a place is to others.
func (t *swapping) sizePoint(i int32, inner bool) []float64 {
	p, sh := &t.places[i], &t.shapes[i]
	at := []float64{float64(i)}
	switch own := max(0, float64(p.fresh)-1)*float64(t.size) + float64(p.tail); p.class {
	case continues, edits:
		at = append(at, signedLog(float64(p.growth)), math.Log1p(float64(sh.tokens)))
	case branches:
		at = append(at, math.Log1p(own), math.Log1p(float64(sh.hit)))
	default:
		at = append(at, math.Log1p(own))
	}
	if inner {
		at = append(at, math.Log(float64(t.under[i])))
	}
	return at
}

// swapCell permutes the sizes of one cell.
func (t *swapping) swapCell(c []point, old []size) {
	blocks, tails, growths := permuted(c, t.r), permuted(c, t.r), permuted(c, t.r)
	for a, at := range c {
		i := at.place
		p := &t.places[i]
		switch p.class {
		case continues, edits:
			p.growth = t.jitter(old[growths[a].place].growth, growthFrom, swapJitter, 0)
			t.from[i] = []int32{growths[a].place}
		default:
			b, tail := blocks[a].place, tails[a].place
			common := t.common.sizes[old[b].brought()]
			if common || old[b].fresh <= blocksFrom {
				tail = b // few blocks and the last are about one length: apart they would be others
			}
			if p.fresh = old[b].fresh; !common {
				p.fresh = t.jitter(p.fresh, blocksFrom, swapJitter, 0)
			}
			if p.template == t.places[b].template {
				p.trunk = old[b].trunk
			}
			switch x := old[tail].tail; {
			case common:
				p.tail = x
			case t.size == 0:
				p.tail = t.jitter(x, jitterFrom, swapJitter, outputLeast)
			case int(x) == t.size:
				p.tail = x // a whole block stays one, and so does a part
			default:
				p.tail = min(t.jitter(x, jitterFrom, tailJitter, tailLeast), int32(t.size)-1)
			}
			t.from[i] = []int32{b, tail}
		}
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
