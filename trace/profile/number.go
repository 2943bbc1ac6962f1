package profile

import "reprise/trace/page"

const missing = "–"

// number prints v with at most two decimals, and none that are 0.
func number(v float64) string { return page.UpTo(v, 2) }

func ratio4(v float64) string { return page.Fixed(v, 4) }
func fixed2(v float64) string { return page.Fixed(v, 2) }
func fixed3(v float64) string { return page.Fixed(v, 3) }

// points prints hundredths; what rounds to nothing has no sign.
func points(v float64) string {
	if v > -0.005 && v < 0 {
		v = 0
	}
	return page.Fixed(v, 2)
}
