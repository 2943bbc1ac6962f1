package datasets

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests name zones
)

func openAI(times ...string) string {
	var b strings.Builder
	for _, s := range times {
		fmt.Fprintf(&b, `{"prompt":"x","ts":%s}`+"\n", s)
	}
	return b.String()
}

func TestClock(t *testing.T) {
	const hour = int64(3600)
	unix := func(s int64, ns ...int64) string {
		if ns == nil {
			ns = []int64{0}
		}
		return time.Unix(s, ns[0]).UTC().Format(time.RFC3339Nano)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o     Options
		times []string
		want  []string // instants; "bad: …" for a bad row; "stop: …" at the end
		unit  string
	}{
		"epoch s":     {Options{}, []string{"1700000000", "1700000000.25"}, []string{unix(1700000000), unix(1700000000, 25e7)}, "s"},
		"epoch ms":    {Options{}, []string{"1700000000123", "1700000000123.5"}, []string{unix(1700000000, 123e6), unix(1700000000, 123_500_000)}, "ms"},
		"epoch us":    {Options{}, []string{"1700000000123456"}, []string{unix(1700000000, 123_456_000)}, "us"},
		"epoch ns":    {Options{}, []string{"1700000000123456789"}, []string{unix(1700000000, 123_456_789)}, "ns"},
		"relative s":  {Options{}, []string{"0", "61", "61.114"}, []string{unix(0), unix(61), unix(61, 114e6)}, "s"},
		"as a string": {Options{}, []string{`"1700000000"`}, []string{unix(1700000000)}, "s"},
		"told":        {Options{TimeUnit: "us"}, []string{"0", "1500000.5"}, []string{unix(0), unix(1, 500_000_500)}, "us"},
		"told over":   {Options{TimeUnit: "ms"}, []string{"1700000000"}, []string{unix(1700000)}, "ms"},
		"ambiguous":   {Options{}, []string{"0", "5"}, []string{"stop: log:1:20: the times are small whole numbers"}, ""},
		"between":     {Options{}, []string{"50000000000"}, []string{"stop: log:1:20: the unit of the times is not clear"}, ""},
		"other unit":  {Options{}, []string{"1700000000", "1700000001000", "1700000002"}, []string{unix(1700000000), "bad: log:2:20: its time is in another unit", unix(1700000002)}, "s"},
		"epoch among relative": {Options{}, []string{"0.5", "1700000000", "1"},
			[]string{unix(0, 5e8), "bad: log:2:20: its time is in another unit", unix(1)}, "s"},
		"style":      {Options{}, []string{`"2026-01-02T03:04:05Z"`, "1700000000"}, []string{"2026-01-02T03:04:05Z", "bad: log:2:20: its time is written in another way"}, "date"},
		"zone style": {Options{}, []string{`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05"`}, []string{"2026-01-02T03:04:05Z", "bad: log:2:20: its time is written in another way"}, "date"},
		"missing":    {Options{}, []string{"1700000000", "null"}, []string{unix(1700000000), "bad: log:2:1: it has no time"}, "s"},
		"not a time": {Options{}, []string{"1700000000", `"yesterday"`, "true", "-5"},
			[]string{unix(1700000000), "bad: log:2:20: time: want", "bad: log:3:20: time: want", "bad: log:4:20: time: want"}, "s"},
		"before 1970": {Options{}, []string{`"0001-01-01T00:00:00Z"`, `"1969-12-31T23:59:59Z"`, `"1970-01-01T00:00:00Z"`},
			[]string{"bad: log:1:20: its time is outside", "bad: log:2:20: its time is outside", unix(0)}, "date"},
		"long span": {Options{}, []string{"1700000000", fmt.Sprint(1700000000 + 60*24*hour), fmt.Sprint(1700000000 + 60*24*hour + 1)},
			[]string{unix(1700000000), unix(1700000000 + 60*24*hour), "stop: log:3:20: in the unit s the times up to here span more than 60 days"}, "s"},
		"long span of dates": {Options{}, []string{`"2026-01-02T03:04:05Z"`, `"2025-01-02T03:04:05Z"`},
			[]string{"2026-01-02T03:04:05Z", "stop: log:2:20: the times up to here span more than 60 days: confirm with --allow-long-span"}, "date"},
		"long span confirmed": {Options{AllowLongSpan: true}, []string{"1700000000", "1710000000"}, []string{unix(1700000000), unix(1710000000)}, "s"},
		"unit of dates":       {Options{TimeUnit: "s"}, []string{`"2026-01-02T03:04:05Z"`}, []string{"stop: log:1:20: the times are dates"}, ""},
		"no zone":             {Options{}, []string{`"2026-07-02 03:04:05.5"`}, []string{"2026-07-02T03:04:05.5Z"}, "date"},
		"zone told": {Options{TZ: berlin}, []string{`"2026-07-02 03:04:05"`, `"2026-07-03 03:04:05"`},
			[]string{"2026-07-02T01:04:05Z", "2026-07-03T01:04:05Z"}, "date"},
		"zone in winter": {Options{TZ: berlin}, []string{`"2026-01-02 03:04:05"`}, []string{"2026-01-02T02:04:05Z"}, "date"},
		"zone not used":  {Options{TZ: berlin}, []string{`"2026-01-02 03:04:05-05:00"`}, []string{"2026-01-02T08:04:05Z"}, "date"},
		"put back": {Options{TZ: berlin}, []string{`"2026-10-25 01:59:59"`, `"2026-10-25 03:00:00"`, `"2026-10-25 02:30:00"`},
			[]string{"2026-10-24T23:59:59Z", "2026-10-25T02:00:00Z", "stop: log:3:20: its local time is ambiguous"}, "date"},
		"put forward": {Options{TZ: berlin}, []string{`"2026-03-29 01:59:59"`, `"2026-03-29 03:00:00"`, `"2026-03-29 02:30:00"`},
			[]string{"2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "stop: log:3:20: its local time does not exist"}, "date"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.MaxBad = 1
			all, info, err := read(strings.NewReader(openAI(c.times...)), c.o)
			var got []string
			for i := range all {
				got = append(got, all[i].Time.Format(time.RFC3339Nano))
			}
			for _, b := range info.FirstBad { // put back where it stood
				at := min(int(b.Line)-1, len(got))
				got = append(got[:at], append([]string{"bad: " + b.Error()}, got[at:]...)...)
			}
			if err != nil {
				got = append(got, "stop: "+err.Error())
			}
			if len(got) != len(c.want) || info.TimeUnit != c.unit && err == nil {
				t.Fatalf("%q in %q", got, info.TimeUnit)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("row %d: %q, want %q", i+1, got[i], want)
				}
			}
		})
	}
}

