package datasets

import (
	"math"
	"strconv"
	"strings"
	"time"
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

// readFraction reads the digits behind a decimal point as 1e-9ths.
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
	// Normalised fields that differ tell of a day or an hour that does not exist.
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
func (v viewRow) latencies(p latencyPaths, unit time.Duration, tell *notes) {
	e2e, ended := since(v, p.start, p.end, unit)
	ttft, seen := since(v, p.start, p.first, unit)
	if ended && e2e < 0 || seen && ttft < 0 {
		tell.count(backwards)
		return
	}
	if ended {
		v.made["e2e"] = number(strconv.FormatInt(int64(e2e), 10))
	}
	if seen && (!ended || ttft < e2e) {
		v.made["ttft"] = number(strconv.FormatInt(int64(ttft), 10))
	}
}

// since returns how long behind one time another is, when both are there and
// written alike.
func since(r row, from, to []string, unit time.Duration) (time.Duration, bool) {
	a, ok := stampAt(r, from)
	b, ok2 := stampAt(r, to)
	if !ok || !ok2 || a.style != b.style {
		return 0, false
	}
	if a.style != numeric {
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
	v, _, ok := find(r, paths)
	if !ok {
		return stamp{}, false
	}
	return readStamp(plain(v))
}
