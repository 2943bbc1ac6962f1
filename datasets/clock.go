package datasets

import (
	"math"
	"slices"
	"strings"
	"time"

	"reprise/trace"
)

// A clock turns the stamps of one source into instants. The first records
// settle how the source writes its times, and a later record that writes them
// in another way is bad:
//
//   - dates with a zone; dates without one, which are in the zone that was told
//     or UTC;
//   - numbers since 1970, in s, ms, µs or ns by their magnitude;
//   - smaller numbers, which count from the beginning: in seconds when some have
//     a fraction, else in the unit that is usual in the format;
//   - numbers in a unit that was told.
//
// What is none of these, or could be two, is refused.
type clock struct {
	told     time.Duration // unit as told; 0 to detect
	zone     *time.Location
	longSpan bool
	usual    time.Duration // unit of whole relative numbers; 0 when the format has none
	capture  trace.Capture // that arrivals must be in, see outside; zero for none

	style     stampStyle
	unit      time.Duration
	epoch     bool // numbers count from 1970
	fractions bool // numbers may have a fraction
	guessed   bool // seconds, since there are fractions

	seen     bool
	min, max time.Time
}

func newClock(o Options) clock {
	c := clock{told: unitOf(o.TimeUnit), zone: o.TZ, longSpan: o.AllowLongSpan, capture: o.Capture}
	if c.zone == nil {
		c.zone = time.UTC
	}
	return c
}

const sayUnit = "say --time-unit s, ms, us or ns"

// settle decides from the first stamps how the source writes its times. It
// returns why it cannot, or "".
func (c *clock) settle(sample []stamp) string {
	first := sample[0]
	switch {
	case first.style != numeric:
		if c.told != 0 {
			return "the times are dates, to which --time-unit does not apply"
		}
	case c.told != 0:
		c.unit, c.fractions = c.told, true
	case epochUnit(first.whole) != 0:
		c.unit, c.epoch, c.fractions = epochUnit(first.whole), true, true
	case first.whole >= 1e9:
		return "the unit of the times is not clear from their size: " + sayUnit
	case slices.ContainsFunc(sample, func(s stamp) bool { return s.style == numeric && s.nano != 0 }):
		c.unit, c.fractions, c.guessed = time.Second, true, true
	case c.usual != 0:
		c.unit = c.usual
	default:
		return "the times are small whole numbers, so that their unit is not clear: " + sayUnit
	}
	c.style = first.style
	return ""
}

// describe says the unit for [Info].
func (c *clock) describe() string {
	switch c.style {
	case noStamp:
		return ""
	case numeric:
		return unitName(c.unit)
	}
	return "date"
}

// instant converts a stamp. why says what is wrong, and stop that it is more
// than this one record.
func (c *clock) instant(s stamp) (t time.Time, why string, stop bool) {
	if s.style != c.style {
		return t, "its time is written in another way than in the records before it", false
	}
	switch s.style {
	case numeric:
		t, why = c.number(s)
	case zoned:
		t = s.t
	case local:
		if t, why = inZone(s.t, c.zone); why != "" {
			return t, why, true
		}
	}
	if y := t.Year(); why == "" && (y < 1970 || y > 2200) {
		why = "its time is outside the years 1970 to 2200"
	}
	if why != "" {
		return t, why, false
	}
	return t, c.track(t), true
}

func (c *clock) number(s stamp) (time.Time, string) {
	if c.told == 0 {
		switch u := epochUnit(s.whole); {
		case c.epoch && u != c.unit, !c.epoch && s.whole >= 1e9:
			return time.Time{}, "its time is in another unit than those before it; if it is not, " + sayUnit
		case !c.fractions && s.nano != 0:
			return time.Time{}, "its time has a fraction, unlike those before it; " + sayUnit
		}
	}
	if s.whole >= math.MaxInt64/int64(c.unit) {
		return time.Time{}, "its time is too large for the unit"
	}
	// One unit is 1e9 of nano's steps, so unit/1e9 ns each.
	ns := s.whole*int64(c.unit) + int64(math.Round(float64(s.nano)*float64(c.unit)/1e9))
	return Epoch.Add(time.Duration(ns)), ""
}

// track returns "" or that the times now span too much.
func (c *clock) track(t time.Time) string {
	if !c.seen || t.Before(c.min) {
		c.min = t
	}
	if !c.seen || t.After(c.max) {
		c.max = t
	}
	c.seen = true
	if !c.longSpan && c.max.Sub(c.min) > maxSpan {
		if c.style == numeric {
			return "in the unit " + unitName(c.unit) + " the times up to here span more than 60 days: " + sayUnit + " if it is another, or confirm with --allow-long-span"
		}
		return "the times up to here span more than 60 days: confirm with --allow-long-span"
	}
	return ""
}

// inZone finds the instant at which the clocks of a zone show what face shows
// in UTC. Twice a year there may be two of them, or none.
func inZone(face time.Time, zone *time.Location) (time.Time, string) {
	if zone == time.UTC {
		return face, ""
	}
	var found []time.Time
	for _, away := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := face.Add(away).In(zone).Zone()
		t := face.Add(-time.Duration(offset) * time.Second)
		if _, o := t.In(zone).Zone(); o == offset && (len(found) == 0 || !found[0].Equal(t)) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 1:
		return found[0].UTC(), ""
	case 0:
		return time.Time{}, "its local time does not exist: the clocks were put forward past it; give times with a zone, or another --tz"
	}
	return time.Time{}, "its local time is ambiguous: the clocks were put back over it; give times with a zone, or another --tz"
}

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
	// An undated time counts from a zero of the source's own, and not from 1970. In
	// a unit that was told nothing but the size says which.
	undated := c.style == numeric && !c.epoch && t.Sub(Epoch) < 1e9*time.Second
	switch {
	case !c.capture.Declared():
		return ""
	case c.capture.Relative != undated:
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
