package bench

import (
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/replay/contract"
	"reprise/replay/report"
)

// confidence is that of every interval of this package.
const confidence = 0.95

// PercentileBounds are the percentiles of a sample of n independent values between
// which the true percentile p lies in 95 of 100 samples: those of the order
// statistics of the binomial distribution (David and Nagaraja, "Order statistics",
// 2003, section 7.1). It is below 0 or above 1 where the sample is too small for one.
//
// Requests that queue behind each other are not independent, so that the truth is
// less sure than this.
func PercentileBounds(n int64, p float64) (lo, hi float64) {
	b := distuv.Binomial{N: float64(n), P: p}
	const tail = (1 - confidence) / 2
	first := func(holds func(k int64) bool) int64 { // the least k from 0 to n+1
		from, to := int64(0), n+1
		for from < to {
			if mid := (from + to) / 2; holds(mid) {
				to = mid
			} else {
				from = mid + 1
			}
		}
		return from
	}
	least := first(func(k int64) bool { return k > n || b.CDF(float64(k)) > tail })       // values below the truth, at least
	most := first(func(k int64) bool { return k > n || b.CDF(float64(k)) >= 1-tail }) + 1 // rank of the value above it
	span := float64(max(n-1, 1))                                                          // ranks count from 1, and percentiles interpolate between them
	return float64(least-1) / span, float64(most-1) / span
}

// ShareBounds are the bounds of Clopper and Pearson ("The use of confidence or
// fiducial limits illustrated in the case of the binomial", 1934) for a share of n.
func ShareBounds(share float64, n int64) (lo, hi float64) {
	k := share * float64(n)
	const tail = (1 - confidence) / 2
	lo, hi = 0, 1
	if k > 0 {
		lo = distuv.Beta{Alpha: k, Beta: float64(n) - k + 1}.Quantile(tail)
	}
	if k < float64(n) {
		hi = distuv.Beta{Alpha: k + 1, Beta: float64(n) - k}.Quantile(1 - tail)
	}
	return lo, hi
}

// Sure tells whether what became of a contract is beyond chance: whether every clause
// holds at the worse bound of what it measures, or one of them fails at the better
// bound. summarise holds a contract against the same run. Percentiles have
// [PercentileBounds], shares of requests [ShareBounds]; what has no bound, such as a
// mean or a throughput, counts as it is.
func Sure(c *contract.Contract, got *report.ContractResult, summarise func(*contract.Contract) (*report.ContractResult, error)) (bool, error) {
	at := 1 // the bounds at which a holding contract is most at risk
	if !got.Holds {
		at = 0
	}
	bounded := *c
	bounded.Clauses = make([]contract.Clause, len(c.Clauses))
	for i, clause := range c.Clauses {
		if p, ok := clause.Percentile(); ok && got.Clauses[i].Samples > 0 {
			lo, hi := PercentileBounds(got.Clauses[i].Samples, p)
			bound := [2]float64{lo, hi}[at]
			if bound < 0 || bound > 1 {
				return false, nil
			}
			clause = clause.At(bound)
		}
		bounded.Clauses[i] = clause
	}
	result, err := summarise(&bounded)
	if err != nil {
		return false, err
	}
	for i := range result.Clauses {
		outcome := surely(&result.Clauses[i], got.Holds)
		switch {
		case got.Holds && outcome != report.Holds:
			return false, nil
		case !got.Holds && outcome == report.Fails:
			return true, nil
		}
	}
	return got.Holds, nil
}

// surely is the outcome of a clause at the bound of its share of requests: at the
// worse one for what holds, at the better one for what fails. That of another clause
// is its own.
func surely(c *report.ClauseResult, holds bool) string {
	ofRequests := strings.HasPrefix(c.Clause, "error_rate ") || strings.HasPrefix(c.Clause, "goodput ")
	if !ofRequests || c.Measured == nil || c.Samples == 0 {
		return c.Outcome
	}
	lo, hi := ShareBounds(*c.Measured, c.Samples)
	floor := strings.Contains(c.Clause, " >= ")
	bound := hi
	if floor == holds {
		bound = lo
	}
	if bound == c.Allowed || floor == (bound > c.Allowed) {
		return report.Holds
	}
	return report.Fails
}
