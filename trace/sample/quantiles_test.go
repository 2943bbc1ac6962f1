package sample

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// Sums stay exact where a float64 would not, and where 64 bits overflow.
func TestMomentsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const most = 1 << 53
	var m Moments
	sum, n := new(big.Int), int64(5000)
	var values []int64
	for range n {
		v := rng.Int64N(2*most) - most
		values = append(values, v)
		m.Add(v)
		sum.Add(sum, big.NewInt(v))
	}
	if m.Sum().Cmp(sum) != 0 {
		t.Errorf("sum %v, want %v", m.Sum(), sum)
	}
	mean := new(big.Rat).SetFrac(sum, big.NewInt(n))
	variance := new(big.Rat)
	for _, v := range values {
		d := new(big.Rat).Sub(new(big.Rat).SetInt64(v), mean)
		variance.Add(variance, d.Mul(d, d))
	}
	f, _ := variance.Quo(variance, new(big.Rat).SetInt64(n)).Float64()
	if want := math.Sqrt(f); math.Abs(m.SD()-want) > 1e-12*want {
		t.Errorf("sd %v, want %v", m.SD(), want)
	}
	if m.Min != slices.Min(values) || m.Max != slices.Max(values) {
		t.Errorf("%d to %d", m.Min, m.Max)
	}
}

// Values added at once, or to a clone, are those added one by one, whatever the limit.
func TestAddAllAndClone(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, limit := range []int{0, 10, 999, 1000, 1001, 5000} {
		one, all := Values{Limit: limit}, Values{Limit: limit}
		var copies []Values
		var values []int64
		for len(values) < 1000 {
			part := make([]int64, rng.IntN(90))
			for i := range part {
				part[i] = rng.Int64N(1<<40) - 100
				one.Add(part[i])
			}
			all.AddAll(part)
			values = append(values, part...)
			if len(copies) == 0 && len(values) > 500 {
				copies = append(copies, all.Clone())
				copies[0].AddAll(values)
			}
		}
		if all.Moments != one.Moments || !reflect.DeepEqual(all.Order(), one.Order()) {
			t.Errorf("limit %d: added at once they are others", limit)
		}
		if copies[0].N <= 1000 && limit > 5000 || all.N != int64(len(values)) {
			t.Errorf("limit %d: %d and %d values", limit, copies[0].N, all.N)
		}
	}
}

// Histogram quantiles are within 0.1 % of exact ones, from nanoseconds to a day.
func TestHistogramIsCloseToExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	exact, hist := Values{Limit: 1 << 20}, Values{}
	for range 200_000 {
		v := int64(math.Exp(rng.Float64() * math.Log(maxBar)))
		exact.Add(v)
		hist.Add(v)
	}
	a, b := exact.Order(), hist.Order()
	if !a.Exact || b.Exact {
		t.Fatal("the wrong methods")
	}
	for num := int64(0); num <= 1000; num++ {
		want, got := float64(a.At(num, 1000)), float64(b.At(num, 1000))
		if math.Abs(got-want) > 1+0.001*want {
			t.Errorf("quantile %d/1000: %v, want %v", num, got, want)
		}
	}
}

func TestQuantileInterpolates(t *testing.T) {
	q := Sorted([]int64{10, 20, 40, 80})
	for _, row := range [][3]int64{{0, 1, 10}, {1, 1, 80}, {1, 2, 30}, {1, 3, 20}, {9, 10, 68}, {1, 6, 15}} {
		if got := q.At(row[0], row[1]); got != row[2] {
			t.Errorf("%d/%d: %d, want %d", row[0], row[1], got, row[2])
		}
	}
}
