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
// are independent or each ten are one, in one run or in several.
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
						r.Add(exponentials(seed<<8|run, 3000*held/runs, held))
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
				if given < seeds*95/100 || covers < .91 || covers > .995 {
					t.Errorf("p%v of %d runs, each value %d times: %d of %d intervals, %.3f hold the truth", 100*p, runs, held, given, seeds, covers)
				}
			}
		}
	}
	if ratio := width[1] / width[0]; ratio < .9 || ratio > 1.15 {
		t.Errorf("values that come ten times make intervals %.2f times as wide, want 1: they count once", ratio)
	}
}

// Values of a cluster are alike and lie beside those of others all over a run, as the requests
// of a session do. Parts of time do not show that; clusters do.
func TestIntervalsOfClusters(t *testing.T) {
	const seeds, clusters, each = 200, 150, 20
	held := map[bool]int{}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 5))
		of := make([]int64, clusters)
		for i := range of {
			of[i] = int64(r.ExpFloat64() * 1e6)
		}
		values, in := make([]int64, clusters*each), make([]int32, clusters*each)
		for i, at := range r.Perm(len(values)) {
			in[at] = int32(i / each)
			values[at] = of[i/each]
		}
		truth := -math.Log(1-.75) * 1e6
		for _, clustered := range []bool{false, true} {
			var runs Runs
			if clustered {
				runs.AddIn(values, in)
			} else {
				runs.Add(values)
			}
			if i := runs.Quantile(.75, .95); i.Lacks == "" && i.Low <= truth && truth <= i.High {
				held[clustered]++
			}
		}
	}
	if held[true] < seeds*91/100 || held[true] == seeds || held[false] > seeds/2 {
		t.Errorf("%d of %d hold the truth with clusters, %d without", held[true], seeds, held[false])
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
	// 1 − 0.99^n passes 97.5 % at n = 368, and of 100 values the median lies between the 40th
	// and the 61st (Conover, "Practical nonparametric statistics").
	for n, want := range map[float64]bool{367: false, 368: true} {
		if _, _, ok := ranksAround(.99, n, .95); ok != want {
			t.Errorf("%v values bound a p99: %v", n, ok)
		}
	}
	if lo, hi, _ := ranksAround(.5, 100, .95); math.Floor(lo*100) != 40 || math.Ceil(hi*100) != 61 {
		t.Errorf("the median of 100 is between the ranks %v and %v", 100*lo, 100*hi)
	}
	var same Runs
	same.Add(make([]int64, 1000))
	if i := same.Quantile(.5, .95); i.Lacks != "" || i.Low != 0 || i.High != 0 {
		t.Errorf("values that are all the same: %+v", i)
	}
}

// The bounds of a share are those of Clopper and Pearson, and with parts in place of
// independent values somewhat wider.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		below  int64 // of 100
		lo, hi float64
		widest float64
	}{{0, 0, .0362, .04}, {10, .0490, .1762, .2}} { // 1−0.025^(1/100), and tables
		share := float64(c.below) / 100
		if lo, hi := ClopperPearson(share, 100, .95); math.Abs(lo-c.lo) > 1e-4 || math.Abs(hi-c.hi) > 1e-4 {
			t.Errorf("%d of 100 is between %v and %v", c.below, lo, hi)
		}
		values := make([]int64, 100)
		for i := range values {
			values[i] = 1
			if int64(i%10) < c.below/10 {
				values[i] = 0
			}
		}
		var runs Runs
		runs.Add(values)
		if i := runs.Share(0, .95); i.Lacks != "" || i.At != share || i.Low > c.lo+1e-4 || i.High < c.hi-1e-4 || i.High > c.widest {
			t.Errorf("%d of 100: %+v", c.below, i)
		}
	}
}

// A run may hold few states of what its values depend on: here it is 25 times as long as its slow
// part remembers. 92 to 98 of 100 intervals hold the truth even so, and nine of ten runs have one.
func TestIntervalsOfSlowRuns(t *testing.T) {
	const seeds, n, spans = 500, 20_000, 25
	const keeps = 1 - spans/float64(n)
	given, held, truth := 0, 0, 1e6
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 9))
		slow, values := r.NormFloat64(), make([]int64, n)
		for i := range values {
			slow = keeps*slow + math.Sqrt(1-keeps*keeps)*r.NormFloat64()
			values[i] = int64(truth * math.Exp(.1*slow+.5*r.NormFloat64()))
		}
		var runs Runs
		runs.Add(values)
		if i := runs.Quantile(.5, .95); i.Lacks == "" {
			if given++; i.Low <= truth && truth <= i.High {
				held++
			}
		}
	}
	t.Logf("%d of %d runs have an interval, %.1f %% of these hold the truth", given, seeds, 100*float64(held)/float64(given))
	if covers := float64(held) / float64(given); given < seeds*9/10 || covers < .92 || covers > .98 {
		t.Errorf("%d of %d runs have an interval, %.1f %% of these hold the truth", given, seeds, 100*covers)
	}
}
