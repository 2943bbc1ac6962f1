package stamp

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// maxSpan is how long a source may last unless confirmed: a longer one is most
// likely read in the wrong unit.
const maxSpan = 60 * 24 * time.Hour

// A Clock turns the stamps of one source into instants. The first records
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
// What is none of these, or could be two, is refused. In a declared window of dates each is read by
// itself, see [Clock.alone].
type Clock struct {
	Told      time.Duration // unit as told; 0 to detect it
	Usual     time.Duration // unit of whole relative numbers; 0 when the format has none
	Always    bool          // it is that of numbers with a fraction too
	Fractions bool          // numbers may have a fraction
	Mapped    bool          // the operator named the field, so that it may be none of an arrival

	zone     *time.Location
	longSpan bool
	capture  trace.Capture // that arrivals must be in; zero for none

	sample  []Stamp // times of the first records, until it is settled
	style   Style
	compact bool // numbers are dates: see [readCompact]
	serial  bool // numbers are dates of a spreadsheet: see [readSerial]
	unit    time.Duration
	epoch   bool // numbers count from 1970
	guessed bool // seconds, since there are fractions

	order   dayOrder // of dates in numbers
	layouts []string // of package time, as told; nil to detect the layout
	layout  string   // that was told or detected; empty for ISO 8601

	seen     bool
	min, max time.Time
}

// Options say how to read the times of a source. The zero Options detect it.
type Options struct {
	Unit     string         // of numbers: s, ms, us or ns
	Layout   string         // of dates, see [CheckLayout]
	Zone     *time.Location // of times that name none; nil is UTC
	LongSpan bool           // accept times that span more than 60 days
	Capture  trace.Capture  // that arrivals must be in; zero for none
}

// NewClock makes a clock that has not seen any time.
func NewClock(o Options) Clock {
	c := Clock{Told: UnitOf(o.Unit), zone: cmp.Or(o.Zone, time.UTC), longSpan: o.LongSpan, capture: o.Capture}
	c.layouts, _ = timeLayouts(o.Layout) // checked with the other options
	return c
}

// HasLayout reports whether the layout of dates was told.
func (c *Clock) HasLayout() bool { return c.layouts != nil }

// Read reads the time of a record. The place of the fault is the caller's to fill in.
func (c *Clock) Read(s string) (Stamp, *fault.Fault) {
	if c.layouts != nil {
		st, ok := readByLayout(c.layouts, s)
		if !ok {
			return st, fault.Bad(0, 0, "time: want a date as --time-format says")
		}
		return st, nil
	}
	st, ok := Read(s)
	switch {
	case ok:
		return st, nil
	case LacksYear(s):
		return st, fault.Refuse(0, 0, "time: "+noYear)
	}
	return st, fault.Bad(0, 0, "time: want a number that is not negative, or a date such as 2026-01-02T15:04:05Z "+
		"or 02.01.2026 15:04:05; for another layout say --time-format")
}

// See takes the time of one of the first records, which show how the source writes its times.
func (c *Clock) See(s Stamp) { c.sample = append(c.sample, s) }

// Settled reports whether it is known how the source writes its times.
func (c *Clock) Settled() bool { return c.style != noStamp }

// Settle decides by the times that were seen, and by that of the first record to be read, how the
// source writes its times. It returns what is to be said of that.
func (c *Clock) Settle(s Stamp) (notes []string, f *fault.Fault) {
	if why := c.decide(append(c.sample, s)); why != "" {
		return nil, fault.Refuse(0, 0, why)
	}
	if c.Mapped && c.Told != 0 && areLengths(c.sample) {
		notes = append(notes, noteLengths)
	}
	c.sample = nil
	if c.layout != "" {
		notes = append(notes, "dates were read as "+timeFormatFlag(c.layout)+" says")
	}
	if c.serial {
		notes = append(notes, noteSerial)
	}
	if c.guessed {
		notes = append(notes, "times with fractions were taken as seconds: say --time-unit if the unit is another")
	}
	return notes, nil
}

// SayUnit is the advice where the unit of numbers is not clear.
const SayUnit = "say --time-unit s, ms, us or ns"

// decide is [Clock.Settle] by some stamps. It returns why it cannot, or "".
func (c *Clock) decide(sample []Stamp) string {
	first := sample[0]
	serial, unclear := isSerial(sample)
	switch {
	case first.Style != Numeric:
		if c.Told != 0 {
			return "the times are dates, to which --time-unit does not apply"
		}
		if !c.windowOfDates() {
			if why := c.settleOrder(sample); why != "" {
				return why
			}
		}
		switch {
		case c.order == monthIsFirst:
			c.layout = monthFirst(first.layout)
		case !first.open || c.order != openOrder:
			c.layout = first.layout
		}
	case c.Told != 0:
		c.unit, c.Fractions = c.Told, true
	case EpochUnit(first.Whole) != 0:
		c.unit, c.epoch, c.Fractions = EpochUnit(first.Whole), true, true
		if why := coarse(sample, c.unit); why != "" {
			return why
		}
	case !slices.ContainsFunc(sample, func(s Stamp) bool { _, ok := readCompact(s); return !ok }):
		c.compact = true
	case c.Usual == 0 && serial:
		c.serial = true
	case c.Usual == 0 && unclear:
		return whySerial
	case c.Mapped && areLengths(sample):
		return whyLengths
	case first.Whole >= 1e9:
		return "the unit of the times is not clear from their size: " + SayUnit
	case c.Usual != 0 && c.Always:
		c.unit, c.Fractions = c.Usual, true
	case slices.ContainsFunc(sample, func(s Stamp) bool { return s.Style == Numeric && s.Nano != 0 }):
		c.unit, c.Fractions, c.guessed = time.Second, true, true
	case c.Usual != 0:
		c.unit = c.Usual
	default:
		return "the times are small whole numbers, so that their unit is not clear: " + SayUnit
	}
	c.style = first.Style
	return ""
}

