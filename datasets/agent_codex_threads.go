package datasets

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/stamp"
	tokenusage "reprise/trace/usage"
)

// A codexDecoder keeps the calls of each session file.
type codexDecoder struct {
	*agentLog
	f    *codexFile      // that is being read
	seen map[string]bool // calls
}

// A codexFile is how far a file has been read.
type codexFile struct {
	name     string
	thread   *agentThread
	model    string
	cut      *int64 // ordinal of its first record that is not a copy
	numbered bool   // the current record can be told by that
	copied   bool   // the current record is a copy

	ready, end int64   // of the call to come: when it could begin, and the last part of its answer
	gap        gapKind // before it
	answering  bool    // its answer has begun
	next       int64   // what came since, for the call after it
	nextGap    gapKind
	join       int64
	compacted  bool
	waits      map[string]bool // calls of tools that wait for agents

	total    tokenusage.Counts
	pending  *tokenusage.Counts // of the last call, until its second account
	byRecord bool               // its first account is a record of its own
}

func newCodexDecoder(in record.Reader, o Options, s *Source) decoder {
	d := &codexDecoder{agentLog: newAgentLog(in, o, s), seen: map[string]bool{}}
	d.agentLog.gather = d.gather
	s.notes.SayOnce(noteAgentArrival)
	s.notes.SayOnce(noteCodexLengths)
	return d
}

// beginThread takes what a file says of itself; a second such record is copied.
func (d *codexDecoder) beginThread(m *codexMeta, at int64) {
	f, t := d.f, d.f.thread
	if t.id != "" {
		return
	}
	spawner, spawned := codexSpawned(m.Source)
	t.id, t.session, t.born = m.ID, cmp.Or(m.Session, m.ID), at
	t.parent, t.spawned = cmp.Or(m.Parent, spawner, m.Forked), spawned || m.Parent != ""
	if st, ok := stamp.ReadISO(m.Timestamp); ok && st.Style == stamp.Zoned {
		t.born = st.Time.UnixNano()
	}
	f.copied = t.parent != ""
	f.cut = cmp.Or(m.Begins, m.ForkedFrom)
	if f.cut == nil && m.HistoryBase != nil {
		f.cut = m.HistoryBase.End
	}
}

// turn tells by a turn whether it is a copy. Ids of turns and sessions begin with
// their times, so that those of copied turns are before that of the session.
func (f *codexFile) turn(e *codexEvent, at int64) {
	if f.numbered || e.Turn == "" {
		return
	}
	started, isTime := stamp.ReadISO(string(bytes.Trim(e.Started, `"`)))
	switch {
	case strings.HasPrefix(e.Turn, "external-import-turn-"):
		f.copied = true
	case isUUID7(e.Turn) && isUUID7(f.thread.id):
		f.copied = e.Turn < f.thread.id
	case isTime && started.Style == stamp.Numeric:
		f.copied = time.Duration(at)-time.Duration(started.Whole)*time.Second > time.Minute
	}
}

// isUUID7 reports whether an id is a UUID that begins with its time.
func isUUID7(id string) bool { return len(id) == 36 && id[14] == '7' }

// input takes what a call waits for: the one to come, or the one after it while its
// answer comes.
func (f *codexFile) input(at int64, gap gapKind) {
	to, kind := &f.ready, &f.gap
	if f.answering {
		to, kind = &f.next, &f.nextGap
	}
	*to = at
	if gap != unknownGap {
		*kind = gap
	}
}

// answered ends a call.
func (f *codexFile) answered() {
	f.ready, f.gap, f.answering, f.join, f.compacted = f.next, f.nextGap, false, 0, false
	f.next, f.nextGap = 0, unknownGap
}
