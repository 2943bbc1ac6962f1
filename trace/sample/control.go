package sample

import (
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/gonum/stat/distuv"
)

// A LongRun is one run of values that are too many to keep: parts of the same length, 64 to
// 127 of them, each with its values to 1 %. It takes 6 MB.
type LongRun struct {
	parts []*hdr.Histogram
	size  int64 // values of a part
	n     int64
}

// leastPart is how many values a part of a [LongRun] has at least.
const leastPart = 1024

// Add adds the next value.
func (l *LongRun) Add(v int64) {
	if l.n == l.size*int64(len(l.parts)) {
		l.open()
	}
	l.n++
	// The clamp leaves nothing that RecordValue refuses.
	_ = l.parts[len(l.parts)-1].RecordValue(min(max(v, 0), maxBar))
}

// open begins another part. Of twice as many as needed, pairs are joined.
func (l *LongRun) open() {
	l.size = max(l.size, leastPart)
	if len(l.parts) == 2*mostParts {
		for i := range mostParts {
			l.parts[2*i].Merge(l.parts[2*i+1])
			l.parts[i] = l.parts[2*i]
		}
		l.parts, l.size = l.parts[:mostParts], 2*l.size
	}
	l.parts = append(l.parts, hdr.New(1, maxBar, 2))
}

// N is the number of values.
func (l *LongRun) N() int64 { return l.n }

// pieces counts the values of each part that are at most a bound.
func (l *LongRun) pieces(bound int64) (out []part) {
	for i, h := range l.parts {
		p := part{n: h.TotalCount(), follows: i > 0}
		for _, bar := range h.Distribution() {
			if bar.To > bound {
				break
			}
			p.below += float64(bar.Count)
		}
		out = append(out, p)
	}
	return out
}

// Quantile is where a share of the values ends, to 1 %.
func (l *LongRun) Quantile(p float64) int64 {
	all := hdr.New(1, maxBar, 2)
	for _, h := range l.parts {
		all.Merge(h)
	}
	return all.ValueAtPercentile(100 * p)
}

// known is the share of values that are at most a bound, and the variance of that.
func (l *LongRun) known(bound int64) (share, variance float64) {
	parts := independent(l.pieces(bound))
	squares, n := varianceOf(parts)
	return ofAll(parts), squares * inflation(parts) / (n * n)
}

// bounds are of the interval of a quantile.
func (l *LongRun) bounds(p, confidence float64) (low, high int64, ok bool) {
	if len(l.parts) < leastParts {
		return 0, 0, false
	}
	share, variance := l.known(l.Quantile(p))
	if variance == 0 {
		return 0, 0, false
	}
	from, to, ok := ranksAround(share, share*(1-share)/variance, confidence)
	return l.Quantile(from), l.Quantile(to), ok
}

// Half is half of the width of the interval of a quantile, as a share of it.
func (l *LongRun) Half(p, confidence float64) float64 {
	low, high, ok := l.bounds(p, confidence)
	if !ok {
		return math.Inf(1)
	}
	return float64(high-low) / 2 / float64(l.Quantile(p))
}

// A Control is something whose values depend on the same chance as those of [Runs], and whose
// distribution in the long run is known: how long a model of an engine would have let the same
// requests wait.
type Control struct {
	Runs     *Runs // for each value one, in runs of the same lengths
	Expected *LongRun
}

// leastSlope is the least β of a control: one that explains less leaves the runs as they are,
// and with them that they may be too short for what is rare.
const leastSlope = 0.5

// controlSteps is how often a quantile with a control is moved to where it belongs, at most.
const controlSteps = 12