// Unit says the unit of the times: "date" for dates, and empty before it is settled.
func (c *Clock) Unit() string {
	switch {
	case c.style == noStamp:
		return ""
	case c.style == Numeric && !c.compact && !c.serial:
		return unitName(c.unit)
	}
	return "date"
}

// Instant converts a stamp, once the clock is settled. The place of the fault is the caller's to fill
// in.
func (c *Clock) Instant(s Stamp) (time.Time, *fault.Fault) {
	t, why, stop := c.convert(s)
	if why != "" {
		return t, &fault.Fault{Reason: why, Stop: stop}
	}
	return t, nil
}

// convert is [Clock.Instant]. why says what is wrong, and stop that it is more than this one record.
func (c *Clock) convert(s Stamp) (t time.Time, why string, stop bool) {
	if one, why, ok := c.alone(s); why != "" {
		return t, why, false
	} else if ok {
		by := Clock{zone: c.zone, longSpan: true, style: one.Style, unit: EpochUnit(one.Whole), epoch: true,
			Fractions: true}
		t, why, _ = by.convert(one)
		return t, why, false
	}
	if s.Style != c.style {
		return t, "its time is written in another way than in the records before it", false
	}
	if s, why = c.inOrder(s); why != "" {
		return t, why, false
	}
	if c.compact {
		var ok bool
		if s.Time, ok = readCompact(s); !ok {
			return t, "its time is written in another way than in the records before it", false
		}
		s.Style = local
	}
	if c.serial {
		var ok bool
		if s.Time, ok = readSerial(s); !ok {
			return t, "its time is written in another way than in the records before it", false
		}
		s.Style = local
	}
	switch s.Style {
	case Numeric:
		t, why = c.fromNumber(s)
	case Zoned:
		t = s.Time
	case local:
		if t, why = inZone(s.Time, c.zone); why != "" {
			return t, why, true
		}
	}
	if why == "" && trace.FarTime(t) {
		why = "its time is outside the years 1970 to 2200"
	}
	if why != "" {
		return t, why, false
	}
	return t, c.TrackSpan(t), true
}

// Number is the instant of a whole number, as [Clock.Instant] has it; ok is false where that may say something, and
// for an arrival outside the capture.
func (c *Clock) Number(whole int64) (t time.Time, ok bool) {
	if c.style != Numeric || c.compact || c.serial || c.windowOfDates() {
		return t, false
	}
	t, why := c.fromNumber(Stamp{Style: Numeric, Whole: whole})
	return t, why == "" && !trace.FarTime(t) && c.InCapture(t) == nil && c.TrackSpan(t) == ""
}

// windowOfDates reports whether each time is read by itself, whatever those before it were: the
// window is declared as dates, and nothing is told of how times are written. No record of a log,
// which is somebody's, must decide how those of others are read.
func (c *Clock) windowOfDates() bool {
	return c.capture.Declared() && !c.capture.Relative && c.Told == 0 && c.layouts == nil
}

// alone is the reading of a stamp by itself, in a window of dates: as a date, as a number that
// tells its unit by its size, or as digits or a spreadsheet write a date in the window. Of a date
// that leaves open whether the day or the month comes first, it is the reading in the window; why
// says that there are two of them. ok is false where a stamp cannot be read by itself.
func (c *Clock) alone(s Stamp) (one Stamp, why string, ok bool) {
	switch {
	case !c.windowOfDates():
		return s, "", false
	case s.Style == Numeric && EpochUnit(s.Whole) == 0:
		t, is := readCompact(s)
		if !is {
			t, is = readSerial(s)
		}
		s.Style, s.Time = local, t
		return s, "", is && c.inWindow(s)
	case !s.open:
		return s, "", true
	}

	other := s
	s.open, other.open, other.Time = false, false, s.Swapped
	switch day, month := c.inWindow(s), c.inWindow(other); {
	case month && day && s.sep != '.' && !s.Time.Equal(other.Time):
		return s, "the day and the month of its date can be read in either order within the declared window: name " +
			"the layout with --time-format", false
	case month && !day, s.Time.IsZero():
		s = other
	}
	return s, "", true
}

// inWindow reports whether the date of a stamp is one, in the declared window.
func (c *Clock) inWindow(s Stamp) bool {
	t, why := s.Time, ""
	if s.Style == local {
		t, why = inZone(s.Time, c.zone)
	}
	return !s.Time.IsZero() && why == "" && c.capture.Outside(t) == ""
}

