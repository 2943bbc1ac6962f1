package sample

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// Runs are the values of independent runs of one thing, such as replays with seeds of their
// own, for intervals that hold although the values of a run depend on each other: requests
// that wait in one queue wait together.
//
// Each run is cut into parts, 64 of all runs together. Pairs of neighbouring parts are
// joined until neighbours no longer resemble each other, or fewer than 8 would be left (batch
// means: Law and Carson, "A sequential procedure for determining the length of a steady-state
// simulation", Operations Research, 1979). How much the parts differ then, against what
// independent values would, is the design effect D. A correlation that is left counts as that of
// a process of first order, corrected for what few parts hide of it (Marriott and Pope, "Bias in
// the estimation of autocorrelations", Biometrika, 1954). n values tell as much as n/D independent
// ones. With so many, the bounds of a quantile are order statistics by the binomial distribution
// (David and Nagaraja, "Order statistics", 2003, section 7.1), and those of a share are of
// Clopper and Pearson. That D is estimated takes more: n/D is reduced by the squared ratio of
// the normal quantile to that of Student's t (Korn and Graubard, "Confidence intervals for
// proportions with small expected number of positive counts", Survey Methodology, 1998),
// with degrees of freedom of Satterthwaite.
//
// Parts are long enough when none resemble each other at the median, the third quartile, the
// 90th percentile, or what is asked: a queue that was never long in a run shows at the median
// how slowly it moves. D is of what is asked alone; that the largest of these leaves
// 50 to 80 independent values is asked for as well.
//
// Values may also belong to clusters, as requests do to sessions, which run through many parts
// beside each other. D is then at least the design effect of the clusters, by the same ratio
// estimator with clusters as parts (Cochran, "Sampling techniques", 1977, section 9A).
type Runs struct {
	runs   [][]int64 // in the order of time
	in     [][]int32 // clusters of the values of each run; nil where it has none
	n      int64
	sorted []int64 // all; nil until it is asked for
}

// Add adds the values of a run in the order of time. It keeps the slice.
func (r *Runs) Add(values []int64) { r.AddIn(values, nil) }

// AddIn adds the values of a run in the order of time, with the cluster of each, a number of
// this run from 0. It keeps the slices.
func (r *Runs) AddIn(values []int64, clusters []int32) {
	if len(values) > 0 {
		r.runs, r.in, r.n, r.sorted = append(r.runs, values), append(r.in, clusters), r.n+int64(len(values)), nil
	}
}

// N is the number of values.
func (r *Runs) N() int64 { return r.n }

// An Interval is of one figure of [Runs]. Where Lacks says why there is none, the bounds
// mean nothing.
type Interval struct {
	At, Low, High float64
	Parts         int     // that it rests on
	Effective     float64 // independent values that tell as much
	Lacks         string  // why there is no interval, "" where there is one
}

// Half is half of the width of the interval as a share of the figure: 0.1 is ±10 %. It is
// infinite without an interval.
func (i *Interval) Half() float64 {
	if i.Lacks != "" || i.At == 0 {
		return math.Inf(1)
	}
	return (i.High - i.Low) / 2 / math.Abs(i.At)
}

// Why there is no interval.
const (
	lacksValues = "too few values"
	lacksRest   = "the runs are too short: values that follow each other are too similar"
)

const (
	mostParts  = 64
	leastParts = 8
	// leastEvents · (1 − 1/D) is how many independent events an interval rests on at least:
	// values beyond a quantile, divided by D. With fewer, runs that happened to see none of
	// the rare queues would say that there are none. Independent values need no such thing.
	leastEvents = 10
	// leastIndependent is how many independent values all of them tell as much as, at least, at
	// each of the bounds: else the runs are not much longer than what happens once takes. Where
	// values depend on many others, leastDependent · (1 − 1/D) are.
	leastIndependent = 50
	leastDependent   = 80
	// partsAlike is the correlation of neighbouring parts, in standard deviations of what
	// chance does, from which they are joined: one of ten times that is chance.
	partsAlike = 1.2816
	// mostRest is the largest correlation of parts that cannot be joined that counts.
	mostRest = 0.7
)

