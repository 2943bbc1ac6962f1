// Package stamp reads the times of a source: a [Stamp] is a time as it is written, and a [Clock] turns
// the stamps of one source into instants, once the first records have shown how it writes them.
//
// # Files
//
//   - stamp.go: numbers, dates of RFC 3339 and their variants, units of epochs
//   - iso.go: the other dates of ISO 8601, by week, by day and without marks; the year behind the time
//   - layout.go: day and month in numbers, AM and PM, month names; layouts that are told
//   - evidence.go: numbers that are no times: epochs in 32-bit floats, spreadsheets, lengths of time
//   - clock.go: the clock of a source; the declared capture window
package stamp

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Epoch is the instant that relative times count from.
var Epoch = time.Unix(0, 0).UTC()

// A Stamp is a time as a source writes it, before its unit is known.
type Stamp struct {
	Style Style
	Time  time.Time // zoned: the instant; local: the clock's face, as if in UTC
	Whole int64     // number
	Nano  int64     // number: 1e-9 of its unit

	// Of dates that are not ISO 8601:
	open    bool // the day may be first, as in Time, or the month, as in Swapped; zero for no such date
	Swapped time.Time
	sep     byte   // between the numbers
	layout  string // in the conversions of strptime, with the day first
}

// A Style is how a time is written.
type Style int

const (
	noStamp Style = iota
	Numeric
	Zoned // a date with its zone
	local // a date without one
)

// ReadISO reads a number or a date; ok is false for anything else.
func ReadISO(s string) (Stamp, bool) {
	s = strings.TrimSpace(s)
	if len(s) >= len("2006-01-02 15:04") && s[4] == '-' {
		return readDate(s)
	}
	whole, nano, ok := Decimal(s)
	return Stamp{Style: Numeric, Whole: whole, Nano: nano}, ok && whole >= 0 && nano >= 0
}

// Decimal reads a decimal number as a whole part and 1e-9ths, both of the
// number's sign, rounded to the nearest. Digits are kept exactly where a
// float64 would lose the nanoseconds of an epoch; only a number with an
// exponent goes through one.
func Decimal(s string) (whole, nano int64, ok bool) {
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
func readDate(s string) (Stamp, bool) {
	const layout = "0000-00-00 00:00:00"
	var v [6]int
	if len(s) < len(layout) {
		return Stamp{}, false
	}
	for i, field := 0, 0; i < len(layout); i++ {
		c := s[i]
		switch want := layout[i]; {
		case want == '0' && c >= '0' && c <= '9':
			v[field] = 10*v[field] + int(c-'0')
		case want != '0' && (c == want || want == ' ' && (c == 'T' || c == 't')):
			field++
		default:
			return Stamp{}, false
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
			return Stamp{}, false
		}
		nano, _ = readFraction(s[1:end])
		s = s[end:]
	}
	// Fields that time.Date has normalised show that the day or the hour does not exist.
	t := time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], 0, time.UTC)
	if t.Year() != v[0] || int(t.Month()) != v[1] || t.Day() != v[2] || t.Hour() != v[3] || t.Minute() != v[4] ||
		t.Second() != v[5] {
		return Stamp{}, false
	}
	t = t.Add(time.Duration(nano))
	if s == "" {
		return Stamp{Style: local, Time: t}, true
	}
	offset, ok := readZone(strings.TrimPrefix(s, " "))
	return Stamp{Style: Zoned, Time: t.Add(-offset)}, ok
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

// UnitOf returns the length of a unit by its name, or 0.
func UnitOf(name string) time.Duration {
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
		if UnitOf(name) == u {
			return name
		}
	}
	return "ns"
}

// EpochUnit tells the unit of an epoch time by its magnitude, for the years
// 2001 to 2286 in each unit; 0 when the number is none.
func EpochUnit(whole int64) time.Duration {
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

// Between is how long after one time another is, where they are written alike. unit is that of
// numbers which do not tell theirs by their size; 0 leaves them out.
func Between(a, b Stamp, unit time.Duration) (time.Duration, bool) {
	if a.Style != b.Style {
		return 0, false
	}
	switch {
	case a.open && b.open && (a.Time.IsZero() || b.Time.IsZero()):
		return b.Swapped.Sub(a.Swapped), !a.Swapped.IsZero() && !b.Swapped.IsZero()
	case a.open && b.open && !a.Swapped.IsZero() && !b.Swapped.IsZero():
		// Where the day and the month are left open, the shorter time is the likely one.
		d, other := b.Time.Sub(a.Time), b.Swapped.Sub(a.Swapped)
		if other.Abs() < d.Abs() {
			d = other
		}
		return d, true
	case a.Style != Numeric:
		return b.Time.Sub(a.Time), true
	}
	if u := EpochUnit(a.Whole); u != 0 {
		unit = u
	}
	whole := b.Whole - a.Whole
	if unit == 0 || whole > int64(maxSpan/unit) || whole < -int64(maxSpan/unit) {
		return 0, false
	}
	return time.Duration(whole)*unit + time.Duration(math.Round(float64(b.Nano-a.Nano)*float64(unit)/1e9)), true
}

// Read reads a time in any form that is told by itself: a number since 1970 or since
// the beginning, a date of ISO 8601, or one as people, spreadsheets and Unix write it.
func Read(s string) (Stamp, bool) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "["); ok { // as in the logs of web servers
		s = strings.TrimSuffix(inner, "]")
	}
	if st, ok := ReadISO(s); ok {
		return st, true
	}
	if st, ok := readWrittenDate(s); ok {
		return st, true
	}
	if st, ok := readOtherISO(s); ok {
		return st, true
	}
	return readYearLast(s)
}