func (c *Clock) fromNumber(s Stamp) (time.Time, string) {
	if c.Told == 0 {
		switch u := EpochUnit(s.Whole); {
		case c.epoch && u != c.unit, !c.epoch && s.Whole >= 1e9 && !c.goesOn(s.Whole):
			return time.Time{}, "its time is in another unit than earlier times; if it is not, " + SayUnit
		case !c.Fractions && s.Nano != 0:
			return time.Time{}, "its time has a fraction, unlike earlier times; " + SayUnit
		}
	}
	if s.Whole >= math.MaxInt64/int64(c.unit) {
		return time.Time{}, "its time is too large for the unit"
	}
	// One unit is 1e9 of nano's steps, so unit/1e9 ns each.
	ns := s.Whole * int64(c.unit)
	if s.Nano != 0 {
		ns += int64(math.Round(float64(s.Nano) * float64(c.unit) / 1e9))
	}
	return Epoch.Add(time.Duration(ns)), ""
}

// goesOn reports whether a number that could count from 1970 counts from the beginning, as those before it: it is at
// most a day after the latest of them. A trace in milliseconds is as large after 12 days.
func (c *Clock) goesOn(whole int64) bool {
	const day = 24 * time.Hour
	return c.seen && whole <= (int64(c.max.Sub(Epoch))+int64(day))/int64(c.unit)
}

// TrackSpan returns "" or that the times now span too much.
func (c *Clock) TrackSpan(t time.Time) string {
	if !c.seen || t.Before(c.min) {
		c.min = t
	}
	if !c.seen || t.After(c.max) {
		c.max = t
	}
	c.seen = true
	if !c.longSpan && c.max.Sub(c.min) > maxSpan {
		if c.style == Numeric && !c.compact && !c.serial {
			return "in the unit " + unitName(c.unit) + " the times up to here span more than 60 days: " + SayUnit +
				" if it is another, or confirm with --allow-long-span"
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
		return time.Time{}, "its local time does not exist: the clocks were put forward past it; give times with a " +
			"zone, or another --tz"
	}
	return time.Time{}, "its local time is ambiguous: the clocks were put back over it; give times with a zone, or " +
		"another --tz"
}

// Capture reads the two edges of a capture window as people type them. A zone is of dates that
// name none; nil is UTC. Errors match [fault.ErrUsage] and quote nothing.
func Capture(begin, end string, zone *time.Location) (trace.Capture, error) {
	from, relative, why := captureEdge(begin, zone)
	if why != "" {
		return trace.Capture{}, fault.Usage("the begin of the capture: %s", why)
	}
	to, other, why := captureEdge(end, zone)
	if why != "" {
		return trace.Capture{}, fault.Usage("the end of the capture: %s", why)
	}
	if relative != other {
		return trace.Capture{}, fault.Usage("the capture window has a date at one edge and a duration at the other: " +
			"give two of a kind")
	}
	c := trace.Capture{Begin: from, End: to, Relative: relative}
	if err := c.Check(); err != nil {
		return trace.Capture{}, fault.Usage("%v", err)
	}
	return c, nil
}

// captureEdge reads one edge of a window. A number without a unit is a time of
// the source's own clock, whose unit is unknown.
func captureEdge(s string, zone *time.Location) (t time.Time, relative bool, why string) {
	s = strings.TrimSpace(s)
	if d, err := time.ParseDuration(s); err == nil {
		return Epoch.Add(d), true, ""
	}
	st, ok := ReadISO(s)
	if !ok || st.Style == Numeric && EpochUnit(st.Whole) == 0 {
		return t, false, "want a date such as 2026-01-02T15:04:05Z, or a duration such as 90m for a source whose " +
			"clock shows no dates"
	}
	c := NewClock(Options{Zone: zone, LongSpan: true})
	if why := c.decide([]Stamp{st}); why != "" {
		return t, false, why
	}
	t, why, _ = c.convert(st)
	return t, false, why
}

// InCapture refuses an arrival that is outside the declared capture; other instants
// of a request, such as its end, may be outside. The place of the fault is the
// caller's to fill in.
func (c *Clock) InCapture(arrival time.Time) *fault.Fault {
	if !c.capture.Declared() {
		return nil
	}
	// An undated time counts from a zero of the source's own, and not from 1970. In
	// a unit that was told nothing but the size says which.
	undated := c.style == Numeric && !c.epoch && arrival.Sub(Epoch) < 1e9*time.Second
	switch {
	case c.capture.Relative && !undated:
		return fault.Refuse(0, 0, "its times are dates: give the capture window as two dates, such as "+
			"2026-01-02T15:04:05Z")
	case !c.capture.Relative && undated:
		return fault.Refuse(0, 0, "its times count from a zero of the source's own: give the capture window as two "+
			"durations from there, such as 0s and 1h")
	}
	if why := c.capture.Outside(arrival); why != "" {
		return fault.Refuse(0, 0, why+": declare a window that holds all of the source, or leave out the requests "+
			"that are not in it")
	}
	return nil
}
