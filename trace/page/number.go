package page

import (
	"strconv"
	"strings"
)

// Count prints n with separators of thousands.
func Count(n int64) string { return separated(strconv.FormatInt(n, 10)) }

// Decimals prints v with so many decimals and separators of thousands.
func Decimals(v float64, places int) string {
	return separated(strconv.FormatFloat(v, 'f', places, 64))
}

// Percent prints the share v in percent, with one decimal.
func Percent(v float64) string { return Decimals(100*v, 1) + " %" }

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
