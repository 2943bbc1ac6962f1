package profile

import "reprise/trace/page"

const missing = "–"

// The printers of package page, by the short names that the tables use.

func count(n int64) string { return page.Count(n) }

func decimals(v float64, places int) string { return page.Fixed(v, places) }

// number prints v with at most two decimals, and none that are 0.
func number(v float64) string { return page.UpTo(v, 2) }

func seconds(v float64) string { return page.Seconds(v) }

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
func percent(v float64) string { return page.Percent(v) }

// points prints hundredths; what rounds to nothing has no sign.
func points(v float64) string {
	if v > -0.005 && v < 0 {
		v = 0
	}
	return decimals(v, 2)
}
