package synth

import (
	"math"
	"slices"
)

// swapEndings deals outputs to the prompts that stand in the places now. Those of the
// places before, of one template where that has as many, by the length of their prompts, what was new of it and their
// place in the order, go to the same part of the places by the lengths that these have now, and
// there to any of k or more. An output never stays in its place, and never meets a part
// of the size that it came with.
func (t *swapping) swapEndings() {
	m := &Model{places: t.places, templates: t.templates, labels: t.labels, ends: t.ends}
	m.meta.BlockSize = t.size
	p := &replayed(m, make([]int64, len(t.places))).populations[0]
	old := make([]ending, len(t.places))
	for i := range t.places {
		old[i] = t.places[i].ending
	}
	type kind struct {
		label    int32
		class    class
		template int32
	}
	began := begunOn(t.places)
	narrow := func(i int32) kind { return kind{t.places[i].label, t.places[i].class, began[i]} }
	rooted := func(i int32) kind { k := narrow(i); k.template = rootOf(t.templates, k.template); return k }
	classed := func(i int32) kind { k := narrow(i); k.template = none; return k }
	labelled := func(i int32) kind { return kind{t.places[i].label, opens, none} }
	all := func(i int32) kind { return kind{} }
	t.output = make([]int32, len(t.places))
	var cells [][]int32
	for _, g := range grouped(len(t.places), endingCells*t.k, narrow, rooted, classed, labelled, all) {
		from, to := make([]point, len(g)), make([]point, len(g))
		for a, i := range g {
			sh := &t.shapes[i]
			hit := min(int64(sh.hit)*int64(t.size), int64(sh.tokens))
			from[a] = point{i, endingPoint(i, int64(sh.tokens), int64(sh.tokens)-hit)}
			tokens := p.tokens(i)
			hit = min(int64(p.hit[i])*int64(t.size), tokens)
			to[a] = point{i, endingPoint(i, tokens, tokens-hit)}
		}
		for _, c := range paired(from, to, endingCells*t.k, endingWeights[:]) {
			t.dealEndings(c, old)
			cell := make([]int32, len(c.to))
			for a := range c.to {
				cell[a] = c.to[a].place
			}
			cells = append(cells, cell)
		}
	}
	t.fitEndings(cells)
}

// fitEndings exchanges outputs within their cells until the output tokens of each part of
// the order are about those of the trace.
func (t *swapping) fitEndings(cells [][]int32) {
	course := t.courses[courseOutputs].clone()
	for i := range t.places {
		course.move(int32(i), t.places[i].knownOutput())
	}
	for range sizeRounds {
		for _, c := range cells {
			for range c {
				i, j := c[t.r.IntN(len(c))], c[t.r.IntN(len(c))]
				by := t.places[j].knownOutput() - t.places[i].knownOutput()
				if by == 0 || t.meets(i, t.output[j]) || t.meets(j, t.output[i]) {
					continue
				}
				if course.move(i, by)+course.move(j, -by) > 0 {
					course.move(i, -by)
					course.move(j, by)
					continue
				}
				t.places[i].ending, t.places[j].ending = t.places[j].ending, t.places[i].ending
				t.output[i], t.output[j] = t.output[j], t.output[i]
			}
		}
	}
}

// meets tells whether a place must not get the output of another: its own, or one that came
// with a part of its size.
func (t *swapping) meets(place, other int32) bool {
	return place == other || slices.Contains(t.from[place], other)
}

// endingCells is how many times k prompts, at least, an output may come from. Within
// fewer, outputs stay near their place, and prompts of about the same length are there.
const endingCells = 4

// endingWeights are those of the dimensions of endingPoint.
var endingWeights = [...]float64{1, 1, .2}

func endingPoint(i int32, tokens, added int64) []float64 {
	return []float64{math.Log1p(float64(tokens)), math.Log1p(float64(added)), float64(i)}
}

// dealEndings deals those of the first places of a cell to the second.
func (t *swapping) dealEndings(c pairing, old []ending) {
	from := permuted(c.from, t.r)
	own := func(a, b int) bool { return t.meets(c.to[a].place, from[b].place) }
	for a := range from {
		for off := 1; own(a, a) && off < len(from); off++ {
			b := (a + off) % len(from)
			if !own(a, b) && !own(b, a) {
				from[a], from[b] = from[b], from[a]
			}
		}
	}
	for a := range from {
		t.places[c.to[a].place].ending = t.jitterEnding(old[from[a].place])
		t.output[c.to[a].place] = from[a].place
	}
}

// jitterEnding changes the output length, within the limit that was asked for.
func (t *swapping) jitterEnding(e ending) ending {
	if e.output == none || t.common.outputs[e.output] {
		return e
	}
	before := e.output
	now := t.jitter(before, jitterFrom, swapJitter, outputLeast)
	if t.common.longest > 0 {
		now = min(now, t.common.longest)
	}
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
