package synth

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"reprise/trace"
	"reprise/trace/profile"
)

// histogramSchema names the layout of the histograms that a profile writes,
// under reprise.schema.
const histogramSchema = "histograms/1"

// ErrNotHistograms is the error of [FitHistograms] for a file of another kind.
var ErrNotHistograms = errors.New("it has no reprise.schema = " + histogramSchema + ", so it holds no histograms")

// FitHistograms makes a model of the histograms of a profile, which is all that
// some can share: rows of [profile.HistogramRow] and, as metadata, the block
// size and the tier, which the model inherits. No noise is added.
//
// Requests are drawn from the histograms of their category, each quantity by
// itself. So what is lost is what goes with what: input with output, known
// blocks with new ones; further the course of the rate and its bursts (gaps
// between requests are independent), turns, think times and users.
func FitHistograms(r io.ReaderAt, size int64) (*Model, error) {
	in, err := trace.NewRowsReader[profile.HistogramRow](r, size)
	if err != nil {
		return nil, ErrNotHistograms
	}
	if s, _ := in.Metadata(keySchema); s != histogramSchema {
		return nil, ErrNotHistograms
	}
	var f histogramFit
	if s, ok := in.Metadata(keyBlock); ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1<<20 {
			return nil, errors.New("its block size is not a number from 1 to 1,048,576")
		}
		f.size = n
	}
	err = trace.Each(in, func(row int64, r *profile.HistogramRow) error {
		if r.Category == trace.Global {
			r.Category, f.global = trace.Template, true
		}
		if err := f.set.AddRow(*r); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m := &Model{kSwap: 1, meta: trace.Meta{BlockSize: f.size}}
	for _, p := range inherited(&m.meta) {
		*p.value, _ = in.Metadata(p.key)
	}
	if m.cells, m.span, err = f.tables(); err != nil {
		return nil, err
	}
	m.meta.Digest = m.cellDigest()
	m.finish()
	return m, nil
}

// A histogramFit turns histograms into tables.
type histogramFit struct {
	set   profile.HistogramSet
	size  int
	model cellModel

	global bool // templates are of an earlier version's category global
}

func (f *histogramFit) tables() (*cellModel, int64, error) {
	m := &f.model
	all := f.set.Get(profile.MetricInput, "")
	if m.requests = min(all.Count(), math.MaxInt32); m.requests < 2 {
		return nil, 0, errors.New("the histograms have fewer than two requests")
	}
	if f.size == 0 && f.set.Get(profile.MetricHitBlocks, "").Count()+
		f.set.Get(profile.MetricNewBlocks, "").Count() > 0 {
		return nil, 0, errors.New("the histograms count blocks but have no block size: run profile on the trace again")
	}
	f.trunk()
	var categories []cell
	for c := uncategorised; c <= branch; c++ {
		input := f.metricCells(profile.MetricInput, c)
		if len(input) == 0 {
			continue
		}
		requests := int64(0)
		for _, x := range input {
			requests += x.count
		}
		categories = append(categories, cell{int64(c), int64(c), min(requests, maxWeight>>3)})
		f.addGroup(tableInput, c, input)
		f.addGroup(tableOutput, c, f.metricCells(profile.MetricOutput, c))
		f.reuse(c, requests)
	}
	m.tables[tableCategory] = cellTable{every(categories)}
	if len(m.tables[tableOutput]) == 0 {
		return nil, 0, errors.New("the histograms have no output lengths")
	}
	f.chains()
	span, err := f.arrivals()
	return m, span, err
}

// metricCells returns the cells of a metric for a category; those without one are what
// the categories leave of all.
func (f *histogramFit) metricCells(metric string, c category) []cell {
	counts := map[int64]int64{}
	if c == uncategorised {
		for k := cold; k <= branch; k++ {
			for _, b := range f.set.Get(metric, k.String()).Buckets() {
				counts[b.Lo] += b.Count
			}
		}
	}
	limit := int64(math.MaxInt64 / 4)
	if metric == profile.MetricInput || metric == profile.MetricOutput {
		limit = math.MaxInt32 / 2
	}
	var out []cell
	for _, b := range f.set.Get(metric, c.String()).Buckets() {
		if n := min(b.Count-counts[b.Lo], maxWeight>>12); n > 0 && b.Lo <= limit {
			out = append(out, cell{b.Lo, min(b.Hi-1, limit), n})
		}
	}
	return out
}

func (f *histogramFit) addGroup(k tableKind, c category, cells []cell) {
	if len(cells) > 0 {
		f.model.tables[k] = append(f.model.tables[k], newGroup(c, 0, math.MaxInt64, cells))
	}
}

// reuse fills the tables of what is known. A next turn is drawn by what is new,
// for that depends less on the length of the prompt.
func (f *histogramFit) reuse(c category, requests int64) {
	if f.size == 0 || c == uncategorised || c == cold {
		return
	}
	if c == continuation {
		f.addGroup(tableFresh, c, f.blocks(profile.MetricNewBlocks, c))
	} else if c != duplicate {
		f.addGroup(tableHit, c, f.blocks(profile.MetricHitBlocks, c))
	}
	var distances []cell
	for _, x := range f.metricCells(profile.MetricReuseDistance, c) {
		if x.lo > 0 {
			distances = append(distances, x)
		}
	}
	if t := f.model.tables[tableTrunk]; t != nil && (c != onTemplate || !f.global) {
		distances = withoutLowest(distances, t[0].cells[0].lo*requests)
	}
	f.addGroup(tableDistance, c, distances)
}

// withoutLowest leaves out the n lowest values: the distances of a trunk, which are
// counted with those of what is behind it. It leaves all if there are no more.
func withoutLowest(cells []cell, n int64) []cell {
	for i, c := range cells {
		if n < c.count {
			c.count -= n
			return append([]cell{c}, cells[i+1:]...)
		}
		n -= c.count
	}
	return cells
}

// blocks are the cells of a metric from 1 block on.
func (f *histogramFit) blocks(metric string, c category) []cell {
	var out []cell
	for _, x := range f.metricCells(metric, c) {
		if x.hi = min(x.hi, maxBlocks); x.lo > 0 && x.lo <= maxBlocks {
			out = append(out, x)
		}
	}
	return out
}

// trunk takes the prefix that most requests carry, and every request that knows something to begin with it.
// In histograms of earlier versions it is as deep as the deepest hit of the category global.
func (f *histogramFit) trunk() {
	depths := f.blocks(profile.MetricCommonBlocks, uncategorised)
	if f.global && len(depths) == 0 {
		depths = f.blocks(profile.MetricHitBlocks, onTemplate)
	}
	if f.size == 0 || len(depths) == 0 {
		return
	}
	deepest := depths[len(depths)-1].lo
	f.model.tables[tableTrunk] = cellTable{every([]cell{{deepest, deepest, 1}})}
}

// chains counts after how many requests a next turn follows: in a
// session of n turns once each of 1 to n−1.
func (f *histogramFit) chains() {
	var edges []int64
	var weights []float64
	turns := f.set.Get(profile.MetricTurns, "")
	left, from := float64(turns.Count()), int64(1)
	for _, b := range turns.Buckets() {
		if to := b.Hi - 2; to >= from && to <= math.MaxInt32/2 {
			edges, weights = append(edges, from), append(weights, left*float64(to-from+1))
			from = to + 1
		}
		left -= float64(b.Count)
	}
	edges = append(edges, from)
	f.addGroup(tableTurn, anyCategory, cellsOf(weights, func(i int) (int64, int64) { return edges[i], edges[i+1] - 1 }))
}

// arrivals fills the table of gaps, and returns the span that the requests take.
func (f *histogramFit) arrivals() (int64, error) {
	gaps := f.metricCells(profile.MetricInterArrival, uncategorised)
	total, n := 0.0, 0.0
	for _, g := range gaps {
		total += (float64(g.lo) + float64(g.hi)) / 2 * float64(g.count)
		n += float64(g.count)
	}
	if total < 1000 || total > 1<<60 {
		return 0, errors.New("the histograms have no gaps between requests, or some that are too long")
	}
	f.model.tables[tableGap] = cellTable{every(gaps)}
	return int64(total / n * float64(f.model.requests)), nil
}
