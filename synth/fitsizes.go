package synth

import "slices"

// Settings of fitting sizes.
const (
	sizeRounds = 12   // proposals for each size
	mostMoved  = 1024 // prompts that one proposal may change
)

// A sizeFit has the sizes of a swap while they are exchanged within their cells.
type sizeFit struct {
	*swapping
	now            []int64   // by place: how long its prompt is
	below          [][]int32 // by place: those whose length is its length and more
	moved          []int32   // by place: the prompts that change with it
	lengths        lengthEnergy
	prompts, added courseEnergy
	open           []int32
}

// fitSizes exchanges sizes within their cells until the lengths of all prompts are
// about those of the trace, and so are the tokens of each part of the order: permuted
// alone, a growth may meet a parent that is too long for it, so that prompts pass the
// limit that the server had, and long prompts gather where few were. An exchange is taken
// that brings them no farther away in sum, unless it gives a place its own.
func (t *swapping) fitSizes(cells [][]int32) {
	f := t.newSizeFit()
	for range sizeRounds {
		for _, c := range cells {
			for range c {
				f.tryExchange(c[t.r.IntN(len(c))], c[t.r.IntN(len(c))])
			}
		}
	}
	t.settled()
}

// lengthOf is the place whose length a place has, and more, or none.
func (t *swapping) lengthOf(i int32) int32 {
	switch t.by[i] {
	case moreTokens:
		return t.near[i]
	case ownTokens, allTokens:
		return none
	}
	if p := &t.places[i]; p.class != branches {
		return p.parent
	}
	return none
}

func (t *swapping) newSizeFit() *sizeFit {
	p := t.settled()
	f := &sizeFit{swapping: t, now: make([]int64, len(t.places)), below: make([][]int32, len(t.places)),
		moved: make([]int32, len(t.places))}
	for i := range t.places {
		f.now[i] = p.tokens(int32(i))
		if up := t.lengthOf(int32(i)); up != none {
			f.below[up] = append(f.below[up], int32(i))
		}
	}
	for i := len(f.moved) - 1; i >= 0; i-- {
		f.moved[i]++
		if up := t.lengthOf(int32(i)); up != none {
			f.moved[up] += f.moved[i]
		}
	}
	f.lengths = newLengthEnergy(t.shapes, f.now, t.k)
	f.prompts, f.added = t.courses[coursePrompts].clone(), t.courses[courseBrought].clone()
	for i := range t.places {
		f.prompts.move(int32(i), f.now[i])
		f.added.move(int32(i), t.places[i].size.tokens(t.size))
	}
	return f
}

// tryExchange exchanges the sizes of two places of one cell, unless that is refused.
func (f *sizeFit) tryExchange(i, j int32) {
	p, q := &f.places[i], &f.places[j]
	by := f.amount[j] - f.amount[i]
	switch what := f.by[i]; {
	case by == 0, f.moved[i]+f.moved[j] > mostMoved, slices.Contains(f.from[j], i), slices.Contains(f.from[i], j):
		return
	case what == ownTokens && p.template == q.template && p.trunk != q.trunk:
		return
	}
	if f.lengthen(i, by)+f.lengthen(j, -by) > 0 {
		f.lengthen(i, -by)
		f.lengthen(j, by)
		return
	}
	f.amount[i], f.amount[j] = f.amount[j], f.amount[i]
	f.from[i], f.from[j] = f.from[j], f.from[i]
}

// lengthen lets place i bring so many tokens more, and returns what that adds to the
// energies. The prompts that build on it grow as well.
func (f *sizeFit) lengthen(i int32, by int64) float64 {
	lengths, tokens := 0, 0.0
	f.open = append(f.open[:0], i)
	for at := 0; at < len(f.open); at++ {
		j := f.open[at]
		lengths += f.lengths.move(f.now[j], f.now[j]+by)
		tokens += f.prompts.move(j, by)
		if j == i || f.by[j] == moreTokens { // what it shares is no longer than it was
			tokens += f.added.move(j, by)
		}
		f.now[j] += by
		f.open = append(f.open, f.below[j]...)
	}
	return float64(lengths)*f.lengths.unit() + tokens
}
