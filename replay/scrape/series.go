package scrape

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Values of [Series].Kind.
const (
	Counter = "counter" // grows, until its server starts anew
	Gauge   = "gauge"
)

// A Series is one line of values over time.
type Series struct {
	ID     int    // dense, from 0, in the order in which they were first seen
	Target string // name of the target
	Metric string // name of the values, with _sum, _count or _bucket of a histogram
	Kind   string // Counter or Gauge
	// Labels are those of the allow-list as k=v, sorted and with commas between
	// them; further "series" numbers those that would otherwise be the same.
	Labels string
}

// Bucket says that the series is one of the buckets of a histogram.
func (s *Series) Bucket() bool { return strings.HasSuffix(s.Metric, "_bucket") }

// A Sample is one value of a series.
type Sample struct {
	At     time.Time // of the local clock
	Series *Series
	Value  float64 // finite
}

// keptLabels are the names of labels whose values are kept. None of them names a
// machine, a person or an address; any other is dropped.
var keptLabels = []string{
	"block_size", "cache_source", "device", "dp_rank", "enable_block_reuse", "enable_prefix_caching",
	"engine", "engine_type",
	"finished_reason", "gpu", "is_streaming", "kv_cache_size_tokens", "le", "mode", "modelName", "model_name",
	"moe_ep_rank", "num_gpu_blocks", "num_pages", "page_size", "position", "pp_rank", "priority", "quantile",
	"token_position", "tp_rank", "type",
}

// A label is one of a point.
type label struct{ name, value string }

// A point is a value as it was decoded, with all of its labels.
type point struct {
	metric, kind string
	labels       []label
	value        float64
}

// maxLabel is the longest value of a label that is kept.
const maxLabel = 96

// clean keeps letters, digits and some signs of at most limit bytes of s.
func clean(s string, limit int) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./:+ ()", r):
			return r
		}
		return '_'
	}, s[:min(len(s), limit)])
}

// A table knows the series that were seen, up to a limit.
type table struct {
	limit int

	mu      sync.Mutex
	known   map[string]*Series
	shown   map[string]int // how many look the same
	ids     int
	dropped int64 // samples
}

func newTable(limit int) *table {
	return &table{limit: limit, known: map[string]*Series{}, shown: map[string]int{}}
}

// samples gives the points of one answer their series. Those that are no finite
// number are left out: most are means of nothing yet.
func (t *table) samples(target string, at time.Time, points []point) (out []Sample) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range points {
		p := &points[i]
		if math.IsNaN(p.value) || math.IsInf(p.value, 0) {
			continue
		}
		if s := t.series(target, p); s != nil {
			out = append(out, Sample{at, s, p.value})
		} else {
			t.dropped++
		}
	}
	return out
}

// series returns the series of a point, or nil when it is a new one beyond the limit.
// All labels of a point tell its series from others, those too that are dropped; they
// stay in memory.
func (t *table) series(target string, p *point) *Series {
	slices.SortFunc(p.labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
	var identity strings.Builder
	identity.WriteString(target + "\xff" + p.metric)
	for _, l := range p.labels {
		identity.WriteString("\xff" + l.name + "\xfe" + l.value)
	}
	key := identity.String()
	if s := t.known[key]; s != nil {
		return s
	}
	if t.ids >= t.limit {
		return nil
	}
	var shown []string // the values lose what the form k=v,k=v has no place for
	for _, l := range p.labels {
		if slices.Contains(keptLabels, l.name) && l.value != "" {
			shown = append(shown, l.name+"="+clean(l.value, maxLabel))
		}
	}
	slices.Sort(shown)
	s := &Series{ID: t.ids, Target: target, Metric: clean(p.metric, 128), Kind: p.kind,
		Labels: strings.Join(shown, ",")}
	look := target + "\xff" + p.metric + "\xff" + s.Labels
	if t.shown[look]++; t.shown[look] > 1 {
		number := "series=" + strconv.Itoa(t.shown[look])
		if s.Labels != "" {
			number = "," + number
		}
		s.Labels += number
	}
	t.known[key] = s
	t.ids++
	return s
}

// kindOf guesses the kind of a metric that does not state it, by the endings
// that Prometheus' conventions give counters.
func kindOf(metric string) string {
	for _, end := range []string{"_total", "_sum", "_count", "_bucket"} {
		if strings.HasSuffix(metric, end) {
			return Counter
		}
	}
	return Gauge
}
