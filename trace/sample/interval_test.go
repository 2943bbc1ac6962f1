package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

// exponentials are independent values of mean 1e6, each of them held for some steps.
func exponentials(seed uint64, n, held int) []int64 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]int64, n)
	for i := range out {
		if i%held == 0 {
			out[i] = int64(r.ExpFloat64() * 1e6)
		} else {
			out[i] = out[i-1]
		}
	}
	return out
}

// Of 200 samples whose truth is known, about 95 of 100 intervals hold it, whether the values
// are independent or each ten are one, in one run or in several, and those of the ten are
// wider by the square root of that.
func TestIntervalsHoldTheTruth(t *testing.T) {
	const seeds = 200
	var width [2]float64
	for at, held := range []int{1, 10} {
		for _, runs := range []int{1, 8} {
			for _, p := range []float64{.5, .9, .99} {
				truth, held0, given := -math.Log(1-p)*1e6, 0, 0
				for seed := range uint64(seeds) {
					var r Runs
					for run := range uint64(runs) {
						r.Add(exponentials(seed<<8|run, 8000/runs, held))
					}
					i := r.Quantile(p, .95)
					if i.Lacks != "" {
						continue
					}
					given++
					if i.Low <= truth && truth <= i.High {
						held0++
					}
					if p == .5 && runs == 1 {
						width[at] += i.High - i.Low
					}
				}
				covers := float64(held0) / float64(given)
				if given < seeds*85/100 || covers < .91 || covers > .995 {
					t.Errorf("p%v of %d runs, each value %d times: %d of %d intervals, %.3f hold the truth", 100*p, runs, held, given, seeds, covers)
				}
			}
		}
	}
	if ratio := width[1] / width[0]; ratio < 2.9 || ratio > 3.4 {
		t.Errorf("values that come ten times make intervals %.2f times as wide, want 3.16", ratio)
	}
}

// Parts of a run that wander as one thing are no sample, and too few values have no p99.
func TestIntervalsThatLack(t *testing.T) {
	r, walk, at := rand.New(rand.NewPCG(3, 1)), make([]int64, 10_000), int64(1e9)
	for i := range walk {
		at += r.Int64N(2001) - 1000
		walk[i] = at
	}
	var runs Runs
	runs.Add(walk)
	if i := runs.Quantile(.5, .95); i.Lacks != lacksRest || !math.IsInf(i.Half(), 1) {
		t.Errorf("a random walk has the interval %+v", i)
	}
	for n, want := range map[int]string{0: lacksValues, 7: lacksValues, 300: lacksValues, 5000: ""} {
		var runs Runs
		runs.Add(exponentials(1, n, 1))
		if i := runs.Quantile(.99, .95); i.Lacks != want {
			t.Errorf("%d values: %+v, want it to lack %q", n, i, want)
		}
	}
	var same Runs
	same.Add(make([]int64, 1000))
	if i := same.Quantile(.5, .95); i.Lacks != "" || i.Low != 0 || i.High != 0 {
		t.Errorf("values that are all the same: %+v", i)
	}
}

// The bounds of a share of independent values are those of Clopper and Pearson, with a t in
// place of a normal quantile: 0 of 100 is at most 1−0.025^(1/100) = 3.62 % and somewhat more.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		every    int
		lo, hi   float64
		wide, to float64
	}{{1000, 0, .0362, 0, .045}, {10, .0490, .1762, .040, .2}} {
		var runs Runs
		values := make([]int64, 100)
		for i := range values {
			if i*7%c.every == 0 && c.every < 100 {
				values[i] = 1
			}
		}
		runs.Add(values)
		i := runs.Share(0, .95) // the share of zeros
		lo, hi := 1-i.High, 1-i.Low
		if i.Lacks != "" || lo > c.lo+1e-3 || lo < c.wide || hi < c.hi-1e-3 || hi > c.to {
			t.Errorf("one of %d of 100: %v to %v, want somewhat more than %v to %v; %+v", c.every, lo, hi, c.lo, c.hi, i)
		}
	}
}

func BenchmarkQuantile(b *testing.B) {
	values := exponentials(1, 50_000, 1)
	for b.Loop() {
		var r Runs
		r.Add(values)
		r.Quantile(.99, .95)
	}
}
