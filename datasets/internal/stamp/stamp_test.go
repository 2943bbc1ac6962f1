package stamp

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestReadStamp(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for in, want := range map[string]Stamp{
		"0":                                  {Style: Numeric},
		"27482":                              {Style: Numeric, Whole: 27482},
		" 1.5 ":                              {Style: Numeric, Whole: 1, Nano: 500_000_000},
		"1700000000.123456789":               {Style: Numeric, Whole: 1700000000, Nano: 123456789},
		"1700000000.1234567894":              {Style: Numeric, Whole: 1700000000, Nano: 123456789},
		"0.9999999995":                       {Style: Numeric, Whole: 1},
		"1.7e9":                              {Style: Numeric, Whole: 1700000000},
		"2.5e-3":                             {Style: Numeric, Nano: 2_500_000},
		"9223372036854775807":                {Style: Numeric, Whole: 9223372036854775807},
		"2023-11-16 18:17:03.9799600":        {Style: local, Time: at("2023-11-16T18:17:03.97996Z")},
		"2023-11-16 18:17:03":                {Style: local, Time: at("2023-11-16T18:17:03Z")},
		"2024-02-29T23:59:59.999999999Z":     {Style: Zoned, Time: at("2024-02-29T23:59:59.999999999Z")},
		"2024-05-10 00:00:00+00:00":          {Style: Zoned, Time: at("2024-05-10T00:00:00Z")},
		"2024-05-10 00:00:00.009930 +0530":   {Style: Zoned, Time: at("2024-05-09T18:30:00.00993Z")},
		"2024-05-10t00:00:00,5-08":           {Style: Zoned, Time: at("2024-05-10T08:00:00.5Z")},
		"2024-05-10 00:00:00.5 UTC":          {Style: Zoned, Time: at("2024-05-10T00:00:00.5Z")},
		"":                                   {},
		"-1":                                 {},
		"-0.5":                               {},
		"1e30":                               {},
		"NaN":                                {},
		"Infinity":                           {},
		"0x10":                               {},
		"+5":                                 {},
		"1_000":                              {},
		"1.2.3":                              {},
		"9223372036854775808":                {},
		"9223372036854775807.9999999999":     {},
		"2023-11-16":                         {},
		"2023-11-31 18:17:03":                {},
		"2023-02-29 18:17:03":                {},
		"2023-11-16 24:00:00":                {},
		"2023-11-16 18:17:60":                {},
		"2023-11-16 18:17":                   {},
		"2023-11-16 18:17:03.":               {},
		"2023-11-16 18:17:03 CET":            {},
		"2023-11-16 18:17:03+24:00":          {},
		"2023-11-16 18:17:03+1:00":           {},
		"2023-11-16 18:17:03Z trailing":      {},
		"2023/11/16 18:17:03":                {},
		"２０２３-11-16 18:17:03":                {},
		"2023-11-16 18:17:03.97996000000000": {Style: local, Time: at("2023-11-16T18:17:03.97996Z")},
	} {
		got, ok := ReadISO(in)
		if ok != (want.Style != noStamp) || ok &&
			(got.Style != want.Style || got.Whole != want.Whole || got.Nano != want.Nano ||
				!got.Time.Equal(want.Time)) {
			t.Errorf("%q: %+v, %v; want %+v", in, got, ok, want)
		}
	}
}

// Dates agree with time.Parse, to the nanosecond.
func TestReadDateAgreesWithTimeParse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		zone := time.FixedZone("", (r.IntN(24*60)-12*60)*60)
		want := time.Unix(r.Int64N(1<<32), r.Int64N(1e9)).In(zone)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.000000000-0700",
			"2006-01-02 15:04:05.999999 -07:00"} {
			in := want.Format(layout)
			parsed, err := time.Parse(layout, in)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := ReadISO(in); !ok || got.Style != Zoned || !got.Time.Equal(parsed) {
				t.Fatalf("%q: %v, want %v", in, got.Time, parsed)
			}
		}
	}
}

// Every instant of a year is found from its local time, but for those that
// come twice or never.
func TestInZoneFindsEveryInstant(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		ambiguous := 0
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for at := begin; at.Before(begin.AddDate(1, 0, 0)); at = at.Add(7 * time.Minute) {
			l := at.In(zone)
			face := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
			switch got, why := inZone(face, zone); {
			case strings.Contains(why, "ambiguous"):
				ambiguous++
			case why != "" || !got.Equal(at):
				t.Fatalf("%s %v: %v, %s", name, face, got, why)
			}
		}
		// An hour twice is 17 steps of 7 minutes, give or take one.
		if want := map[string]int{"Europe/Berlin": 17, "America/New_York": 17,
			"Australia/Lord_Howe": 8}[name]; ambiguous < want-1 || ambiguous > want+1 {
			t.Errorf("%s: %d ambiguous instants, want about %d", name, ambiguous, want)
		}
	}
}

// Numbers keep every digit that fits, with time.ParseDuration as the oracle.
func FuzzReadStamp(f *testing.F) {
	for _, s := range []string{"0", "1700000000.123456789", "1.5e3", "2023-11-16 18:17:03.97996",
		"2024-02-29T00:00:00+05:30"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		st, ok := ReadISO(s)
		if !ok {
			return
		}
		if st.Whole < 0 || st.Nano < 0 || st.Nano >= 1e9 || st.Style == noStamp {
			t.Fatalf("%q: %+v", s, st)
		}
		if st.Style != Numeric || strings.ContainsAny(s, "eE") || st.Whole > 1e9 {
			return
		}
		digits, fraction, _ := strings.Cut(strings.TrimSpace(s), ".")
		if len(fraction) > 9 || len(digits) > 10 || strings.HasSuffix(strings.TrimSpace(s), ".") {
			return
		}
		if d, err := time.ParseDuration(strings.TrimSpace(s) + "s"); err != nil ||
			d != time.Duration(st.Whole)*time.Second+time.Duration(st.Nano) {
			t.Fatalf("%q: %+v, but %v, %v", s, st, d, err)
		}
	})
}
