package datasets

import (
	"io"
	"slices"
	"time"

	"reprise/trace"
)

// A dialectDecoder decodes the rows of sessions. It holds the last turn of each
// session and, of agentic rows, the place and time of every request.
type dialectDecoder struct {
	steppedDecoder
	rows     string // what they hold: full, delta or not told
	sessions map[string]*turnState
	requests map[string]served // by request_id, once a row waits for others
	agentic  bool
	fresh    freshIDs

	key, id string     // session and request of the current row
	next    *turnState // of the current row, if it is one of a session
	early   bool       // the current row was given the earliest time
	unread  bool       // the current row has fields that are not read

	starts, together int64 // sessions, and those of them that start with the first
	first            time.Time
}

// A turnState is the last turn of a session.
type turnState struct {
	session       trace.Text
	turn          int32
	served        served
	input, output int32           // of the whole context
	blocks        []uint64        // ids of the full blocks of the context; without deltas only the first
	unhashed      bool            // no ids are known
	messages      []trace.Message // of the whole context, for deltas
}

// served is a request that others may follow.
type served struct {
	position int64
	at       time.Time
}

func (d *dialectDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	dst, err := d.steppedDecoder.decode(dst)
	if f, ok := err.(*fault); ok && !f.stop && d.rows == rowsDelta {
		f.stop, f.reason = true, f.reason+"; rows that hold what is new cannot be read past one at fault"
	}
	if err == io.EOF && d.starts > 1 && d.together == d.starts {
		d.s.notes.say("all sessions start at the same instant: this is seldom how they arrived")
	}
	return dst, err
}

func (d *dialectDecoder) set(b *builder, r row) error {
	d.key, d.id = "", ""
	for _, name := range []struct {
		path string
		to   *string
	}{{"session_id", &d.key}, {"request_id", &d.id}} {
		v, ok := r.value(name.path)
		if !ok {
			continue
		}
		if *name.to, ok = word(v); !ok {
			return badAt(r, name.path, name.path+": "+wantWord)
		}
	}
	for _, f := range agenticFields {
		if _, ok := r.value(f); ok {
			d.agentic = true
		}
	}
	d.unread = r.(jsonRow).unread
	var before *turnState
	d.next = nil
	if d.key != "" {
		before = d.sessions[d.key]
		d.next = &turnState{session: trace.NewText(d.key)}
		if before != nil {
			d.next.session, d.next.turn = before.session, before.turn+1
		}
		b.e.Session, b.e.Turn = d.next.session, trace.Ptr(d.next.turn)
	}
	delta, err := d.delta(b, r, before)
	if err != nil {
		return err
	}
	if err := d.follow(b, r, before); err != nil || !delta {
		return err
	}
	return d.accumulate(b, r, before)
}

// follow sets what the request waits for and, without a time, when it arrives
// at the earliest.
func (d *dialectDecoder) follow(b *builder, r row, before *turnState) error {
	e := &b.e
	after, err := d.parents(e, r, before)
	if err != nil {
		return err
	}
	wait := time.Duration(0)
	for _, t := range []*time.Duration{e.Think, e.Tool} {
		if t != nil {
			wait += *t
		}
	}
	d.early = false
	_, delay, _ := find(r, []string{"delay", "delay_ms", "tool_wait_ms"})
	switch {
	case len(e.Parents) == 0 && wait > 0:
		return badAt(r, delay, "it has a delay, and nothing before it that the delay could follow")
	case len(e.Parents) == 0:
		e.Think, e.Tool = nil, nil
	}
	switch {
	case d.timing != withTimes:
	case !e.Time.IsZero():
		if before != nil && e.Time.Before(before.served.at) {
			return badAt(r, "timestamp", "it arrives before the turn that it follows")
		}
	case len(e.Parents) == 0:
		return badAt(r, "", "it has no time, and follows no other request")
	case wait < 0 || wait > maxWait || after.Add(wait).Year() > 2200:
		return badAt(r, delay, "its delay is too long")
	default:
		e.Time, d.early = after.Add(wait), true
		if why := d.clock.track(e.Time); why != "" {
			line, col := r.place("")
			return refuse(line, col, why)
		}
	}
	return nil
}

// maxWait is a delay beyond doubt in any trace.
const maxWait = 100 * 365 * 24 * time.Hour

// parents sets the parents of the entry: the requests that it says to wait for,
// or else the turn before. It returns when the last of them arrived.
func (d *dialectDecoder) parents(e *trace.Entry, r row, before *turnState) (after time.Time, err error) {
	v, ok := r.value("wait_for")
	if !ok {
		if before == nil {
			return after, nil
		}
		e.Parents = []int64{before.served.position}
		return before.served.at, nil
	}
	list, ok := v.([]any)
	for _, id := range list {
		name, isWord := id.(string)
		ok = ok && isWord
		p, found := d.requests[name]
		if !found {
			d.s.notes.count("requests waited for that are not before the one that waits, left out")
		} else if !slices.Contains(e.Parents, p.position) {
			e.Parents = append(e.Parents, p.position)
			if p.at.After(after) {
				after = p.at
			}
		}
	}
	if !ok {
		return after, badAt(r, "wait_for", "wait_for: want a list of request ids")
	}
	return after, nil
}

func (d *dialectDecoder) taken(e *trace.Entry, position int64) {
	now := served{position, e.Time}
	if d.id != "" && d.agentic {
		d.requests[d.id] = now
	}
	if d.early {
		d.s.notes.count("turns without a time, given the earliest possible, since the time that the turn before took is not known")
	}
	if d.blockSize > 0 && e.SourceBlocks == nil {
		d.s.notes.count("requests without block ids")
	}
	if d.unread {
		d.s.notes.count("records with fields that are not read")
	}
	if d.next == nil {
		return
	}
	d.s.info.HasSessions = true
	n := d.next
	n.served = now
	if e.InputTokens != nil {
		n.input = *e.InputTokens
	}
	if e.OutputTokens != nil {
		n.output = *e.OutputTokens
	}
	if d.blockSize > 0 {
		n.blocks = e.SourceBlocks[:min(int(n.input)/d.blockSize, len(e.SourceBlocks))]
		if d.rows != rowsDelta {
			n.blocks = n.blocks[:min(1, len(n.blocks))]
		}
		n.blocks, n.unhashed = slices.Clone(n.blocks), len(e.SourceBlocks) == 0 && n.input > 0
	}
	if d.rows == rowsDelta {
		n.messages = e.Messages
	}
	if n.turn == 0 {
		d.countStart(e.Time)
	}
	d.sessions[d.key] = n
}

func (d *dialectDecoder) countStart(t time.Time) {
	if d.starts == 0 {
		d.first = t
	}
	d.starts++
	if !t.IsZero() && t.Equal(d.first) {
		d.together++
	}
}