func TestMooncakeUnits(t *testing.T) {
	line := func(at string) string {
		return `{"timestamp":` + at + `,"input_length":0,"output_length":0,"hash_ids":[]}` + "\n"
	}
	for name, c := range map[string]struct {
		o    Options
		in   string
		unit string
		last time.Duration // of the last row, or of the first bad one
		note bool
		err  string
	}{
		"ms":              {Options{}, line("0") + line("3000"), "ms", 3 * time.Second, false, ""},
		"fractions":       {Options{}, line("0") + line("61.114"), "s", 61114 * time.Millisecond, true, ""},
		"fractional ms":   {Options{TimeUnit: "ms"}, line("0") + line("61.5"), "ms", 61500 * time.Microsecond, false, ""},
		"epoch s":         {Options{}, line("1700000000") + line("1700000001"), "s", 1700000001 * time.Second, false, ""},
		"epoch ms":        {Options{}, line("1700000000000"), "ms", 1700000000 * time.Second, false, ""},
		"a late fraction": {Options{}, strings.Repeat(line("5"), 2000) + line("5.5"), "ms", 5500 * time.Microsecond, false, ""},
		"a late epoch":    {Options{}, strings.Repeat(line("5"), 2000) + line("1700000000") + line("6"), "ms", 6 * time.Millisecond, false, "its time is in another unit"},
		"long":            {Options{}, line("0") + line("900000000") + line("999999999"), "ms", 999999999 * time.Millisecond, false, ""},
		"long in seconds": {Options{TimeUnit: "s"}, line("0.5") + line("5184001"), "s", 0, true, "span more than 60 days"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.MaxBad = 0.1
			all, info, err := read(strings.NewReader(c.in), c.o)
			if err == nil && len(info.FirstBad) > 0 {
				err = info.FirstBad[0]
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				if c.last == 0 {
					return
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if got := all[len(all)-1].Time.Sub(Epoch); got != c.last || info.TimeUnit != c.unit || (len(info.Notes) > 0) != c.note {
				t.Errorf("%v in %s, notes %q", got, info.TimeUnit, info.Notes)
			}
		})
	}
}