// Quantile is the interval of a quantile such as 0.99.
func (r *Runs) Quantile(p, confidence float64) Interval {
	if r.sorted == nil {
		r.sorted = slices.Concat(r.runs...)
		slices.Sort(r.sorted)
	}
	if r.n < leastParts {
		return Interval{Lacks: lacksValues}
	}
	order := Sorted(r.sorted)
	i, n := r.effective(p, order.Rank(rankOf(p, r.n)), confidence)
	i.At = float64(order.At(int64(math.Round(p*1e6)), 1e6))
	if i.Lacks != "" {
		return i
	}
	low, high, ok := ranksAround(p, n, confidence)
	if !ok || low*float64(r.n) < 1 || i.Effective*min(p, 1-p) < leastEvents*(1-i.Effective/float64(r.n)) {
		i.Lacks = lacksValues
		return i
	}
	above := min(int64(math.Ceil(high*float64(r.n))), r.n) - 1
	i.Low, i.High = float64(order.Rank(rankOf(low, r.n))), float64(order.Rank(above))
	return i
}

// ranksAround are the ranks among n independent values, as shares of n, of those between which
// the quantile p lies; n need not be whole. It is not ok where n is too small for an upper one.
func ranksAround(p, n, confidence float64) (low, high float64, ok bool) {
	tail := (1 - confidence) / 2
	// atLeast is the probability that k or more of n values are below the quantile.
	atLeast := func(k float64) float64 { return mathext.RegIncBeta(k, n-k+1, p) }
	if n < 1 || atLeast(n) > tail {
		return 0, 1, false
	}
	solve := func(want float64) float64 {
		from, to := 0.0, n
		for range 60 {
			if mid := (from + to) / 2; atLeast(mid) > want {
				from = mid
			} else {
				to = mid
			}
		}
		return to / n
	}
	return solve(1 - tail), solve(tail), true
}

// rankOf is the rank, from 0, of the value that a share of n values are at most.
func rankOf(share float64, n int64) int64 {
	return min(max(int64(math.Floor(share*float64(n)))-1, 0), n-1)
}

// Share is the interval of the share of values that are at most a bound.
func (r *Runs) Share(bound int64, confidence float64) Interval {
	below := int64(0)
	for _, run := range r.runs {
		for _, v := range run {
			if v <= bound {
				below++
			}
		}
	}
	if r.n < leastParts {
		return Interval{Lacks: lacksValues}
	}
	share := float64(below) / float64(r.n)
	i, n := r.effective(share, bound, confidence)
	i.At = share
	if i.Lacks == "" {
		i.Low, i.High = ClopperPearson(share, n, confidence)
	}
	return i
}

// effective is an interval without its bounds, and how many independent values give them: of
// a share of values that are at most a bound.
func (r *Runs) effective(share float64, bound int64, confidence float64) (out Interval, n float64) {
	bounds := []int64{bound}
	if r.sorted != nil {
		for _, p := range []float64{.5, .75, .9} {
			if p < share {
				bounds = append(bounds, r.sorted[rankOf(p, r.n)])
			}
		}
	}
	counts := r.partsOf(bounds)
	if out.Parts = len(counts[0]); out.Parts < leastParts {
		out.Lacks = lacksRest
		return out, 0
	}
	effect, largest, widest := 1.0, 1.0, counts[0]
	for i, parts := range counts {
		rest := correlation(parts)
		rest = min(max(rest+(1+3*rest)/float64(len(parts)), 0), mostRest)
		of := designEffect(parts) * (1 + rest) / (1 - rest)
		if clustered := r.clusters(bounds[i]); designEffect(clustered) > of {
			of, parts = designEffect(clustered), clustered
		}
		if largest = max(largest, of); i == 0 && of > 1 {
			effect, widest = of, parts
		}
	}
	out.Effective = float64(r.n) / effect
	if largest > 1 && float64(r.n)/largest < max(leastIndependent, leastDependent*(1-1/largest)) {
		out.Lacks = lacksRest
		return out, 0
	}
	if effect == 1 {
		return out, out.Effective
	}
	// Of the variance, what independent values would have is known.
	estimated := 1 - 1/effect
	t := distuv.StudentsT{Sigma: 1, Nu: min(freedom(widest)/(estimated*estimated), 1e6)}.Quantile((1 + confidence) / 2)
	ratio := distuv.UnitNormal.Quantile((1+confidence)/2) / t
	return out, out.Effective * ratio * ratio
}

// ClopperPearson are the exact bounds of a share of n independent values, each with half of what is left of
// the confidence (Clopper and Pearson, Biometrika 1934). n need not be whole; of none the bounds are 0 and 1.
func ClopperPearson(share, n, confidence float64) (lo, hi float64) {
	k, tail := share*n, (1-confidence)/2
	lo, hi = 0, 1
	if n <= 0 {
		return lo, hi
	}
	if k > 0 {
		lo = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(tail)
	}
	if k < n {
		hi = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(1 - tail)
	}
	return lo, hi
}

