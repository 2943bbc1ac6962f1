package datasets

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

func TestParseCapture(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Skip("there are no time zones here")
	}
	for _, c := range []struct {
		begin, end string
		zone       *time.Location
		want       string // or the error
	}{
		{"2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z", nil, "2026-01-02T03:04:05Z 2026-01-02T04:04:05Z"},
		{"2026-01-02T03:04:05.5+01:00", "2026-01-02T04:04:05Z", paris, "2026-01-02T02:04:05.5Z 2026-01-02T04:04:05Z"},
		{"2026-01-02 03:04:05", "2026-01-03 00:00:00", nil, "2026-01-02T03:04:05Z 2026-01-03T00:00:00Z"},
		{"2026-01-02 03:04:05", "2026-07-03 00:00:00", paris, "2026-01-02T02:04:05Z 2026-07-02T22:00:00Z"},
		{"1767323045", "1767323046500", nil, "2026-01-02T03:04:05Z 2026-01-02T03:04:06.5Z"},
		{"0s", "1h", nil, "0s 1h0m0s"},
		{"0", "90m", nil, "0s 1h30m0s"},
		{"1h", "0s", nil, "the capture window is empty: its begin must be before its end"},
		{"1h", "1h", nil, "the capture window is empty: its begin must be before its end"},
		{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", nil, "the capture window is empty: its begin must be before its end"},
		{"-1h", "1h", nil, "the capture window is not within the years 1970 to 2200"},
		{"0s", "2026-01-02T03:04:05Z", nil, "a date at one edge and a duration at the other"},
		{"0s", "3600", nil, "the end of the capture: want a date"},
		{"yesterday", "today", nil, "the begin of the capture: want a date"},
		{"2026-10-25 02:30:00", "2026-10-26 00:00:00", paris, "its local time is ambiguous"},
	} {
		got, err := ParseCapture(c.begin, c.end, c.zone)
		if err != nil {
			if !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s: %v, want %s", c.begin, c.end, err, c.want)
			}
			continue
		}
		if begin, end := got.Texts(); begin+" "+end != c.want {
			t.Errorf("%s %s: %s %s, want %s", c.begin, c.end, begin, end, c.want)
		}
	}
}

