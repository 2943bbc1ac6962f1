package report

import "reprise/trace/page"

// The printers of package page, by short names.

func number(v float64) string { return page.Number(v) }

func short(v float64) string { return page.Short(v) }

// orDash prints a figure of a table that may be missing.
func orDash(v *float64) string {
	if v == nil {
		return "–"
	}
	return short(*v)
}

func count(n int64) string { return page.Brief(n) }

func percent(share float64) string { return page.Percent(share) }

// points prints a difference of two shares.
func points(share float64) string { return page.PercentagePoints(share) }

func percentOrDash(share *float64) string {
	if share == nil {
		return "–"
	}
	return percent(*share)
}

// many counts something for a sentence.
func many(n int64, what string) string {
	if n == 1 {
		return page.Many(n, what)
	}
	return count(n) + " " + what + "s"
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
