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

// quantile is where a share of the values ends, at the end of a bar.
func (l *LongRun) quantile(p float64) int64 {
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
	share, variance := l.known(l.quantile(p))
	if variance == 0 {
		return 0, 0, false
	}
	from, to, ok := ranksAround(share, share*(1-share)/variance, confidence)
	return l.quantile(from), l.quantile(to), ok
}

// Half is half of the width of the interval of a quantile, as a share of it.
func (l *LongRun) Half(p, confidence float64) float64 {
	low, high, ok := l.bounds(p, confidence)
	if !ok {
		return math.Inf(1)
	}
	return float64(high-low) / 2 / float64(l.quantile(p))
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

// Controlled is the interval of a quantile with a control variate (Hesterberg and Nelson,
// "Control variates for probability and quantile estimation", Management Science, 1998).
//
// Where the share of the control's values that are at most its own quantile p is larger than
// expected by δ, the quantile p of the values is their quantile p + β·δ. β is from 0 to 1 and makes
// what is left, the indicators of the values less β times those of the control, differ least between
// parts. The design effect is of what is left, which may be far below that of independent values,
// and of how well the control's own distribution is known.
func (r *Runs) Controlled(p, confidence float64, c *Control) Interval {
	order := r.order()
	if r.n < leastParts || c.Runs.n != r.n || len(c.Runs.runs) != len(r.runs) || len(c.Expected.parts) < leastParts {
		return Interval{Lacks: lacksValues}
	}
	mark := c.Expected.quantile(p)
	expected, _ := c.Expected.known(mark)
	control := c.Runs.pieces(mark)
	excess := ofAll(control) - expected
	if at := ofAll(control); float64(r.n)*min(at, 1-at) < leastEvents {
		return Interval{Lacks: lacksValues}
	}
	rank, beta := min(max(p+excess, 0), 1), 1.0 // as the control would have it
	var parts []part
	last := int64(math.MinInt64)
	for i := range controlSteps {
		bound := order.Rank(rankOf(rank, r.n))
		if bound == last {
			break
		}
		last = bound
		parts = r.pieces(bound)
		beta = slope(parts, control)
		rank = min(max((float64(min(i, 1))*rank+p+beta*excess)/(1+float64(min(i, 1))), 0), 1)
	}
	out := Interval{At: float64(order.Rank(rankOf(rank, r.n)))}
	for i := range parts {
		parts[i].below -= beta * control[i].below
	}
	parts = independent(parts)
	if out.Parts = len(parts); out.Parts < leastParts {
		out.Lacks = lacksRest
		return out
	}
	from, to, ok := c.Expected.bounds(p, confidence)
	if !ok || beta < leastSlope {
		out.Lacks = lacksRest
		return out
	}
	squares, n := varianceOf(parts)
	out.Effective = rank * (1 - rank) / max(squares*inflation(parts)/(n*n), 1e-12)
	if out.Effective < leastDependent {
		out.Lacks = lacksRest
		return out
	}
	t := distuv.StudentsT{Sigma: 1, Nu: max(freedom(parts)-1, 3)}.Quantile((1 + confidence) / 2)
	ratio := distuv.UnitNormal.Quantile((1+confidence)/2) / t
	low, high, ok := ranksAround(rank, out.Effective*ratio*ratio, confidence)
	if !ok || low*float64(r.n) < 1 || float64(r.n)*min(rank, 1-rank) < leastEvents {
		out.Lacks = lacksValues
		return out
	}
	// The quantile of the control may be off, and the values' quantile with it: by as many of the
	// runs' values as lie between, or by as large a share, whichever is further.
	at := ofAll(control)
	value := func(rank float64) float64 { return float64(order.Rank(rankOf(rank, r.n))) }
	moved := func(mark2 int64) float64 {
		return out.At * math.Pow(float64(mark2)/float64(mark), beta)
	}
	out.Low = apart(out.At, value(low), min(value(rank-beta*(at-ofAll(c.Runs.pieces(from)))), moved(from)))
	out.High = apart(out.At, value(high), max(value(rank+beta*(ofAll(c.Runs.pieces(to))-at)), moved(to)))
	return out
}

// apart is as far from a value, in logarithms, as two independent bounds make it together
// (Zou and Donner, "Construction of confidence limits about effect measures", Statistics in
// Medicine, 2008).
func apart(at, one, other float64) float64 {
	far := math.Hypot(math.Log(one/at), math.Log(other/at))
	if one < at || other < at {
		far = -far
	}
	return at * math.Exp(far)
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
