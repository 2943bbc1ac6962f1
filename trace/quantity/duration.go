package quantity

import (
	"strings"
	"time"
)

// durationUnits are the names of units in lower case, as people write them, and as
// [time.ParseDuration] has them, with how many of those one is.
var durationUnits = map[string]struct {
	name string
	each time.Duration
}{
	"ns": {"ns", 1}, "us": {"us", 1}, "µs": {"us", 1}, "μs": {"us", 1}, "ms": {"ms", 1}, "msec": {"ms", 1},
	"s": {"s", 1}, "sec": {"s", 1}, "secs": {"s", 1}, "second": {"s", 1}, "seconds": {"s", 1},
	"m": {"m", 1}, "min": {"m", 1}, "mins": {"m", 1}, "minute": {"m", 1}, "minutes": {"m", 1},
	"h": {"h", 1}, "hr": {"h", 1}, "hrs": {"h", 1}, "hour": {"h", 1}, "hours": {"h", 1},
	"d": {"h", 24}, "day": {"h", 24}, "days": {"h", 24},
}

// Duration reads a length of time of 0 or more: 60, 60s, 5min, 1h30m. A number without
// a unit is in seconds.
func Duration(text string) (time.Duration, error) {
	number := strings.TrimSpace(text)
	if number != "" && strings.Trim(number, "0123456789.") == "" {
		number += "s"
	}
	if d, ok := duration(number); ok {
		return d, nil
	}
	return 0, &Error{text, "a duration", [3]string{"60s", "5min", "1h30m"}}
}

// Latency reads a length of time of 0 or more that names its unit: 200ms, 1.5s. Where
// tools disagree whether a bare number is in seconds or in milliseconds it is refused.
func Latency(text string) (time.Duration, error) {
	d, ok := duration(strings.TrimSpace(text))
	if !ok {
		return 0, &Error{text, "a time with its unit", [3]string{"200ms", "1.5s", "1min"}}
	}
	return d, nil
}

// duration adds up numbers, each with a unit behind it. 0 needs none.
func duration(text string) (sum time.Duration, ok bool) {
	if text == "0" {
		return 0, true
	}
	for text != "" {
		word := strings.TrimLeft(text, "0123456789.")
		number := text[:len(text)-len(word)]
		word = strings.TrimLeft(word, " ")
		text = strings.TrimLeft(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ")
		unit, known := durationUnits[strings.ToLower(word[:len(word)-len(text)])]
		part, err := time.ParseDuration(number + unit.name)
		if !known || err != nil || part > (1<<63-1-sum)/unit.each {
			return 0, false
		}
		sum += part * unit.each
		text = strings.TrimLeft(text, " ")
		ok = true
	}
	return sum, ok
}
