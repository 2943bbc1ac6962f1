package synth

import (
	"cmp"
	"math"
	"slices"
)

// swapEndings deals outputs to the prompts that stand in the places now. Those of the
// places before, by the length of their prompts, what was new of it and their place in
// the order, go to the same part of the places by the lengths that these have now, and
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
		label int32
		class class
		usual int
	}
	usual := t.usualOutputs()
	narrow := func(i int32) kind { return kind{t.places[i].label, t.places[i].class, usual[i]} }
	labelled := func(i int32) kind { return kind{t.places[i].label, opens, 0} }
	all := func(i int32) kind { return kind{} }
	t.output = make([]int32, len(t.places))
	var cells [][]int32
	for _, g := range grouped(len(t.places), 2*t.k, narrow, labelled, all) {
		from, to := make([]point, len(g)), make([]point, len(g))
		for a, i := range g {
			from[a] = t.endingPoint(i, int64(t.shapes[i].tokens), t.shapes[i].hit)
			to[a] = t.endingPoint(i, p.tokens(i), p.hit[i])
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

// endingCells is how many times k prompts, at least, an output may come from. Of fewer, outputs stay near their place.
const endingCells = 4

// endingWeights are those of the dimensions of endingPoint.
var endingWeights = [...]float64{1, 1, .2}

func (t *swapping) endingPoint(i int32, tokens int64, hit int32) point {
	added := max(0, tokens-int64(hit)*int64(t.size))
	return point{i, []float64{math.Log1p(float64(tokens)), math.Log1p(float64(added)), float64(i)}}
}

// usualApart is how many times as long outputs are on one template as on another where they are of another kind, such
// as verdicts beside answers.
const usualApart = 2

// usualOutputs numbers for each place the kind of its template by how long outputs there usually are. Those on
// templates of fewer than k places are as those on none.
func (t *swapping) usualOutputs() []int {
	on := begunOn(t.places)
	count, mean := make([]float64, 1+len(t.templates)), make([]float64, 1+len(t.templates)) // of none, and by template
	for i, at := range on {
		count[1+at]++
		mean[1+at] += (math.Log1p(float64(t.places[i].knownOutput())) - mean[1+at]) / count[1+at]
	}
	for i, at := range on {
		if count[1+at] < float64(t.k) {
			on[i] = none
		}
	}
	order := slices.Compact(slices.Sorted(slices.Values(on)))
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(mean[1+a], mean[1+b]) })
	kind, kinds := make([]int, len(mean)), make([]int, len(on))
	for a := 1; a < len(order); a++ {
		kind[1+order[a]] = kind[1+order[a-1]]
		if mean[1+order[a]]-mean[1+order[a-1]] > math.Log(usualApart) {
			kind[1+order[a]]++
		}
	}
	for i, at := range on {
		kinds[i] = kind[1+at]
	}
	return kinds
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
