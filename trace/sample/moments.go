package sample

import (
	"math"
	"math/big"
	"math/bits"
)

// Moments hold count, sums, minimum and maximum exactly: 128-bit sums, so that
// neither their size nor the order of the values changes the result.
type Moments struct {
	N, Min, Max  int64
	sumHi, sumLo uint64 // two's complement
	sqHi, sqLo   uint64
}

// Add takes a value.
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
