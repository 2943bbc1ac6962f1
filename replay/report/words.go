package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number prints a figure for prose: four significant digits, thousands apart,
// without zeros at the end of its decimals.
func number(v float64) string {
	if size := math.Abs(v); size >= 1000 && size < 1e7 || v == math.Trunc(v) && size < 1e7 {
		return count(int64(math.Round(v)))
	}
	out := short(v)
	if strings.Contains(out, ".") && !strings.Contains(out, "e") {
		out = strings.TrimRight(strings.TrimRight(out, "0"), ".")
	}
	if out == "-0" {
		return "0"
	}
	return out
}

// short prints a figure for a table: four significant digits in at most six
// characters and a sign.
func short(v float64) string {
	size := math.Abs(v)
	switch {
	case size == 0:
		return "0"
	case size < 9.9995: // as it is printed
		return strconv.FormatFloat(v, 'f', 3, 64)
	case size < 99.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size < 999.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.Replace(strconv.FormatFloat(v, 'e', 1, 64), "e+0", "e", 1)
}

// orDash prints a figure of a table that may be missing.
func orDash(v *float64) string {
	if v == nil {
		return "–"
	}
	return short(*v)
}

// count prints an integer with thousands apart, and in millions when long.
func count(n int64) string {
	if n >= 1e7 {
		return strconv.FormatFloat(float64(n)/1e6, 'f', 0, 64) + " M"
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent prints a share with two decimals at most.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + " %"
}

// points prints a difference of two shares, in percentage points.
func points(share float64) string { return strings.TrimSuffix(percent(share), "%") + "pt" }

func percentOrDash(share *float64) string {
	if share == nil {
		return "–"
	}
	return percent(*share)
}

// many counts something for a sentence.
func many(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", count(n), what)
}

// it is it or they.
func it(n int64) string {
	if n == 1 {
		return "it"
	}
	return "they"
}

// verb is was or were.
func verb(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
