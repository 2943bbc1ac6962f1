package sample

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sort"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Values collects the values of one metric, of any unit. It keeps them exactly up to
// Limit; then it moves to a histogram of three significant digits. Which of the two it
// ends as depends on the number of values only, never on their order.
type Values struct {
	Limit int // set before the first value
	Moments

	kept []int64
	hist *hdr.Histogram
}

// maxBar is the largest value that the histogram tells apart, a day in nanoseconds; the
// maximum itself is kept exactly.
const maxBar = 24 * 3600 * 1e9

// Add adds a value.
func (s *Values) Add(v int64) {
	s.Moments.Add(v)
	if s.hist == nil {
		if len(s.kept) < s.Limit {
			s.kept = append(s.kept, v)
			return
		}
		s.hist = hdr.New(1, maxBar, 3)
		for _, old := range s.kept {
			s.record(old)
		}
		s.kept = nil
	}
	s.record(v)
}

// AddAll adds values.
func (s *Values) AddAll(values []int64) {
	for len(values) > 0 && s.hist == nil {
		if room := s.Limit - len(s.kept); room > 0 {
			n := min(room, len(values))
			s.Moments.addAll(values[:n])
			s.kept = append(s.kept, values[:n]...)
			values = values[n:]
			continue
		}
		s.Add(values[0])
		values = values[1:]
	}
	s.Moments.addAll(values)
	for _, v := range values {
		s.record(v)
	}
}

// Clone returns values to which others can be added.
func (s *Values) Clone() Values {
	c := *s
	c.kept = slices.Clone(s.kept)
	if s.hist != nil {
		c.hist = s.hist.Clone()
	}
	return c
}

// record clamps: requests that were sent early have a negative lag, which the
// histogram cannot hold.
func (s *Values) record(v int64) {
	// The clamp leaves nothing that RecordValue refuses.
	_ = s.hist.RecordValue(min(max(v, 0), maxBar))
}

// Order returns the order statistics. No value may be added after it.
func (s *Values) Order() Order {
	if s.hist == nil {
		slices.Sort(s.kept)
		return Order{N: s.N, Exact: true, sorted: s.kept}
	}
	q := Order{N: s.N}
	var seen int64
	for _, b := range s.hist.Distribution() {
		if b.Count == 0 {
			continue
		}
		seen += b.Count
		q.upTo = append(q.upTo, seen)
		middle := b.From + (b.To-b.From)/2
		q.sorted = append(q.sorted, min(max(middle, s.Min), s.Max))
	}
	return q
}

// Order are order statistics: of each value, or of a histogram's bars.
type Order struct {
	N     int64 // values
	Exact bool  // else within 0.1 %

	sorted []int64 // values, or the middles of bars
	upTo   []int64 // values up to and including each bar
}

// Sorted returns the order statistics of values in ascending order. It keeps the slice.
func Sorted(values []int64) Order {
	return Order{N: int64(len(values)), Exact: true, sorted: values}
}

// Rank is the i-th of the values in ascending order, from 0 to N−1.
func (q *Order) Rank(i int64) int64 {
	if q.Exact {
		return q.sorted[i]
	}
	return q.sorted[sort.Search(len(q.upTo), func(j int) bool { return q.upTo[j] > i })]
}

// At is the quantile num/den by linear interpolation between the two nearest order
// statistics, as numpy's default does, rounded to a whole number. There must be at
// least one value.
func (q *Order) At(num, den int64) int64 {
	pos := num * (q.N - 1)
	i, rest := pos/den, pos%den
	low := q.Rank(i)
	if rest == 0 {
		return low
	}
	step := q.Rank(i+1) - low
	return low + int64(math.Round(float64(step)*float64(rest)/float64(den)))
}

// Moments hold count, sums, minimum and maximum exactly: 128-bit sums, so that
// neither their size nor the order of the values changes the result.
type Moments struct {
	N, Min, Max  int64
	sumHi, sumLo uint64 // two's complement
	sqHi, sqLo   uint64
}

// Add adds a value.
func (m *Moments) Add(v int64) {
	if m.N == 0 {
		m.Min, m.Max = v, v
	}
	m.N++
	m.Min, m.Max = min(m.Min, v), max(m.Max, v)
	var carry uint64
	m.sumLo, carry = bits.Add64(m.sumLo, uint64(v), 0)
	m.sumHi += uint64(v>>63) + carry
	size := uint64(max(v, -v))
	hi, lo := bits.Mul64(size, size)
	m.sqLo, carry = bits.Add64(m.sqLo, lo, 0)
	m.sqHi += hi + carry
}

func (m *Moments) addAll(values []int64) {
	c := *m // in registers
	for _, v := range values {
		c.Add(v)
	}
	*m = c
}

// Sum is Σv.
func (m *Moments) Sum() *big.Int {
	s := new(big.Int).Lsh(big.NewInt(int64(m.sumHi)), 64)
	return s.Add(s, new(big.Int).SetUint64(m.sumLo))
}

// Mean is Σv/n of at least one value.
func (m *Moments) Mean() float64 {
	f, _ := new(big.Rat).SetFrac(m.Sum(), big.NewInt(m.N)).Float64()
	return f
}

// SD is the population standard deviation, √(nΣv² − (Σv)²)/n, as numpy's default.
func (m *Moments) SD() float64 {
	sq := new(big.Int).Lsh(new(big.Int).SetUint64(m.sqHi), 64)
	sq.Add(sq, new(big.Int).SetUint64(m.sqLo))
	n, sum := big.NewInt(m.N), m.Sum()
	sq.Mul(sq, n).Sub(sq, sum.Mul(sum, sum))
	f, _ := new(big.Rat).SetFrac(sq, n.Mul(n, n)).Float64()
	return math.Sqrt(f)
}
