package datasets

import (
	"fmt"
	"strings"
	"testing"

	"reprise/datasets/internal/record"
)

// readTimes reads a log with these times.
func readTimes(o Options, times ...string) (got []string, info Info, err error) {
	var in strings.Builder
	for _, s := range times {
		fmt.Fprintf(&in, `{"t":%q,"n":1}`+"\n", s)
	}
	o.Map = Mapping{"time": {"t"}, "input_tokens": {"n"}}
	o.MaxBad, o.AllowLongSpan = 1, true
	all, info, err := read(strings.NewReader(in.String()), o)
	for i := range all {
		got = append(got, all[i].Time.UTC().Format("2006-01-02T15:04:05.999999999"))
	}
	for _, b := range info.FirstBad {
		got = append(got, b.Error())
	}
	return got, info, err
}

// Layouts that people, spreadsheets and web servers write are recognised and stated.
func TestDateLayouts(t *testing.T) {
	for in, want := range map[string]string{
		"13.02.2026 15:04:05":             "2026-02-13T15:04:05 %d.%m.%Y %H:%M:%S",
		"01.02.2026 15:04":                "2026-02-01T15:04:00 %d.%m.%Y %H:%M", // a point means that the day is first
		"1.2.2026, 5:04:05,25":            "2026-02-01T05:04:05.25 %d.%m.%Y, %H:%M:%S,%f",
		"11/23/2026 09:00:01 AM":          "2026-11-23T09:00:01 %m/%d/%Y %I:%M:%S %p",
		"11/23/2026 12:00:01pm":           "2026-11-23T12:00:01 %m/%d/%Y %I:%M:%S%p",
		"11/23/2026 12:00:01 am":          "2026-11-23T00:00:01 %m/%d/%Y %I:%M:%S %p",
		"23/11/2026 09:00":                "2026-11-23T09:00:00 %d/%m/%Y %H:%M",
		"2026/11/03 09:00:01.5":           "2026-11-03T09:00:01.5 %Y/%m/%d %H:%M:%S.%f",
		"2026-11-03 09:00":                "2026-11-03T09:00:00 %Y-%m-%d %H:%M",
		"23/Nov/2026:09:00:01 +0100":      "2026-11-23T08:00:01 %d/%b/%Y:%H:%M:%S %z",
		"Mon, 23 Nov 2026 09:00:01 GMT":   "2026-11-23T09:00:01 %a, %d %b %Y %H:%M:%S %Z",
		"Nov 3, 2026 9:00:01 PM":          "2026-11-03T21:00:01 %b %d, %Y %I:%M:%S %p",
		"Monday, November 3, 2026 9:00 Z": "2026-11-03T09:00:00 %A, %B %d, %Y %H:%M %z",
		"2026-11-03T09:00:01Z":            "2026-11-03T09:00:01 ",
	} {
		got, info, err := readTimes(Options{}, in)
		layout := ""
		for _, n := range info.Notes {
			if rest, ok := strings.CutPrefix(n, "dates were read as --time-format '"); ok {
				layout = strings.TrimSuffix(rest, "' says")
			}
		}
		if err != nil || len(got) != 1 || got[0]+" "+layout != want {
			t.Errorf("%s: %s %s, %v; want %s", in, got, layout, err, want)
			continue
		}
		// What is stated reads the same when it is told.
		if layout != "" {
			if again, _, err := readTimes(Options{TimeFormat: layout}, in); err != nil || again[0] != got[0] {
				t.Errorf("%s by %s: %s, %v", in, layout, again, err)
			}
		}
	}
}

// Day and month in numbers are told apart by the whole sample, or not at all.
func TestDayMonthOrder(t *testing.T) {
	got, info, err := readTimes(Options{}, "03/11/2026 09:00:00 AM", "04/11/2026 09:00:00 AM", "03/28/2026 09:00:00 AM", "28/03/2026 09:00:00 AM")
	want := "2026-03-11T09:00:00 2026-04-11T09:00:00 2026-03-28T09:00:00"
	if err == nil || err.Error() != "log:1:6: some of the dates have the day first and some the month: name the layout that most have, such as --time-format '%d/%m/%Y %I:%M:%S %p', and the others are bad records" {
		t.Error(got, err)
	}
	got, info, err = readTimes(Options{}, "03/11/2026 09:00:00 AM", "04/11/2026 09:00:00 AM", "03/28/2026 09:00:00 AM")
	if err != nil || strings.Join(got, " ") != want || info.Notes[0] != "dates were read as --time-format '%m/%d/%Y %I:%M:%S %p' says" {
		t.Error(got, info.Notes, err)
	}
	_, _, err = readTimes(Options{}, "03/11/2026 09:00:01", "04/11/2026 09:00:00")
	if err == nil || err.Error() != "log:1:6: the dates can be read in two ways, and none of the first ones decides. Choose one:\n"+
		"  --time-format '%d/%m/%Y %H:%M:%S' reads the first as 3 November 2026\n"+
		"  --time-format '%m/%d/%Y %H:%M:%S' reads it as 11 March 2026" {
		t.Error(err)
	}
	for format, want := range map[string]string{"%d/%m/%Y %H:%M:%S": "2026-11-03T09:00:01", "%m/%d/%Y %H:%M:%S": "2026-03-11T09:00:01",
		"02/01/2006 15:04:05": "2026-11-03T09:00:01", "1/2/2006 15:04:05": "2026-03-11T09:00:01"} {
		if got, _, err := readTimes(Options{TimeFormat: format}, "03/11/2026 09:00:01"); err != nil || got[0] != want {
			t.Errorf("%s: %s, %v", format, got, err)
		}
	}
}

