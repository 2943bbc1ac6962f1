package stage

import (
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"

	"reprise/trace"
	"reprise/trace/profile"
)

var errTooMany = errors.New("a part of the blocks has more than 2^31 of them: take a smaller sample with --one-in")

// capacities in blocks at which the curve is measured: 1, 2 and 5 times each power of 10.
func capacities() (list []int64) {
	for decade := int64(1); decade <= 1e10; decade *= 10 {
		list = append(list, decade, 2*decade, 5*decade)
	}
	return list
}

// A Part is what references to the blocks of one part would find in LRU caches.
type Part struct {
	Index            int
	Blocks           int64 // distinct
	References, Hits int64 // hits in a cache without limit
	Within           []int64
	Half             []int64 // within, by the half of its blocks, scaled to all of them
}

// MeasurePart orders the references of a part, in chunks as [Job.Read] makes them, and finds what an LRU
// cache of each capacity would have had of them.
//
// A part has one block in curveParts·oneIn. A block with d−1 others of the part above it in the stack
// is expected at depth (d−1)·curveParts·oneIn + 1 in the stack of all blocks: that is spatial sampling by hashes
// (SHARDS: Waldspurger, Park, Garthwaite and Ahmad, FAST'15). The half of the part has twice that rate. How much the
// curve differs between both is how much a sample blurs it.
func MeasurePart(index, oneIn int, chunks iter.Seq[[]byte]) (*Figures, error) {
	refs, err := decode(chunks)
	if err != nil {
		return nil, err
	}
	all, half := newStack(), newStack()
	var few []uint64
	refs.each(func(at place, blocks []uint64) {
		all.add(at, blocks)
		few = few[:0]
		for _, id := range blocks {
			if refs.half[id] {
				few = append(few, id)
			}
		}
		half.add(at, few)
	})
	rate := int64(curveParts * oneIn)
	p := Part{Index: index, Blocks: int64(len(refs.half)), References: all.references, Hits: all.hits,
		Within: all.within(rate), Half: half.within(2 * rate)}
	for i, n := range p.Half { // with what the half has too few or too many of, as SHARDS-adj
		p.Half[i] = min(max(2*(n-half.hits)+all.hits, 0), all.hits)
	}
	return &Figures{Parts: []Part{p}}, nil
}

// A stack is the LRU stack of the blocks of a sample.
type stack struct {
	reuse            *profile.Reuse
	references, hits int64
}

func newStack() *stack {
	return &stack{reuse: profile.NewReuse(0, profile.ReuseOptions{ExactBlocks: 1 << 30})}
}

func (s *stack) add(at place, blocks []uint64) {
	if len(blocks) == 0 {
		return
	}
	s.references += int64(len(blocks))
	s.hits += int64(s.reuse.Add(&trace.Request{ArrivalNS: at.arrival, Blocks: blocks}))
}

// within are the hits of caches of each of the capacities, where the stack has one block in rate.
// A cache of c blocks holds some (c−1)/rate of the sample above a block that it just still holds; between two whole
// numbers and a half the hits are in proportion, as in package profile.
func (s *stack) within(rate int64) []int64 {
	depth := func(c int64) (below int64, beyond float64) {
		x := max(float64(c-1)/float64(rate)+0.5, 1)
		return int64(x), x - math.Floor(x)
	}
	var depths []int64
	for _, c := range capacities() {
		d, _ := depth(c)
		depths = append(depths, d, d+1)
	}
	slices.Sort(depths)
	depths = slices.Compact(depths)
	ratios := s.reuse.LRUHitRatios(depths)
	at := func(d int64) float64 {
		i, _ := slices.BinarySearch(depths, d)
		return math.Round(ratios[i] * float64(s.references))
	}
	var hits []int64
	for _, c := range capacities() {
		d, beyond := depth(c)
		hits = append(hits, int64(at(d)+beyond*(at(d+1)-at(d))))
	}
	return hits
}

// studentT is the 97.5 % quantile of Student's t with one degree of freedom less than there are parts.
const studentT = 2.365

// resolution is how many blocks of the sample a cache holds at least whose hit ratio is told.
const resolution = 16

// A Point is the hit ratio by block of an LRU cache.
type Point struct {
	CapacityBlocks *int64  `json:"capacity_blocks"` // null is without limit
	HitRatio       float64 `json:"hit_ratio_by_block"`
	// Error is half of the 95 % interval: from the spread of the parts, and from the difference between them and their
	// halves.
	Error float64 `json:"hit_ratio_error"`
}

// Curve is the LRU curve of all parts, where one block in oneIn is in them and references is the number of references
// to all blocks. The sum of disjoint parts at one rate is the curve of all.
func Curve(parts []Part, oneIn int, references int64) []Point {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Index, b.Index) }) // sums of squares are rounded
	var total Part
	for _, p := range parts {
		total.Blocks, total.References, total.Hits = total.Blocks+p.Blocks,
			total.References+p.References, total.Hits+p.Hits
	}
	expected := float64(references) / float64(oneIn)
	if expected == 0 || total.References == 0 {
		return nil
	}
	lacking := expected - float64(total.References) // hits at the top, as SHARDS-adj has it; 0 where all blocks are in
	ratio := func(hits float64) float64 { return min(max((hits+lacking)/expected, 0), 1) }
	blocks := total.Blocks * int64(oneIn)
	var curve []Point
	point := func(c *int64, of func(*Part) (hits, half float64)) {
		hits, half := 0.0, 0.0
		for i := range parts {
			h, f := of(&parts[i])
			hits, half = hits+h, half+f
		}
		squares := 0.0
		for i := range parts {
			h, _ := of(&parts[i])
			d := h - hits/curveParts
			if oneIn == 1 { // what the parts have together is known: each is off by its share of that alone
				d = h - hits*float64(parts[i].Hits)/float64(max(total.Hits, 1))
			}
			squares += d * d
		}
		chance := studentT * math.Sqrt(squares*curveParts/(curveParts-1)) / expected
		curve = append(curve, Point{CapacityBlocks: c, HitRatio: ratio(hits),
			Error: min(chance+math.Abs(hits-half)/expected, 1)})
	}
	for i, c := range capacities() {
		if c < resolution*curveParts*int64(oneIn) {
			continue
		}
		point(&c, func(p *Part) (float64, float64) { return float64(p.Within[i]), float64(p.Half[i]) })
		if c >= blocks {
			break
		}
	}
	point(nil, func(p *Part) (float64, float64) { return float64(p.Hits), float64(p.Hits) })
	return curve
}
