package doc

import (
	"math"
	"strconv"
	"strings"
)

// The printers below are those of every page, text and table, so that one figure reads
// the same wherever it stands. A space before % is an ordinary one; a page keeps it from
// breaking.

// Count prints a whole number, thousands apart: 12,345,678.
func Count(n int64) string { return apart(strconv.FormatInt(n, 10)) }

// Brief prints a whole number as [Count] does, and in millions from ten million on, for
// where there is little room: 12 M.
func Brief(n int64) string {
	if n >= 1e7 {
		return strconv.FormatFloat(float64(n)/1e6, 'f', 0, 64) + " M"
	}
	return Count(n)
}

// Many counts something for a sentence: 1 row, 1,200 rows.
func Many(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}

// Was is the verb of what [Many] counts: was or were.
func Was(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// OrDash prints a figure as print does, and an en dash where there is none.
func OrDash(v *float64, print func(float64) string) string {
	if v == nil {
		return "–"
	}
	return print(*v)
}

// Percent prints a share in percent, with three significant digits at most, two below
// 1 %, and no zeros at their end: 0.123456 is 12.3 %, 0.00333 is 0.33 %, 1 is 100 %, 12.5
// is 1,250 %. A share below all is never printed as 100 %, but with as many nines as it
// has: 0.99996 is 99.996 %.
func Percent(share float64) string { return hundredths(share) + " %" }

// PercentagePoints prints the difference of two shares in percentage points: 0.0123 is 1.23 pt.
func PercentagePoints(difference float64) string { return hundredths(difference) + " pt" }

func hundredths(share float64) string {
	v := 100 * share
	size := math.Abs(v)
	if size < 1e-9 { // nothing, or what the rounding of a sum leaves
		return "0"
	}
	places := 0
	switch order := int(math.Floor(math.Log10(size))); {
	case order < 0:
		places = 1 - order
	case order < 2:
		places = 2 - order
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	for size < 100 && strings.HasPrefix(strings.TrimPrefix(text, "-"), "100") && places < 12 {
		places++
		text = strconv.FormatFloat(v, 'f', places, 64)
	}
	return apart(trimmed(text))
}

// Number prints a figure for prose: a whole number as it is up to ten million, and any
// other with three significant digits, thousands apart, and no zeros at the end of its
// decimals: 1,840, 12.3, 0.5.
func Number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e7 {
		return Count(int64(v))
	}
	if math.Abs(v) < 0.5e-6 {
		return "0"
	}
	return trimmed(significant(v))
}

// Beside prints a figure as [Number] does, with as many digits more as tell it from the
// limit that it is held against: 1.004 beside 1.
func Beside(v, limit float64) string {
	out := Number(v)
	for digits := 4; v != limit && out == Number(limit) && digits < 10; digits++ {
		out = trimmed(apart(strconv.FormatFloat(roundTo(v, digits), 'f', -1, 64)))
	}
	return out
}

// Short prints a figure for a column of a table: three significant digits in at most
// seven characters and a sign, such as 0.012, 1.50, 15.0, 1,840, 184,000 or 1.84e6.
func Short(v float64) string {
	v = roundTo(v, 3)
	switch size := math.Abs(v); {
	case size < 0.00005:
		return "0"
	case size < 0.01:
		return strconv.FormatFloat(v, 'f', 4, 64)
	case size >= 1e6 && size < 1e9:
		return powers(v)
	}
	return significant(v)
}

// significant prints three significant digits, and powers of ten from a thousand million
// on and below a millionth.
func significant(v float64) string {
	if size := math.Abs(v); size >= 1e9 || size < 1e-6 {
		return powers(v)
	}
	v = roundTo(v, 3)
	return Fixed(v, max(0, 2-int(math.Floor(math.Log10(math.Abs(v))+1e-9))))
}

func powers(v float64) string {
	return strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace(strconv.FormatFloat(v, 'e', 2, 64))
}

// Fixed prints a figure with so many decimals, thousands apart: 1,234.50.
func Fixed(v float64, places int) string { return apart(strconv.FormatFloat(v, 'f', places, 64)) }

// trimmed drops zeros at the end of decimals.
func trimmed(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// apart sets commas between thousands.
func apart(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, rest, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "."
	}
	return sign + whole + rest
}

// roundTo keeps so many significant digits.
func roundTo(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return r
}
