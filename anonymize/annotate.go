package anonymize

import (
	"reprise/trace"
	"reprise/trace/profile"
)

// A sight is what was known of a prompt when it came: how many leading blocks,
// and who touched the last of them last.
type sight struct {
	hit     int
	deepest touch
}

// An annotator does what profile.Annotator does, by the same rule, when marks of
// blocks do not fit in memory: a sight tells it what these would. It keeps 4
// bytes for each row and each session.
type annotator struct {
	rule  profile.Classifier
	infer bool    // sessions
	rows  []int32 // by row: its session, when it has one
	turns []int32 // by session: turns so far
}

// annotate gives the next row its category and, where sessions are inferred, one.
func (a *annotator) annotate(r *trace.Request, s sight) {
	r.Category = ""
	session := int32(0)
	if isLoad(r) {
		category, continues := a.rule.Classify(s.hit, len(r.Blocks), s.deepest.end())
		r.Category = category
		if a.infer {
			session = a.join(r, continues, s.deepest)
		}
	}
	if a.infer {
		a.rows = append(a.rows, session)
	}
}

// join sets the session and turn of a row, and returns the session.
func (a *annotator) join(r *trace.Request, continues bool, deepest touch) int32 {
	session := int32(len(a.turns))
	if continues {
		session = a.rows[deepest.row()]
	} else {
		a.turns = append(a.turns, 0)
	}
	r.Session, r.Turn = trace.Ptr(int64(session)), trace.Ptr(a.turns[session])
	a.turns[session]++
	return session
}
