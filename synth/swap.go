package synth

import (
	"bufio"
	"cmp"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"reprise/trace/sample"
)

// Settings of the swapping. The window keeps swaps local in time: over the
// whole trace they would mix hours of different traffic, and cost the curve of
// hit ratios five times as much. Jitters are standard deviations of logarithms.
// That of the last block is small because many templates differ by a few tokens
// there: at 5 % their peak in the input lengths was smeared, and the distance
// of Kolmogorov and Smirnov doubled; without any, prompts of one rare length
// kept it, and one in 200 met an output that it had been seen with.
const (
	swapWindow = 2000
	swapJitter = 0.05
	tailJitter = 0.005
	jitterFrom = 8 // tokens, or 4 blocks, at and below which nothing is jittered
)

// swapTuples mixes the tuples. Within windows of swapWindow requests it cuts cells of
// at least k by what is known, fresh and put out (Mondrian: LeFevre, DeWitt and
// Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006), and in
// each permutes the units among the places, independently of each other, as
// Anatomy does (Xiao and Tao, VLDB 2006). Depth, distance and category stay
// together: swapped apart they ruin the curve of hit ratios.
//
// A place keeps its user and its time. Fresh blocks and output tokens are
// jittered by 5 %, the tokens of the last block by 0.5 %. What is left: each
// reuse unit still is one that occurred, so this is no differential privacy, and
// a value far from all others stays far.
func swapTuples(tuples []tuple, k, blockSize int, entropy io.Reader) error {
	if entropy == nil {
		entropy = crand.Reader
	}
	src := &entropySource{r: bufio.NewReader(entropy)}
	s := swapper{r: rand.New(src), k: k, size: blockSize}
	for from := 0; from < len(tuples); {
		to := from + swapWindow
		if len(tuples)-to < swapWindow/2 { // a short rest would have coarse cells
			to = len(tuples)
		}
		s.window(tuples[from:to])
		from = to
	}
	if src.err != nil {
		return fmt.Errorf("read random numbers for swapping: %w", src.err)
	}
	return nil
}

// entropySource draws from a reader and keeps its error, after which the draws
// are worth nothing. They still differ: package rand draws again and again until
// a number suits it.
type entropySource struct {
	r    io.Reader
	err  error
	last uint64
}

func (e *entropySource) Uint64() uint64 {
	var b [8]byte
	if e.err == nil {
		_, e.err = io.ReadFull(e.r, b[:])
	}
	if e.err != nil {
		e.last += sample.Golden
		return sample.Mix64(e.last)
	}
	return binary.LittleEndian.Uint64(b[:])
}

type swapper struct {
	r    *rand.Rand
	k    int
	size int
	logs [][4]float64
}

// window swaps among the tuples of one window.
func (s *swapper) window(ts []tuple) {
	old := slices.Clone(ts)
	s.logs = make([][4]float64, len(old))
	for i := range old {
		t := &old[i]
		amount := t.fresh
		if s.size == 0 {
			amount = t.tail
		}
		s.logs[i] = [4]float64{math.Log1p(float64(t.hit)), math.Log1p(float64(t.distance)),
			math.Log1p(float64(amount)), math.Log1p(float64(t.output))}
	}
	for _, group := range s.groups(old) {
		for _, cell := range s.cells(group) {
			s.cell(ts, old, cell)
		}
	}
}

// groups parts the tuples of different labels where each has enough for a cell;
// those of rare labels are together.
func (s *swapper) groups(ts []tuple) [][]int {
	by := map[int32][]int{}
	var order []int32
	for i := range ts {
		l := ts[i].label
		if by[l] == nil {
			order = append(order, l)
		}
		by[l] = append(by[l], i)
	}
	var groups [][]int
	var rare []int
	for _, l := range order {
		if g := by[l]; len(g) < s.k {
			rare = append(rare, g...)
		} else {
			groups = append(groups, g)
		}
	}
	if len(rare) == 0 {
		return groups
	}
	if len(rare) < s.k && len(groups) > 0 {
		groups[0] = append(groups[0], rare...)
		return groups
	}
	return append(groups, rare)
}

