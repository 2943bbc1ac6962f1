package release

import (
	"cmp"
	"slices"
	"sort"
)

// A placed turn is a drawn turn with its time.
type placed struct {
	at   int64
	turn int32
}

// place gives the sessions their times. Then time is stretched and pressed until the
// arrivals are those that were measured: the order stays, and with it the reuse.
func (p *population) place(seed uint64) []placed {
	r := newRandom(seed, forStarts)
	byInput := make([][]int32, p.octaveRow(p.maxIn)+1)
	for s := range p.trunk {
		row := p.octaveRow(int64(p.turns[p.first[s]].input))
		byInput[row] = append(byInput[row], int32(s))
	}
	rows := make([]placed, 0, len(p.turns))
	for row, sessions := range byInput {
		for i, start := range p.starts(r, sessions, p.rows[ofStart][row].dice) {
			for t := p.first[sessions[i]]; t < p.first[sessions[i]+1]; t++ {
				rows = append(rows, placed{min(p.span-1, start+p.turns[t].after), t})
			}
		}
	}
	slices.SortFunc(rows, func(a, b placed) int {
		if a.at != b.at {
			return map[bool]int{true: -1, false: 1}[a.at < b.at]
		}
		return int(a.turn - b.turn)
	})
	p.warp(rows, ofRate, func(turns int32) int64 { return warpOne / int64(turns) })
	p.warp(rows, ofLoad, func(turns int32) int64 { return warpOne * min(turnsCounted, int64(turns)) / int64(turns) })
	return rows
}

// starts are when sessions start, which it puts in order of how long they last. Long ones
// choose first among the drawn starts that let them end within the capture.
func (p *population) starts(r random, sessions []int32, cells dice) []int64 {
	n := len(sessions)
	drawn := make([]int64, n)
	for i, c := range cells.quota(r, n) {
		drawn[i] = r.between(mulDiv(p.span, int64(c), startCells), mulDiv(p.span, int64(c)+1, startCells))
	}
	slices.Sort(drawn)
	lasts := func(s int32) int64 { return p.turns[p.first[s+1]-1].after }
	slices.SortFunc(sessions, func(a, b int32) int {
		return cmp.Or(cmp.Compare(lasts(b), lasts(a)), cmp.Compare(a, b))
	})
	out := make([]int64, n)
	var free []int64
	next := 0
	for i, s := range sessions {
		for next < n && (len(free) == 0 || drawn[next] <= p.span-lasts(s)) {
			free = append(free, drawn[next])
			next++
		}
		j := r.below(int64(len(free)))
		out[i] = free[j]
		free[j] = free[len(free)-1]
		free = free[:len(free)-1]
	}
	return out
}

// warpOne is the weight of a session of one turn in a warp.
const warpOne = 1 << 20

// warp moves rows, in order of time, such that their weights by cell are in proportion
// to a table. weight is that of each turn of a session of so many.
func (p *population) warp(rows []placed, table int, weight func(turns int32) int64) {
	upTo := make([]int64, len(rows))
	total := int64(0)
	for i, row := range rows {
		s := p.turns[row.turn].session
		total += weight(p.first[s+1] - p.first[s])
		upTo[i] = total
	}
	cells := newDice(p.weights[table])
	if cells.total() == 0 || total == 0 {
		return
	}
	// from are the times at which the weight of a cell's end is reached.
	from := make([]int64, len(cells)+1)
	from[len(cells)] = p.span
	for j := 1; j < len(cells); j++ {
		want := mulDiv(total, cells[j-1], cells.total())
		i := sort.Search(len(rows), func(i int) bool { return upTo[i] >= want })
		switch {
		case i == 0:
			from[j] = rows[0].at
		default:
			from[j] = rows[i-1].at + mulDiv(rows[i].at-rows[i-1].at, want-upTo[i-1], upTo[i]-upTo[i-1])
		}
	}
	cell := 0
	for i := range rows {
		for cell < len(cells)-1 && rows[i].at >= from[cell+1] {
			cell++
		}
		lo, hi := mulDiv(p.span, int64(cell), int64(len(cells))), mulDiv(p.span, int64(cell)+1, int64(len(cells)))
		if width := from[cell+1] - from[cell]; width > 0 {
			lo += min(hi-lo-1, mulDiv(hi-lo, min(width, rows[i].at-from[cell]), width))
		}
		rows[i].at = min(lo, p.span-1)
	}
}
