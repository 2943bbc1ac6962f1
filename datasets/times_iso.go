package datasets

import (
	"strconv"
	"strings"
	"time"
)

// readTime reads a time in any form that is told by itself: a number since 1970 or since
// the beginning, a date of ISO 8601, or one as people, spreadsheets and Unix write it.
func readTime(s string) (stamp, bool) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "["); ok { // as in the logs of web servers
		s = strings.TrimSuffix(inner, "]")
	}
	if st, ok := readStamp(s); ok {
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

// readOtherISO reads the dates of ISO 8601 that [readDate] does not: without marks
// (20260102T150405Z), by week (2026-W01-5T15:04:05) and by day of the year
// (2026-002T15:04:05), and times without seconds behind any of them.
func readOtherISO(s string) (stamp, bool) {
	at := strings.IndexAny(s, "Tt ")
	if at < 7 || at > 10 {
		return stamp{}, false
	}
	date, clock := strings.ReplaceAll(s[:at], "-", ""), s[at+1:]
	if len(date) < 7 || strings.Trim(date[:4]+date[5:], "0123456789") != "" {
		return stamp{}, false
	}
	year, _ := strconv.Atoi(date[:4])
	number, _ := strconv.Atoi(date[5:])
	var day time.Time
	switch week, weekday := number/10, number%10; {
	case date[4] == 'W' && len(date) == 8 && week >= 1 && weekday >= 1 && weekday <= 7:
		fourth := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // is in week 1
		day = fourth.AddDate(0, 0, 7*(week-1)+weekday-1-(int(fourth.Weekday())+6)%7)
		if y, w := day.ISOWeek(); y != year || w != week {
			return stamp{}, false
		}
	case date[4] < '0' || date[4] > '9':
		return stamp{}, false
	case len(date) == 7:
		number, _ = strconv.Atoi(date[4:])
		if day = time.Date(year, 1, number, 0, 0, 0, 0, time.UTC); number < 1 || day.Year() != year {
			return stamp{}, false
		}
	default:
		var err error
		if day, err = time.Parse("20060102", date); err != nil {
			return stamp{}, false
		}
	}
	digits := 0
	for digits < len(clock) && clock[digits] >= '0' && clock[digits] <= '9' {
		digits++
	}
	switch {
	case digits == 6:
		clock = clock[:2] + ":" + clock[2:4] + ":" + clock[4:]
	case digits == 4:
		clock = clock[:2] + ":" + clock[2:4] + ":00" + clock[4:]
	case digits == 2 && len(clock) >= 5 && clock[2] == ':' && (len(clock) == 5 || clock[5] != ':'):
		clock = clock[:5] + ":00" + clock[5:]
	}
	return readDate(day.Format("2006-01-02") + "T" + clock)
}

// yearLast are layouts with the year behind the time, as C and the date of Unix write them.
var yearLast = []string{"%a %b %e %H:%M:%S %Y", "%a %b %e %H:%M:%S %Z %Y", "%a %b %e %H:%M:%S %z %Y"}

func readYearLast(s string) (stamp, bool) {
	if len(s) < len("Mon Jan 2 15:04:05 2006") || strings.Trim(s[len(s)-4:], "0123456789") != "" {
		return stamp{}, false
	}
	for _, format := range yearLast {
		layouts, _ := timeLayouts(format)
		if st, ok := readByLayout(layouts, s); ok {
			st.layout = format
			return st, true
		}
	}
	return stamp{}, false
}

const noYear = "its date has no year: log one, as in Jan 2 2026 15:04:05 or 2026-01-02T15:04:05Z"

// lacksYear tells the times of syslog, such as Jan  2 15:04:05.
func lacksYear(s string) bool {
	parts := strings.Fields(s)
	if len(parts) < 3 {
		return false
	}
	_, ok := readWrittenDate(strings.Join(append([]string{parts[0], parts[1], "2024"}, parts[2:]...), " "))
	return ok
}

// readCompact reads a date that is one number of 14 digits, such as 20260102150405.
func readCompact(s stamp) (time.Time, bool) {
	digits := strconv.FormatInt(s.whole, 10)
	t, err := time.Parse("20060102150405", digits)
	return t.Add(time.Duration(s.nano)), err == nil && len(digits) == 14 && t.Year() >= 1970 && t.Year() < 2200
}
