package anonymize

import "reprise/trace"

// A turnLinker gives the rows of a recording their parents. A recorder saw when each
// answer ended, so that what a next turn waited for, and how long the user thought or the
// tool ran, is known: the parent of a continuation is the request of its session that
// ended last before it came.
//
// Rows come in their final order. ThinkNS, or ToolNS for a prompt that ends in the result
// of a tool, is set in each of them, to anything.
type turnLinker struct {
	dst  trace.Writer[trace.Request]
	row  int64
	open map[int64][]openTurn // by session
}

// An openTurn is a request that a later turn may follow.
type openTurn struct{ row, end int64 }

// openTurns is how many requests of a session are kept: the last that ended, and those
// that were in flight beside it.
const openTurns = 8

// Write implements [trace.Writer].
func (l *turnLinker) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		l.link(&rows[i])
		l.row++
	}
	return l.dst.Write(rows)
}

func (l *turnLinker) link(r *trace.Request) {
	tool := r.ToolNS != nil
	r.ThinkNS, r.ToolNS = nil, nil
	if r.Session == nil {
		return
	}
	turns := l.open[*r.Session]
	parent := openTurn{row: -1}
	for _, t := range turns {
		if t.end <= r.ArrivalNS && (parent.row < 0 || t.end > parent.end) {
			parent = t
		}
	}
	if parent.row >= 0 && r.Category == trace.Continuation {
		r.Parents = []int64{parent.row}
		if waited := trace.Ptr(r.ArrivalNS - parent.end); tool {
			r.ToolNS = waited
		} else {
			r.ThinkNS = waited
		}
	}
	if r.E2ENS == nil || r.Status == trace.StatusFailed {
		return
	}
	kept := turns[:0]
	for _, t := range turns { // of those that have ended, the last is enough
		if t.end > r.ArrivalNS || t == parent {
			kept = append(kept, t)
		}
	}
	if len(kept) == openTurns {
		kept = kept[1:]
	}
	l.open[*r.Session] = append(kept, openTurn{l.row, r.ArrivalNS + *r.E2ENS})
}
