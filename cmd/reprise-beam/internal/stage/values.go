package stage

import (
	"encoding/json"
	"math/big"
	"math/bits"

	"reprise/trace/profile"
)

// Values are sums and the distribution of values from 0 up. They merge exactly, in any order.
type Values struct {
	count, sum, least, greatest int64
	squares                     [2]uint64 // sum of the squares: high and low half
	histogram                   profile.Histogram
}

// Add takes a value.
func (v *Values) Add(x int64) {
	if x < 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(x), uint64(x))
	v.merge(1, x, x, x, [2]uint64{hi, lo})
	v.histogram.Add(x, 1)
}

// Merge adds the values of o.
func (v *Values) Merge(o *Values) {
	v.merge(o.count, o.sum, o.least, o.greatest, o.squares)
	v.histogram.Merge(&o.histogram)
}

func (v *Values) merge(count, sum, least, greatest int64, squares [2]uint64) {
	if count == 0 {
		return
	}
	if v.count == 0 || least < v.least {
		v.least = least
	}
	v.greatest = max(v.greatest, greatest)
	v.count, v.sum = v.count+count, v.sum+sum
	var carry uint64
	v.squares[1], carry = bits.Add64(v.squares[1], squares[1], 0)
	v.squares[0], _ = bits.Add64(v.squares[0], squares[0], carry)
}

// wireValues are [Values] on their way between workers.
type wireValues struct {
	Count, Sum, Least, Greatest int64
	Squares                     [2]uint64
	Lo, N                       []int64 // of the buckets that are not empty
}

// MarshalJSON implements [json.Marshaler].
func (v Values) MarshalJSON() ([]byte, error) {
	w := wireValues{Count: v.count, Sum: v.sum, Least: v.least, Greatest: v.greatest, Squares: v.squares}
	for _, b := range v.histogram.Buckets() {
		w.Lo, w.N = append(w.Lo, b.Lo), append(w.N, b.Count)
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *Values) UnmarshalJSON(b []byte) error {
	var w wireValues
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*v = Values{count: w.Count, sum: w.Sum, least: w.Least, greatest: w.Greatest, squares: w.Squares}
	for i := range min(len(w.Lo), len(w.N)) {
		v.histogram.Add(w.Lo[i], w.N[i])
	}
	return nil
}

// Stats describe the values in units of per: nil without values. Quantiles are within 1 %, since they come from a
// histogram; all else is exact.
func (v *Values) Stats(per float64) *profile.Stats {
	if v.count == 0 {
		return nil
	}
	s := &profile.Stats{Count: v.count, Mean: float64(v.sum) / float64(v.count) / per, Min: float64(v.least) / per,
		Max: float64(v.greatest) / per, Approximate: true}
	if v.count > 1 {
		// n·Σx² − (Σx)² as whole numbers, so that nothing is lost between two that are near.
		n, sum := big.NewInt(v.count), big.NewInt(v.sum)
		squares := new(big.Int).Lsh(new(big.Int).SetUint64(v.squares[0]), 64)
		squares.Add(squares, new(big.Int).SetUint64(v.squares[1])).Mul(squares, n)
		deviations := new(big.Float).SetInt(squares.Sub(squares, sum.Mul(sum, sum)))
		variance := deviations.Quo(deviations, new(big.Float).SetInt(n.Mul(n, big.NewInt(v.count-1))))
		sd, _ := variance.Sqrt(variance).Float64()
		sd /= per
		s.SD = &sd
	}
	buckets := v.histogram.Buckets()
	for p, to := range map[float64]*float64{0.5: &s.P50, 0.9: &s.P90, 0.95: &s.P95, 0.99: &s.P99, 0.999: &s.P999} {
		*to = v.quantile(buckets, p) / per
	}
	return s
}

// quantile is the value at rank p·(n−1), each value taken for the middle of its bucket, with linear interpolation
// between two.
func (v *Values) quantile(buckets []profile.Bucket, p float64) float64 {
	at := func(rank int64) float64 {
		for _, b := range buckets {
			if rank -= b.Count; rank < 0 {
				middle := (float64(b.Lo) + float64(b.Hi-1)) / 2
				return min(max(middle, float64(v.least)), float64(v.greatest))
			}
		}
		return float64(v.greatest)
	}
	rank := p * float64(v.count-1)
	low := int64(rank)
	return at(low) + (rank-float64(low))*(at(low+1)-at(low))
}