// Controlled is the interval of a quantile of positive values with a control variate (Hesterberg and
// Nelson, "Control variates for probability and quantile estimation", Management Science, 1998).
//
// Where the share of the control's values that are at most its own quantile p is larger than
// expected by δ, the quantile p of the values is their quantile p + β·δ. β is from 0 to 1 and makes
// what is left, the indicators of the values less β times those of the control, differ least between
// parts. The design effect is that of what is left, and may be far below that of independent values.
// The interval is wider by how well the control's own quantile is known, and by how far the values are
// from it where few parts tell.
func (r *Runs) Controlled(p, confidence float64, c *Control) Interval {
	order := r.order()
	from, to, ok := c.Expected.bounds(p, confidence)
	if !ok || r.n < leastParts || c.Runs.n != r.n || len(c.Runs.runs) != len(r.runs) {
		return Interval{Lacks: lacksValues}
	}
	mark := c.Expected.Quantile(p)
	expected, _ := c.Expected.known(mark)
	control := c.Runs.pieces(mark)
	share := ofAll(control)
	rank, beta, parts := r.corrected(p, share-expected, control)
	out := Interval{At: float64(order.Rank(rankOf(rank, r.n))), Parts: len(parts)}
	squares, n := varianceOf(parts)
	out.Effective = rank * (1 - rank) / max(squares*inflation(parts)/(n*n), 1e-12)
	switch {
	case float64(r.n)*min(share, 1-share, rank, 1-rank) < leastEvents || out.At <= 0:
		out.Lacks = lacksValues
	case len(parts) < leastParts || beta < leastSlope || out.Effective < leastDependent:
		out.Lacks = lacksRest
	}
	if out.Lacks != "" {
		return out
	}
	t := distuv.StudentsT{Sigma: 1, Nu: max(freedom(parts)-1, 3)}.Quantile((1 + confidence) / 2)
	z := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	ratio := z / t
	low, high, ok := ranksAround(rank, out.Effective*ratio*ratio, confidence)
	if !ok || low*float64(r.n) < 1 {
		out.Lacks = lacksValues
		return out
	}
	// The quantile of the control may be off, and that of the values with it: by as many of them
	// as lie between, or by as large a share, whichever is further.
	value := func(rank float64) float64 { return float64(order.Rank(rankOf(rank, r.n))) }
	off := func(to int64) (between, share float64) {
		return value(rank + beta*(ofAll(c.Runs.pieces(to))-ofAll(control))), out.At * math.Pow(float64(to)/float64(mark), beta)
	}
	// Nor is it known better how far the values are from those of the control, where few parts have any
	// beyond its quantile.
	misfit := z * math.Abs(math.Log(out.At/float64(mark))) / math.Sqrt(spread(control))
	out.Low = out.At * math.Exp(-apart(out.At, misfit, value(low), min(off(from))))
	out.High = out.At * math.Exp(apart(out.At, misfit, value(high), max(off(to))))
	return out
}

// spread is how many parts would have as many values beyond the bound, each the same (Kish,
// "Survey sampling", 1965, section 11.7).
func spread(parts []part) float64 {
	var sum, squares float64
	for _, p := range parts {
		beyond := float64(p.n) - p.below
		sum, squares = sum+beyond, squares+beyond*beyond
	}
	return sum * sum / squares
}

// corrected is at which rank, as a share, the quantile p of the values is where the control has an
// excess, with the β of that, and the parts of what is left, joined until they are independent.
func (r *Runs) corrected(p, excess float64, control []part) (rank, beta float64, left []part) {
	order, last := r.order(), int64(math.MinInt64)
	rank = min(max(p+excess, 0), 1) // as the control alone would have it
	for i := range controlSteps {
		bound := order.Rank(rankOf(rank, r.n))
		if bound == last {
			break
		}
		last = bound
		left = r.pieces(bound)
		beta = slope(left, control)
		next := p + beta*excess
		if i > 0 { // so that it does not swing
			next = (rank + next) / 2
		}
		rank = min(max(next, 0), 1)
	}
	for i := range left {
		left[i].below -= beta * control[i].below
	}
	return rank, beta, independent(left)
}

// apart is how far from a value, in logarithms, two independent bounds on the same side of it and
// a misfit are together (Zou and Donner, "Construction of confidence limits about effect measures", Statistics
// in Medicine, 2008).
func apart(at, misfit, one, other float64) float64 {
	return math.Hypot(misfit, math.Hypot(math.Log(one/at), math.Log(other/at)))
}

// independent joins parts until neighbours no longer resemble each other, or fewer than
// [leastParts] would be left.
func independent(parts []part) []part {
	for resemble(parts) && len(joined(parts)) >= leastParts {
		parts = joined(parts)
	}
	return parts
}

// slope is the share of the control's parts that makes what is left of the parts differ least,
// from 0 to 1.
func slope(parts, control []part) float64 {
	a, b := ofAll(parts), ofAll(control)
	var products, squares float64
	for i := range parts {
		n := float64(parts[i].n)
		d := control[i].below - b*n
		products, squares = products+d*(parts[i].below-a*n), squares+d*d
	}
	if squares == 0 {
		return 0
	}
	return min(max(products/squares, 0), 1)
}
