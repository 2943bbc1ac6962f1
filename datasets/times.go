package datasets

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// maxSpan is how long a source may last unless confirmed: a longer one is most
// likely read in the wrong unit.
const maxSpan = 60 * 24 * time.Hour

// A stamp is a time as a source writes it, before its unit is known.
type stamp struct {
	style stampStyle
	t     time.Time // zoned: the instant; local: the clock's face, as if in UTC
	whole int64     // number
	nano  int64     // number: 1e-9 of its unit

	// Of dates that are not ISO 8601:
	open    bool // the day may be first, as in t, or the month, as in swapped; zero for no such date
	swapped time.Time
	sep     byte   // between the numbers
	layout  string // in the conversions of strptime, with the day first
}

type stampStyle int

const (
	noStamp stampStyle = iota
	numeric
	zoned // a date with its zone
	local // a date without one
)

// readStamp reads a number or a date; ok is false for anything else.
func readStamp(s string) (stamp, bool) {
	s = strings.TrimSpace(s)
	if len(s) >= len("2006-01-02 15:04") && s[4] == '-' {
		return readDate(s)
	}
	whole, nano, ok := readDecimal(s)
	return stamp{style: numeric, whole: whole, nano: nano}, ok && whole >= 0 && nano >= 0
}

// readDecimal reads a decimal number as a whole part and 1e-9ths, both of the
// number's sign, rounded to the nearest. Digits are kept exactly where a
// float64 would lose the nanoseconds of an epoch; only a number with an
// exponent goes through one.
func readDecimal(s string) (whole, nano int64, ok bool) {
	if strings.ContainsAny(s, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(math.Abs(f) < 1<<62) {
			return 0, 0, false
		}
		w, frac := math.Modf(f)
		return carry(int64(w), int64(math.Round(frac*1e9)))
	}
	digits, negative := strings.CutPrefix(s, "-")
	before, after, _ := strings.Cut(digits, ".")
	whole, err := strconv.ParseInt(before, 10, 64)
	if err != nil || before[0] < '0' {
		return 0, 0, false
	}
	nano, ok = readFraction(after)
	if negative {
		whole, nano = -whole, -nano
	}
	if !ok {
		return 0, 0, false
	}
	return carry(whole, nano)
}

// readFraction reads the digits after a decimal point as 1e-9ths.
func readFraction(digits string) (nano int64, ok bool) {
	unit := int64(1e9)
	for i, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		switch {
		case i < 9:
			unit /= 10
			nano += int64(c-'0') * unit
		case i == 9 && c >= '5':
			nano++
		}
	}
	return nano, true
}

func carry(whole, nano int64) (int64, int64, bool) {
	if nano == 1e9 || nano == -1e9 {
		return whole + nano/1e9, 0, whole != math.MaxInt64
	}
	return whole, nano, true
}

// readDate reads "2006-01-02" and "15:04:05" with a space or a T between, any
// number of fractional digits, and optionally a zone: RFC 3339, its variants in
// SQL and Python, and what Azure writes. Nanoseconds are exact. It stands in for
// time.Parse, which knows one layout at a time and quotes its input in errors.
func readDate(s string) (stamp, bool) {
	const layout = "0000-00-00 00:00:00"
	var v [6]int
	if len(s) < len(layout) {
		return stamp{}, false
	}
	for i, field := 0, 0; i < len(layout); i++ {
		c := s[i]
		switch want := layout[i]; {
		case want == '0' && c >= '0' && c <= '9':
			v[field] = 10*v[field] + int(c-'0')
		case want != '0' && (c == want || want == ' ' && (c == 'T' || c == 't')):
			field++
		default:
			return stamp{}, false
		}
	}
	s = s[19:]
	var nano int64
	if len(s) > 0 && (s[0] == '.' || s[0] == ',') {
		end := 1
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		if end == 1 {
			return stamp{}, false
		}
		nano, _ = readFraction(s[1:end])
		s = s[end:]
	}
	// Fields that time.Date has normalised show that the day or the hour does not exist.
	t := time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], 0, time.UTC)
	if t.Year() != v[0] || int(t.Month()) != v[1] || t.Day() != v[2] || t.Hour() != v[3] || t.Minute() != v[4] || t.Second() != v[5] {
		return stamp{}, false
	}
	t = t.Add(time.Duration(nano))
	if s == "" {
		return stamp{style: local, t: t}, true
	}
	offset, ok := readZone(strings.TrimPrefix(s, " "))
	return stamp{style: zoned, t: t.Add(-offset)}, ok
}

