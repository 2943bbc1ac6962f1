package bench

import "strconv"

// figure prints a number with four digits, and without zeros behind.
func figure(v float64) string {
	if v >= 1000 && v < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
