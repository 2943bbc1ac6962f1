package fidelity

import (
	"maps"
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/sample"
)

// idcScales are the widths of window in ms at which counts are compared.
var idcScales = [...]int64{100, 500, 1000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000}

const nsPerMS = 1_000_000

// A signatureTally is what was measured of the requests that count.
type signatureTally struct {
	requests    int64
	in, out     int64 // tokens
	first, last int64 // arrivals

	input, output valueCounts
	pairs         pairTally
	kept          *keptRows
	sample        tupleSample
	arrivals      *profile.Profiler // of nothing but arrivals: it finds their CV and their clock
	arrived       [1]trace.Request
	windows       [len(idcScales)]windowTally

	thinks           int64
	think, reuseTime profile.Histogram

	blocks             bool // the trace has blocks
	categories         map[string]int64
	bySource, inferred sessionTally

	curve        map[int64]float64 // hit ratios by block by capacity; nil without references
	references   float64           // blocks of the requests that count
	ratios       profile.HitRatios
	unique       int64 // distinct blocks, of the history too
	sampledCurve bool
	oneIn        int64 // trees in which categories, inferred sessions and reuse times are counted; 0 for all
}

// count takes a request that counts.
func (t *signatureTally) count(r *trace.Request, row int64, hit int) error {
	if t.requests == 0 {
		t.first = r.ArrivalNS
	}
	t.requests++
	t.last = r.ArrivalNS
	t.in += int64(r.InputTokens)
	t.out += int64(r.OutputOr(0))
	t.input[int64(r.InputTokens)]++
	if r.OutputTokens != nil {
		t.output[int64(*r.OutputTokens)]++
	}
	t.sample.add(sampledTuple{row, r.InputTokens, r.OutputOr(-1), int32(hit), int32(len(r.Blocks) - hit)})
	for i, width := range idcScales {
		t.windows[i].add((r.ArrivalNS - t.first) / (width * nsPerMS))
	}
	t.arrived[0].ArrivalNS = r.ArrivalNS
	if _, err := t.arrivals.Write(t.arrived[:]); err != nil {
		return err
	}
	if r.ThinkNS != nil && *r.ThinkNS >= 0 {
		t.thinks++
		t.think.Add(*r.ThinkNS, 1)
	}
	if r.Category != "" {
		t.categories[r.Category]++
	}
	return nil
}

// valueCounts says how often each value came.
type valueCounts map[int64]int64

// A valueCount is a value and how often it came.
type valueCount struct{ v, n int64 }

// sorted lists the values in ascending order.
func (c valueCounts) sorted() valueList {
	list := make(valueList, 0, len(c))
	for _, v := range slices.Sorted(maps.Keys(c)) {
		list = append(list, valueCount{v, c[v]})
	}
	return list
}

// bucketList lists the buckets by their middles.
func bucketList(h *profile.Histogram) valueList {
	var list valueList
	for _, b := range h.Buckets() {
		list = append(list, valueCount{b.Lo + (b.Hi-b.Lo-1)/2, b.Count})
	}
	return list
}

// A windowTally says how many windows had how many arrivals. That is exact and
// small: an hour of windows of a tenth of a second holds few different counts.
type windowTally struct {
	window, count int64 // the window being filled
	windows       valueCounts
}

// add takes one arrival in window k, which never falls. The window of the last
// arrival is not whole and never counted.
func (w *windowTally) add(k int64) {
	if k != w.window {
		if w.windows == nil {
			w.windows = valueCounts{}
		}
		w.windows[w.count]++
		if empty := k - w.window - 1; empty > 0 {
			w.windows[0] += empty
		}
		w.window, w.count = k, 0
	}
	w.count++
}

// idc is the sample variance of the counts over their mean; nil below two
// windows.
func (w *windowTally) idc() *float64 {
	if w.window < 2 {
		return nil
	}
	var sum int64
	for c, n := range w.windows {
		sum += c * n
	}
	mean := float64(sum) / float64(w.window)
	var squares float64
	for _, b := range w.windows.sorted() {
		squares += (float64(b.v) - mean) * (float64(b.v) - mean) * float64(b.n)
	}
	return trace.Ptr(squares / float64(w.window-1) / mean)
}

// A sessionTally counts turns.
type sessionTally struct {
	ids   trace.Renumber
	last  []int64 // by session: arrival of its latest request
	turns []int64 // and how many of its requests count
	gaps  gapTally
}

// exactGaps is up to how many gaps are kept as they are.
const exactGaps = 1 << 20

// A gapTally keeps times, exactly up to [exactGaps] of them and in buckets beyond.
type gapTally struct {
	exact   valueCounts
	n       int
	buckets profile.Histogram
}

