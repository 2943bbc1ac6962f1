package profile_test

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"reprise/trace"
	"reprise/trace/profile"
)

// Buckets tile the values without gap or overlap, and each is narrow enough.
func TestBucketEdges(t *testing.T) {
	values := []int64{0, 1, 127, 128, 129, 255, 256, 1<<40 - 1, 1 << 40, 1<<62 - 1, 1 << 62, math.MaxInt64}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		values = append(values, rng.Int64()>>rng.IntN(63))
	}
	for _, v := range values {
		var h profile.Histogram
		h.Add(v, 1)
		b := h.Buckets()[0]
		if v < b.Lo || v >= b.Hi && v != math.MaxInt64 {
			t.Fatalf("%d is in the bucket from %d to %d", v, b.Lo, b.Hi)
		}
		middle := float64(b.Lo)/2 + float64(b.Hi-1)/2
		if e := math.Abs(middle-float64(v)) / math.Max(float64(v), 1); e > 0.01 {
			t.Fatalf("the middle of the bucket of %d is off by %v", v, e)
		}
		for _, next := range []int64{b.Lo - 1, b.Hi} {
			if next < 0 || next == math.MaxInt64 {
				continue
			}
			h.Add(next, 1)
		}
		list := h.Buckets()
		for i := 1; i < len(list); i++ {
			if list[i-1].Hi != list[i].Lo {
				t.Fatalf("buckets end at %d and begin at %d", list[i-1].Hi, list[i].Lo)
			}
		}
	}
}

func TestHistogramIgnoresImpossible(t *testing.T) {
	var h profile.Histogram
	h.Add(-1, 1)
	h.Add(1, 0)
	h.Add(1, -1)
	if h.Count() != 0 || h.Buckets() != nil {
		t.Errorf("there are %d values in %v", h.Count(), h.Buckets())
	}
}

// histogramsOf profiles rows and reads the histograms back.
func histogramsOf(t *testing.T, rows []trace.Request, meta trace.Meta) *profile.HistogramSet {
	t.Helper()
	return readBack(t, profileOf(t, rows, meta, profile.ProfilerOptions{}).Histograms())
}

// readBack writes rows to Parquet and reads a set from them.
func readBack(t *testing.T, rows []profile.HistogramRow) *profile.HistogramSet {
	t.Helper()
	var file bytes.Buffer
	w := trace.NewRowsWriter[profile.HistogramRow](&file, nil)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewRowsReader[profile.HistogramRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var set profile.HistogramSet
	if err := trace.Each(r, func(_ int64, h *profile.HistogramRow) error { return set.AddRow(*h) }); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if got := set.Rows(); !reflect.DeepEqual(got, rows) {
		t.Fatal("the rows do not come back as they were")
	}
	return &set
}

// Lengths merge exactly whatever the parts; times between requests and reuse do
// not, since they look across the cut, and are recomputed from merged rows.
func TestMergedPartsEqualTheWhole(t *testing.T) {
	s := shapes["system prompt"]
	rows := generate(101, 400, s)
	annotate(rows, s.block, profile.Options{})
	meta := trace.Meta{BlockSize: s.block, Sessions: "inferred"}
	whole := histogramsOf(t, rows, meta)
	rng := rand.New(rand.NewPCG(2, 2))
	for range 5 {
		cut := rng.IntN(len(rows))
		merged := histogramsOf(t, rows[cut:], meta)
		merged.Merge(histogramsOf(t, rows[:cut], meta))
		for _, metric := range []string{profile.MetricInput, profile.MetricOutput} {
			for _, c := range append(trace.Categories(), "") {
				if got, want := merged.Get(metric, c).Buckets(), whole.Get(metric, c).Buckets(); !reflect.DeepEqual(got, want) {
					t.Errorf("cut at %d: %s of %q does not merge", cut, metric, c)
				}
			}
		}
	}
	var a, b, all profile.Histogram
	for range 2000 {
		v := rng.Int64() >> rng.IntN(63)
		all.Add(v, 1)
		if rng.IntN(2) == 0 {
			a.Add(v, 1)
		} else {
			b.Add(v, 1)
		}
	}
	a.Merge(&b)
	if !reflect.DeepEqual(a.Buckets(), all.Buckets()) || a.Count() != all.Count() {
		t.Error("merged parts are not the whole")
	}
}

// The categories of a metric add up to all requests when every row has one.
func TestCategoriesAddUp(t *testing.T) {
	s := shapes["system prompt"]
	rows := generate(102, 400, s)
	annotate(rows, s.block, profile.Options{})
	set := histogramsOf(t, rows, trace.Meta{BlockSize: s.block, Sessions: "inferred"})
	for _, metric := range profile.Metrics() {
		var sum profile.Histogram
		for _, c := range trace.Categories() {
			sum.Merge(set.Get(metric, c))
		}
		all := set.Get(metric, "")
		switch metric {
		case profile.MetricThink, profile.MetricTool:
			if all.Count() != 0 {
				t.Errorf("%s has %d values of a trace that has none", metric, all.Count())
			}
		case profile.MetricInterArrival, profile.MetricTurns, profile.MetricCommonBlocks:
			if sum.Count() != 0 || all.Count() == 0 {
				t.Errorf("%s has %d values in all and %d in categories", metric, all.Count(), sum.Count())
			}
		default:
			if !reflect.DeepEqual(sum.Buckets(), all.Buckets()) || all.Count() == 0 {
				t.Errorf("the categories of %s do not add up", metric)
			}
		}
	}
}

func TestAddRowRefuses(t *testing.T) {
	good := profile.HistogramRow{Metric: profile.MetricInput, Category: trace.Cold, Lo: 128, Hi: 130, Count: 3}
	tests := map[string]func(*profile.HistogramRow){
		"metric":     func(r *profile.HistogramRow) { r.Metric = "secret" },
		"category":   func(r *profile.HistogramRow) { r.Category = "secret" },
		"count":      func(r *profile.HistogramRow) { r.Count = 0 },
		"overflow":   func(r *profile.HistogramRow) { r.Count = math.MaxInt64 },
		"low edge":   func(r *profile.HistogramRow) { r.Lo = 129 },
		"high edge":  func(r *profile.HistogramRow) { r.Hi = 129 },
		"below zero": func(r *profile.HistogramRow) { r.Lo = -1 },
	}
	for name, spoil := range tests {
		var set profile.HistogramSet
		if err := set.AddRow(good); err != nil {
			t.Fatal(err)
		}
		bad := good
		spoil(&bad)
		err := set.AddRow(bad)
		if err == nil {
			t.Errorf("%s: a spoilt row was taken", name)
		} else if bytes.Contains([]byte(err.Error()), []byte("secret")) {
			t.Errorf("%s: the error quotes its input: %v", name, err)
		}
	}
}

// FuzzAddRow holds that a row is refused, or comes back as it was.
func FuzzAddRow(f *testing.F) {
	f.Add("input_tokens", "cold", int64(128), int64(130), int64(1))
	f.Add("turns", "", int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, metric, category string, lo, hi, count int64) {
		row := profile.HistogramRow{Metric: metric, Category: category, Lo: lo, Hi: hi, Count: count}
		var set profile.HistogramSet
		if set.AddRow(row) != nil {
			return
		}
		if got := set.Rows(); len(got) != 1 || got[0] != row {
			t.Errorf("%+v came back as %+v", row, got)
		}
	})
}
