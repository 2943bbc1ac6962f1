package profile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"reprise/trace"
)

// The edges of the buckets are public and the same for every histogram, so
// histograms of any traces merge by adding counts. Values below 128 have a
// bucket each; from there on every power of two is cut into 64 buckets of equal
// width. The middle of a bucket is then within 0.8 % of every value in it.
// HdrHistogram cuts in the same way.
const (
	linearBits = 7
	perOctave  = 1 << (linearBits - 1)
)

// BucketError is how far the middle of a bucket may be from a value in it, as a share of the
// value: half the width of a bucket over its lower edge.
const BucketError = 1.0 / 2 / perOctave

// bucketOf returns the bucket of v, which is not negative.
func bucketOf(v int64) int {
	if v < 1<<linearBits {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - linearBits
	return shift*perOctave + int(v>>shift)
}

// bucketEdges returns the edges of bucket i: it holds lo <= v < hi. The last
// bucket ends at the largest int64 and holds that as well.
func bucketEdges(i int) (lo, hi int64) {
	if i < 1<<linearBits {
		return int64(i), int64(i) + 1
	}
	shift := i/perOctave - 1
	lo = int64(i-shift*perOctave) << shift
	if hi = lo + 1<<shift; hi < lo {
		hi = math.MaxInt64
	}
	return lo, hi
}

// A Bucket counts the values v with Lo <= v < Hi.
type Bucket struct{ Lo, Hi, Count int64 }

// A Histogram counts values from 0 up in log-linear buckets, to a relative
// error below 1 %. The zero Histogram is empty.
type Histogram struct {
	counts []int64
	total  int64
}

// Add counts v, n times. Negative values and counts below 1 are not counted.
func (h *Histogram) Add(v, n int64) {
	if v < 0 || n < 1 {
		return
	}
	i := bucketOf(v)
	h.grow(i + 1)
	h.counts[i] += n
	h.total += n
}

func (h *Histogram) grow(n int) {
	if n > len(h.counts) {
		h.counts = append(h.counts, make([]int64, n-len(h.counts))...)
	}
}

// Merge adds the counts of o. It is exact: merged parts equal the whole.
func (h *Histogram) Merge(o *Histogram) {
	h.grow(len(o.counts))
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// Count returns how many values were counted.
func (h *Histogram) Count() int64 { return h.total }

// Buckets returns the buckets that are not empty, in ascending order.
func (h *Histogram) Buckets() []Bucket {
	var list []Bucket
	for i, n := range h.counts {
		if n != 0 {
			lo, hi := bucketEdges(i)
			list = append(list, Bucket{lo, hi, n})
		}
	}
	return list
}

// A HistogramRow is one bucket of a histogram as a row of Parquet. Buckets
// without values have no row.
type HistogramRow struct {
	trace.Row `parquet:"-" json:"-"`
	Metric    string `parquet:"metric,dict" json:"metric"`     // one of Metrics, its unit last
	Category  string `parquet:"category,dict" json:"category"` // a reuse category, or empty for all requests
	Lo        int64  `parquet:"lo" json:"lo"`                  // first value of the bucket
	Hi        int64  `parquet:"hi" json:"hi"`                  // first value above it
	Count     int64  `parquet:"count" json:"count"`
}

// The metrics that have histograms.
const (
	MetricInput         = "input_tokens"
	MetricOutput        = "output_tokens"
	MetricInterArrival  = "inter_arrival_ns"      // from the request before; all requests only
	metricThink         = "think_ns"              // human time, as the source tells
	metricTool          = "tool_ns"               // tool time, as the source tells
	metricTurnGap       = "turn_gap_ns"           // from arrival to arrival, see Sessions
	MetricTurns         = "turns"                 // requests of a session; all requests only
	MetricHitBlocks     = "hit_blocks"            // leading known blocks of a request
	MetricNewBlocks     = "new_blocks"            // its other blocks
	MetricReuseDistance = "reuse_distance_blocks" // of each hit block: the LRU capacity that holds it
	metricReuseTime     = "reuse_time_ns"         // of each hit block: time since it was last touched
	// leading blocks that more than half of the requests carry, for each of these; all requests only
	MetricCommonBlocks = "common_blocks"
)

// Metrics lists the metrics in the order in which their rows come.
func Metrics() []string {
	return []string{MetricInput, MetricOutput, MetricInterArrival, metricThink, metricTool, metricTurnGap,
		MetricTurns, MetricHitBlocks, MetricNewBlocks, MetricReuseDistance, metricReuseTime, MetricCommonBlocks}
}

type histogramKey struct{ metric, category string }

// HistogramSet holds one histogram for each metric and category.
type HistogramSet struct{ of map[histogramKey]*Histogram }

// Get returns the histogram of a metric and a category, empty at first.
func (s *HistogramSet) Get(metric, category string) *Histogram {
	key := histogramKey{metric, category}
	h := s.of[key]
	if h == nil {
		if s.of == nil {
			s.of = map[histogramKey]*Histogram{}
		}
		h = &Histogram{}
		s.of[key] = h
	}
	return h
}

// Merge adds all counts of o.
func (s *HistogramSet) Merge(o *HistogramSet) {
	for key, h := range o.of {
		s.Get(key.metric, key.category).Merge(h)
	}
}

// Rows returns the buckets that are not empty: by metric in the order of
// [Metrics], all requests before the categories in theirs, then by value.
func (s *HistogramSet) Rows() []HistogramRow {
	metrics, categories := Metrics(), trace.AllCategories()
	keys := slices.SortedFunc(maps.Keys(s.of), func(a, b histogramKey) int {
		return cmp.Or(
			cmp.Compare(slices.Index(metrics, a.metric), slices.Index(metrics, b.metric)),
			cmp.Compare(slices.Index(categories, a.category), slices.Index(categories, b.category)))
	})
	var rows []HistogramRow
	for _, key := range keys {
		for _, b := range s.of[key].Buckets() {
			rows = append(rows, HistogramRow{Metric: key.metric, Category: key.category, Lo: b.Lo,
				Hi: b.Hi, Count: b.Count})
		}
	}
	return rows
}

// AddRow adds one row read back. A row of another metric or category, with
// edges that are not a bucket's, or with a count below 1 is an error.
func (s *HistogramSet) AddRow(r HistogramRow) error {
	if !slices.Contains(Metrics(), r.Metric) {
		return errors.New("histogram row: its metric is not one of " + strings.Join(Metrics(), ", "))
	}
	if r.Category != "" && !slices.Contains(trace.AllCategories(), r.Category) {
		return fmt.Errorf("histogram row of %s: its category is not one of %s", r.Metric,
			strings.Join(trace.Categories(), ", "))
	}
	if r.Count < 1 {
		return fmt.Errorf("histogram row of %s: its count is below 1", r.Metric)
	}
	if r.Lo < 0 {
		return fmt.Errorf("histogram row of %s: its lower edge is below 0", r.Metric)
	}
	if lo, hi := bucketEdges(bucketOf(r.Lo)); lo != r.Lo || hi != r.Hi {
		return fmt.Errorf("histogram row of %s: its edges do not fit a log-linear bucket", r.Metric)
	}
	h := s.Get(r.Metric, r.Category)
	if h.total > math.MaxInt64-r.Count {
		return fmt.Errorf("histogram row of %s: the counts add up to more than an int64 holds", r.Metric)
	}
	h.Add(r.Lo, r.Count)
	return nil
}
