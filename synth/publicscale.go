package synth

import (
	"math/bits"
	"slices"
)

// A scale cuts the numbers from 0 up to a public limit into cells. Nothing of
// it depends on data. What is above the limit counts in the last cell.
type scale struct {
	lows []int64 // first value of each cell
	last int64   // last value of the last cell
}

// octaves cuts at the powers of two: 0, 1, 2-3, 4-7 and so on.
func octaves(limit int64) scale {
	s := scale{lows: []int64{0}, last: limit}
	for lo := int64(1); lo <= limit; lo *= 2 {
		s.lows = append(s.lows, lo)
	}
	return s
}

// quarters cuts each octave in four.
func quarters(limit int64) scale {
	s := scale{lows: []int64{0}, last: limit}
	for lo := int64(1); lo <= limit; lo += max(1, int64(1)<<bits.Len64(uint64(lo))>>3) {
		s.lows = append(s.lows, lo)
	}
	return s
}

func (s scale) cells() int { return len(s.lows) }

// of returns the cell of a value of at least 0.
func (s scale) of(v int64) int {
	i, found := slices.BinarySearch(s.lows, v)
	if !found {
		i--
	}
	return i
}

// edges are the first and the last value of cell i.
func (s scale) edges(i int) (lo, hi int64) {
	if i+1 < len(s.lows) {
		return s.lows[i], s.lows[i+1] - 1
	}
	return s.lows[i], s.last
}

// middle is the mean of the values of cell i.
func (s scale) middle(i int) float64 {
	lo, hi := s.edges(i)
	return (float64(lo) + float64(hi)) / 2
}
