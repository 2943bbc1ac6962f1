package anonymize

import "reprise/trace"

// A sight is what was known of a prompt when it came: how many leading blocks,
// and who touched the last of them last.
type sight struct {
	hit     int
	deepest touch
}

// A classifier gives rows their category and, where it infers them, sessions,
// by the definitions of profile.Annotator, which a test holds it to. That keeps
// a mark for each block; this keeps 4 bytes for each row and each session.
type classifier struct {
	global int
	infer  bool
	rows   []int32 // by row: its session, when it has one
	turns  []int32 // by session: turns so far
}

// place takes the next row.
func (c *classifier) place(r *trace.Request, s sight) {
	r.Category = ""
	session := int32(0)
	if isLoad(r) {
		r.Category = c.category(r, s)
		if c.infer {
			session = c.join(r, s)
		}
	}
	if c.infer {
		c.rows = append(c.rows, session)
	}
}

func (c *classifier) category(r *trace.Request, s sight) string {
	switch {
	case s.hit == 0:
		return trace.Cold
	case s.hit <= c.global:
		return trace.Global
	case s.hit == len(r.Blocks):
		return trace.Duplicate
	case s.deepest.end():
		return trace.Continuation
	}
	return trace.Branch
}

// join sets the session and turn of a row, and returns the session.
func (c *classifier) join(r *trace.Request, s sight) int32 {
	session := int32(len(c.turns))
	if r.Category == trace.Cold || r.Category == trace.Global {
		c.turns = append(c.turns, 0)
	} else {
		session = c.rows[s.deepest.row()]
	}
	r.Session, r.Turn = trace.Ptr(int64(session)), trace.Ptr(c.turns[session])
	c.turns[session]++
	return session
}
