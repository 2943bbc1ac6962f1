package release

import "math/bits"

// A session is what is kept of one: its first turns, and how many it has. It is a
// function of the session's own rows.
type session struct {
	turns []turn
	count int64
	nodes []uint64 // blocks of the first request at depths 1, 2, 4, 8…
	trunk int32    // the deepest selected one of them, or none
}

// A turn is one request of a session.
type turn struct {
	at     int64 // ns after the begin of the capture
	input  int64
	output int64
	blocks int // of its prompt
	hit    int // leading blocks that earlier turns carried
	parent int // the turn that last touched the deepest of them, or none
	own    []uint64
}

// kindOf says what turn i is, given how many blocks are of a trunk. Without blocks the lengths
// tell: a prompt that has room for the turn before and its reply extends them.
func (s *session) kindOf(i, trunk, size int) int {
	t := &s.turns[i]
	switch {
	case i == 0:
		return first
	case size == 0:
		if before := &s.turns[i-1]; t.input >= before.input+before.output {
			return chat
		}
		return apart
	case t.parent == none || t.hit <= trunk:
		return apart
	case t.hit == t.blocks:
		return again
	}
	p := &s.turns[t.parent]
	if int64(t.hit) == p.input/int64(size) && t.input >= p.input+p.output {
		return chat
	}
	return branch
}

// part is the j-th of n integer parts of a weight, which add up to it.
func part(weight int64, n, j int) int64 {
	return weight*int64(j+1)/int64(n) - weight*int64(j)/int64(n)
}

// contribute adds what one session adds to each table but the number of units, with
// a weight of at most unit: no more than the weight to any table.
func (l *layout) contribute(s *session, weight int64, add func(table, row, column int, w int64)) {
	t := &s.turns[0]
	input, output := min(max(1, t.input), l.maxIn), min(max(1, t.output), l.maxOut)
	in, out := at(l.input[:len(l.input)-1], input), at(l.output[:len(l.output)-1], output)
	cell := func(ns int64, cells int) int {
		hi, lo := bits.Mul64(uint64(min(max(0, ns), l.span-1)), uint64(cells))
		q, _ := bits.Div64(hi, lo, uint64(l.span))
		return int(q)
	}
	depth := 0
	if len(l.trunks) > 0 {
		add(ofTrunks, 0, int(s.trunk)+1, weight)
		if s.trunk != none {
			depth = l.trunks[s.trunk].depth
		}
	}
	add(ofInput, 0, in/fine, weight)
	add(ofInputFine, 0, in, weight)
	add(ofOutput, 0, out/fine, weight)
	add(ofOutputFine, 0, out, weight)
	add(ofLengths, lengthRow(input), out/perOctave, weight)
	add(ofStart, l.octaveRow(input), cell(t.at, startCells), weight)
	n := min(len(s.turns), turnsCounted)
	for i := range n {
		add(ofRate, 0, cell(s.turns[i].at, l.rate), part(weight, n, i))
	}
	if !l.later {
		return
	}
	for i := range n {
		add(ofLoad, 0, cell(s.turns[i].at, startCells), part(weight, turnsCounted, i))
	}
	turns := min(s.count, turnEdges[len(turnEdges)-1]-1)
	add(ofTurns, 0, at(turnEdges, turns), weight)
	add(ofInputTurns, l.octaveRow(input), turnRow(turns), weight)
	n = min(len(s.turns)-1, turnsCounted)
	for i := range n {
		l.later1(s, i+1, depth, turnRow(turns)-1, part(weight, n, i), add)
	}
	var sums laterSums
	for i := range s.turns[1:] {
		t := &s.turns[i+1]
		sums.add(min(max(0, t.input), l.maxIn), int64(t.hit*l.size))
	}
	there, fresh := sums.clipped(l.sums, weight)
	add(ofLaterInput, 0, 0, there)
	add(ofLaterInput, 0, 1, fresh)
}

// later1 adds a later turn.
func (l *layout) later1(s *session, i, trunk, row int, w int64, add func(table, row, column int, w int64)) {
	t, before := &s.turns[i], &s.turns[i-1]
	kind := s.kindOf(i, trunk, l.size)
	column := kind
	if kind == apart && !l.sourced {
		column = branch
	}
	add(ofKinds, 0, column, w)
	add(ofKindAfter, kindRow(s.kindOf(i-1, trunk, l.size), before.input), column, w)
	gap := 0
	if t.at > before.at {
		gap = 1 + at(l.gap[:len(l.gap)-1], t.at-before.at)
	}
	add(ofGap, row, gap, w)
	_, octaves := l.shape(ofLaterOutput)
	add(ofLaterOutput, 0, min(octaves, bits.Len64(uint64(max(1, t.output))))-1, w)
	switch kind {
	case chat:
		p := before
		if t.parent != none {
			p = &s.turns[t.parent]
		}
		add(ofTyped, row, min(typedCells, bits.Len64(uint64(t.input-p.input-p.output+1)))-1, w)
	case branch:
		p := &s.turns[t.parent]
		kept := at(keptEdges[:len(keptEdges)-1], 1000*int64(t.hit-trunk)/int64(max(1, p.blocks-trunk)))
		add(ofKept, 0, kept, w)
		add(ofRatio, ratioRow(p.input, kept), ratioCell(t.input, p.input), w)
	case apart:
		add(ofRatio, ratioRow(before.input, 0), ratioCell(t.input, before.input), w)
	}
}

func ratioCell(input, before int64) int {
	return at(sizeEdges[:len(sizeEdges)-1], 10000*max(1, input)/max(1, before))
}
