package datasets

import (
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
)

// Spread gives starts to the sessions of a source whose times count from the
// start of each, see [Info] SessionTimes. Sessions, and requests that belong to
// none, start by the process p in the order of the source, the first of them at
// [Epoch]. Within a session the times stay as far apart as they are; what is
// before its first entry moves onto that. Sessions are told by the Text that
// their entries share. The entries stay in the order of the source. Memory is an
// instant for each session.
func Spread(src trace.EntryReader, p arrival.Process) trace.EntryReader {
	return &spread{src: src, process: p, sessions: map[trace.Text]placedSession{}}
}

type spread struct {
	src      trace.EntryReader
	process  arrival.Process
	sessions map[trace.Text]placedSession
	start    time.Time // of the latest session
}

// A placedSession is one that has a start.
type placedSession struct{ first, start time.Time }

// Read implements [trace.EntryReader].
func (s *spread) Read(batch []trace.Entry) (int, error) {
	n, err := s.src.Read(batch)
	for i := range batch[:n] {
		e := &batch[i]
		p, ok := s.sessions[e.Session]
		if !ok || e.Session == (trace.Text{}) {
			p = placedSession{e.Time, s.next()}
			if e.Session != (trace.Text{}) {
				s.sessions[e.Session] = p
			}
		}
		e.Time = p.start.Add(max(0, e.Time.Sub(p.first)))
	}
	return n, err
}

func (s *spread) next() time.Time {
	if s.start.IsZero() {
		s.start = Epoch
	} else {
		s.start = s.start.Add(s.process.Next())
	}
	return s.start
}
