package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const busy = 0.8 // share of the time of [singleServer]

// singleServer is how long each of n requests stays at a server that takes one after the other,
// M/M/1, in millionths of a service, and at another one whose services differ by some 10 %. Both begin
// empty, and the first thousand are left out.
func singleServer(seed uint64, n int) (first, other []int64) {
	const warm = 1000
	r := rand.New(rand.NewPCG(seed, 7))
	var a, b float64
	for i := range n + warm {
		gap, service := r.ExpFloat64()/busy, r.ExpFloat64()
		a, b = max(a-gap, 0)+service, max(b-gap, 0)+0.98*service*math.Exp(0.1*r.NormFloat64())
		if i >= warm {
			first, other = append(first, int64(a*1e6)), append(other, int64(b*1e6))
		}
	}
	return first, other
}

// With a control that sees the same arrivals, about 95 of 100 intervals hold what theory says of
// M/M/1, and those of p50 and p95 are less than half as wide as those without.
func TestControlledHoldsTheTruth(t *testing.T) {
	const seeds, n = 60, 20_000
	quantiles := []float64{.5, .95, .99}
	var held [3]int
	var with, alone [3][]float64
	for seed := range uint64(seeds) {
		var r, same Runs
		for run := range uint64(2) {
			first, other := singleServer(seed<<8|run, n/2)
			r.Add(first)
			same.Add(other)
		}
		var expected LongRun
		_, other := singleServer(1<<40|seed, 250_000)
		for _, v := range other {
			expected.Add(v)
		}
		for k, p := range quantiles {
			if i := r.Quantile(p, .95); i.Lacks == "" {
				alone[k] = append(alone[k], i.Half())
			}
			i := r.Controlled(p, .95, &Control{Runs: &same, Expected: &expected})
			if i.Lacks != "" {
				continue
			}
			with[k] = append(with[k], i.Half())
			if truth := -math.Log(1-p) / (1 - busy) * 1e6; i.Low <= truth && truth <= i.High {
				held[k]++
			}
		}
	}
	for k, p := range quantiles {
		slices.Sort(with[k])
		slices.Sort(alone[k])
		given := len(with[k])
		covers, ratio := float64(held[k])/float64(given), with[k][given/2]/alone[k][len(alone[k])/2]
		if given < seeds*9/10 || covers < .90 || p < .99 && ratio > .5 {
			t.Errorf("p%v: %d of %d intervals, %.3f hold the truth, %.2f times as wide as without", 100*p, given, seeds, covers, ratio)
		}
	}
}

// A control that sees other arrivals explains nothing, and gives no interval; nor does one
// whose long run is short, or that has other runs.
func TestControlledThatLacks(t *testing.T) {
	given := 0
	var expected LongRun
	_, other := singleServer(1<<40, 400_000)
	for _, v := range other {
		expected.Add(v)
	}
	for seed := range uint64(50) {
		var r, apart Runs
		first, _ := singleServer(seed, 10_000)
		r.Add(first)
		_, other := singleServer(1<<20|seed, 10_000)
		apart.Add(other)
		if i := r.Controlled(.95, .95, &Control{Runs: &apart, Expected: &expected}); i.Lacks == "" {
			given++
		}
	}
	if given > 5 {
		t.Errorf("%d of 50 controls that have nothing to do with the runs gave an interval", given)
	}
	var r, same, fewer, two Runs
	first, other := singleServer(1, 10_000)
	r.Add(first)
	same.Add(other)
	fewer.Add(other[1:])
	two.Add(other[:5000])
	two.Add(other[5000:])
	var short LongRun
	for _, v := range other[:3000] {
		short.Add(v)
	}
	for name, c := range map[string]*Control{"a short long run": {&same, &short}, "none": {&same, new(LongRun)}, "fewer values": {&fewer, &expected}, "other runs": {&two, &expected}} {
		if i := r.Controlled(.95, .95, c); i.Lacks == "" {
			t.Errorf("%s: an interval of %v to %v", name, i.Low, i.High)
		}
	}
}

// A long run keeps 64 to 128 parts, however long it is, and its quantiles to 1 %.
func TestLongRun(t *testing.T) {
	var l LongRun
	values := exponentials(1, 1_000_000, 10)
	for i, v := range values {
		l.Add(v)
		if n := len(l.parts); n > 2*mostParts || i > mostParts*leastPart && n < mostParts {
			t.Fatalf("%d parts of %d values", n, i)
		}
	}
	if l.N() != int64(len(values)) {
		t.Errorf("%d values, want %d", l.N(), len(values))
	}
	slices.Sort(values)
	for _, p := range []float64{.01, .5, .95, .99} {
		want := float64(values[int(p*float64(len(values)))])
		at := l.Quantile(p)
		if math.Abs(float64(at)/want-1) > .01 {
			t.Errorf("p%v is %d, want %v", 100*p, at, want)
		}
		share, _ := l.known(at)
		exact, _ := slices.BinarySearch(values, at+1)
		if math.Abs(share-float64(exact)/float64(len(values))) > 1e-9 {
			t.Errorf("%v of the values are at most %d, and %d are", share, at, exact)
		}
	}
	// Each value comes ten times: the interval of the median is that of 100,000 independent ones.
	if half := l.Half(.5, .95); half < .7*.0089 || half > 1.4*.0089 {
		t.Errorf("the median is known to ±%v, want about 0.0089", half)
	}
}
