package release

import "math"

// shaped makes the tables that sessions are drawn from of noisy ones. The order is that
// of the layout; a table that was not measured stays empty.
func (l *layout) shaped(noisy [tables]noisyTable) (out [tables][]float64) {
	t := &noisy
	n := max(1, t[ofSessions].cells[0])
	if l.users {
		per := project(t[ofPerUnit].cells, n)
		sessions := 0.0
		for i, x := range per {
			if i > 0 && t[ofPerUnit].cells[i] < 5*t[ofPerUnit].sd {
				x = 0 // a few users of noise would be thousands of sessions
			}
			sessions += x * perUser(i)
		}
		out[ofSessions] = []float64{max(1, sessions)}
	} else {
		out[ofSessions] = []float64{n}
	}
	if len(t[ofTrunks].cells) > 0 {
		out[ofTrunks] = project(t[ofTrunks].cells, n)
	}
	input := lengths(&t[ofInput], middles(l.input, fine), n)
	output := lengths(&t[ofOutput], middles(l.output, fine), n)
	out[ofInputFine] = refine(input, &t[ofInputFine], t[ofInput].sd, l.input)
	out[ofOutputFine] = refine(output, &t[ofOutputFine], t[ofOutput].sd, l.output)
	// Prompts of later turns have sizes that first ones may not have, so every row counts.
	out[ofLengths] = columnsOf(alone(&t[ofLengths], middles(l.output, perOctave)), out[ofOutputFine], perOctave)
	out[ofStart] = drifting(&t[ofStart])
	out[ofRate] = shrunk(&t[ofRate])
	if l.later {
		l.shapedTurns(t, n, &out)
	}
	return out
}

// lengths are the cells of a table of lengths, n in all, without noise below 0 and in the
// tail. To cut the noise moves the mean; it is moved back to that of the noisy cells, as
// far as that is known better.
func lengths(t *noisyTable, values []float64, n float64) []float64 {
	cells := project(tailed(t.cells, t.sd, values), n)
	at, noisy, noise := mean(cells, values), 0.0, 0.0
	for i, v := range values {
		noisy += t.cells[i] * v / n
		noise += t.sd * t.sd * (v - at) * (v - at) / n / n
	}
	noisy += at * (1 - sum(t.cells)/n)
	want := at + (noisy-at)/(1+noise/math.Pow(cutMoves*at, 2))
	tilted := func(by float64) []float64 {
		out := make([]float64, len(cells))
		for i, x := range cells {
			out[i] = x * math.Pow(values[i], by)
		}
		whole := max(1e-300, sum(out))
		for i := range out {
			out[i] *= sum(cells) / whole
		}
		return out
	}
	lo, hi := -0.2, 0.2
	for range 30 {
		if by := (lo + hi) / 2; mean(tilted(by), values) < want {
			lo = by
		} else {
			hi = by
		}
	}
	return tilted((lo + hi) / 2)
}

// cutMoves is by how much of itself a mean is usually moved.
const cutMoves = 0.01

// mean is that of values which cells count.
func mean(cells, values []float64) (m float64) {
	for i, x := range cells {
		m += x * values[i]
	}
	return m / max(1e-300, sum(cells))
}

// columnsOf makes the columns of a table sum to what is better known of them: each to so
// many cells of another table. A column is scaled the more the more it stands out of the
// noise; what is left of it is shared among the rows as all columns together are.
func columnsOf(t *noisyTable, known []float64, each int) []float64 {
	rows := make([]float64, t.rows())
	total := 0.0
	for i := range rows {
		rows[i] = sum(t.row(i))
		total += rows[i]
	}
	for j := range t.columns {
		have, want := 0.0, sum(known[j*each:(j+1)*each])
		for i := range rows {
			have += t.row(i)[j]
		}
		own := credible(want, t.sd*float64(len(rows)))
		for i := range rows {
			x := &t.row(i)[j]
			*x = want * (own**x/max(1e-9, have) + (1-own)*rows[i]/max(1e-9, total))
		}
	}
	return t.cells
}

// perUser is how many sessions users of cell i have: the geometric middle.
func perUser(i int) float64 {
	if i+1 == len(userEdges) {
		return float64(userEdges[i])
	}
	return math.Sqrt(float64(userEdges[i] * (userEdges[i+1] - 1)))
}