// A part has n values, of which some are at most a bound.
type part struct {
	below, n int64
	follows  bool // the part before it in the same run
}

// partsOf counts for each bound the values of each part that are at most that, with
// neighbours joined until they do not resemble each other at any bound, or fewer than
// [leastParts] would be left.
func (r *Runs) partsOf(bounds []int64) [][]part {
	counts := make([][]part, len(bounds))
	for i, bound := range bounds {
		for _, run := range r.runs {
			pieces := int(max(math.Round(float64(len(run))*mostParts/float64(r.n)), 1))
			pieces = min(pieces, len(run))
			for j := range pieces {
				p := part{follows: j > 0}
				for _, v := range run[len(run)*j/pieces : len(run)*(j+1)/pieces] {
					p.n++
					if v <= bound {
						p.below++
					}
				}
				counts[i] = append(counts[i], p)
			}
		}
	}
	for slices.ContainsFunc(counts, resemble) && len(joined(counts[0])) >= leastParts {
		for i := range counts {
			counts[i] = joined(counts[i])
		}
	}
	return counts
}

// clusters counts for each cluster the values that are at most a bound.
func (r *Runs) clusters(bound int64) (parts []part) {
	for i, run := range r.runs {
		if r.in[i] == nil {
			continue
		}
		first := len(parts)
		for j, v := range run {
			at := first + int(r.in[i][j])
			for len(parts) <= at {
				parts = append(parts, part{})
			}
			if parts[at].n++; v <= bound {
				parts[at].below++
			}
		}
	}
	return slices.DeleteFunc(parts, func(p part) bool { return p.n == 0 })
}

// joined joins the parts of each run by pairs.
func joined(parts []part) (out []part) {
	open := false // the last of out takes one more
	for _, p := range parts {
		if open && p.follows {
			last := &out[len(out)-1]
			last.below, last.n, open = last.below+p.below, last.n+p.n, false
			continue
		}
		out, open = append(out, p), true
	}
	return out
}

// ofAll is the share of all values that are at most the bound.
func ofAll(parts []part) float64 {
	var below, n int64
	for _, p := range parts {
		below, n = below+p.below, n+p.n
	}
	return float64(below) / float64(n)
}

// resemble tells whether parts that follow each other in a run are more alike than chance
// makes them: whether their correlation is beyond that of independent ones.
func resemble(parts []part) bool {
	pairs := 0
	for _, p := range parts {
		if p.follows {
			pairs++
		}
	}
	return correlation(parts) > partsAlike/math.Sqrt(float64(pairs))
}

// correlation is that of parts that follow each other in a run.
func correlation(parts []part) float64 {
	share := ofAll(parts)
	var squares, products, before float64
	pairs := 0
	for _, p := range parts {
		d := float64(p.below)/float64(p.n) - share
		squares += d * d
		if p.follows {
			products += d * before
			pairs++
		}
		before = d
	}
	if pairs == 0 || squares == 0 {
		return 0
	}
	return products / float64(pairs) / (squares / float64(len(parts)))
}

// designEffect is the variance of the share of values that are at most the bound, over that
// of as many independent values: by the ratio estimator (Cochran, "Sampling techniques",
// 1977, section 6.3).
func designEffect(parts []part) float64 {
	if len(parts) < 2 {
		return 1
	}
	share := ofAll(parts)
	if share == 0 || share == 1 {
		return 1
	}
	variance, n := 0.0, 0.0
	for _, p := range parts {
		d := float64(p.below) - share*float64(p.n)
		variance, n = variance+d*d, n+float64(p.n)
	}
	count := float64(len(parts))
	return variance * count / (count - 1) / (share * (1 - share) * n)
}

// freedom is the degrees of freedom of a variance from parts: 2 over its squared
// coefficient of variation, by the kurtosis of the parts (Satterthwaite, 1946). Where a few
// parts have all of the values beyond the bound, it is few.
func freedom(parts []part) float64 {
	share := ofAll(parts)
	var second, fourth float64
	for _, p := range parts {
		d := float64(p.below) - share*float64(p.n)
		second, fourth = second+d*d, fourth+d*d*d*d
	}
	count := float64(len(parts))
	if second == 0 {
		return count - 1
	}
	kurtosis := fourth * count / (second * second)
	return max(3, min(count-1, 2*count/max(kurtosis-1, 0.5)))
}