// cells cuts a group into cells of at least k, at the median of the dimension
// that is widest in relation to the window.
func (s *swapper) cells(group []int) [][]int {
	var whole [4]float64
	for d := range whole {
		whole[d] = max(1e-9, s.width(group, d))
	}
	var cells [][]int
	open := [][]int{group}
	for len(open) > 0 {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		a, b := s.cut(g, whole)
		if a == nil {
			cells = append(cells, g)
			continue
		}
		open = append(open, a, b)
	}
	return cells
}

func (s *swapper) width(g []int, d int) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, i := range g {
		lo, hi = min(lo, s.logs[i][d]), max(hi, s.logs[i][d])
	}
	return hi - lo
}

// cut halves a cell, or returns nil when no dimension leaves k on both sides.
func (s *swapper) cut(g []int, whole [4]float64) (a, b []int) {
	if len(g) < 2*s.k {
		return nil, nil
	}
	dims := []int{0, 1, 2, 3}
	var width [4]float64
	for d := range width {
		width[d] = s.width(g, d) / whole[d]
	}
	slices.SortStableFunc(dims, func(x, y int) int { return cmp.Compare(width[y], width[x]) })
	for _, d := range dims {
		slices.SortStableFunc(g, func(x, y int) int { return cmp.Compare(s.logs[x][d], s.logs[y][d]) })
		median := s.logs[g[len(g)/2]][d]
		i, _ := slices.BinarySearchFunc(g, median, func(x int, v float64) int { return cmp.Compare(s.logs[x][d], v) })
		if i >= s.k && len(g)-i >= s.k {
			return g[:i:i], g[i:]
		}
	}
	return nil, nil
}

// cell permutes the units of one cell.
func (s *swapper) cell(ts, old []tuple, cell []int) {
	var adding []int // those that add blocks; a duplicate adds none
	for _, i := range cell {
		if old[i].fresh > 0 {
			adding = append(adding, i)
		}
	}
	reuses, tails, adding := s.permuted(cell), s.permuted(cell), s.permuted(adding)
	// Where prompts differ in their last block alone, it and the output are the
	// whole pair of lengths: they never come from one request.
	apart := 0
	if len(cell) > 1 {
		apart = 1 + s.r.IntN(len(cell)-1)
	}
	for j, i := range cell {
		t := &ts[i]
		t.reuse = old[reuses[j]].reuse
		t.ending = s.jitterEnding(old[tails[(j+apart)%len(cell)]].ending)
		switch tail := old[tails[j]].tail; { // the tokens of a partial last block, which stays one
		case s.size == 0:
			t.tail = s.jitter(tail, jitterFrom, swapJitter)
		case int(tail) == s.size:
			t.tail = tail
		default:
			t.tail = min(s.jitter(tail, jitterFrom, tailJitter), int32(s.size)-1)
		}
		switch t.fresh = 0; {
		case s.size == 0:
		case old[reuses[j]].fresh > 0:
			t.fresh = s.jitter(old[adding[0]].fresh, 4, swapJitter)
			adding = adding[1:]
		default:
			t.tail = old[reuses[j]].tail // that of what is repeated
		}
	}
}

func (s *swapper) permuted(g []int) []int {
	p := slices.Clone(g)
	s.r.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	return p
}

// jitter scales n by a log-normal factor, unless it is at most from.
func (s *swapper) jitter(n, from int32, deviation float64) int32 {
	if n <= from {
		return n
	}
	x := math.Round(float64(n) * math.Exp(deviation*s.r.NormFloat64()))
	return int32(max(1, min(x, math.MaxInt32/2)))
}

// jitterEnding changes the output length, within the limit that was asked for.
func (s *swapper) jitterEnding(e ending) ending {
	before := e.output
	now := s.jitter(before, jitterFrom, swapJitter)
	if e.extra == nil {
		e.output = now
		return e
	}
	if limit := e.extra.maxTokens; limit != nil && before <= *limit {
		if before == *limit {
			now = before // ended by its limit
		}
		now = min(now, *limit)
	}
	if r := e.extra.reasoning; r != nil && now != before {
		x := *e.extra
		part := int32(int64(*r) * int64(now) / int64(before))
		x.reasoning = &part
		e.extra = &x
	}
	e.output = now
	return e
}
