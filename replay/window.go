package replay

import (
	"strings"
	"sync/atomic"
	"time"

	"reprise/replay/result"
	"reprise/trace/quantity"
)

// A Span is a number of requests, a number of whole sessions or a length of time; the zero
// value is none of them.
type Span struct {
	Requests int64
	Sessions int64 // of a [SessionLoad], from start to end
	Time     time.Duration
}

// ParseSpan reads a number of requests, of sessions such as 20sessions, or a duration, none
// below zero; the empty string is the zero Span.
func ParseSpan(s string) (Span, error) {
	if s == "" {
		return Span{}, nil
	}
	if number, ok := strings.CutSuffix(s, "sessions"); ok {
		if n, err := quantity.Count(strings.TrimSpace(number)); err == nil {
			return Span{Sessions: n}, nil
		}
	}
	if n, err := quantity.Count(s); err == nil {
		return Span{Requests: n}, nil
	}
	if d, err := quantity.Latency(s); err == nil {
		return Span{Time: d}, nil
	}
	return Span{}, &quantity.Error{Text: s, Want: "a number of requests or a duration",
		Examples: [3]string{"100", "10k", "30s"}}
}

func (s Span) bad() bool { return s.Requests < 0 || s.Sessions < 0 || s.Time < 0 }

// A windowTracker finds which requests of a run are measured, as they are sent.
type windowTracker struct {
	warm, cool Span
	ended      *atomic.Int64 // trees that are over, of a load of sessions
	trees      *treeWindow   // of a load of sessions that measures whole trees
	n          int64
	from       *result.Place
	last       time.Duration
	ring       []result.Place // the last of those sent, as many as cool says
}

// addSent takes a request as it is sent.
func (w *windowTracker) addSent(at result.Place) {
	if w.trees != nil {
		return // their sessions say which are measured
	}
	warmed := w.warm.Sessions == 0 || w.ended.Load() >= w.warm.Sessions
	if w.n == w.warm.Requests && w.n > 0 || w.warm.Sessions > 0 && warmed && w.from == nil {
		w.from = new(at)
	}
	if n := w.cool.Requests; n > 0 {
		if int64(len(w.ring)) < n {
			w.ring = append(w.ring, at)
		} else {
			w.ring[w.n%n] = at
		}
	}
	w.n++
	w.last = max(w.last, time.Duration(at.DueNS))
}

// window is nil without warm-up and cool-down. A warm-up that no request
// outlasted holds none.
func (w *windowTracker) window() *result.Window {
	if w.trees != nil {
		return w.trees.window()
	}
	if w.warm == (Span{}) && w.cool == (Span{}) {
		return nil
	}
	out := &result.Window{From: w.from}
	switch {
	case w.warm.Time > 0:
		out.From = &result.Place{DueNS: int64(w.warm.Time)}
	case w.warm.Requests+w.warm.Sessions > 0 && w.from == nil:
		out.From = &result.Place{DueNS: int64(never)}
	}
	for _, p := range w.ring {
		if out.To == nil || p.Before(*out.To) {
			out.To = &result.Place{DueNS: p.DueNS, Row: p.Row, Round: p.Round}
		}
	}
	if w.cool.Time > 0 {
		out.To = &result.Place{DueNS: int64(w.last - w.cool.Time)}
	}
	return out
}
