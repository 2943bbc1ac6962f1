package client

import (
	"math"
	"sync/atomic"
	"time"

	"reprise/replay/openai"
)

// A silence hangs up on a server that takes too long to its first token, or between two
// events that say something. A nil silence never hangs up. Only the goroutine that reads the
// answer changes it, except sent, which is called before.
type silence struct {
	first, idle time.Duration // 0 is no limit
	timer       *time.Timer
	firstBy     time.Time // when the first token must be there
	nextBy      time.Time // when the next event must be there that says something
	begun       bool
	useful      int // events so far
	late        atomic.Bool
}

// sent begins the time to the first token.
func (s *silence) sent() {
	if s == nil || s.first <= 0 {
		return
	}
	s.firstBy = time.Now().Add(s.first)
	s.timer.Reset(s.first)
}

// event puts the next limit off. Comments, pings and chunks without anything in them do not
// count: they keep connections alive even when the generation has stopped.
func (s *silence) event(ev openai.Event, c *openai.Collector) {
	if s == nil || ev.Comment || openai.IsPing(ev) {
		return
	}
	s.begun = s.begun || s.first <= 0 || c.Begun()
	next := time.Duration(math.MaxInt64)
	if s.idle > 0 {
		// Before the first token the limit to it is what ends a wait, where there is one.
		if n := c.Useful(); n > s.useful || s.nextBy.IsZero() || !s.begun {
			s.useful, s.nextBy = n, time.Now().Add(s.idle)
		}
		next = time.Until(s.nextBy)
	}
	if !s.begun {
		next = min(next, time.Until(s.firstBy))
	}
	s.timer.Reset(max(next, 0))
}

// stop ends the limits.
func (s *silence) stop() {
	if s != nil {
		s.timer.Stop()
	}
}
