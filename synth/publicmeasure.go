package synth

import (
	"math"
	"math/bits"
	"slices"

	"reprise/anonymize/dp"
	"reprise/trace"
	"reprise/trace/block"
)

// The histograms that a public model is made of, in the order of their noise.
const (
	ofRequests = iota // one cell: how many
	ofHours           // period of the capture × category
	ofLengths         // octave of input × octave of output
	ofInput           // quarter octaves
	ofOutput          // quarter octaves
	ofReuse           // category × octave of input × octave of hit or fresh blocks
	ofNodes           // none, or the deepest public node
	ofShared          // category × octave of the blocks that all know, where the unit itself knows more
	ofGap             // category × octave of milliseconds since the prefix was touched
	ofTurn            // category × octave of the turn
	ofPause           // none, or octave of milliseconds
	histograms
)

// Shares of the budget. The rest, selectionShare, selects the public
// nodes: 60 % go to lengths, since an error in a rare long request is one in the
// total of tokens.
const (
	selectionShare = 0.10
	periods        = 24 // of the capture
	categoryCount  = int(branch) + 1
)

var histogramNames = [histograms]string{"requests", "periods by category", "input by output", "input", "output",
	"reuse", "public prefixes", "shared", "gap", "turn", "pause"}

var histogramWeights = [histograms]float64{0.04, 0.05, 0.12, 0.24, 0.24, 0.10, 0.02, 0.01, 0.03, 0.02, 0.01}

// A layout holds the cells of all histograms. They are public: they follow from
// the declared capture, the caps, the block size, what kinds of columns the trace
// has, and the nodes that were selected.
type layout struct {
	bound                   dp.Contribution
	clip                    int64 // of the requests of a unit, where they are counted
	size                    int
	sessions                bool
	span                    int64 // ns, of the declared capture
	in, out                 scale
	fineIn, fineOut, blocks scale
	ms, turnScale           scale
	nodes                   *publicNodes
	reuse                   []reuseCell
	reuseAt                 map[reuseCell]int
}

// A reuseCell is one of the histogram ofReuse.
type reuseCell struct {
	category   category
	in, blocks int
}

// clipFactor is how many times as many requests of a unit count where only
// their number is asked for.
const clipFactor = 8

func newLayout(o *PublicOptions, meta trace.Meta, sessions bool) *layout {
	size := meta.BlockSize
	l := &layout{bound: o.Contribution, clip: clipFactor * int64(o.Contribution.Records), size: size, sessions: sessions,
		span: int64(meta.Capture.Length()), nodes: &publicNodes{}, in: octaves(int64(o.MaxInput)), out: octaves(int64(o.MaxOutput)),
		fineIn: quarters(int64(o.MaxInput)), fineOut: quarters(int64(o.MaxOutput)),
		ms: octaves(1 << 35), turnScale: octaves(1 << 12), reuseAt: map[reuseCell]int{}}
	if o.Unit == UnitRequest {
		l.clip = 1
	}
	if size == 0 {
		return l
	}
	l.blocks = octaves(int64(block.Count(int(o.MaxInput), size)))
	for c := range category(categoryCount) {
		for i := range l.in.cells() {
			_, most := l.in.edges(i)
			deepest := 1
			if hasDepth(c) {
				deepest = l.blocks.cellOf(int64(block.Count(int(most), size))) + 1
			}
			for b := min(1, deepest-1); b < deepest; b++ { // 0 blocks are another category
				x := reuseCell{c, i, b}
				l.reuseAt[x] = len(l.reuse)
				l.reuse = append(l.reuse, x)
			}
		}
	}
	return l
}

// hasDepth says whether requests of a category differ in how much is known.
func hasDepth(c category) bool { return c == global || c == continuation || c == branch }

// cells is how many a histogram has, 0 when it is not measured.
func (l *layout) cells(h int) int {
	switch h {
	case ofRequests:
		return 1
	case ofHours:
		return periods * categoryCount
	case ofLengths:
		return l.in.cells() * l.out.cells()
	case ofInput:
		return l.fineIn.cells()
	case ofOutput:
		return l.fineOut.cells()
	case ofReuse:
		return len(l.reuse)
	case ofNodes:
		if l.size > 0 {
			return 1 + len(l.nodes.list)
		}
	case ofShared:
		if l.size > 0 {
			return categoryCount * l.blocks.cells()
		}
	case ofGap:
		if l.size > 0 || l.sessions {
			return categoryCount * l.ms.cells()
		}
	case ofTurn:
		if l.size > 0 || l.sessions {
			return categoryCount * l.turnScale.cells()
		}
	case ofPause:
		if l.sessions {
			return 1 + l.ms.cells()
		}
	}
	return 0
}

// contribution is what one unit adds to a histogram at most. Where there are
// many cells a unit counts a few times in each, which keeps Gaussian noise low.
// Where there are few, that would even out what is common: eight next turns
// would count as two.
func (l *layout) contribution(h int) dp.Contribution {
	switch h {
	case ofRequests:
		return dp.Contribution{Records: int(l.clip), PerCell: int(l.clip)}
	case ofLengths, ofInput, ofOutput:
		return l.bound
	}
	return dp.Contribution{Records: l.bound.Records, PerCell: l.bound.Records}
}

