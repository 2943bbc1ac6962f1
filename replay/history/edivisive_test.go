package history

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// The statistic is that of its definition, computed pair by pair.
func TestEnergy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		values := make([]float64, 4+rng.IntN(12))
		for i := range values {
			values[i] = math.Round(rng.NormFloat64() * 3)
		}
		want := place{}
		mean := func(a, b []float64, same bool) float64 {
			sum, n := 0.0, 0.0
			for i, x := range a {
				for j, y := range b {
					if !same || i < j {
						sum, n = sum+math.Abs(x-y), n+1
					}
				}
			}
			return sum / n
		}
		for i := 2; i <= len(values)-2; i++ {
			a, b := values[:i], values[i:]
			s := float64(len(a)*len(b)) / float64(len(values)) * (2*mean(a, b, false) - mean(a, a, true) - mean(b, b, true))
			if want.index == 0 || s > want.statistic+1e-9 {
				want = place{i, s}
			}
		}
		if got := energy(values); math.Abs(got.statistic-want.statistic) > 1e-9 {
			t.Fatalf("%v: %v, want %v", values, got, want)
		}
	}
}

func TestLeastRuns(t *testing.T) {
	for alpha, want := range map[float64]int{0.5: 4, 0.05: 8, 0.01: 10, 0.01 / 4: 12, 0.001: 14} {
		if got := leastRuns(alpha); got != want {
			t.Errorf("alpha %v: %d runs, want %d", alpha, got, want)
		}
	}
}

// noises are like those between real runs: a few percent, now and then a run that was
// disturbed, and days that are like the day before.
var noises = map[string]func(*rand.Rand, int) []float64{
	"normal, 3 %": func(rng *rand.Rand, n int) []float64 {
		return series(n, func(int, float64) float64 { return 0.03 * rng.NormFloat64() })
	},
	"one run in ten 30 % slower": func(rng *rand.Rand, n int) []float64 {
		return series(n, func(int, float64) float64 {
			return 0.03*rng.NormFloat64() + map[bool]float64{true: 0.26}[rng.IntN(10) == 0]
		})
	},
	"half of it from the run before": func(rng *rand.Rand, n int) []float64 {
		return series(n, func(_ int, last float64) float64 { return 0.5*last + 0.026*rng.NormFloat64() })
	},
}

func series(n int, next func(i int, last float64) float64) []float64 {
	out, last := make([]float64, n), 0.0
	for i := range out {
		last = next(i, last)
		out[i] = last
	}
	return out
}

// found is in how many of so many histories a change is found, and in how many of these
// within a run of where it is. A step begins that many runs before the end; 0 is none.
func found(noise func(*rand.Rand, int) []float64, histories, runs int, alpha, step float64, after int) (any, near float64) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range histories {
		values := noise(rng, runs)
		for i := runs - after; i < runs; i++ {
			values[i] += math.Log1p(step)
		}
		places, _ := changesIn(values, alpha, rng)
		if len(places) > 0 {
			any++
		}
		if slices.ContainsFunc(places, func(at int) bool { return at >= runs-after-1 && at <= runs-after+1 }) {
			near++
		}
	}
	return any / float64(histories), near / float64(histories)
}

// The rates in docs/operations.md: of false alarms, and of changes that are found.
func TestRates(t *testing.T) {
	histories := 100
	if os.Getenv("REPRISE_TEST_LONG") != "" {
		histories = 1000 // as the docs have it
	}
	for _, c := range []struct {
		noise       string
		runs, after int
		alpha, step float64
		low, high   float64 // of what is found, near the change where there is one
	}{
		{"normal, 3 %", 12, 0, 0.01, 0, 0, 0.04},
		{"normal, 3 %", 30, 0, 0.01, 0, 0, 0.04},
		{"one run in ten 30 % slower", 30, 0, 0.01, 0, 0, 0.04},
		{"half of it from the run before", 30, 0, 0.01, 0, 0.05, 0.4}, // not independent: the docs say so

		{"normal, 3 %", 30, 3, 0.01, 0.10, 0.65, 1},
		{"normal, 3 %", 30, 5, 0.01, 0.10, 0.85, 1},
		{"normal, 3 %", 30, 10, 0.01, 0.05, 0.35, 0.8},
		{"normal, 3 %", 30, 10, 0.01, 0.10, 0.95, 1},
		{"one run in ten 30 % slower", 30, 10, 0.01, 0.10, 0.35, 0.8},
		{"normal, 3 %", 30, 5, 0.01 / 4, 0.10, 0.75, 1}, // one of four metrics
	} {
		any, near := found(noises[c.noise], histories, c.runs, c.alpha, c.step, c.after)
		got := near
		if c.after == 0 {
			got = any
		}
		t.Logf("%-32s %d runs, alpha %.4f, step %.0f %% in the last %d: found in %.1f %%, at its place in %.1f %%", c.noise, c.runs, c.alpha, 100*c.step, c.after, 100*any, 100*near)
		if got < c.low || got > c.high {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Several changes are found one by one, and equal values have none.
func TestSeveralChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := noises["normal, 3 %"](rng, 45)
	for i := range values {
		values[i] += map[int]float64{0: 0, 1: 0.2, 2: -0.1}[i/15]
	}
	if places, _ := changesIn(values, 0.01, rng); !slices.Equal(places, []int{15, 30}) {
		t.Errorf("changes at %v", places)
	}
	if places, _ := changesIn(make([]float64, 40), 0.01, rng); places != nil {
		t.Errorf("changes among equal values at %v", places)
	}
}
