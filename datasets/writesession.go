package datasets

import "reprise/trace"

// A place is that of a row in its session, by the order of the rows.
type place struct {
	turn     int32 // from 0
	previous int64 // the row before in the session, -1 for none
}

// A placer finds the places of rows. Its memory is some 50 bytes a session.
type placer map[int64]place

// of returns the place of a row that belongs to a session, and is called once
// for each such row, in order.
func (p placer) of(row int64, r *trace.Request) place {
	last, ok := p[*r.Session]
	at := place{previous: -1}
	if ok {
		at = place{turn: last.turn + 1, previous: last.previous}
	}
	p[*r.Session] = place{turn: at.turn, previous: row}
	return at
}
