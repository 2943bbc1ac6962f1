package datasets

import (
	"errors"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
)

// Timed gives arrivals to a source that has none. Sessions, and requests that
// belong to none, start by the process p, the first of them at [Epoch]. Each
// later turn arrives when the last of its parents has been served and its
// answer been thought about:
//
//	arrival(n+1) = arrival(n) + service + think
//
// The service time of an entry whose source has recorded it is that.
//
// The think time is recorded in the entry, unless the source has recorded one;
// a tool time that it has recorded counts as well. A first turn, which has no
// parents, has no think time. The entries stay in the order of the source, so
// that arrivals are in order within a session only. Memory is 8 bytes an entry.
// An entry that has a time is an error.
func Timed(src trace.EntryReader, p arrival.Process, service, think arrival.Dist) trace.EntryReader {
	return &timed{src: src, process: p, service: service, think: think}
}

type timed struct {
	src            trace.EntryReader
	process        arrival.Process
	service, think arrival.Dist

	start    time.Duration   // when the last session started, since Epoch
	arrivals []time.Duration // of the entries so far; the end of one whose service is known, as -1 less that
}

var errHasTimes = errors.New("the source has its own times: arrivals are for sources without times")

// Read implements [trace.EntryReader].
func (t *timed) Read(batch []trace.Entry) (int, error) {
	n, err := t.src.Read(batch)
	for i := range batch[:n] {
		e := &batch[i]
		if !e.Time.IsZero() {
			return i, errHasTimes
		}
		at := time.Duration(0)
		arrived, ended := time.Duration(-1), time.Duration(-1) // the last of its parents; -1 for none
		for _, p := range e.Parents {
			if p < 0 || p >= int64(len(t.arrivals)) {
				continue
			}
			if when := t.arrivals[p]; when < 0 {
				ended = max(ended, -1-when)
			} else {
				arrived = max(arrived, when)
			}
		}
		if arrived >= 0 || ended >= 0 {
			if e.Think == nil {
				e.Think = trace.Ptr(t.think.Draw())
			}
			if arrived >= 0 {
				at = arrived + t.service.Draw()
			}
			at = max(at, ended) + *e.Think
			if e.Tool != nil {
				at += *e.Tool
			}
		} else {
			if len(t.arrivals) > 0 {
				t.start += t.process.Next()
			}
			at = t.start
		}
		e.Time = Epoch.Add(at)
		if e.E2E != nil {
			at = -1 - (at + *e.E2E)
		}
		t.arrivals = append(t.arrivals, at)
	}
	return n, err
}

// Spread gives start times to the sessions of a source whose times count from the
// start of each session: see SessionTimes of [Info]. The process p starts the
// sessions, and the requests that belong to none, in the order of the source, the
// first of them at [Epoch]. Times within a session stay as far apart as they are; an
// entry whose time is before that of the session's first entry moves onto that. A
// session is recognised by the Text that its entries share. The entries stay in the
// order of the source. Memory is an instant for each session.
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
