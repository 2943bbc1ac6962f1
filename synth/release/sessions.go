package release

// A drawn turn is one request before it has ids.
type drawnTurn struct {
	after   int64 // ns since the begin of the session
	input   int32
	output  int32
	keep    int32 // leading blocks of the turn before
	session int32
}

// A population is the sessions of one generation. The turns of a session stand one
// after the other.
type population struct {
	*Model
	r       random
	turns   []drawnTurn
	first   []int32 // of each session, its first turn
	trunk   []int32 // of each session
	inputs  dice
	rows    [tables][]*deck
	outputs []*deck // fine cells of each octave
}

// draw makes n sessions.
func (m *Model) draw(seed uint64, n int) *population {
	p := &population{Model: m, r: newRandom(seed, forSessions), inputs: newDice(m.weights[ofInputFine])}
	for t := range tables {
		_, columns := m.drawn(t)
		p.rows[t] = rowsOf(m.weights[t], columns)
	}
	p.outputs = rowsOf(m.weights[ofOutputFine], perOctave)
	trunks := make([]int32, n)
	if p.rows[ofTrunks] != nil {
		trunks = p.rows[ofTrunks][0].quota(p.r, n)
	}
	for _, s := range p.plan(n) {
		p.session(s, trunks[len(p.first)]-1)
	}
	p.first = append(p.first, int32(len(p.turns)))
	return p
}

// A planned session is its first input and a cell of the number of turns.
type planned struct {
	input int32
	turns int32
}

// plan draws first inputs and turns: quotas of inputs, of turns in four classes by the
// octave of the input, and of the cells of a class.
func (p *population) plan(n int) (out []planned) {
	byRow := make([][]int32, p.octaveRow(p.maxIn)+1)
	for _, c := range p.inputs.quota(p.r, n) {
		input := min(p.maxIn, p.r.between(p.input[c], p.input[c+1]))
		row := p.octaveRow(input)
		byRow[row] = append(byRow[row], int32(input))
	}
	var byTurns [turnRows][]int32
	for row, inputs := range byRow {
		classes := make([]int32, len(inputs))
		if p.later {
			classes = p.rows[ofInputTurns][row].quota(p.r, len(inputs))
		}
		for i, c := range classes {
			byTurns[c] = append(byTurns[c], inputs[i])
		}
	}
	for class, inputs := range byTurns {
		weights := make([]int64, len(turnEdges)-1)
		for i, w := range p.weights[ofTurns] {
			if turnRow(turnEdges[i]) == class {
				weights[i] = w
			}
		}
		for i, c := range newDice(weights).quota(p.r, len(inputs)) {
			if weights[c] == 0 { // none of the class, but for noise
				c = map[int]int32{0: 0, 1: 1, 2: 2, 3: 4}[class]
			}
			out = append(out, planned{inputs[i], c})
		}
	}
	return out
}

// session draws one session.
func (p *population) session(s planned, trunk int32) {
	number := int32(len(p.first))
	p.first = append(p.first, int32(len(p.turns)))
	p.trunk = append(p.trunk, trunk)
	p.turns = append(p.turns,
		drawnTurn{input: s.input, output: p.drawOutput(p.rows[ofLengths], s.input), session: number})
	n := p.r.between(turnEdges[s.turns], turnEdges[s.turns+1])
	if int(s.turns) == len(turnEdges)-2 { // the top cell falls, by a fifth a turn
		for n = turnEdges[s.turns]; n < turnEdges[s.turns]+15 && p.r.below(5) > 0; {
			n++
		}
	}
	depth, kind := 0, first
	if trunk != none {
		depth = p.trunks[trunk].depth
	}
	for i := int64(1); i < n; i++ {
		before := p.turns[len(p.turns)-1]
		kind = p.turn(before, kind, turnRow(n)-1, depth)
	}
	// A session lasts no longer than the capture.
	turns := p.turns[p.first[number]:]
	if last := turns[len(turns)-1].after; last >= p.span {
		end := max(p.r.below(p.span), p.r.below(p.span), p.r.below(p.span))
		for i := range turns {
			turns[i].after = mulDiv(turns[i].after, end, last)
		}
	}
}

// drawOutput draws an output by its octave, given the input.
func (p *population) drawOutput(rows []*deck, input int32) int32 {
	octave := 0
	if row := rows[lengthRow(int64(input))]; row.total() > 0 {
		octave = row.draw(p.r)
	}
	if p.outputs[octave].total() == 0 {
		for i := range p.outputs {
			if p.outputs[i].total() > p.outputs[octave].total() {
				octave = i
			}
		}
	}
	c := octave*perOctave + p.outputs[octave].draw(p.r)
	return int32(min(p.maxOut, p.r.between(p.output[c], p.output[c+1])))
}

// turn draws a turn after another, and says of which kind it is.
func (p *population) turn(before drawnTurn, kind, turns, trunk int) int {
	next := drawnTurn{after: before.after, input: before.input, session: before.session}
	if gap := p.rows[ofGap][turns].draw(p.r); gap > 0 {
		next.after += p.r.between(p.gap[gap-1], p.gap[min(gap, len(p.gap)-1)])
	}
	after := p.rows[ofKindAfter]
	row := kindRow(kind, int64(before.input))
	if after[row].total() == 0 {
		row %= len(kindEdges)
	}
	kind = after[row].draw(p.r)
	input, size := int64(before.input), int64(max(1, p.size))
	length := input
	var keep int64
	switch kind {
	case chat:
		typed := p.rows[ofTyped][turns].draw(p.r)
		length += int64(before.output) + p.r.between(1<<typed, 2<<typed) - 1
		keep = input / size
	case again:
		keep = (input + size - 1) / size
	case branch:
		length, keep = p.branch(input, int64(trunk), size)
	default:
		length = p.ratio(ratioRow(input, 0), input)
		keep = min(int64(trunk), (length+size-1)/size)
	}
	if length > p.maxIn {
		length, keep = input, min(keep, input/size)
	}
	next.input, next.keep = int32(length), int32(keep)
	next.output = p.drawOutput(p.rows[ofLaterOutput], next.input)
	p.turns = append(p.turns, next)
	return kind
}

// ratio draws an input by that of the turn before.
func (p *population) ratio(row int, input int64) int64 {
	c := p.rows[ofRatio][row].draw(p.r)
	return max(1, input*p.r.between(sizeEdges[c], sizeEdges[c+1])/10000)
}

// branch draws the input of a branch, and how many blocks it keeps.
func (p *population) branch(input, trunk, size int64) (length, keep int64) {
	c := p.rows[ofKept][0].draw(p.r)
	share := p.r.between(keptEdges[c], keptEdges[c+1])
	blocks := (input + size - 1) / size
	keep = min(blocks, max(trunk+1, trunk+(share*(blocks-trunk)+500)/1000))
	length = p.ratio(ratioRow(input, c), input)
	switch {
	case length > keep*size:
	case share < 800 && length > (trunk+1)*size:
		keep = length / size
	default:
		length = keep*size + 1 + p.r.below(size)
	}
	return length, keep
}
