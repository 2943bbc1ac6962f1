package datasets

import (
	"regexp"
	"strconv"
	"time"
)

// vllmDates reads the dates of lines, most of which lack the year.
type vllmDates struct{ last time.Time }

// assumed reports whether a year had to be made up.
func (d *vllmDates) assumed() bool { return !d.last.IsZero() }

var (
	fullDate  = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`)
	shortDate = regexp.MustCompile(`\b\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?`)
)

// of returns the date before an event, as a stamp and as it would be with a year.
func (d *vllmDates) of(prefix string) (st stamp, text string, ok bool) {
	if text = fullDate.FindString(prefix); text != "" {
		st, ok = readStamp(text)
		return st, text, ok
	}
	face := shortDate.FindString(prefix)
	if face == "" {
		return st, "", false
	}
	year := 1972
	switch {
	case d.last.IsZero() && face >= "07":
		year = 1971
	case !d.last.IsZero():
		year = d.last.Year()
	}
	for _, y := range []int{year, year + 1, year - 1} {
		text = strconv.Itoa(y) + "-" + face
		if st, ok = readStamp(text); ok && (d.last.IsZero() || st.t.Sub(d.last).Abs() < 183*24*time.Hour) {
			d.last = st.t
			return st, text, true
		}
	}
	return st, text, ok
}
