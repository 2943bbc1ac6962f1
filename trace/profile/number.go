package profile

import (
	"strconv"
	"strings"
)

const missing = "–"

// count prints n with separators of thousands.
func count(n int64) string { return separated(strconv.FormatInt(n, 10)) }

// decimals prints v with so many decimals and separators of thousands.
func decimals(v float64, places int) string {
	return separated(strconv.FormatFloat(v, 'f', places, 64))
}

// number prints v with at most two decimals, and none that are 0.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(decimals(v, 2), "0"), ".")
}

// seconds prints v to the millisecond, and below a second to the microsecond.
func seconds(v float64) string {
	if v != 0 && v < 1 {
		return decimals(v, 6)
	}
	return decimals(v, 3)
}

// optional prints v, or a dash when it is missing.
func optional(v *float64, format func(float64) string) string {
	if v == nil {
		return missing
	}
	return format(*v)
}

func ratio4(v float64) string  { return decimals(v, 4) }
func fixed2(v float64) string  { return decimals(v, 2) }
func fixed3(v float64) string  { return decimals(v, 3) }
func percent(v float64) string { return decimals(100*v, 1) + " %" }

func separated(s string) string {
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

// points prints hundredths; what rounds to nothing has no sign.
func points(v float64) string {
	if v > -0.005 && v < 0 {
		v = 0
	}
	return decimals(v, 2)
}
