package audit

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
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
		"none":                               {source, trace.Meta{}, release(12, 0, 0), passed(fig(12, 0, expected(12)), "instants of the source do not come out, and no times lie near them")},
		"three of them, which may be chance": {source, trace.Meta{}, release(12, 0, 3), passed(fig(12, 3, expected(12)), "instants of the source do not come out, and no times lie near them")},
		"four of them": {source, trace.Meta{}, release(12, 0, 4), failed(fig(12, 4,
			expected(12)), "4 instants of 12 equal the source's to the nanosecond")},
		"the first rows were left out": {source, trace.Meta{}, release(12, 6, 9), failed(fig(12, 9,
			expected(12)), "9 instants of 12 equal the source's to the nanosecond")},
		"fifteen of them were left out": {source, trace.Meta{}, release(12, 15, 4), failed(fig(12, 4,
			expected(12)), "4 instants of 12 equal the source's to the nanosecond")},
		"more than that": {source[:20], trace.Meta{}, release(12, 16, 3), passed(fig(12, 0, expected(12)),
			"instants of the source do not come out, and no times lie near them")},
		"nine rows": {source, trace.Meta{}, release(9, 0, 8), inconclusive(fig(9, 8, expected(9)), "9 rows "+
			"are too few to tell times by")},
		"ten rows": {source, trace.Meta{}, release(10, 0, 9), failed(fig(10, 9,
			expected(10)), "9 instants of 10 equal the source's to the nanosecond")},
		"twelve, of which chance explains 0.95": {dense, trace.Meta{Capture: declared}, denseRelease(12),
			passed(fig(95, 12, 0.95), "instants of the source do not come out, and no times lie near them")},
		"thirteen, of which chance explains 0.95": {dense, trace.Meta{Capture: declared}, denseRelease(13),
			failed(fig(95, 13, 0.95), "13 instants of 95 equal the source's to the nanosecond")},
		"one row at 0": {[]int64{0}, trace.Meta{}, release(12, 0, 0), passed(fig(12, 0, 12), "instants of the source do not come out, and no times lie near them")},
	} {
		c.meta.Tier = anonymize.Internal
		slices.Sort(c.out)
		f := times(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Partner}, arriving(c.out...)...), Internal: linkTrace(t, c.meta, arriving(c.of...))})
		got, want := f.Figures["expected_by_chance"].(float64), c.want.Figures["expected_by_chance"].(float64)
		if math.Abs(got-want) > 1e-12*want {
			t.Errorf("%s: %v are expected by chance, want %v", name, got, want)
		}
		f.Figures["expected_by_chance"] = want
		delete(f.Figures, "nearest") // TestTimesNearTheSource
		if !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, want %+v", name, f, c.want)
		}
	}
	house := &Case{Output: &Output{Meta: map[string]string{"tier": anonymize.Internal}}}
	if f := times(t.Context(), house); !reflect.DeepEqual(f, skipped("it is of tiers partner and public: tier internal keeps exact times, and says so")) {
		t.Errorf("in the house: %+v", f)
	}
}

// A release whose times lie near those of its source is caught, whatever was kept: arrivals
// but for 2 ms, pauses between requests, pauses between turns of a session. Honest
// releases of sources with coarse and fine clocks, dense and sparse, are not.
func TestTimesNearTheSource(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 17))
	jitter := func() int64 { return rng.Int64N(4e6) - 2e6 }
	shift := func(rows []trace.Request, by int64) {
		for i := range rows {
			rows[i].ArrivalNS += by
		}
	}
	for _, tick := range []int64{1, 1e6, 1e9, 3e9} { // of the source's clock
		for _, mean := range []float64{0.05, 2} { // seconds between requests
			for _, meta := range []trace.Meta{{}, {Capture: trace.RelativeCapture(0, 2*time.Hour)}} {
				var rows []trace.Request
				at := 0.0
				for i := range int64(700) {
					if at += rng.ExpFloat64() * mean; i == 0 && !meta.Capture.Declared() {
						at = 0
					}
					rows = append(rows, trace.Request{ArrivalNS: int64(at*1e9) / tick * tick, InputTokens: 40, OutputTokens: trace.Ptr[int32](20), User: trace.Ptr(i % 30), Session: trace.Ptr(i % 80)})
				}
				meta.Tier, meta.Sessions = anonymize.Internal, "source"
				src := linkTrace(t, meta, rows)
				for name, bug := range map[string]func([]trace.Request){
					"":            nil,
					"within 2 ms": func(out []trace.Request) { copyTimes(out, rows, jitter) },
					"pauses are kept": func(out []trace.Request) {
						copyTimes(out, rows, func() int64 { return 0 })
						shift(out, 123_456_789_012)
					},
					"pauses of turns": func(out []trace.Request) {
						begin := map[int64]int64{}
						copyTimes(out, rows, func() int64 { return 0 })
						for i := range out {
							s := *out[i].Session
							if begin[s] == 0 {
								begin[s] = 1 + rng.Int64N(60e9)
							}
							out[i].ArrivalNS += begin[s] + jitter()/1000
						}
						slices.SortFunc(out, func(a, b trace.Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
					},
				} {
					out := make([]trace.Request, len(rows))
					for i := range out {
						out[i] = trace.Request{ArrivalNS: rng.Int64N(int64(at * 1e9)), Session: trace.Ptr(int64(i % 80))}
					}
					slices.SortFunc(out, func(a, b trace.Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
					if bug != nil {
						bug(out)
					}
					f := times(t.Context(), &Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Partner}, out...), Internal: src})
					where := fmt.Sprintf("%s, ticks of %v, every %v s, %v: %s: %s %v", name, time.Duration(tick), mean, meta.Capture.Declared(), f.Status, f.Why, f.Figures)
					switch {
					case name == "" && f.Status != Pass:
						t.Error(where)
					case name == "pauses are kept" && mean < 1, name == "pauses of turns" && mean < 1 && tick == 1e6:
						// Most pauses are shorter than a quantum; pauses of turns are about one to a millisecond.
					case name != "" && f.Status != Fail:
						t.Error(where)
					}
				}
			}
		}
	}
}

// copyTimes gives rows the times and sessions of those of the source, moved a little.
func copyTimes(out, source []trace.Request, jitter func() int64) {
	for i := range out {
		out[i].ArrivalNS, out[i].Session = max(0, source[i].ArrivalNS+jitter()), source[i].Session
	}
	slices.SortStableFunc(out, func(a, b trace.Request) int { return cmp.Compare(a.ArrivalNS, b.ArrivalNS) })
}
