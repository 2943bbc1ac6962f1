package audit

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// arriving are rows with such arrivals.
func arriving(at ...int64) []trace.Request {
	rows := make([]trace.Request, len(at))
	for i := range rows {
		rows[i].ArrivalNS = at[i]
	}
	return rows
}

// Instants of the source are found in a release when more of them come out than
// chance explains: 3, and ten times as many as are expected.
func TestInstantsOfTheSource(t *testing.T) {
	source := make([]int64, 20) // far apart, and no two as far as another two
	for i := range source {
		source[i] = int64(i*i*i)*1_000_003_019 + int64(i)
	}
	span := float64(source[19])
	// release has so many rows; those from 1 on are of the source, counted from its
	// row first, and the rest is of nothing.
	release := func(n, first, same int) []int64 {
		out := make([]int64, n)
		for i := 1; i < n; i++ {
			if i <= same {
				out[i] = source[first+i] - source[first]
			} else {
				out[i] = 400_000_000_000_000 + int64(i)*7919
			}
		}
		return out
	}
	dense := make([]int64, 20) // an instant in a hundred is one
	for i := range dense {
		dense[i] = int64(i) * 100
	}
	dense = append(dense, 2000)[1:] // 100 to 2000
	denseRelease := func(same int) []int64 {
		out := make([]int64, 95)
		for i := 1; i < len(out); i++ {
			if out[i] = 1_000_000 + int64(i); i <= same {
				out[i] = dense[i]
			}
		}
		return out
	}
	expected := func(n int) float64 { return 20 / span * float64(n) }
	declared := trace.RelativeCapture(0, 2000*time.Hour)
	fig := func(n, most int, chance float64) Figures {
		return Figures{"rows": n, "instants_of_the_source": most, "expected_by_chance": chance}
	}
	for name, c := range map[string]struct {
		of   []int64
		meta trace.Meta
		out  []int64
		want Finding
	}{
		"none":                               {source, trace.Meta{}, release(12, 0, 0), passed(fig(12, 0, expected(12)), "instants of the source do not come out")},
		"three of them, which may be chance": {source, trace.Meta{}, release(12, 0, 3), passed(fig(12, 3, expected(12)), "instants of the source do not come out")},
		"four of them":                       {source, trace.Meta{}, release(12, 0, 4), failed(fig(12, 4, expected(12)), "4 instants of 12 are those of the source to the nanosecond")},
		"the first rows were left out":       {source, trace.Meta{}, release(12, 6, 9), failed(fig(12, 9, expected(12)), "9 instants of 12 are those of the source to the nanosecond")},
		"fifteen of them were left out":      {source, trace.Meta{}, release(12, 15, 4), failed(fig(12, 4, expected(12)), "4 instants of 12 are those of the source to the nanosecond")},
		"more than that":                     {source[:20], trace.Meta{}, release(12, 16, 3), passed(fig(12, 0, expected(12)), "instants of the source do not come out")},
		"nine rows":                          {source, trace.Meta{}, release(9, 0, 8), inconclusive(fig(9, 8, expected(9)), "9 rows are too few to tell times by")},
		"ten rows":                           {source, trace.Meta{}, release(10, 0, 9), failed(fig(10, 9, expected(10)), "9 instants of 10 are those of the source to the nanosecond")},
		"twelve, of which chance explains 0.95": {dense, trace.Meta{Capture: declared}, denseRelease(12),
			passed(fig(95, 12, 0.95), "instants of the source do not come out")},
		"thirteen, of which chance explains 0.95": {dense, trace.Meta{Capture: declared}, denseRelease(13),
			failed(fig(95, 13, 0.95), "13 instants of 95 are those of the source to the nanosecond")},
		"one row at 0": {[]int64{0}, trace.Meta{}, release(12, 0, 0), passed(fig(12, 0, 12), "instants of the source do not come out")},
	} {
		c.meta.Tier = anonymize.Internal
		slices.Sort(c.out)
		f := times(t.Context(), &Case{Output: partnerOutput(t, oneBucket, trace.Meta{}, arriving(c.out...)...), Internal: linkTrace(t, c.meta, arriving(c.of...))})
		got, want := f.Figures["expected_by_chance"].(float64), c.want.Figures["expected_by_chance"].(float64)
		if math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: %v are expected by chance, want %v", name, got, want)
		}
		f.Figures["expected_by_chance"] = want
		if !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
	house := &Case{Output: &Output{Meta: map[string]string{"tier": anonymize.Internal}}}
	if f := times(t.Context(), house); !reflect.DeepEqual(f, skipped("it is of tier partner: tier internal keeps exact times, and says so")) {
		t.Errorf("in the house: %+v", f)
	}
}
