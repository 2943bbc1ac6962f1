package quantity_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"reprise/trace/quantity"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"60": time.Minute, "60s": time.Minute, "5min": 5 * time.Minute, "5 min": 5 * time.Minute, "1h30m": 90 * time.Minute,
		"1h 30 min": 90 * time.Minute, "0": 0, "0.5": 500 * time.Millisecond, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"40µs": 40 * time.Microsecond, "40us": 40 * time.Microsecond, "3ns": 3, "2d": 48 * time.Hour, "2 Days": 48 * time.Hour, " 1 hour ": time.Hour,
		"100000d": 100000 * 24 * time.Hour, "1m0s": time.Minute, "2h45m0.5s": 2*time.Hour + 45*time.Minute + 500*time.Millisecond,
	} {
		if got, err := quantity.Duration(text); got != want || err != nil {
			t.Errorf("Duration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "s", "5 parsecs", "-5s", "1h30", "1,5s", "1e3", "inf", "NaN", ".", ".s", "1.2.3s", "5s,", "200000d", "106751d2d", "9e99h"} {
		if d, err := quantity.Duration(text); err == nil {
			t.Errorf("Duration(%q) = %v", text, d)
		}
	}
	_, err := quantity.Duration("5 parsecs")
	if want := `"5 parsecs" is not a duration: write 60s, 5min or 1h30m`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// A bare number is in milliseconds for one tool and in seconds for another.
func TestLatency(t *testing.T) {
	for text, want := range map[string]time.Duration{"200ms": 200 * time.Millisecond, "1.5 s": 1500 * time.Millisecond, "0": 0} {
		if got, err := quantity.Latency(text); got != want || err != nil {
			t.Errorf("Latency(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	_, err := quantity.Latency("200")
	if want := `"200" is not a time with its unit: write 200ms, 1.5s or 1min`; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestNumbers(t *testing.T) {
	count := func(s string) (float64, error) { n, err := quantity.Count(s); return float64(n), err }
	for _, c := range []struct {
		parse func(string) (float64, error)
		good  map[string]float64
		bad   string // separated by |
		error string // of the first bad one
	}{
		{quantity.Rate, map[string]float64{"5": 5, "5/s": 5, "300/min": 5, "300 / min": 5, "200 req/min": 200. / 60, "7200/h": 2, "2.5 rps": 2.5, "1e-6": 1e-6, "1E2": 100, "0": 0},
			"fast|5x|-1|inf|nan|0x10|1e999|5/|/s|1e|e5|5 /day|1,5", `"fast" is not a rate: write 5, 5/s or 300/min`},
		{quantity.Factor, map[string]float64{"2": 2, "2x": 2, "0.5x": 0.5, "2 ×": 2},
			"x2|0|-2|2xx|", `"x2" is not a factor above 0: write 2, 2x or 0.5`},
		{count, map[string]float64{"500": 500, "10k": 1e4, "10K": 1e4, "1M": 1e6, "1.5M": 1.5e6, "1.1k": 1100, "2B": 2e9, "8Ki": 8192, "1e3": 1000, "9007199254740992": 1 << 53},
			"many|1m|1.5|-1|9223372036854775808|10kk|1e30", `"many" is not a whole number of 0 or more: write 500, 10k or 1M`},
		{quantity.Share, map[string]float64{"5%": 0.05, "5 %": 0.05, "0.05": 0.05, "100%": 1, "150%": 1.5},
			"half|-1%|5%%|1/2", `"half" is not a share: write 5%, 0.05 or 100%`},
		{quantity.Number, map[string]float64{"-1.5": -1.5, "1e-6": 1e-6, "-0": 0},
			"one|1x|inf|--1|1-1|", `"one" is not a number: write 2, 0.5 or 1e-6`},
	} {
		for text, want := range c.good {
			got, err := c.parse(text)
			if got != want || err != nil {
				t.Errorf("%q is %v, %v; want %v", text, got, err, want)
			}
		}
		for i, text := range strings.Split(c.bad, "|") {
			v, err := c.parse(text)
			if err == nil {
				t.Errorf("%q is %v", text, v)
			} else if i == 0 && err.Error() != c.error {
				t.Errorf("%q, want %q", err, c.error)
			}
		}
	}
}

// Whatever is typed, a value is in its range, and an error is one line that shows three
// examples which the parser takes.
func FuzzQuantities(f *testing.F) {
	for _, text := range []string{"60", "5 min", "1h30m", "300/min", "2x", "10k", "1.5M", "5%", "1e-6", "-0", "99999999999999999999d", "µ", "1e", "\x00", strings.Repeat("9", 400)} {
		f.Add(text)
	}
	parsers := map[string]func(string) (float64, error){
		"duration": func(s string) (float64, error) { d, err := quantity.Duration(s); return float64(d), err },
		"latency":  func(s string) (float64, error) { d, err := quantity.Latency(s); return float64(d), err },
		"rate":     quantity.Rate, "factor": quantity.Factor, "share": quantity.Share, "number": quantity.Number,
		"count": func(s string) (float64, error) { n, err := quantity.Count(s); return float64(n), err },
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, parse := range parsers {
			v, err := parse(text)
			if err == nil {
				if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && name != "number" {
					t.Errorf("%s: %q is %v", name, text, v)
				}
				continue
			}
			e, ok := err.(*quantity.Error)
			if !ok {
				t.Fatalf("%s: %q: %T", name, text, err)
			}
			if s := err.Error(); len(s) > 600 || strings.Contains(s, "\n") {
				t.Errorf("%s: %q: %s", name, text, s)
			}
			for _, example := range e.Examples {
				if _, err := parse(example); err != nil {
					t.Errorf("%s: its example: %v", name, err)
				}
			}
		}
		if d, err := quantity.Duration(text); err == nil { // what is printed is read back
			if back, err := quantity.Duration(fmt.Sprint(d)); back != d || err != nil {
				t.Errorf("%q is %v, which is read as %v, %v", text, d, back, err)
			}
		}
	})
}
