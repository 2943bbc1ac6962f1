package report

import "math"

// Percentile is the percentile that a clause is about as a share, 0.99 for a p99. It
// is not ok for a clause about something else.
func (c *Clause) Percentile() (share float64, ok bool) {
	return float64(c.statistic) / millionths, c.statistic > 0
}

// At is the same clause about another percentile, which is cut to a millionth.
func (c Clause) At(share float64) Clause {
	c.statistic = statistic(min(max(math.Round(share*millionths), 1), millionths-1))
	return c
}
