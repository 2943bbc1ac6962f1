package synth

import (
	"math"
	"slices"
)

// A shaper makes tables of noisy histograms. All of it is post-processing: it
// sees nothing but what the noise let through, and costs no budget.
type shaper struct {
	*layout
	noisy [histograms]*noisy
	model *cellModel
}

// A marginal is a histogram at quarter octaves with the sums of its octaves.
type marginal struct {
	fine, octave []float64 // shares
	within       []int     // octave of each fine cell
}

// fit makes shares of what stands out; without anything, of the lowest cell.
func (s *shaper) fit(x []float64, fine, coarse scale) marginal {
	f := marginal{fine: shares(x), octave: make([]float64, coarse.cells()), within: make([]int, len(x))}
	if f.fine == nil {
		f.fine = make([]float64, len(x))
		f.fine[min(1, len(x)-1)] = 1
	}
	for i := range x {
		f.within[i] = coarse.cellOf(fine.lows[i])
		f.octave[f.within[i]] += f.fine[i]
	}
	return f
}

// spread is the shares of the fine cells when those of the octaves are so.
func (f *marginal) spread(octaves []float64) []float64 {
	out := make([]float64, len(f.fine))
	for i, o := range f.within {
		if f.octave[o] > 0 {
			out[i] = octaves[o] * f.fine[i] / f.octave[o]
		}
	}
	return out
}

// times fills the tables of time and category, and returns the end of the last
// period that has requests and the shares of the categories.
func (s *shaper) times() (end int64, of []float64) {
	h := s.noisy[ofHours]
	clean := h.clean()
	x := make([][]float64, periods)
	period, of := make([]float64, periods), make([]float64, categoryCount)
	busy := 0.0
	for p := range x {
		x[p] = clean[p*categoryCount : (p+1)*categoryCount]
		if slices.Max(x[p]) <= sure*h.spec.SD {
			continue // one noisy cell late in the span would make all of it longer
		}
		busy++
		for c, v := range x[p] {
			period[p] += v
			of[c] += float64(h.cells[p*categoryCount+c])
		}
	}
	for c := range of { // all periods together tell rare categories from noise
		if of[c] <= 3*h.spec.SD*math.Sqrt(busy) {
			of[c] = 0
		}
	}
	if shares(period) == nil || shares(of) == nil { // nothing is known but that there is a span
		period, of = slices.Repeat([]float64{1}, periods), make([]float64, categoryCount)
		of[min(s.size, 1)] = 1 // cold, or without blocks
	}
	period, of = shares(period), shares(of)
	rake(x, period, of)
	edge := func(p int) int64 { return mulDiv(s.span, int64(p), periods) }
	itself := func(i int) (int64, int64) { return int64(i), int64(i) }
	t := &s.model.tables
	for p, row := range x {
		if cells := cellsOf(row, itself); period[p] > 0 && len(cells) > 0 {
			end = edge(p + 1)
			t[tableCategory] = append(t[tableCategory], newGroup(anyCategory, edge(p), end-1, cells))
		}
	}
	t[tableTime] = cellTable{every(cellsOf(period, func(p int) (int64, int64) { return edge(p), edge(p+1) - 1 }))}
	t[tableCategory] = append(t[tableCategory], every(cellsOf(of, itself)))
	return end, of
}

// lengths fills the tables of lengths and of what is known of them.
func (s *shaper) lengths(of []float64, in, out marginal) {
	byCategory := make([][]float64, categoryCount) // × octave of input
	deep := make([][][]float64, categoryCount)     // × octave of input × octave of blocks
	for c := range byCategory {
		byCategory[c] = make([]float64, s.in.cells())
		deep[c] = make([][]float64, s.in.cells())
		for i := range deep[c] {
			deep[c][i] = make([]float64, s.blocks.cells())
		}
	}
	if s.size > 0 {
		for at, x := range s.noisy[ofReuse].clean() {
			r := s.reuse[at]
			byCategory[r.category][r.in] += x
			deep[r.category][r.in][r.blocks] += x
		}
	}
	rake(byCategory, of, in.octave)
	for c := range category(categoryCount) {
		if cells := cellsOf(in.spread(byCategory[c]), s.fineIn.edges); len(cells) > 0 {
			s.model.tables[tableInput] = append(s.model.tables[tableInput], newGroup(c, 0, math.MaxInt64, cells))
		}
		if hasDepth(c) && s.size > 0 {
			s.depths(c, deep[c])
		}
	}
	s.model.tables[tableInput] = append(s.model.tables[tableInput], every(cellsOf(in.fine, s.fineIn.edges)))
	joint := make([][]float64, s.in.cells())
	for i, x := 0, s.noisy[ofLengths].clean(); i < len(joint); i++ {
		joint[i] = x[i*s.out.cells() : (i+1)*s.out.cells()]
	}
	rake(joint, in.octave, out.octave)
	for i, row := range joint {
		if cells := cellsOf(out.spread(row), s.fineOut.edges); len(cells) > 0 {
			lo, hi := s.in.edges(i)
			s.model.tables[tableOutput] = append(s.model.tables[tableOutput], newGroup(anyCategory, lo, hi, cells))
		}
	}
	s.model.tables[tableOutput] = append(s.model.tables[tableOutput], every(cellsOf(out.fine, s.fineOut.edges)))
}

