package stamp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
)

// A dateReading is a date that is neither a number nor ISO 8601, such as
// 02.01.2026 15:04:05 or 11/03/2026 09:00:01 AM.
type dateReading struct {
	s      string
	fields [3]int // of the date, in the order in which they stand
	month  int    // which of them is a month by its name; -1 for none
	format strings.Builder
	clock  time.Duration // since midnight
	sep    byte
}

var monthNames = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// readWrittenDate reads a date in one of the layouts that people and spreadsheets
// write: day, month and year in numbers or with the month's English name, in any
// order with a year of four digits, and behind it the time of day on 24 hours or
// with AM and PM, perhaps with a fraction and a zone. Where nothing in it says which
// number is the day, the stamp has both readings.
func readWrittenDate(s string) (Stamp, bool) {
	r := dateReading{s: strings.TrimSpace(s), month: -1}
	r.weekday()
	if !r.date() || !r.timeOfDay() {
		return Stamp{}, false
	}
	st := Stamp{Style: local, sep: r.sep}
	offset := time.Duration(0)
	if r.s != "" {
		space := len(r.s) - len(strings.TrimLeft(r.s, " "))
		zone, conversion := r.s[space:], "%z"
		if zone == "UTC" || zone == "GMT" {
			zone, conversion = "UTC", "%Z"
		}
		r.format.WriteString(r.s[:space] + conversion)
		var ok bool
		if offset, ok = readZone(zone); !ok || zone == "z" { // which no layout has
			return Stamp{}, false
		}
		st.Style = Zoned
	}
	st.layout = r.format.String()
	if strings.Count(st.layout, "%Y") > 1 { // a day of four digits, as in 0002 Jan 2026
		return Stamp{}, false
	}
	at := func(year, month, day int) time.Time {
		t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
		if t.Year() != year || int(t.Month()) != month || t.Day() != day {
			return time.Time{}
		}
		return t.Add(r.clock - offset)
	}
	switch f := r.fields; {
	case r.month == 0:
		st.Time = at(f[2], f[0], f[1])
	case r.month == 1:
		st.Time = at(f[2], f[1], f[0])
	case f[0] >= 1000:
		st.Time = at(f[0], f[1], f[2])
	default:
		st.open = true
		st.Time, st.Swapped = at(f[2], f[1], f[0]), at(f[2], f[0], f[1])
	}
	return st, !st.Time.IsZero() || !st.Swapped.IsZero()
}

// weekday passes over the name of a day.
func (r *dateReading) weekday() {
	name, rest, ok := strings.Cut(r.s, " ")
	name, comma := strings.CutSuffix(name, ",")
	if !ok || len(name) < 3 {
		return
	}
	for day := time.Sunday; day <= time.Saturday; day++ {
		switch full := day.String(); {
		case strings.EqualFold(name, full):
			r.format.WriteString("%A")
		case strings.EqualFold(name, full[:3]):
			r.format.WriteString("%a")
		default:
			continue
		}
		if comma {
			r.format.WriteByte(',')
		}
		r.format.WriteByte(' ')
		r.s = rest
	}
}

// number takes a number of at most so many digits.
func (r *dateReading) number(digits int) (n, length int) {
	for length < len(r.s) && length < digits && r.s[length] >= '0' && r.s[length] <= '9' {
		n = 10*n + int(r.s[length]-'0')
		length++
	}
	r.s = r.s[length:]
	return n, length
}

