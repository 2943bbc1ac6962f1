package stamp

import (
	"errors"
	"math"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// The unit of an epoch is that in which it is of the years 2001 to 2286.
func TestUnitsOfEpochs(t *testing.T) {
	for whole, want := range map[int64]time.Duration{
		0: 0, 999_999_999: 0, 1e9: time.Second, 1e10 - 1: time.Second, 1e10: 0,
		1e12 - 1: 0, 1e12: time.Millisecond, 1e13 - 1: time.Millisecond, 1e13: 0,
		1e15 - 1: 0, 1e15: time.Microsecond, 1e16 - 1: time.Microsecond, 1e16: 0,
		1e18 - 1: 0, 1e18: time.Nanosecond, math.MaxInt64: time.Nanosecond,
	} {
		if got := EpochUnit(whole); got != want {
			t.Errorf("%d: %v, want %v", whole, got, want)
		}
	}
	for name, want := range map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond, "m": 0, "": 0} {
		if got := UnitOf(name); got != want || want != 0 && unitName(got) != name {
			t.Errorf("%q: %v, called %s", name, got, unitName(got))
		}
	}
}

// Zones at the ends of what there is, in each spelling.
func TestZones(t *testing.T) {
	for in, want := range map[string]time.Duration{"Z": 0, "z": 0, "UTC": 0, "+00": 0, "+23:59": 24*time.Hour - time.Minute, "-2359": time.Minute - 24*time.Hour, "-01": -time.Hour, "+0530": 330 * time.Minute} {
		if got, ok := readZone(in); !ok || got != want {
			t.Errorf("%q: %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "utc", "+24", "-24:00", "+0060", "+00:60", "+1", "+100", "+12345", "12:00", "+ab", "+1:2:3", "+-1:00", "+12:3"} {
		if got, ok := readZone(in); ok {
			t.Errorf("%q is %v", in, got)
		}
	}
}

// Decimals keep their digits to the ninth place and are rounded there.
func TestDecimals(t *testing.T) {
	for in, want := range map[string][2]int64{
		"0": {0, 0}, "-7": {-7, 0}, "1.": {1, 0}, "1.000000001": {1, 1}, "1.0000000004": {1, 0}, "1.0000000005": {1, 1}, "-1.9999999996": {-2, 0}, "-1.5": {-1, -500_000_000},
		"0.1234567894999": {0, 123456789}, "2e3": {2000, 0}, "25E-1": {2, 500_000_000}, "-2.5e0": {-2, -500_000_000}, "1e-10": {0, 0}, "4e18": {4e18, 0}, "9223372036854775807": {math.MaxInt64, 0},
		"9223372036854775806.9999999999": {math.MaxInt64, 0}, "1.9999999999e0": {2, 0},
	} {
		whole, nano, ok := Decimal(in)
		if !ok || [2]int64{whole, nano} != want {
			t.Errorf("%q: %d and %d, %v, want %v", in, whole, nano, ok, want)
		}
	}
	for _, in := range []string{"", "-", ".", ".5", "e", "1e", "5e18", "-5e18", "--1", "-+1", "1.a", "1.5.", "1,5", "9223372036854775807.9999999999", "nan"} {
		if whole, nano, ok := Decimal(in); ok {
			t.Errorf("%q is %d and %d", in, whole, nano)
		}
	}
}

// Dates at the ends of their fields.
func TestDatesAtTheirEnds(t *testing.T) {
	for in, want := range map[string]string{
		"2024-12-31 23:59:59":            "2024-12-31T23:59:59Z",
		"2024-01-01T00:00:00.1":          "2024-01-01T00:00:00.1Z",
		"2024-01-01t00:00:00,000000001":  "2024-01-01T00:00:00.000000001Z",
		"2024-01-01 00:00:00.9999999995": "2024-01-01T00:00:01Z",
	} {
		got, ok := readDate(in)
		if !ok || got.Style != local || got.Time.Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v, %v, want %s", in, got.Time, ok, want)
		}
	}
	for _, in := range []string{"2024-13-01 00:00:00", "2024-00-01 00:00:00", "2024-01-00 00:00:00", "2024-01-01 00:60:00", "2024-01-01_00:00:00", "2024-01-01 00-00:00", "2024-01-01 00:00:0", "2024-01-01 00:00:0:", "2024-01-01 00:00:0/", "2024-01-01 00:00:00,", "2024-01-01 00:00:00.x", "2024-01-01 00:00:00  Z"} {
		if got, ok := readDate(in); ok {
			t.Errorf("%q is %v", in, got.Time)
		}
	}
}

// The reasons for which a clock refuses times, whole.
func TestWhatAClockRefuses(t *testing.T) {
	s := func(in string) Stamp {
		st, ok := ReadISO(in)
		if !ok {
			t.Fatal(in)
		}
		return st
	}
	const say = "say --time-unit s, ms, us or ns"
	for name, c := range map[string]struct {
		c      Clock
		sample string
		why    string
	}{
		"dates in a unit": {Clock{Told: time.Second}, "2026-01-02T03:04:05Z",
			"the times are dates, to which --time-unit does not apply"},
		"between units": {Clock{}, "10000000000", "the unit of the times is not clear from their size: " + say},
		"small": {Clock{}, "999999999",
			"the times are small whole numbers, so that their unit is not clear: " + say},
		"usual":      {Clock{Usual: time.Millisecond}, "999999999", ""},
		"told":       {Clock{Told: time.Second}, "10000000000", ""},
		"a fraction": {Clock{}, "1.5", ""},
	} {
		if why := c.c.decide([]Stamp{s(c.sample)}); why != c.why {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
	relative := Clock{Usual: time.Millisecond, longSpan: true}
	relative.decide([]Stamp{s("5")})
	largest := Clock{Told: time.Second, longSpan: true}
	largest.decide([]Stamp{s("0")})
	for name, c := range map[string]struct {
		c    *Clock
		in   string
		why  string
		want string
	}{
		"of another unit": {&relative, "1760000000", "its time is in another unit than earlier times; if it is " +
			"not, " + say, ""},
		"nearly so":         {&relative, "999999999", "", "1970-01-12T13:46:39.999Z"},
		"a fraction":        {&relative, "5.5", "its time has a fraction, unlike earlier times; " + say, ""},
		"too large":         {&largest, "9223372036", "its time is too large for the unit", ""},
		"nearly too large":  {&largest, "9223372035", "its time is outside the years 1970 to 2200", ""},
		"the last year":     {&largest, "7289654399", "", "2200-12-31T23:59:59Z"},
		"behind it":         {&largest, "7289654400", "its time is outside the years 1970 to 2200", ""},
		"of another style":  {&largest, "2026-01-02T03:04:05Z", "its time is written in another way than in the records before it", ""},
		"half a nanosecond": {&relative, "5", "", "1970-01-01T00:00:00.005Z"},
	} {
		at, why, stop := c.c.convert(s(c.in))
		if why != c.why || stop && why != "" || why == "" && at.Format(time.RFC3339Nano) != c.want {
			t.Errorf("%s: %v, %q, %v", name, at, why, stop)
		}
	}
	long := Clock{Usual: time.Millisecond}
	long.decide([]Stamp{s("0")})
	for _, in := range []struct {
		whole string
		ok    bool
	}{{"0", true}, {"1000000000", false}, {"999999999", true}, {"1000000000", true}, {"1086400000", true},
		{"1172800001", false}, {"999999999", true}, {"1172800000", true}} {
		if _, why, _ := long.convert(s(in.whole)); (why == "") != in.ok {
			t.Errorf("of a trace that lasts 14 days, %s: %q", in.whole, why)
		}
	}
	if got := (&Clock{}).Unit(); got != "" {
		t.Errorf("a clock without times is in %q", got)
	}
}

// A capture window is two dates, two epochs or two durations.
func TestCaptureWindows(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UTC()
	}
	for _, c := range []struct {
		begin, end string
		want       trace.Capture
	}{
		{"2026-01-02T03:04:05Z", " 2026-01-02 03:04:06+00:00 ", trace.Capture{Begin: at("2026-01-02T03:04:05Z"), End: at("2026-01-02T03:04:06Z")}},
		{"2026-01-02 03:04:05", "2026-01-02 03:04:06", trace.Capture{Begin: at("2026-01-02T02:04:05Z"), End: at("2026-01-02T02:04:06Z")}},
		{"1700000000", "1700000000500", trace.Capture{Begin: at("2023-11-14T22:13:20Z"), End: at("2023-11-14T22:13:20.5Z")}},
		{"0s", "90m", trace.RelativeCapture(0, 90*time.Minute)},
	} {
		got, err := Capture(c.begin, c.end, berlin)
		if err != nil || !got.Begin.Equal(c.want.Begin) || !got.End.Equal(c.want.End) || got.Relative != c.want.Relative {
			t.Errorf("%s to %s: %+v, %v, want %+v", c.begin, c.end, got, err, c.want)
		}
	}
	const want = "want a date such as 2026-01-02T15:04:05Z, or a duration such as 90m for a source whose clock shows no dates"
	for _, c := range []struct{ begin, end, want string }{
		{"noon", "1h", "the begin of the capture: " + want},
		{"5", "1h", "the begin of the capture: " + want},
		{"0s", "5", "the end of the capture: " + want},
		{"0s", "2026-01-02T03:04:05Z", "the capture window has a date at one edge and a duration at the other: give two of a kind"},
		{"1969-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "the begin of the capture: its time is outside the years 1970 to 2200"},
	} {
		if got, err := Capture(c.begin, c.end, nil); err == nil || err.Error() != c.want ||
			!errors.Is(err, fault.ErrUsage) || got != (trace.Capture{}) {
			t.Errorf("%s to %s: %+v, %v, want %s", c.begin, c.end, got, err, c.want)
		}
	}
	if _, err := Capture("1h", "1h", nil); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("an empty window: %v", err)
	}
}
