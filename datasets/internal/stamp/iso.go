package stamp

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// readOtherISO reads the dates of ISO 8601 that [readDate] does not: without marks
// (20260102T150405Z), by week (2026-W01-5T15:04:05) and by day of the year
// (2026-002T15:04:05), and times without seconds behind any of them.
func readOtherISO(s string) (Stamp, bool) {
	at := strings.IndexAny(s, "Tt ")
	if at < 7 || at > 10 {
		return Stamp{}, false
	}
	date, clock := strings.ReplaceAll(s[:at], "-", ""), s[at+1:]
	if len(date) < 7 || strings.Trim(date[:4]+date[5:], "0123456789") != "" {
		return Stamp{}, false
	}
	year, _ := strconv.Atoi(date[:4])
	number, _ := strconv.Atoi(date[5:])
	var day time.Time
	switch week, weekday := number/10, number%10; {
	case date[4] == 'W' && len(date) == 8 && week >= 1 && weekday >= 1 && weekday <= 7:
		fourth := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // is in week 1
		day = fourth.AddDate(0, 0, 7*(week-1)+weekday-1-(int(fourth.Weekday())+6)%7)
		if y, w := day.ISOWeek(); y != year || w != week {
			return Stamp{}, false
		}
	case date[4] < '0' || date[4] > '9':
		return Stamp{}, false
	case len(date) == 7:
		number, _ = strconv.Atoi(date[4:])
		if day = time.Date(year, 1, number, 0, 0, 0, 0, time.UTC); number < 1 || day.Year() != year {
			return Stamp{}, false
		}
	default:
		var err error
		if day, err = time.Parse("20060102", date); err != nil {
			return Stamp{}, false
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

func readYearLast(s string) (Stamp, bool) {
	if len(s) < len("Mon Jan 2 15:04:05 2006") || strings.Trim(s[len(s)-4:], "0123456789") != "" {
		return Stamp{}, false
	}
	for _, format := range yearLast {
		layouts, _ := timeLayouts(format)
		if st, ok := readByLayout(layouts, s); ok {
			st.layout = format
			return st, true
		}
	}
	return Stamp{}, false
}

const noYear = "its date has no year: log one, as in Jan 2 2026 15:04:05 or 2026-01-02T15:04:05Z"

// LacksYear tells the times of syslog, such as Jan  2 15:04:05.
func LacksYear(s string) bool {
	parts := strings.Fields(s)
	if len(parts) < 3 {
		return false
	}
	_, ok := readWrittenDate(strings.Join(append([]string{parts[0], parts[1], "2024"}, parts[2:]...), " "))
	return ok
}

// readCompact reads a date that is one number of 14 digits, such as 20260102150405.
func readCompact(s Stamp) (time.Time, bool) {
	digits := strconv.FormatInt(s.Whole, 10)
	t, err := time.Parse("20060102150405", digits)
	return t.Add(time.Duration(s.Nano)), err == nil && len(digits) == 14 && t.Year() >= 1970 && t.Year() < 2200
}

var fullDate = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`)

// FindDate is the first date with a year in a text, or "".
func FindDate(text string) string { return fullDate.FindString(text) }