// date takes the three fields of the date and what is between them.
func (r *dateReading) date() bool {
	for i := range r.fields {
		padded := i > 0 && r.sep == ' ' && strings.HasPrefix(r.s, " ")
		r.s = r.s[map[bool]int{true: 1}[padded]:]
		n, digits := r.number(4)
		switch {
		case digits == 0 && i < 2 && r.month < 0:
			name := 0
			for name < len(r.s) && (r.s[name]|0x20 >= 'a' && r.s[name]|0x20 <= 'z') {
				name++
			}
			for m, short := range monthNames {
				full := time.Month(m + 1).String()
				if strings.EqualFold(r.s[:name], short) || strings.EqualFold(r.s[:name], full) ||
					short == "sep" && strings.EqualFold(r.s[:name], "sept") {
					n = m + 1
					break
				}
			}
			if n == 0 {
				return false
			}
			r.month, r.s = i, r.s[name:]
			r.format.WriteString(map[bool]string{true: "%b", false: "%B"}[name == 3])
		case digits == 4 && i != 1:
			r.format.WriteString("%Y")
		case padded && digits == 1 && r.month >= 0:
			r.format.WriteString("%e")
		case padded:
			return false
		case digits == 1 || digits == 2:
			// The first number is the day until something shows that it is the month.
			r.format.WriteString(map[bool]string{true: "%d", false: "%m"}[i == 0 || r.month == 0 ||
				r.fields[0] >= 1000 && i == 2])
		default:
			return false
		}
		if r.fields[i] = n; i == 2 {
			break
		}
		sep := 1
		if strings.HasPrefix(r.s, ", ") {
			sep = 2
		}
		if r.s == "" || !strings.ContainsRune("./- ,", rune(r.s[0])) || r.sep != 0 && r.month < 0 && r.s[0] != r.sep {
			return false
		}
		r.sep = r.s[0]
		r.format.WriteString(r.s[:sep])
		r.s = r.s[sep:]
	}
	// A year is at one end, and a month's name not at the end.
	first, last := r.fields[0] >= 1000, r.fields[2] >= 1000
	return first != last && !(first && r.month >= 0)
}

// timeOfDay takes what is between the date and the time, and the time.
func (r *dateReading) timeOfDay() bool {
	between := 0
	for between < len(r.s) && strings.ContainsRune(" T,:", rune(r.s[between])) {
		between++
	}
	if between == 0 || between > 2 {
		return false
	}
	r.format.WriteString(r.s[:between])
	r.s = r.s[between:]
	hour, digits := r.number(2)
	if digits == 0 {
		return false
	}
	hourAt := r.format.Len()
	r.format.WriteString("%H")
	seconds := false
	for i, unit := range []time.Duration{time.Minute, time.Second} {
		if seconds = strings.HasPrefix(r.s, ":"); !seconds {
			if i == 0 {
				return false
			}
			break
		}
		r.s = r.s[1:]
		n, digits := r.number(2)
		if digits != 2 || n > 59 {
			return false
		}
		r.clock += time.Duration(n) * unit
		r.format.WriteString([]string{":%M", ":%S"}[i])
	}
	if seconds && len(r.s) > 1 && (r.s[0] == '.' || r.s[0] == ',') && r.s[1] >= '0' && r.s[1] <= '9' {
		end := 1
		for end < len(r.s) && r.s[end] >= '0' && r.s[end] <= '9' {
			end++
		}
		nano, _ := readFraction(r.s[1:end])
		r.clock += time.Duration(nano)
		r.format.WriteString(r.s[:1] + "%f")
		r.s = r.s[end:]
	}
	rest := strings.TrimLeft(r.s, " ")
	if len(rest) >= 2 && slices.Contains([]string{"AM", "PM", "am", "pm"}, rest[:2]) { // in the cases that a layout has
		if hour < 1 || hour > 12 {
			return false
		}
		if hour %= 12; rest[0]|0x20 == 'p' {
			hour += 12
		}
		text := r.format.String()
		r.format.Reset()
		r.format.WriteString(text[:hourAt] + "%I" + text[hourAt+2:] + r.s[:len(r.s)-len(rest)] + "%p")
		r.s = rest[2:]
	}
	r.clock += time.Duration(hour) * time.Hour
	return hour < 24
}

// monthFirst is a layout in which the day and the month change places.
func monthFirst(layout string) string {
	return strings.NewReplacer("%d", "%m", "%m", "%d").Replace(layout)
}