// A request outside the declared capture stops the reading at its place, whatever
// share of bad records is tolerated, and quotes nothing.
func TestOutsideCapture(t *testing.T) {
	date := func(begin, end string) trace.Capture {
		c, err := ParseCapture(begin, end, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	dates := date("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
	fields := Mapping{"time": {"t"}, "input_tokens": {"in"}, "model": {"m"}}
	log := func(times ...string) string {
		var b strings.Builder
		for _, at := range times {
			b.WriteString(`{"t":` + at + `,"in":5,"m":"hunter2"}` + "\n")
		}
		return b.String()
	}
	mooncake := func(ms string) string {
		return `{"timestamp": 0, "input_length": 600, "output_length": 10, "hash_ids": [0, 1]}` + "\n" +
			`{"timestamp": ` + ms + `, "input_length": 600, "output_length": 10, "hash_ids": [0, 1]}` + "\n"
	}
	lab := func(begin, end string) string {
		return `{"provider":"p","session_id":"s","round_index":0,"model":"m","input_tokens_total":5,"prefix_tokens":0,"newly_append_tokens":5,"output_tokens":9,` +
			`"timing_events":[{"event_type":"user_message","timestamp":"` + begin + `"},{"event_type":"text","timestamp":"` + end + `"}],"tools":[]}` + "\n"
	}
	for name, c := range map[string]struct {
		in   string
		o    Options
		want string // what the error says; empty for none
	}{
		"inside":              {log(`"2026-01-02T00:00:00Z"`, `"2026-01-02T23:59:59.999999999Z"`), Options{Map: fields, Capture: dates}, ""},
		"before":              {log(`"2026-01-02T00:00:00Z"`, `"2025-12-30T00:00:00Z"`), Options{Map: fields, Capture: dates}, "log:2:6: its time is 72h0m0s before the declared begin of the capture: declare a window that holds all of the source"},
		"the first is before": {log(`"2026-01-01T23:59:50Z"`), Options{Map: fields, Capture: dates}, "log:1:6: its time is 10s before"},
		"at the end":          {log(`"2026-01-02T00:00:00Z"`, `"2026-01-03T00:00:00Z"`), Options{Map: fields, Capture: dates}, "log:2:6: its time is 0s after the declared end of the capture, which is not part of it"},
		"numbers since 1970":  {log(`1767312000`, `1767398400`), Options{Map: fields, Capture: dates}, "log:2:6: its time is 0s after"},
		"a told unit":         {log(`1767312000`, `1767312001`), Options{Map: fields, TimeUnit: "s", Capture: dates}, ""},
		"relative":            {mooncake("3599999"), Options{Capture: date("0s", "1h")}, ""},
		"relative, after":     {mooncake("3661000"), Options{Capture: date("0s", "1h")}, "log:2:15: its time is 1m1s after the declared end"},
		"relative, before":    {mooncake("3000"), Options{Capture: date("1s", "1h")}, "log:1:15: its time is 1s before"},
		"dates for a zero":    {mooncake("0"), Options{Capture: dates}, "log:1:15: its times count from a zero of the source's own: give the capture window as two durations"},
		"durations for dates": {log(`"2026-01-02T00:00:00Z"`), Options{Map: fields, Capture: date("0s", "1h")}, "log:1:6: its times are dates: give the capture window as two dates"},
		"ends after":          {lab("2026-01-02T23:59:59Z", "2026-01-03T00:00:09Z"), Options{Capture: dates}, ""},
		"answers a stale one": {lab("2026-01-01T23:59:59Z", "2026-01-02T00:00:09Z"), Options{Capture: dates}, "its time is 1s before"},
	} {
		c.o.MaxBad = 1
		err := func() error {
			src, err := Open(strings.NewReader(c.in), c.o)
			if err != nil {
				return err
			}
			for batch := make([]trace.Entry, 4); err == nil; {
				_, err = src.Read(batch)
			}
			if err == io.EOF {
				return nil
			}
			return err
		}()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// In a declared window of dates each time is read by itself: the first record decides for no other,
// in any order.
func TestTimesOfAWindowAreReadAlone(t *testing.T) {
	window, err := ParseCapture("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := Mapping{"time": {"t"}, "input_tokens": {"n"}}
	times := []string{"1767323045", "1767323045000", "1767323045000000", "1767323045000000000", `"2026-01-02T03:04:05Z"`, `"2026-01-02 03:04:05"`,
		`"02.01.2026 03:04:05"`, `"01/02/2026 03:04:05"`, `"02/01/2026 03:04:05"`, "46024.12783564815"}
	for first := range times {
		var in string
		var want []string
		for i := range times {
			in += `{"t":` + times[(first+i)%len(times)] + `,"n":9}` + "\n"
			want = append(want, "490923h4m5s in=9")
		}
		wantEntries(t, in, Options{Map: m, Capture: window}, want...)
	}
}

// A date that leaves its order open is read by the declared window; where both readings are in it, no other
// record decides, whatever it is.
func TestOpenDatesInAWindow(t *testing.T) {
	window, err := ParseCapture("2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", nil)
	if err != nil {
		t.Fatal(err)
	}
	const open, dayFirst, monthFirst = `"02/03/2026 03:04:05"`, `"13/02/2026 03:04:05"`, `"02/13/2026 03:04:05"`
	for _, others := range [][]string{{dayFirst}, {monthFirst}, {dayFirst, monthFirst}, {dayFirst, dayFirst, dayFirst}} {
		in := ""
		for _, at := range append(others, open) {
			in += `{"t":` + at + `,"n":9}` + "\n"
		}
		src, err := Open(strings.NewReader(in), Options{Map: Mapping{"time": {"t"}, "input_tokens": {"n"}}, Capture: window, MaxBad: 1})
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]trace.Entry, 10)
		n, _ := src.Read(batch)
		if bad := src.Info().Bad; n != len(others) || bad != 1 {
			t.Errorf("%v and an open one: %d entries, %d bad", others, n, bad)
		}
	}
}
