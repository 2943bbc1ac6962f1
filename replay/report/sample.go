package report

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sort"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// A sample collects the values of one metric, in nanoseconds. It is exact up
// to limit values; then it moves to a histogram. Which of the two it ends as
// depends on the number of values only, never on their order.
type sample struct {
	limit  int
	m      moments
	values []int64
	hist   *hdr.Histogram
}

// Latencies collect the values of one latency, in nanoseconds. They are exact up
// to [DefaultExact] values, and an HdrHistogram beyond. The zero value is empty.
type Latencies struct{ values sample }

// Add takes a value.
func (l *Latencies) Add(ns int64) {
	l.values.limit = DefaultExact
	l.values.add(ns)
}

// Stat describes the values in milliseconds.
func (l *Latencies) Stat() Stat {
	stat, _ := l.values.stat()
	return stat
}

// histMax is the largest value the histogram tells apart, a day; the maximum
// itself is kept exactly.
const histMax = 24 * 3600 * 1e9

func (s *sample) add(v int64) {
	s.m.add(v)
	if s.hist == nil {
		if len(s.values) < s.limit {
			s.values = append(s.values, v)
			return
		}
		s.hist = hdr.New(1, histMax, 3)
		for _, old := range s.values {
			s.record(old)
		}
		s.values = nil
	}
	s.record(v)
}

func (s *sample) addSpan(d Span) {
	if d.OK {
		s.add(d.NS)
	}
}

// record clamps: requests that were sent early have a negative lag, which the
// histogram cannot hold.
func (s *sample) record(v int64) {
	// The clamp leaves nothing that RecordValue refuses.
	_ = s.hist.RecordValue(min(max(v, 0), histMax))
}

// quantiles returns the finished quantile function; the sample takes no more values.
func (s *sample) quantiles() quantiles {
	if s.hist == nil {
		slices.Sort(s.values)
		return quantiles{n: s.m.n, sorted: s.values, exact: true}
	}
	q := quantiles{n: s.m.n}
	var seen int64
	for _, b := range s.hist.Distribution() {
		if b.Count == 0 {
			continue
		}
		seen += b.Count
		q.upTo = append(q.upTo, seen)
		middle := b.From + (b.To-b.From)/2
		q.sorted = append(q.sorted, min(max(middle, s.m.min), s.m.max))
	}
	return q
}

// quantiles are order statistics: of each value, or of a histogram's bars.
type quantiles struct {
	n      int64
	sorted []int64 // values, or the middles of bars
	upTo   []int64 // values up to and including each bar
	exact  bool
}

func (q *quantiles) rank(i int64) int64 {
	if q.exact {
		return q.sorted[i]
	}
	return q.sorted[sort.Search(len(q.upTo), func(j int) bool { return q.upTo[j] > i })]
}

// at is the quantile num/den by linear interpolation between the two nearest
// order statistics, as numpy's default does, in whole nanoseconds. It must not
// be asked of an empty sample.
func (q *quantiles) at(num, den int64) int64 {
	pos := num * (q.n - 1)
	i, rest := pos/den, pos%den
	low := q.rank(i)
	if rest == 0 {
		return low
	}
	step := q.rank(i+1) - low
	return low + int64(math.Round(float64(step)*float64(rest)/float64(den)))
}

// cdf returns points of the cumulative distribution for a plot: x in
// milliseconds and the share of values up to it. It takes every half percent,
// and beyond 99.5 % ever smaller steps as far as the sample reaches, so about
// 260 points however many values there are.
func (q *quantiles) cdf(atLeastMS float64) (x, y []float64) {
	if q.n == 0 {
		return nil, nil
	}
	const den = 1_000_000
	point := func(num int64) {
		x = append(x, max(float64(q.at(num, den))/1e6, atLeastMS))
		y = append(y, float64(num)/den)
	}
	for num := int64(0); num <= 995_000; num += 5_000 {
		point(num)
	}
	for rest := int64(4_500); rest >= 1; rest = rest * 9 / 10 {
		if rest*q.n < den {
			break
		}
		point(den - rest)
	}
	point(den)
	return x, y
}

// moments hold count, sums, minimum and maximum exactly: 128-bit sums, so that
// neither their size nor the order of the values changes the result.
type moments struct {
	n            int64
	sumHi, sumLo uint64 // two's complement
	sqHi, sqLo   uint64
	min, max     int64
}

func (m *moments) add(v int64) {
	if m.n == 0 {
		m.min, m.max = v, v
	}
	m.n++
	m.min, m.max = min(m.min, v), max(m.max, v)
	var carry uint64
	m.sumLo, carry = bits.Add64(m.sumLo, uint64(v), 0)
	m.sumHi += uint64(v>>63) + carry
	size := uint64(max(v, -v))
	hi, lo := bits.Mul64(size, size)
	m.sqLo, carry = bits.Add64(m.sqLo, lo, 0)
	m.sqHi += hi + carry
}

// sum is Σv.
func (m *moments) sum() *big.Int {
	s := new(big.Int).Lsh(big.NewInt(int64(m.sumHi)), 64)
	return s.Add(s, new(big.Int).SetUint64(m.sumLo))
}

// mean is Σv/n of at least one value.
func (m *moments) mean() float64 {
	f, _ := new(big.Rat).SetFrac(m.sum(), big.NewInt(m.n)).Float64()
	return f
}

// sd is the population standard deviation, √(nΣv² − (Σv)²)/n, as numpy's default.
func (m *moments) sd() float64 {
	sq := new(big.Int).Lsh(new(big.Int).SetUint64(m.sqHi), 64)
	sq.Add(sq, new(big.Int).SetUint64(m.sqLo))
	n, sum := big.NewInt(m.n), m.sum()
	sq.Mul(sq, n).Sub(sq, sum.Mul(sum, sum))
	f, _ := new(big.Rat).SetFrac(sq, n.Mul(n, n)).Float64()
	return math.Sqrt(f)
}