// readZone reads Z, UTC, ±hh, ±hhmm or ±hh:mm.
func readZone(s string) (time.Duration, bool) {
	if s == "Z" || s == "z" || s == "UTC" {
		return 0, true
	}
	if at := strings.IndexByte(s, ':'); at >= 0 && (at != 3 || len(s) != 6) {
		return 0, false
	}
	digits := strings.Replace(s, ":", "", 1)
	if len(digits) != 3 && len(digits) != 5 || digits[0] != '+' && digits[0] != '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits[1:], 10, 16)
	if err != nil {
		return 0, false
	}
	if len(digits) == 3 {
		n *= 100
	}
	hours, minutes := n/100, n%100
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if digits[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// unitOf returns the length of a unit by its name, or 0.
func unitOf(name string) time.Duration {
	switch name {
	case "s":
		return time.Second
	case "ms":
		return time.Millisecond
	case "us":
		return time.Microsecond
	case "ns":
		return time.Nanosecond
	}
	return 0
}

func unitName(u time.Duration) string {
	for _, name := range []string{"s", "ms", "us"} {
		if unitOf(name) == u {
			return name
		}
	}
	return "ns"
}

// epochUnit tells the unit of an epoch time by its magnitude, for the years
// 2001 to 2286 in each unit; 0 when the number is none.
func epochUnit(whole int64) time.Duration {
	for _, u := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if unitsPerSecond := int64(time.Second / u); whole >= 1e9*unitsPerSecond && whole < 1e10*unitsPerSecond {
			return u
		}
	}
	if whole >= 1e18 {
		return time.Nanosecond
	}
	return 0
}

// Paths of the times of a record, by which latencies are told.
type latencyPaths struct{ start, first, end []string }

const backwards = "records that end before they start: their latencies are left out"

// latencies makes "e2e" and "ttft", both in nanoseconds, of the times of a
// record. A first token at or behind the end was not seen: several gateways put
// the end there when the answer was not streamed. unit is that of numbers which
// do not tell theirs by their size; 0 leaves them out.
func (v viewRow) latencies(p latencyPaths, unit time.Duration, tell *fault.Notes) {
	e2e, ended := since(v, p.start, p.end, unit)
	ttft, seen := since(v, p.start, p.first, unit)
	if ended && e2e < 0 || seen && ttft < 0 {
		tell.Count(backwards)
		return
	}
	if ended {
		v.made["e2e"] = number(strconv.FormatInt(int64(e2e), 10))
	}
	if seen && (!ended || ttft < e2e) {
		v.made["ttft"] = number(strconv.FormatInt(int64(ttft), 10))
	}
}

// since returns how long after one time another is, when both are there and
// written alike.
func since(r row, from, to []string, unit time.Duration) (time.Duration, bool) {
	a, ok := stampAt(r, from)
	b, ok2 := stampAt(r, to)
	if !ok || !ok2 || a.style != b.style {
		return 0, false
	}
	switch {
	case a.open && b.open && (a.t.IsZero() || b.t.IsZero()):
		return b.swapped.Sub(a.swapped), !a.swapped.IsZero() && !b.swapped.IsZero()
	case a.open && b.open && !a.swapped.IsZero() && !b.swapped.IsZero():
		// Where the day and the month are left open, the shorter time is the likely one.
		d, other := b.t.Sub(a.t), b.swapped.Sub(a.swapped)
		if other.Abs() < d.Abs() {
			d = other
		}
		return d, true
	case a.style != numeric:
		return b.t.Sub(a.t), true
	}
	if u := epochUnit(a.whole); u != 0 {
		unit = u
	}
	whole := b.whole - a.whole
	if unit == 0 || whole > int64(maxSpan/unit) || whole < -int64(maxSpan/unit) {
		return 0, false
	}
	return time.Duration(whole)*unit + time.Duration(math.Round(float64(b.nano-a.nano)*float64(unit)/1e9)), true
}

func stampAt(r row, paths []string) (stamp, bool) {
	v, _, ok := findFirst(r, paths)
	if !ok {
		return stamp{}, false
	}
	return readTime(plain(v))
}

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
// What is none of these, or could be two, is refused. In a declared window of dates each is read by
// itself, see [clock.alone].
type clock struct {
	told     time.Duration // unit as told; 0 to detect
	zone     *time.Location
	longSpan bool
	usual    time.Duration // unit of whole relative numbers; 0 when the format has none
	always   bool          // it is that of numbers with a fraction too
	capture  trace.Capture // that arrivals must be in; zero for none

	style     stampStyle
	compact   bool // numbers are dates: see [readCompact]
	serial    bool // numbers are dates of a spreadsheet: see [readSerial]
	mapped    bool // the operator named the field, so that it may be none of an arrival
	unit      time.Duration
	epoch     bool // numbers count from 1970
	fractions bool // numbers may have a fraction
	guessed   bool // seconds, since there are fractions

	order   dayOrder // of dates in numbers
	layouts []string // of package time, as told; nil to detect the layout
	layout  string   // that was told or detected, for [Info]; empty for ISO 8601

	seen     bool
	min, max time.Time
}

func newClock(o Options) clock {
	c := clock{told: unitOf(o.TimeUnit), zone: o.TZ, longSpan: o.AllowLongSpan, capture: o.Capture}
	if c.zone == nil {
		c.zone = time.UTC
	}
	c.layouts, _ = timeLayouts(o.TimeFormat) // checked with the other options
	return c
}

// read reads the time of a record.
func (c *clock) read(s string) (stamp, bool) {
	if c.layouts != nil {
		return readByLayout(c.layouts, s)
	}
	return readTime(s)
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
	case c.told != 0:
		c.unit, c.fractions = c.told, true
	case epochUnit(first.whole) != 0:
		c.unit, c.epoch, c.fractions = epochUnit(first.whole), true, true
		if why := coarse(sample, c.unit); why != "" {
			return why
		}
	case !slices.ContainsFunc(sample, func(s stamp) bool { _, ok := readCompact(s); return !ok }):
		c.compact = true
	case c.usual == 0 && c.settleSerial(sample):
		c.serial = true
	case c.usual == 0 && c.unclear(sample):
		return whySerial
	case c.mapped && areLengths(sample):
		return whyLengths
	case first.whole >= 1e9:
		return "the unit of the times is not clear from their size: " + sayUnit
	case c.usual != 0 && c.always:
		c.unit, c.fractions = c.usual, true
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

// settleSerial and unclear ask [isSerial].
func (c *clock) settleSerial(sample []stamp) bool { is, _ := isSerial(sample); return is }

func (c *clock) unclear(sample []stamp) bool { _, unclear := isSerial(sample); return unclear }

// describe says the unit for [Info].
func (c *clock) describe() string {
	switch {
	case c.style == noStamp:
		return ""
	case c.style == numeric && !c.compact && !c.serial:
		return unitName(c.unit)
	}
	return "date"
}

// instant converts a stamp. why says what is wrong, and stop that it is more
// than this one record.
func (c *clock) instant(s stamp) (t time.Time, why string, stop bool) {
	if one, why, ok := c.alone(s); why != "" {
		return t, why, false
	} else if ok {
		by := clock{zone: c.zone, longSpan: true, style: one.style, unit: epochUnit(one.whole), epoch: true, fractions: true}
		t, why, _ = by.instant(one)
		return t, why, false
	}
	if s.style != c.style {
		return t, "its time is written in another way than in the records before it", false
	}
	if s, why = c.inOrder(s); why != "" {
		return t, why, false
	}
	if c.compact {
		var ok bool
		if s.t, ok = readCompact(s); !ok {
			return t, "its time is written in another way than in the records before it", false
		}
		s.style = local
	}
	if c.serial {
		var ok bool
		if s.t, ok = readSerial(s); !ok {
			return t, "its time is written in another way than in the records before it", false
		}
		s.style = local
	}
	switch s.style {
	case numeric:
		t, why = c.fromNumber(s)
	case zoned:
		t = s.t
	case local:
		if t, why = inZone(s.t, c.zone); why != "" {
			return t, why, true
		}
	}
	if why == "" && trace.FarTime(t) {
		why = "its time is outside the years 1970 to 2200"
	}
	if why != "" {
		return t, why, false
	}
	return t, c.trackSpan(t), true
}

// windowOfDates reports whether each time is read by itself, whatever those before it were: the
// window is declared as dates, and nothing is told of how times are written. No record of a log,
// which is somebody's, must decide how those of others are read.
func (c *clock) windowOfDates() bool {
	return c.capture.Declared() && !c.capture.Relative && c.told == 0 && c.layouts == nil
}

// alone is the reading of a stamp by itself, in a window of dates: as a date, as a number that
// tells its unit by its size, or as digits or a spreadsheet write a date in the window. Of a date
// that leaves open whether the day or the month comes first, it is the reading in the window; why
// says that there are two of them. ok is false where a stamp cannot be read by itself.
func (c *clock) alone(s stamp) (one stamp, why string, ok bool) {
	switch {
	case !c.windowOfDates():
		return s, "", false
	case s.style == numeric && epochUnit(s.whole) == 0:
		t, is := readCompact(s)
		if !is {
			t, is = readSerial(s)
		}
		s.style, s.t = local, t
		return s, "", is && c.inWindow(s)
	case !s.open:
		return s, "", true
	}

	other := s
	s.open, other.open, other.t = false, false, s.swapped
	switch day, month := c.inWindow(s), c.inWindow(other); {
	case month && day && s.sep != '.' && !s.t.Equal(other.t):
		return s, "the day and the month of its date can be read in either order within the declared window: name the layout with --time-format", false
	case month && !day, s.t.IsZero():
		s = other
	}
	return s, "", true
}

// inWindow reports whether the date of a stamp is one, in the declared window.
func (c *clock) inWindow(s stamp) bool {
	t, why := s.t, ""
	if s.style == local {
		t, why = inZone(s.t, c.zone)
	}
	return !s.t.IsZero() && why == "" && c.capture.Outside(t) == ""
}

func (c *clock) fromNumber(s stamp) (time.Time, string) {
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

// trackSpan returns "" or that the times now span too much.
func (c *clock) trackSpan(t time.Time) string {
	if !c.seen || t.Before(c.min) {
		c.min = t
	}
	if !c.seen || t.After(c.max) {
		c.max = t
	}
	c.seen = true
	if !c.longSpan && c.max.Sub(c.min) > maxSpan {
		if c.style == numeric && !c.compact && !c.serial {
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
		return trace.Capture{}, fault.Usage("the begin of the capture: %s", why)
	}
	to, other, why := captureEdge(end, zone)
	if why != "" {
		return trace.Capture{}, fault.Usage("the end of the capture: %s", why)
	}
	if relative != other {
		return trace.Capture{}, fault.Usage("of the capture window one edge is a date and the other a duration: " +
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

// inCapture refuses an arrival that is outside the declared capture; other instants
// of a request, such as its end, may be outside. The place of the fault is the
// caller's to fill in.
func (c *clock) inCapture(arrival time.Time) *fault.Fault {
	if !c.capture.Declared() {
		return nil
	}
	// An undated time counts from a zero of the source's own, and not from 1970. In
	// a unit that was told nothing but the size says which.
	undated := c.style == numeric && !c.epoch && arrival.Sub(Epoch) < 1e9*time.Second
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