// A later date that does not fit is a bad record with its place.
func TestDatesThatDoNotFit(t *testing.T) {
	sample := strings.Repeat(" ", record.HeadBytes) // the second record is not in the sample
	in := `{"t":"23.11.2026 09:00:00","n":1,"x":"` + sample + `"}` + "\n" +
		`{"t":"11.23.2026 09:00:00","n":1}` + "\n" + `{"t":"tomorrow","n":1}` + "\n" + `{"t":"5","n":1}` + "\n" + `{"t":"24.11.2026 09:00:00","n":1}` + "\n"
	all, info, err := read(strings.NewReader(in), Options{Map: Mapping{"time": {"t"}, "input_tokens": {"n"}}, MaxBad: 1})
	if err != nil || len(all) != 2 || info.Bad != 3 {
		t.Fatal(len(all), info.Bad, err)
	}
	for i, want := range []string{
		"log:2:6: its date has the day and the month in another order than the records before it; where they are right, name the layout with --time-format",
		"log:3:6: time: want a number that is not negative, or a date such as 2026-01-02T15:04:05Z or 02.01.2026 15:04:05; for another layout say --time-format",
		"log:4:6: its time is written in another way than in the records before it",
	} {
		if got := info.FirstBad[i].Error(); got != want {
			t.Errorf("%s\n want %s", got, want)
		}
	}
}

func TestToldTimeFormat(t *testing.T) {
	for _, c := range []struct{ format, in, want string }{
		{"%d.%m.%y %H.%M", "3.11.26 9.05", "2026-11-03T09:05:00"},
		{"%Y%m%d%H%M%S", "20261103090501", "2026-11-03T09:05:01"},
		{"%m/%d/%Y %I:%M %p", "11/3/2026 9:05 pm", "2026-11-03T21:05:00"},
		{"%Y-%m-%dT%H:%M:%S%z", "2026-11-03T09:05:01+0100", "2026-11-03T08:05:01"},
		{"%Y-%m-%dT%H:%M:%S%z", "2026-11-03T09:05:01.25+01:00", "2026-11-03T08:05:01.25"},
		{"%Y-%m-%d %H:%M:%S %Z", "2026-11-03 09:05:01 UTC", "2026-11-03T09:05:01"},
		{"%Y-%m-%d %H:%M:%S %Z", "2026-11-03 09:05:01 CET", "log:1:6: time: want a date as --time-format says"},
		{"%Y-%m-%d %H:%M:%S", "1767323045", "log:1:6: time: want a date as --time-format says"},
	} {
		if got, _, err := readTimes(Options{TimeFormat: c.format}, c.in); err != nil || got[0] != c.want {
			t.Errorf("%s by %s: %s, %v", c.in, c.format, got, err)
		}
	}
	const layout = "--time-format: want a layout with year, month, day, hour and minute, such as '%d.%m.%Y %H:%M:%S' or '02.01.2006 15:04:05'"
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{TimeFormat: "%d.%m."}, layout},
		{Options{TimeFormat: "dd.mm.yyyy"}, layout},
		{Options{TimeFormat: "%d.%m.%Y %H:%M", TimeUnit: "s"}, "--time-unit is for times that are numbers and --time-format for dates: give one of them"},
	} {
		if _, _, err := readTimes(c.o, "x"); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.o.TimeFormat, err)
		}
	}
	if _, _, err := read(strings.NewReader(oneRow), Options{TimeFormat: "%d.%m.%Y %H:%M"}); err == nil ||
		err.Error() != "mooncake has times in one layout only, to which --time-format does not apply" {
		t.Error(err)
	}
}
