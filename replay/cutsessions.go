package replay

import (
	"slices"

	"reprise/replay/result"
	"reprise/trace"
)

// cutSessionsKept bounds the sessions that a run names as cut.
const cutSessionsKept = 1 << 16

// cutSessions are the sessions of rows that a run leaves unsent when it ends: those due
// after its duration, and those behind an early end.
type cutSessions struct {
	held       map[result.SessionKey]struct{}
	begun      int64 // one above the greatest session whose time has come; sessions are numbered by their first row
	incomplete bool
}

// begin takes note of a row whose time has come.
func (c *cutSessions) begin(row *trace.Request) {
	if row.Session != nil {
		c.begun = max(c.begun, *row.Session+1)
	}
}

// add takes the result of a row that is not sent after all. A session of later rows
// alone is not cut: it never began.
func (c *cutSessions) add(r *result.Result) {
	key, ok := r.SessionKey()
	if !ok || key.Session >= c.begun {
		return
	}
	if c.held == nil {
		c.held = map[result.SessionKey]struct{}{}
	}
	if _, held := c.held[key]; !held && len(c.held) >= cutSessionsKept {
		c.incomplete = true
		return
	}
	c.held[key] = struct{}{}
}

// summary lists them, nil where none of so many rows was left.
func (c *cutSessions) summary(left int64) *result.CutSessions {
	if left == 0 && len(c.held) == 0 {
		return nil
	}
	out := &result.CutSessions{Sessions: []result.SessionKey{}, Incomplete: c.incomplete}
	for key := range c.held {
		out.Sessions = append(out.Sessions, key)
	}
	slices.SortFunc(out.Sessions, result.SessionKey.Compare)
	return out
}

// cut takes note of a row that is not sent after all.
func (s *scheduler) cut(id int64, row *trace.Request) {
	if row.Session == nil || *row.Session >= s.counts.cut.begun {
		return // most rows behind an early end
	}
	r := s.opt.newResult(&pendingRow{id: id, row: row})
	s.counts.cut.add(&r)
}

// cutRest takes note of the rows that were read and are due no more, and, of a workload
// without an end, of those up to the end of the round that was begun.
func (s *scheduler) cutRest() {
	for _, w := range s.due {
		s.cut(w.id, w.row)
	}
	if s.deps != nil {
		for _, p := range s.deps.parents {
			for _, w := range p.waiting {
				s.cut(w.id, w.row)
			}
		}
	}
	if !s.opt.Endless || s.opt.Origin == nil || s.rows.next == 0 || s.trees != nil { // without rounds it has no end
		return
	}
	_, round := s.opt.origin(s.rows.next - 1)
	for row := s.rows.peek(); row != nil; row = s.rows.peek() {
		if _, of := s.opt.origin(s.rows.next); of != round {
			return
		}
		if !s.opt.excludes(row) {
			s.cut(s.rows.next, row)
		}
		s.rows.skip()
	}
}