// measurements lists what is measured, for the plan of the noise.
func (l *layout) measurements() (ms []dp.Measurement, which []int) {
	for h := range histograms {
		if n := l.cells(h); n > 0 {
			ms = append(ms, l.contribution(h).Measurement(histogramNames[h], n, histogramWeights[h]))
			which = append(which, h)
		}
	}
	return ms, which
}

// count is histogram h of the kept records, before noise. Only records that fall
// into a cell count.
func (l *layout) count(h int, units []unit) (cells []int64, dropped int64) {
	cells = make([]int64, l.cells(h))
	if h == ofRequests {
		for i := range units {
			cells[0] += min(units[i].Seen, l.clip)
		}
		return cells, 0
	}
	bound := l.contribution(h)
	for i := range units {
		dropped += int64(dp.Bounded(bound, &units[i].Sample, func(r record) int {
			return l.cell(h, &r)
		}, func(at int) {
			if at >= 0 {
				cells[at]++
			}
		}))
	}
	return cells, dropped
}

// cell is where a record counts, or none.
func (l *layout) cell(h int, r *record) int {
	c, blocks, shared := l.nodes.classify(r)
	switch h {
	case ofHours:
		return int(mulDiv(r.at, periods, l.span))*categoryCount + int(c)
	case ofLengths:
		return l.in.cellOf(r.input)*l.out.cells() + l.out.cellOf(r.output)
	case ofInput:
		return l.fineIn.cellOf(r.input)
	case ofOutput:
		return l.fineOut.cellOf(r.output)
	case ofReuse:
		x := reuseCell{category: c, in: l.in.cellOf(r.input)}
		if hasDepth(c) {
			x.blocks = l.blocks.cellOf(int64(blocks))
		}
		if at, ok := l.reuseAt[x]; ok {
			return at
		}
	case ofNodes:
		return 1 + l.nodes.deepest(r)
	case ofShared:
		if c == duplicate || c == continuation || c == branch {
			return int(c)*l.blocks.cells() + l.blocks.cellOf(int64(shared))
		}
	case ofGap:
		if r.gap != none {
			return int(c)*l.ms.cells() + l.ms.cellOf(r.gap/nsPerMS)
		}
	case ofTurn:
		return int(c)*l.turnScale.cells() + l.turnScale.cellOf(int64(r.turn))
	case ofPause:
		if r.turn == 0 {
			return none
		}
		if r.pause == none {
			return 0
		}
		return 1 + l.ms.cellOf(r.pause/nsPerMS)
	}
	return none
}

// A noisy histogram.
type noisy struct {
	spec  dp.NoiseSpec
	cells []int64
}

// clean leaves the cells that stand out of the noise.
func (n *noisy) clean() []float64 {
	out := make([]float64, len(n.cells))
	least := n.spec.Threshold()
	for i, x := range n.cells {
		if x > least {
			out[i] = float64(x)
		}
	}
	return out
}

// sure is the number of standard deviations above which a cell is no noise.
const sure = 6

// line is clean for the cells of one quantity in their order: what stands out
// must be beyond doubt, or beside such a cell. Noise far out, in a cell of long
// requests, would else now and then make most of the tokens.
func (n *noisy) line() []float64 {
	out, kept := n.clean(), make([]bool, len(n.cells))
	grow := func(i int, beside bool) bool {
		kept[i] = kept[i] || out[i] > 0 && (beside || float64(n.cells[i]) > sure*n.spec.SD)
		return kept[i]
	}
	beside := false
	for i := range out {
		beside = grow(i, beside)
	}
	beside = false
	for i := len(out) - 1; i >= 0; i-- {
		beside = grow(i, beside)
	}
	for i := range out {
		if !kept[i] {
			out[i] = 0
		}
	}
	return out
}

// shares is clean as parts of their sum, or nil where nothing stands out: the
// projection onto the simplex that keeps the proportions.
func shares(x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	if sum == 0 || math.IsNaN(sum) {
		return nil
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / sum
	}
	return out
}

// A scale cuts the numbers from 0 up to a public limit into cells. Nothing of
// it depends on data. What is above the limit counts in the last cell.
type scale struct {
	lows []int64 // first value of each cell
	last int64   // last value of the last cell
}

// octaves cuts at the powers of two: 0, 1, 2-3, 4-7 and so on.
func octaves(limit int64) scale {
	s := scale{lows: []int64{0}, last: limit}
	for lo := int64(1); lo <= limit; lo *= 2 {
		s.lows = append(s.lows, lo)
	}
	return s
}

// quarters cuts each octave in four.
func quarters(limit int64) scale {
	s := scale{lows: []int64{0}, last: limit}
	for lo := int64(1); lo <= limit; lo += max(1, int64(1)<<bits.Len64(uint64(lo))>>3) {
		s.lows = append(s.lows, lo)
	}
	return s
}

func (s scale) cells() int { return len(s.lows) }

// cellOf returns the cell of a value of at least 0.
func (s scale) cellOf(v int64) int {
	i, found := slices.BinarySearch(s.lows, v)
	if !found {
		i--
	}
	return i
}

// edges are the first and the last value of cell i.
func (s scale) edges(i int) (lo, hi int64) {
	if i+1 < len(s.lows) {
		return s.lows[i], s.lows[i+1] - 1
	}
	return s.lows[i], s.last
}

// middle is the mean of the values of cell i.
func (s scale) middle(i int) float64 {
	lo, hi := s.edges(i)
	return (float64(lo) + float64(hi)) / 2
}