// settleOrder decides from the first stamps whether the day or the month comes
// first in dates that leave it open. It returns why it cannot, or "".
func (c *Clock) settleOrder(sample []Stamp) string {
	var open *Stamp
	dayFirst, month := false, false
	for i := range sample {
		s := &sample[i]
		if !s.open {
			continue
		}
		if open == nil {
			open = s
		}
		dayFirst = dayFirst || s.Swapped.IsZero()
		month = month || s.Time.IsZero()
	}
	switch {
	case open == nil:
		return ""
	case dayFirst && month:
		return "some of the dates have the day first and some the month: name the layout that most have, such as " +
			timeFormatFlag(open.layout) +
			", and the others are bad records"
	case month:
		c.order = monthIsFirst
	case dayFirst || open.sep == '.': // nobody writes points behind a month that comes first
		c.order = dayIsFirst
	default:
		const day = "2 January 2006"
		return fmt.Sprintf("the dates can be read in two ways, and none of the first ones decides. Choose one:\n  "+
			"%s reads the first as %s\n  %s reads it as %s",
			timeFormatFlag(open.layout), open.Time.Format(day), timeFormatFlag(monthFirst(open.layout)),
			open.Swapped.Format(day))
	}
	return ""
}

func timeFormatFlag(layout string) string { return "--time-format '" + layout + "'" }

// A dayOrder says in which order day and month stand where both are numbers.
type dayOrder int

const (
	openOrder dayOrder = iota
	dayIsFirst
	monthIsFirst
)

// inOrder takes the reading of a stamp that the order of the source asks for.
func (c *Clock) inOrder(s Stamp) (Stamp, string) {
	switch {
	case !s.open:
		return s, ""
	case c.order == openOrder:
		return s, "its date is written in another way than in the records before it"
	case c.order == monthIsFirst:
		s.Time = s.Swapped
	}
	if s.Time.IsZero() {
		return s, "its date has the day and the month in another order than the records before it; where they are " +
			"right, name the layout with --time-format"
	}
	return s, ""
}

// strptimeLayouts are the conversions of strptime in Go's layouts. Numbers may have one
// digit or two. A fraction of a second needs nothing there.
var strptimeLayouts = strings.NewReplacer(".%f", "", ",%f", "", "%Y", "2006", "%y", "06", "%m", "1", "%d", "2", "%e",
	"_2", "%j", "002",
	"%H", "15", "%I", "3", "%M", "4", "%S", "5", "%p", "PM", "%b", "Jan", "%B", "January", "%a", "Mon", "%A", "Monday",
	"%z", "Z07:00", "%Z", "MST", "%F", "2006-1-2", "%T", "15:4:5", "%R", "15:4", "%%", "%")

// timeLayouts returns the layouts of package time that a --time-format stands for.
// It is written with the conversions of strptime, or as such a layout itself.
func timeLayouts(format string) ([]string, error) {
	if format == "" {
		return nil, nil
	}
	layout := strptimeLayouts.Replace(format)
	layouts := []string{layout}
	if strings.Contains(format, "%z") {
		layouts = append(layouts, strings.ReplaceAll(layout, "Z07:00", "Z0700"),
			strings.ReplaceAll(layout, "Z07:00", "-07"))
	}
	if strings.Contains(layout, "PM") {
		for _, l := range layouts {
			layouts = append(layouts, strings.ReplaceAll(l, "PM", "pm"))
		}
	}
	// What is written by it has to be read by it as the same minute.
	probe := time.Date(2021, 11, 23, 17, 48, 59, 0, time.UTC)
	got, err := time.Parse(layout, probe.Format(layout))
	if err != nil || !got.Truncate(time.Minute).Equal(probe.Truncate(time.Minute)) {
		return nil, fault.Usage("--time-format: want a layout with year, month, day, hour and minute, such as " +
			"'%%d.%%m.%%Y %%H:%%M:%%S' or '02.01.2006 15:04:05'")
	}
	return layouts, nil
}

// readByLayout reads a date by the first of some layouts that fits.
func readByLayout(layouts []string, s string) (Stamp, bool) {
	s = strings.TrimSpace(s)
	for _, layout := range layouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		style := local
		if strings.Contains(layout, "07") || strings.Contains(layout, "MST") {
			style = Zoned
		}
		// An abbreviation that is not known is taken for an offset of zero.
		if name, offset := t.Zone(); style == Zoned && offset == 0 && strings.Contains(layout, "MST") &&
			name != "UTC" && name != "GMT" {
			return Stamp{}, false
		}
		return Stamp{Style: style, Time: t.UTC()}, true
	}
	return Stamp{}, false
}

// CheckLayout reports a layout of dates that is none, in the conversions of strptime or as of
// package time. It matches [fault.ErrUsage].
func CheckLayout(format string) error {
	_, err := timeLayouts(format)
	return err
}
