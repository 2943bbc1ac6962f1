package history

import (
	"slices"
	"testing"

	"reprise/replay/bench"
)

// levelsOf is what is found in values that are exact but for a little noise, in steps of
// ten runs each.
func levelsOf(t *testing.T, metric string, least float64, steps ...float64) (changes []float64, small int) {
	t.Helper()
	m, err := bench.ParseMetric(metric)
	if err != nil {
		t.Fatal(err)
	}
	j := Judgment{Metric: metric, metric: m}
	for i, v := range steps {
		for k := range 10 {
			j.runs, j.values = append(j.runs, &Run{File: string(rune('a' + i))}), append(j.values, v*(1+float64(k%3)/1e4))
		}
	}
	j.Values = len(j.values)
	j.test(0.01, least)
	for _, c := range j.Changes {
		changes = append(changes, c.Is-c.Was)
	}
	return changes, j.Small
}

// A change that is significant and too small to matter is not reported, but small steps
// are, where they add up.
func TestMinChange(t *testing.T) {
	for _, c := range []struct {
		metric  string
		least   float64
		steps   []float64
		changes int
		small   int
	}{
		{"p99_ttft", 0, []float64{100, 100.8}, 1, 0},
		{"p99_ttft", 0.02, []float64{100, 100.8}, 0, 1},
		{"p99_ttft", 0.02, []float64{100, 102.1}, 1, 0},
		{"p99_ttft", 0.02, []float64{100, 97.9}, 1, 0},
		{"p99_ttft", 0.02, []float64{100, 101, 150}, 1, 1},
		{"p99_ttft", 0.02, []float64{100, 101.2, 102.4, 103.6}, 1, 2},
		{"error_rate", 0.02, []float64{0.001, 0.002}, 1, 0}, // twice as many, though by a tenth of a percentage point
		{"hit_ratio", 0.02, []float64{0.8, 0.803}, 0, 1},
	} {
		if changes, small := levelsOf(t, c.metric, c.least, c.steps...); len(changes) != c.changes || small != c.small {
			t.Errorf("%s %v from %g on: changes %v, %d smaller", c.metric, c.steps, c.least, changes, small)
		}
	}
	if changes, _ := levelsOf(t, "p99_ttft", 0.02, 100, 101, 150); !slices.ContainsFunc(changes, func(by float64) bool { return by > 49 }) {
		t.Errorf("%v", changes)
	}
}