// depths fills the table of hit blocks, or of new ones for next turns, of one
// category: for each octave of input, and for all the others their sum.
func (s *shaper) depths(c category, byInput [][]float64) {
	k := tableHit
	if c == continuation {
		k = tableFresh
	}
	sum := make([]float64, s.blocks.cells())
	add := func(from, to int64, x []float64) {
		if cells := cellsOf(x, s.blocks.edges); len(cells) > 0 {
			s.model.tables[k] = append(s.model.tables[k], newGroup(c, from, to, cells))
		}
	}
	for i, x := range byInput {
		lo, hi := s.in.edges(i)
		add(lo, hi, x)
		for b, v := range x {
			sum[b] += v
		}
	}
	add(0, math.MaxInt64, sum)
}

// shared fills the tables of what many know.
func (s *shaper) shared() {
	if s.size == 0 {
		return
	}
	s.nodes.weigh(shares(s.noisy[ofNodes].clean()))
	s.model.tables[tableShared] = s.byCategory(s.noisy[ofShared].clean(), s.blocks, s.blocks.edges)
	if d := s.nodes.trunk(); d != none {
		s.model.tables[tableTrunk] = cellTable{every([]cell{{1 << d, 2<<d - 1, 1}})}
	}
}

// rake scales the rows and the columns of x in turn until they have these sums
// (iterative proportional fitting: Deming and Stephan 1940). A little of what
// independence would give is added first, so that a row and a column that both
// have requests always meet.
func rake(x [][]float64, rows, columns []float64) {
	const little, rounds = 1e-4, 100
	sum := 0.0
	for _, r := range x {
		for _, v := range r {
			sum += v
		}
	}
	if sum == 0 {
		sum = 1
	}
	for i, r := range x {
		for j := range r {
			r[j] = r[j]/sum + little*rows[i]*columns[j]
		}
	}
	for range rounds {
		for i, r := range x {
			scaleTo(rows[i], len(r), func(j int) *float64 { return &r[j] })
		}
		for j := range columns {
			scaleTo(columns[j], len(x), func(i int) *float64 { return &x[i][j] })
		}
	}
}

func scaleTo(want float64, n int, at func(int) *float64) {
	sum := 0.0
	for i := range n {
		sum += *at(i)
	}
	if sum > 0 {
		for i := range n {
			*at(i) *= want / sum
		}
	}
}

// turns fills the tables of turns and pauses.
func (s *shaper) turns() {
	if h := s.noisy[ofTurn]; h != nil {
		s.model.tables[tableTurn] = s.byCategory(h.clean(), s.turnScale, s.turnScale.edges)
	}
	if h := s.noisy[ofPause]; h != nil {
		cells := cellsOf(h.clean(), func(i int) (int64, int64) {
			if i == 0 {
				return noPause, noPause
			}
			lo, hi := s.ms.edges(i - 1)
			return lo * nsPerMS, hi*nsPerMS + nsPerMS - 1
		})
		if len(cells) > 0 {
			s.model.tables[tablePause] = cellTable{every(cells)}
		}
	}
}

// byCategory makes a table of a histogram of categories × a scale, with the sum
// of all for those without.
func (s *shaper) byCategory(x []float64, sc scale, edges func(int) (int64, int64)) cellTable {
	var t cellTable
	sum := make([]float64, sc.cells())
	for c := range category(categoryCount) {
		row := x[int(c)*sc.cells():][:sc.cells()]
		if cells := cellsOf(row, edges); len(cells) > 0 {
			t = append(t, newGroup(c, 0, math.MaxInt64, cells))
		}
		for i, v := range row {
			sum[i] += v
		}
	}
	if cells := cellsOf(sum, edges); len(cells) > 0 {
		t = append(t, every(cells))
	}
	return slices.Clip(t)
}
