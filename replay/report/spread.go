package report

import "reprise/trace/sample"

// addSpan adds a duration where there is one.
func addSpan(to *sample.Values, d Span) {
	if d.OK {
		to.Add(d.NS)
	}
}

// distributionOf returns points of the cumulative distribution of nanoseconds for a
// plot: x in milliseconds and the share of values up to it. It takes every half
// percent, and beyond 99.5 % ever smaller steps as far as the sample reaches, so about
// 260 points however many values there are.
func distributionOf(q *sample.Order, atLeastMS float64) (x, y []float64) {
	if q.N == 0 {
		return nil, nil
	}
	const den = 1_000_000
	point := func(num int64) {
		x = append(x, max(float64(q.At(num, den))/1e6, atLeastMS))
		y = append(y, float64(num)/den)
	}
	for num := int64(0); num <= 995_000; num += 5_000 {
		point(num)
	}
	for rest := int64(4_500); rest >= 1; rest = rest * 9 / 10 {
		if rest*q.N < den {
			break
		}
		point(den - rest)
	}
	point(den)
	return x, y
}
