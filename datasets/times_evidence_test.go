package datasets

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// rowsAt makes CSV of records at times as they are written.
func rowsAt(count int, at func(i int) string) string {
	var out strings.Builder
	out.WriteString("t,n\n")
	for i := range count {
		fmt.Fprintf(&out, "%s,%d\n", at(i), 10+i)
	}
	return out.String()
}

// Times whose numbers are not what they seem are told by their values.
func TestTimesByEvidence(t *testing.T) {
	const (
		epoch       = 1767323045
		noteSerial  = "times were read as the dates of a spreadsheet"
		whySerial   = "the times may be the dates of a spreadsheet"
		noteLengths = "is time mapped to a duration?"
		whyLengths  = "the times go up and down from record to record"
	)
	serial := func(seconds float64) string {
		return fmt.Sprintf("%.10f", 46024+seconds/86400)
	}
	for name, c := range map[string]struct {
		in, unit string // the unit is of --time-unit
		why      string // it is refused; "" for none
		note     string
		span     float64 // between the first two records, in seconds; 0 for not
	}{
		"epochs":                       {in: rowsAt(30, func(i int) string { return fmt.Sprint(epoch + i) }), span: 1},
		"epochs in a 32-bit float":     {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.0f", float32(epoch+100*i)) }), why: "32-bit float"},
		"the same of a short log":      {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.1f", float32(epoch+i)) }), why: "32-bit float"},
		"milliseconds in such":         {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.0f", float32(epoch*1e3+float64(i)*1e5)) }), why: "32-bit float"},
		"epochs of seven digits":       {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.7g", float64(epoch+1500*i)) }), why: "too few digits"},
		"which are meant":              {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.0f", float32(epoch+128*i)) }), unit: "s"},
		"epochs by the minute":         {in: rowsAt(30, func(i int) string { return fmt.Sprint(epoch - epoch%60 + 60*i) }), span: 60},
		"epochs by the day":            {in: rowsAt(30, func(i int) string { return fmt.Sprint(epoch - epoch%86400 + 86400*i) }), span: 86400},
		"epochs of one second":         {in: rowsAt(5, func(int) string { return fmt.Sprint(epoch) })},
		"dates of a spreadsheet":       {in: rowsAt(30, func(i int) string { return serial(3600 + 5*float64(i)) }), note: noteSerial, span: 5},
		"such of milliseconds":         {in: rowsAt(30, func(i int) string { return serial(3600 + 1.234*float64(i)) }), note: noteSerial, span: 1.234},
		"such of few digits":           {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.7f", 46024.123+float64(i)/1e4+1.23e-5) }), why: whySerial},
		"seconds of that size":         {in: rowsAt(30, func(i int) string { return fmt.Sprintf("%.3f", 46024.5+1.25*float64(i)) }), span: 1.25},
		"which are said to be seconds": {in: rowsAt(30, func(i int) string { return serial(5 * float64(i)) }), unit: "s"},
		"lengths of time":              {in: rowsAt(40, func(i int) string { return fmt.Sprintf("%.2f", 2+1.9*math.Sin(float64(7*i))) }), why: whyLengths},
		"which are said to be times":   {in: rowsAt(40, func(i int) string { return fmt.Sprintf("%.2f", 2+1.9*math.Sin(float64(7*i))) }), unit: "s", note: noteLengths},
		"arrivals out of order":        {in: rowsAt(40, func(i int) string { return fmt.Sprintf("%.2f", float64(i)+3*math.Abs(math.Sin(float64(7*i)))) })},
		"arrivals in bursts":           {in: rowsAt(40, func(i int) string { return fmt.Sprintf("%.1f", float64(i/8)/2) })},
	} {
		all, info, err := read(strings.NewReader(c.in), Options{Map: Mapping{"time": {"t"}, "input_tokens": {"n"}}, TimeUnit: c.unit})
		notes := strings.Join(info.Notes, "\n")
		switch {
		case c.why != "":
			if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), "--time-unit") {
				t.Errorf("%s: %v, want that it is refused: %s", name, err, c.why)
			}
			continue
		case err != nil || !strings.Contains(notes, c.note):
			t.Errorf("%s: %v\n%s", name, err, notes)
			continue
		}
		for _, other := range []string{noteSerial, noteLengths} {
			if other != c.note && strings.Contains(notes, other) {
				t.Errorf("%s: %s", name, notes)
			}
		}
		if got := all[1].Time.Sub(all[0].Time).Seconds(); c.span != 0 && math.Abs(got-c.span) > 0.0011 {
			t.Errorf("%s: %v s between two records, want %v", name, got, c.span)
		}
	}
	// 46024 is the second of January 2026.
	all, _ := mustRead(t, rowsAt(5, func(i int) string { return serial(11045 + float64(i)) }), Options{Map: Mapping{"time": {"t"}, "input_tokens": {"n"}}})
	if got := all[0].Time.Format("2006-01-02 15:04:05"); got != "2026-01-02 03:04:05" {
		t.Error(got)
	}
}
