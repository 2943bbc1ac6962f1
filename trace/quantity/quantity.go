package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// An Error is text that is not the quantity it should be.
type Error struct {
	Text     string    // as it was typed
	Want     string    // what it should be, such as "a duration"
	Examples [3]string // good ones
}

// longestQuote is how many characters of a text an error shows.
const longestQuote = 40

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s is not %s: write %s, %s or %s", Quote(e.Text), e.Want, e.Examples[0],
		e.Examples[1], e.Examples[2])
}

// Quote is text in quotes for an error. Long text is cut.
func Quote(text string) string {
	if runes := []rune(text); len(runes) > longestQuote {
		text = string(runes[:longestQuote]) + "…"
	}
	return strconv.Quote(text)
}

// split cuts text into a decimal number at its beginning and the unit behind it, without
// the space around either.
func split(text string) (number float64, unit string, ok bool) {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) {
		c := text[end]
		part := c >= '0' && c <= '9' || c == '.' || (c == '-' || c == '+') && (end == 0 || text[end-1] == 'e')
		if end > 0 && (c == 'e' || c == 'E') {
			// The e of a number such as 1e-6 has digits behind it, after one sign at most.
			digits := strings.TrimLeft(text[end+1:], "+-")
			signs := len(text[end+1:]) - len(digits)
			part = signs <= 1 && digits != "" && digits[0] >= '0' && digits[0] <= '9'
		}
		if !part {
			break
		}
		end++
	}
	number, err := strconv.ParseFloat(text[:end], 64)
	return number + 0, strings.TrimSpace(text[end:]), err == nil // -0 becomes 0
}

// scaled multiplies the number of text by its unit.
func scaled(text string, units map[string]float64) (float64, bool) {
	number, name, ok := split(text)
	scale, known := units[name]
	v := number * scale
	return v, ok && known && !math.IsInf(v, 0)
}

// Rate reads a number of events, of 0 or more, and returns it per second: 5, 5/s,
// 300/min.
func Rate(text string) (perSecond float64, err error) {
	number, name, ok := split(text)
	var seconds float64
	switch name = strings.TrimPrefix(strings.TrimPrefix(strings.ReplaceAll(name, " ", ""), "requests"), "req"); name {
	case "", "/s", "/sec", "/second", "rps", "qps":
		seconds = 1
	case "/min", "/m", "/minute", "rpm":
		seconds = 60
	case "/h", "/hour":
		seconds = 3600
	}
	if !ok || seconds == 0 || number < 0 {
		return 0, &Error{text, "a rate", [3]string{"5", "5/s", "300/min"}}
	}
	return number / seconds, nil
}

// Factor reads how many times as much or as fast: 2, 2x, 0.5x. It is above 0.
func Factor(text string) (float64, error) {
	v, ok := scaled(text, map[string]float64{"": 1, "x": 1, "X": 1, "×": 1})
	if !ok || v <= 0 {
		return 0, &Error{text, "a factor above 0", [3]string{"2", "2x", "0.5"}}
	}
	return v, nil
}

// Count reads a whole number of 0 or more: 500, 10k, 1M.
func Count(text string) (int64, error) {
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n >= 0 {
		return n, nil // exact beyond 2^53
	}
	v, ok := scaled(text, map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30})
	if near := math.Round(v); math.Abs(v-near) <= 1e-9*math.Abs(v) && math.Abs(v) < 1<<53 {
		v = near // binary fractions leave something behind: 1.1k is 1100 and not 1100.0000000000002
	}
	if !ok || v < 0 || v != math.Trunc(v) || v >= 1<<63 {
		return 0, &Error{text, "a whole number of 0 or more", [3]string{"500", "10k", "1M"}}
	}
	return int64(v), nil
}

// Number reads a decimal number without a unit: 2, 0.5, 1e-6.
func Number(text string) (float64, error) {
	v, name, ok := split(text)
	if !ok || name != "" {
		return 0, &Error{text, "a number", [3]string{"2", "0.5", "1e-6"}}
	}
	return v, nil
}

// Share reads a part of a whole, from 0 up: 5%, 0.05. It may be above 1.
func Share(text string) (float64, error) {
	number, name, ok := split(text)
	if !ok || number < 0 || name != "" && name != "%" {
		return 0, &Error{text, "a share", [3]string{"5%", "0.05", "100%"}}
	}
	if name == "%" {
		number /= 100
	}
	return number, nil
}
