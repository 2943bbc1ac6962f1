package synth

import (
	"math"
	"math/rand/v2"
	"slices"

	"reprise/trace/block"
)

// A model of cells has histograms in place of tuples: each request is drawn
// from them anew, see [FitHistograms]. Tables follow each other like this, and each is
// conditional on what was drawn before it:
//
//	time → category → input → output
//	                    └───→ hit or fresh blocks → distance
//	       category → turn → pause
//
// All weights are integers, and so are the draws: a workload is a function of
// the tables and the seed, on every machine.
type cellModel struct {
	requests int64 // as many as are generated unless options say otherwise
	sessions bool  // turns wait within sessions; otherwise a parent says only which prefix a row builds on
	tables   [tableKinds]cellTable
}

// tableKind names the tables, with the unit of what is drawn and what is given.
type tableKind uint8

const (
	tableTime     tableKind = iota // ns from the beginning
	tableGap                       // ns between arrivals, in place of time
	tableCategory                  // number of a category; given the time
	tableInput                     // tokens
	tableOutput                    // tokens; given input tokens
	tableHit                       // known blocks; given input tokens
	tableFresh                     // new blocks, in place of known ones; given input tokens
	tableTrunk                     // blocks that most requests begin with: bounds of what is known of it
	tableShared                    // of the known blocks, those that many others know
	tableDistance                  // blocks; given known blocks
	tableTurn                      // from 0
	tableBack                      // sessions active since
	tablePause                     // ns, noPause for a turn that does not wait
	tableKinds
)

var tableNames = [tableKinds]string{"time_ns", "inter_arrival_ns", "category", "input_tokens", "output_tokens", "hit_blocks",
	"new_blocks", "trunk_blocks", "shared_blocks", "reuse_distance_blocks", "turn", "back_sessions", "pause_ns"}

const (
	noPause     = -1
	anyCategory = category(255)
)

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

// times draws n arrivals within span, in order. Where the source tells the gaps
// between arrivals they are drawn independently and stretched to the span; else
// arrivals are Poisson at the rate of their cell of time, given their number.
// Beyond the period of the model its rates come again.
func (m *cellModel) times(r *rand.Rand, n int, span, period int64) []int64 {
	out := make([]int64, n)
	if g := m.tables[tableGap].groupFor(anyCategory, 0); g != nil {
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
	whole := m.tables[tableTime].groupFor(anyCategory, 0)
	last := whole.clipped(span % period)
	for i := range out {
		turn := r.Int64N(span) / period
		g := whole
		if turn == span/period {
			g = last
		}
		out[i] = turn*period + g.drawValue(r)
	}
	slices.Sort(out)
	return out
}

// clipped returns the part of a group of times that lies before end; when that is nothing,
// every time before end alike.
func (g *group) clipped(end int64) *group {
	var cells []cell
	for _, c := range g.cells {
		if c.lo >= end {
			continue
		}
		if hi := min(c.hi, end-1); hi < c.hi {
			c.count, c.hi = mulDiv(c.count, hi-c.lo+1, c.hi-c.lo+1), hi
		}
		if c.count > 0 {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		cells = []cell{{0, max(0, end-1), 1}}
	}
	out := every(cells)
	return &out
}

// request draws the tuple of a request that arrives at a time of the model's
// clock.
func (m *cellModel) request(r *rand.Rand, at int64, size int) tuple {
	c := category(m.tables[tableCategory].drawValue(r, anyCategory, at, int64(uncategorised)))
	in := m.tables[tableInput].drawValue(r, c, 0, 1)
	t := tuple{user: none, tail: int32(in)}
	t.output = int32(m.tables[tableOutput].drawValue(r, c, in, 1))
	if size > 0 && in > 0 {
		n := int64(block.Count(int(t.tail), size))
		hit := m.hit(r, c, in, n)
		t.hit, t.fresh, t.tail = int32(hit), int32(n-hit), int32(in-(n-1)*int64(size))
		switch {
		case hit == 0:
			c = cold
		case hit == n:
			c = duplicate
		}
		t.category = c
	}
	if t.hit > 0 {
		m.depth(r, &t)
	}
	m.turn(r, c, &t)
	return t
}

// depth draws where in the LRU stack the known blocks of t lie.
func (m *cellModel) depth(r *rand.Rand, t *tuple) {
	distances := m.tables[tableDistance]
	shared := t.hit
	if t.category != global {
		shared = min(int32(m.tables[tableShared].drawValue(r, t.category, 0, 0)), t.hit)
	}
	if g := m.tables[tableTrunk].groupFor(anyCategory, 0); g != nil {
		// How deep it is is not known exactly, but it is one depth for all.
		lo, hi := int32(g.cells[0].lo), int32(g.cells[0].hi)
		switch {
		case shared >= lo:
			t.trunk = min((lo+hi)/2, t.hit+t.fresh)
		case lo == hi && t.category == global: // it is known exactly, and left early
			t.trunk = t.hit
		}
		if lo <= shared && shared <= hi {
			if shared = min(t.trunk, t.hit); t.category == global && t.fresh+t.hit > t.trunk {
				t.fresh, t.hit, shared = t.fresh+t.hit-t.trunk, t.trunk, t.trunk
			}
		}
	}
	t.distance = distances.drawValue(r, t.category, int64(t.hit), 1)
	head := t.distance
	if shared < t.hit && shared > 0 {
		head = min(head, distances.drawValue(r, global, int64(shared), 1))
	}
	for q := range t.profile {
		// Paths are as if touched by two requests at most: the head by any that
		// shares it, the rest by the one that is extended.
		depth := quarter(t.hit, q+1)
		if depth <= shared {
			t.profile[q] = max(1, head-int64(shared-depth))
		} else {
			t.profile[q] = max(1, t.distance-int64(t.hit-depth))
		}
	}
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

// turn draws what a request builds on, and how it joins its session.
func (m *cellModel) turn(r *rand.Rand, c category, t *tuple) {
	turn := int32(m.tables[tableTurn].drawValue(r, c, 0, 0))
	if t.category > global {
		t.chain = max(1, turn)
	}
	if !m.sessions {
		return
	}
	t.turn, t.join = turn, opens
	if turn == 0 {
		return
	}
	t.join = byTree
	if c != continuation {
		t.join, t.back = byRecency, max(1, m.tables[tableBack].drawValue(r, c, 0, 1))
	}
	if p := m.tables[tablePause].drawValue(r, c, 0, noPause); p != noPause {
		t.waits, t.pause = true, &pause{think: &p}
	}
}