func (t *gapTally) add(ns int64) {
	if t.exact == nil {
		t.exact = valueCounts{}
	}
	t.n++
	t.buckets.Add(ns, 1)
	if t.n <= exactGaps {
		t.exact[ns]++
	}
}

// gapLists lists the gaps of both sides: as they are where both kept them all, else by the
// middles of buckets.
func gapLists(a, b *gapTally) (valueList, valueList) {
	if max(a.n, b.n) <= exactGaps {
		return a.exact.sorted(), b.exact.sorted()
	}
	return bucketList(&a.buckets), bucketList(&b.buckets)
}

// add takes a request. Its turn gap begins at the arrival of the parent, or
// where that is nil at the session's latest request.
func (t *sessionTally) add(session, arrival int64, parent *int64, counted bool) {
	i := int(t.ids.ID(uint64(session)))
	began := i == len(t.last)
	if began {
		t.last, t.turns = append(t.last, arrival), append(t.turns, 0)
	}
	since := t.last[i]
	if parent != nil {
		since = *parent
	}
	t.last[i] = arrival
	if counted {
		t.turns[i]++
		if !began {
			t.gaps.add(arrival - since)
		}
	}
}

// lengths says how many sessions had how many turns that count.
func (t *sessionTally) lengths() valueCounts {
	c := valueCounts{}
	for _, n := range t.turns {
		if n > 0 {
			c[n]++
		}
	}
	return c
}

// A lengthPair is the input and the output length of a request.
type lengthPair struct{ in, out int32 }

// scatter hashes a number for sampling.
func scatter(z uint64) uint64 { return sample.Mix64(z + sample.Golden) }

// inSample tells whether a hash is in a sample of one in 2^shift.
func inSample(hash uint64, shift uint) bool { return shift == 0 || hash>>(64-shift) == 0 }

func (p lengthPair) hash() uint64 { return scatter(uint64(uint32(p.in))<<32 | uint64(uint32(p.out))) }

// A pairCount says how many requests have a pair of lengths: all, those that count, and those in the first part.
// A million pairs are kept, so that their size counts; 2^32 requests of one pair would be too many.
type pairCount struct{ all, counted, first uint32 }

func (n pairCount) parts() [2]int64 { return [2]int64{int64(n.first), int64(n.all - n.first)} }

// partRows is of how many rows a stretch is that belongs to one part of a trace as a whole: requests sent again
// follow soon, and would be what the parts have in common.
const partRows = 32

// inFirstPart tells to which of two parts a row belongs, which are alike over any longer time.
func inFirstPart(row int64) bool { return row/partRows%2 == 0 }

// A pairTally counts distinct pairs of lengths, those of the history too. Above limit pairs it keeps those whose hash
// begins with shift zero bits, and gives up half of them as often as needed.
type pairTally struct {
	limit int
	shift uint
	n     map[lengthPair]pairCount
}

func (c *pairTally) add(p lengthPair, row int64, counted bool) {
	if !inSample(p.hash(), c.shift) {
		return
	}
	n := c.n[p]
	n.all++
	if inFirstPart(row) {
		n.first++
	}
	if counted {
		n.counted++
	}
	c.n[p] = n
	for len(c.n) > c.limit {
		c.shift++
		for p := range c.n {
			if !inSample(p.hash(), c.shift) {
				delete(c.n, p)
			}
		}
	}
}

// A sampledTuple is what is correlated of a request.
type sampledTuple struct {
	row                 int64
	in, out, hit, fresh int32
}

// A tupleSample keeps requests; above limit those whose hashed row number begins
// with shift zero bits, as [pairTally] does.
type tupleSample struct {
	limit int
	shift uint
	rows  []sampledTuple
}

func (s *tupleSample) add(r sampledTuple) {
	if !inSample(scatter(uint64(r.row)), s.shift) {
		return
	}
	s.rows = append(s.rows, r)
	for len(s.rows) > s.limit {
		s.shift++
		left := s.rows[:0]
		for _, r := range s.rows {
			if inSample(scatter(uint64(r.row)), s.shift) {
				left = append(left, r)
			}
		}
		s.rows = left
	}
}

// A valueList is values in ascending order, with how often each came.
type valueList []valueCount

// total adds up how often all values came.
func (l valueList) total() (n int64) {
	for _, b := range l {
		n += b.n
	}
	return n
}

// mean returns the mean of values. There must be at least one.
func (l valueList) mean() float64 {
	var sum float64
	for _, b := range l {
		sum += float64(b.v) * float64(b.n)
	}
	return sum / float64(l.total())
}

// median returns the lower median of values. There must be at least one.
func (l valueList) median() float64 {
	half := (l.total() + 1) / 2
	for _, b := range l {
		if half -= b.n; half <= 0 {
			return float64(b.v)
		}
	}
	return math.NaN() // total counts what is here
}
