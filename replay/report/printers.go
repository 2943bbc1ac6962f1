package report

// The printers and roundings of this package, for those that write beside it.

// Number prints a figure for prose, see number.
func Number(v float64) string { return number(v) }

// Short prints a figure for a table, in at most six characters and a sign.
func Short(v float64) string { return short(v) }

// OrDash prints a figure of a table that may be missing.
func OrDash(v *float64) string { return orDash(v) }

// Count prints an integer with thousands apart.
func Count(n int64) string { return count(n) }

// Many counts something for a sentence: 1 run, 2 runs.
func Many(n int64, what string) string { return many(n, what) }

// Was is was or were.
func Was(n int64) string { return verb(n) }

// Percent prints a share with two decimals at most.
func Percent(share float64) string { return percent(share) }

// PercentOrDash prints a share of a table that may be missing.
func PercentOrDash(share *float64) string { return percentOrDash(share) }

// Plain makes a string from a file safe for a terminal: what does not print
// becomes a question mark.
func Plain(s string) string { return plain(s) }

// Rounded cuts a number to steps of 1/per, and is null where it is not finite.
func Rounded(v, per float64) *float64 { return rounded(v, per) }
