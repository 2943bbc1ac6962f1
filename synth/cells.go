package synth

import (
	"math"
	"math/rand/v2"
	"slices"

	"reprise/trace/block"
)

// A model of cells has histograms in place of places: each request is drawn
// from them anew, see [FitHistograms]. Tables follow each other like this, and each is
// conditional on what was drawn before it:
//
//	category → input → output
//	              └───→ hit or fresh blocks → distance
//	category → turn
//
// All weights are integers, and so are the draws: a workload is a function of
// the tables and the seed, on every machine.
type cellModel struct {
	requests int64 // as many as are generated unless options say otherwise
	tables   [tableKinds]cellTable
}

// tableKind names the tables, with the unit of what is drawn and what is given.
type tableKind uint8

const (
	tableGap      tableKind = iota // ns between arrivals
	tableCategory                  // number of a category
	tableInput                     // tokens
	tableOutput                    // tokens; given input tokens
	tableHit                       // known blocks; given input tokens
	tableFresh                     // new blocks, in place of known ones; given input tokens
	tableTrunk                     // blocks that most requests begin with
	tableDistance                  // blocks; given known blocks
	tableTurn                      // requests that it builds on, one on the other
	tableKinds
)

var tableNames = [tableKinds]string{"inter_arrival_ns", "category", "input_tokens", "output_tokens", "hit_blocks",
	"new_blocks", "trunk_blocks", "reuse_distance_blocks", "turn"}

const anyCategory = category(255)

// A cellTable holds the distributions of one quantity. The first group that fits
// counts, so that what is known little of may come last, for all the rest.
type cellTable []group

// A group is one distribution: that of requests of a category, or of any, whose
// given quantity lies between from and to, both included.
type group struct {
	category category
	from, to int64
	cells    []cell
	sums     []int64 // of the counts, up to and with each cell
}

// A cell holds the values from lo to hi, both included, all alike.
type cell struct{ lo, hi, count int64 }

// maxWeight bounds the sum of the counts of a group.
const maxWeight = math.MaxInt64 / 4

// every is a group without conditions.
func every(cells []cell) group { return newGroup(anyCategory, 0, math.MaxInt64, cells) }

func newGroup(c category, from, to int64, cells []cell) group {
	g := group{category: c, from: from, to: to, cells: cells, sums: make([]int64, len(cells))}
	sum := int64(0)
	for i, x := range cells {
		sum += x.count
		g.sums[i] = sum
	}
	return g
}

func (g *group) total() int64 { return g.sums[len(g.sums)-1] }

// drawValue takes a cell by its count and in it any value.
func (g *group) drawValue(r *rand.Rand) int64 {
	x := r.Int64N(g.total())
	i, _ := slices.BinarySearch(g.sums, x+1)
	c := g.cells[i]
	return c.lo + r.Int64N(c.hi-c.lo+1)
}

// groupFor returns the group for a request, or nil.
func (t cellTable) groupFor(c category, given int64) *group {
	for i := range t {
		if g := &t[i]; (g.category == c || g.category == anyCategory) && g.from <= given && given <= g.to {
			return g
		}
	}
	return nil
}

// drawValue returns otherwise where no group fits.
func (t cellTable) drawValue(r *rand.Rand, c category, given, otherwise int64) int64 {
	if g := t.groupFor(c, given); g != nil {
		return g.drawValue(r)
	}
	return otherwise
}

// cells gives each weight a whole count, of parts in 2^30 of their sum, and
// leaves out what has none.
func cellsOf(weights []float64, edges func(i int) (lo, hi int64)) []cell {
	const parts = 1 << 30
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	var out []cell
	for i, w := range weights {
		if n := int64(math.Round(w / sum * parts)); w > 0 && n > 0 {
			lo, hi := edges(i)
			out = append(out, cell{lo, hi, n})
		}
	}
	return out
}

// times draws n arrivals within span, in order: independent gaps, stretched to the span.
func (m *cellModel) times(r *rand.Rand, n int, span int64) []int64 {
	out := make([]int64, n)
	g := m.tables[tableGap].groupFor(anyCategory, 0)
	at, end := int64(0), int64(1)
	for i := range out {
		out[i] = at
		at += min(g.drawValue(r), (1<<61)/int64(n))
		end = max(end, at)
	}
	for i := range out {
		out[i] = mulDiv(out[i], span, end)
	}
	return out
}

// A cellDraw is a request as it was drawn.
type cellDraw struct {
	category   category
	tokens     int64
	output     int32
	hit, fresh int32 // blocks
	trunk      int32 // leading blocks on the trunk
	distance   int64 // LRU stack distance of the deepest known block
	chain      int32 // requests that it builds on, one on the other
}

// request draws a request.
func (m *cellModel) request(r *rand.Rand, size int) cellDraw {
	c := category(m.tables[tableCategory].drawValue(r, anyCategory, 0, int64(uncategorised)))
	in := m.tables[tableInput].drawValue(r, c, 0, 1)
	d := cellDraw{tokens: in, output: int32(m.tables[tableOutput].drawValue(r, c, in, 1))}
	if size == 0 || in == 0 {
		return d
	}
	n := int64(block.Count(int(in), size))
	d.hit = int32(m.hit(r, c, in, n))
	switch d.fresh = int32(n) - d.hit; int64(d.hit) {
	case 0:
		c = cold
	case n:
		c = duplicate
	}
	d.category = c
	if g := m.tables[tableTrunk].groupFor(anyCategory, 0); g != nil && d.hit > 0 {
		d.trunk = min(int32(g.cells[0].lo), d.hit)
	}
	if d.hit > 0 {
		d.distance = 1
	}
	if d.hit > d.trunk {
		d.distance = m.tables[tableDistance].drawValue(r, c, int64(d.hit), 1)
	}
	if c.turns() {
		d.chain = max(1, int32(m.tables[tableTurn].drawValue(r, c, 0, 0)))
	}
	return d
}

// hit draws how many of n blocks are known. Where new blocks are counted the
// known ones are the rest: a next turn brings a few blocks however long it is.
func (m *cellModel) hit(r *rand.Rand, c category, in, n int64) int64 {
	switch {
	case c == duplicate:
		return n
	case c == cold || c == uncategorised || n == 1:
		return 0
	}
	if g := m.tables[tableFresh].groupFor(c, in); g != nil {
		return n - min(max(1, g.drawValue(r)), n-1)
	}
	return min(max(1, m.tables[tableHit].drawValue(r, c, in, 1)), n-1)
}
