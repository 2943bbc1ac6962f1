package report

import "math"

// Percentile is the percentile that a clause is about as a share, 0.99 for a p99. It
// is not ok for a clause about something else.
func (c *Clause) Percentile() (share float64, ok bool) {
	return float64(c.statistic) / millionths, c.statistic > 0
}

// At is the same clause about another percentile, which is cut to a millionth; 1 is
// the maximum.
func (c Clause) At(share float64) Clause {
	c.statistic = statistic(max(math.Round(share*millionths), 1))
	if c.statistic >= millionths {
		c.statistic = maxOf
	}
	return c
}