// shrunk are arrivals whose deviations from the mean vary as they did, without what the
// noise adds to that.
func shrunk(t *noisyTable) []float64 {
	mean, variance := sum(t.cells)/float64(len(t.cells)), 0.0
	for _, x := range t.cells {
		variance += (x - mean) * (x - mean) / float64(len(t.cells))
	}
	by := math.Sqrt(max(0, 1-t.sd*t.sd/max(variance, 1e-9)))
	out := make([]float64, len(t.cells))
	for i, x := range t.cells {
		out[i] = max(mean*1e-3, 1e-6, mean+(x-mean)*by)
	}
	return out
}

// drifting is a table of two quantities that depend on each other as far as that stands
// out of the noise: what it deviates from independence varies by more than noise does.
func drifting(t *noisyTable) []float64 {
	rows, columns := make([]float64, t.rows()), make([]float64, t.columns)
	for i, x := range t.cells {
		rows[i/t.columns] += x
		columns[i%t.columns] += x
	}
	total := max(1, sum(t.cells))
	out, variance := make([]float64, len(t.cells)), 0.0
	for i, x := range t.cells {
		out[i] = max(1e-6, rows[i/t.columns]) * max(1e-6, columns[i%t.columns]) / total
		variance += (x - out[i]) * (x - out[i])
	}
	free := float64((len(rows) - 1) * (len(columns) - 1))
	by := max(0, 1-free*t.sd*t.sd/max(variance, 1e-9))
	for i, x := range t.cells {
		out[i] = max(1e-9, out[i]+by*(x-out[i]))
	}
	return out
}

// shapedTurns shapes what later turns are drawn from.
func (l *layout) shapedTurns(t *[tables]noisyTable, n float64, out *[tables][]float64) {
	turns := append([]float64(nil), t[ofTurns].cells...)
	if t[ofTurns].sd > 0 {
		width := make([]float64, 0, len(turns))
		for i := range turns {
			turns[i] = max(0, turns[i])
			width = append(width, float64(turnEdges[i+1]-turnEdges[i]))
		}
		turns[0] = t[ofTurns].cells[0]
		copy(turns[1:], falling(turns[1:], width[1:], t[ofTurns].sd))
	}
	turns = project(turns, n)
	out[ofTurns] = turns
	later := max(1e-9, n-turns[0])

	want := make([]float64, turnRows)
	for i := range turns {
		want[turnRow(turnEdges[i])] += turns[i]
	}
	out[ofInputTurns] = columnsOf(&noisyTable{project(t[ofInputTurns].cells, n), t[ofInputTurns].columns,
		t[ofInputTurns].sd}, want, 1)

	kinds := project(t[ofKinds].cells, later)
	after := &t[ofKindAfter]
	var joined noisyTable
	joined.columns = after.columns
	for i := 0; i < after.rows(); i += len(kindEdges) {
		part := alone(&noisyTable{after.cells[i*after.columns : (i+len(kindEdges))*after.columns],
			after.columns, after.sd}, nil)
		joined.cells = append(joined.cells, part.cells...)
	}
	whole := sum(joined.cells)
	for j := range joined.columns { // the shares of all kinds are better known
		column := 0.0
		for i := range joined.rows() {
			column += joined.row(i)[j]
		}
		by := kinds[j] / later / max(1e-9, column/max(1e-9, whole))
		for i := range joined.rows() {
			joined.row(i)[j] *= by
		}
	}
	out[ofKindAfter] = joined.cells
	out[ofGap] = alone(&t[ofGap], nil).cells
	out[ofTyped] = alone(&t[ofTyped], middles(ladder(1, 1, typedCells), 1)).cells
	out[ofKept] = project(t[ofKept].cells, max(1e-9, kinds[branch]))
	out[ofRatio] = alone(&t[ofRatio], nil).cells
	if load := &t[ofLoad]; sum(load.cells)/startCells > 15*load.sd {
		out[ofLoad] = make([]float64, startCells)
		for i, x := range load.cells {
			out[ofLoad][i] = max(1e-6, x)
		}
	}

	// Outputs of later turns: as those of first ones by input, times how much more often
	// each octave occurs.
	first := make([]float64, len(t[ofLaterOutput].cells))
	for i, x := range out[ofOutputFine] {
		first[i/perOctave] += x
	}
	outputs, all := t[ofLaterOutput].cells, max(1e-9, sum(t[ofLaterOutput].cells))
	out[ofLaterOutput] = make([]float64, len(out[ofLengths]))
	for i, x := range out[ofLengths] {
		j := i % len(first)
		by := 0.0
		switch {
		case outputs[j] > 3*t[ofLaterOutput].sd:
			by = min(5, max(.2, outputs[j]/all/max(1e-9, first[j]/max(1e-9, sum(first)))))
		case t[ofLaterOutput].sd > 0:
			by = 1
		}
		out[ofLaterOutput][i] = x * by
	}
}
