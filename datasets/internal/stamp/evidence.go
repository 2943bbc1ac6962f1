package stamp

import (
	"fmt"
	"math"
	"time"
)

// What numbers look like that are no times, or not the times that they seem to be.

// coarse returns why epochs cannot be used that are all multiples of a step of more than a
// minute that no clock has: what a 32-bit float leaves of them, or too few digits. Logs by the
// minute are multiples of one.
func coarse(sample []Stamp, unit time.Duration) (why string) {
	if len(sample) < 4 {
		return ""
	}
	perSecond := int64(time.Second / unit)
	var step int64
	distinct := map[int64]bool{}
	for _, s := range sample {
		if s.Style != Numeric || s.Nano != 0 {
			return ""
		}
		for a := s.Whole; a != 0; {
			step, a = a, step%max(a, 1)
		}
		if distinct[s.Whole] = true; step == 0 {
			step = s.Whole
		}
	}
	enough := len(distinct) > 2 || len(sample) >= 20 || len(distinct) == 2 && step%(128*perSecond) == 0
	if !enough || step < 100*perSecond || step%(60*perSecond) == 0 {
		return ""
	}
	of := fmt.Sprintf("whole multiples of %.5g s", float64(step)/float64(perSecond))
	if len(distinct) == 1 {
		of = "all the same"
	}
	return "the times are " + of + ", as an epoch is in a 32-bit float or with too few digits, so that the time " +
		"between requests is lost: " +
		"export them as 64-bit numbers or as dates, or say --time-unit " + unitName(unit) +
		" if they are as coarse as that"
}

// The days that Excel counts since 1899, of the years 1990 to 2099.
const (
	firstSerial = 32874
	lastSerial  = 73050
)

var serialEpoch = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)

// isSerial tells the dates of a spreadsheet, which are days and parts of them: numbers of their
// size whose parts are whole seconds of a day, or whole milliseconds. unclear is true of numbers
// that may be such dates or seconds.
func isSerial(sample []Stamp) (is, unclear bool) {
	if len(sample) < 3 {
		return false, false
	}
	parts, seconds, millis, finer := 0, 0, 0, 0
	least, most := sample[0].Whole, sample[0].Whole
	for _, s := range sample {
		if s.Style != Numeric || s.Whole < firstSerial || s.Whole > lastSerial {
			return false, false
		}
		least, most = min(least, s.Whole), max(most, s.Whole)
		if s.Nano == 0 {
			continue
		}
		parts++
		in := float64(s.Nano) / 1e9 * 86400
		if math.Abs(in-math.Round(in)) < 1e-3 {
			seconds++
		}
		if in *= 1000; math.Abs(in-math.Round(in)) < 0.1 {
			millis++
		}
		if s.Nano%1e5 != 0 {
			finer++ // than seconds usually are, and not finer than Excel's
		}
	}
	switch {
	case parts < 3 || 2*parts < len(sample):
		return false, false
	case seconds == parts && finer > 0, millis == parts && finer > 0 && parts >= 10:
		return true, false
	}
	// Digits that seconds need not, of few days or a very short trace.
	return false, 2*finer > parts && most-least < 3 && len(sample) >= 10
}

// readSerial reads the date of a spreadsheet, to the millisecond.
func readSerial(s Stamp) (time.Time, bool) {
	if s.Style != Numeric || s.Whole < firstSerial || s.Whole > lastSerial {
		return time.Time{}, false
	}
	in := time.Duration(math.Round(float64(s.Nano)/1e9*86400e3)) * time.Millisecond
	return serialEpoch.AddDate(0, 0, int(s.Whole)).Add(in), true
}

const (
	noteSerial = "times were read as the dates of a spreadsheet, in days since 1899: say --time-unit s if they are " +
		"seconds"
	whySerial = "the times may be the dates of a spreadsheet, in days since 1899, or seconds: export them as " +
		"dates, or say --time-unit s"
	whyLengths = "the times go up and down from record to record, as lengths of time do and arrivals do not: name " +
		"the field of the arrival (--map time=), " +
		"and this one as e2e_s or ttft_s, or with its unit; if they are arrivals after all, say --time-unit"
	noteLengths = "the times go up and down from record to record, as lengths of time do and arrivals do not: is " +
		"time mapped to a duration?"
)

// areLengths reports whether small numbers look like lengths of time: of many records a good
// part has less than the one half of all records before it. Logs that are written when requests
// end are out of order too, but go up in the long run.
func areLengths(sample []Stamp) bool {
	half := len(sample) / 2
	if half < 10 {
		return false
	}
	falls := 0
	for i, s := range sample {
		if s.Style != Numeric || s.Whole >= 1e8 {
			return false
		}
		if i < half {
			continue
		}
		if before := sample[i-half]; s.Whole < before.Whole || s.Whole == before.Whole && s.Nano < before.Nano {
			falls++
		}
	}
	return 10*falls > 3*(len(sample)-half)
}
