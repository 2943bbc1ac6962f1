package datasets

import (
	"strings"
	"time"

	"reprise/trace"
)

// ParseCapture reads the begin and the end of a capture window as people type
// them: two dates, such as those of RFC 3339 or others that logs have, where zone
// is of dates that name none and nil is UTC; two numbers since 1970, whose size
// tells their unit; or two durations, such as 0s and 1h, for a source whose clock
// shows no dates. Errors match [ErrUsage] and quote nothing.
func ParseCapture(begin, end string, zone *time.Location) (trace.Capture, error) {
	from, relative, why := captureEdge(begin, zone)
	if why != "" {
		return trace.Capture{}, usage("the begin of the capture: %s", why)
	}
	to, other, why := captureEdge(end, zone)
	if why != "" {
		return trace.Capture{}, usage("the end of the capture: %s", why)
	}
	if relative != other {
		return trace.Capture{}, usage("of the capture window one edge is a date and the other a duration: give two of a kind")
	}
	c := trace.Capture{Begin: from, End: to, Relative: relative}
	if err := c.Check(); err != nil {
		return trace.Capture{}, usage("%v", err)
	}
	return c, nil
}

// captureEdge reads one edge of a window. A number without a unit is a time of
// the source's own clock, of which nothing says how long its unit is.
func captureEdge(s string, zone *time.Location) (t time.Time, relative bool, why string) {
	s = strings.TrimSpace(s)
	if d, err := time.ParseDuration(s); err == nil {
		return Epoch.Add(d), true, ""
	}
	st, ok := readStamp(s)
	if !ok || st.style == numeric && epochUnit(st.whole) == 0 {
		return t, false, "want a date such as 2026-01-02T15:04:05Z, or a duration such as 90m for a source whose clock shows no dates"
	}
	c := newClock(Options{TZ: zone, AllowLongSpan: true})
	if why := c.settle([]stamp{st}); why != "" {
		return t, false, why
	}
	t, why, _ = c.instant(st)
	return t, false, why
}

// outside says why an arrival is not in the declared capture, or "". Other instants
// of a request, such as its end, may be outside.
func (c *clock) outside(t time.Time) string {
	switch {
	case !c.capture.Declared():
		return ""
	case c.capture.Relative != c.undated(t):
		if c.capture.Relative {
			return "its times are dates: give the capture window as two dates, such as 2026-01-02T15:04:05Z"
		}
		return "its times count from a zero of the source's own: give the capture window as two durations from there, such as 0s and 1h"
	}
	if why := c.capture.Outside(t); why != "" {
		return why + ": declare a window that holds all of the source, or leave out the requests that are not in it"
	}
	return ""
}

// undated reports whether a time counts from a zero of the source's own, and not
// from 1970. In a unit that was told nothing but the size says which.
func (c *clock) undated(t time.Time) bool {
	return c.style == numeric && !c.epoch && t.Sub(Epoch) < 1e9*time.Second
}
