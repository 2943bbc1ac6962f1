package synth

import "math"

// swapEndings deals outputs to the prompts that stand in the places now. Those of the
// places before, by the length of their prompts, what was new of it and their place in
// the order, go to the same part of the places by the lengths that these have now, and
// there to any of k or more. An output never stays in its place, and never meets a part
// of the size that it came with.
func (t *swapping) swapEndings() {
	m := &Model{places: t.places, labels: t.labels, ends: t.ends}
	m.meta.BlockSize = t.size
	p := &replayed(m, make([]int64, len(t.places))).populations[0]
	old := make([]ending, len(t.places))
	for i := range t.places {
		old[i] = t.places[i].ending
	}
	type kind struct {
		label int32
		class class
	}
	narrow := func(i int32) kind { return kind{t.places[i].label, t.places[i].class} }
	labelled := func(i int32) kind { return kind{t.places[i].label, opens} }
	all := func(i int32) kind { return kind{} }
	for _, g := range grouped(len(t.places), 2*t.k, narrow, labelled, all) {
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
		}
	}
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
	own := func(a, b int) bool { // whether place a would get what it must not from b
		if from[b].place == c.to[a].place {
			return true
		}
		for _, i := range t.from[c.to[a].place] {
			if i == from[b].place {
				return true
			}
		}
		return false
	}
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
	}
}

// jitterEnding changes the output length, within the limit that was asked for.
func (s *swapper) jitterEnding(e ending) ending {
	before := e.output
	now := s.jitter(before, jitterFrom, swapJitter, outputLeast)
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
