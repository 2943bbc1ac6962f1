package result

import (
	"cmp"
	"math"
	"slices"

	"reprise/replay/scrape"
	"reprise/trace"
)

// Server is what was measured at the servers during a run. All of it is over the
// time of the run's [Window], and the values themselves are in the metrics file.
type Server struct {
	FromNS  int64          `json:"from_ns"` // the window
	ToNS    int64          `json:"to_ns"`
	EveryNS int64          `json:"every_ns,omitempty"` // from one scrape to the next
	Samples int64          `json:"samples"`            // in the metrics file
	Metrics []ServerMetric `json:"metrics"`            // one for each series, by target, name and labels; no buckets
	Missing int            `json:"unlisted,omitempty"` // further series, beyond the first thousand

	Scraped    *scrape.Stats           `json:"scraped,omitempty"`
	Prometheus *scrape.PrometheusStats `json:"prometheus,omitempty"`
}

// A ServerMetric sums a series up.
//
// Of a gauge all is over the samples in the window. A counter counts from the
// last sample before the window, or the first of all, to the last in it: the
// scrapes before and after the run are among them, so that nothing of an
// unwindowed run is left out. It has no minimum, mean and maximum.
type ServerMetric struct {
	Target  string   `json:"target"`
	Metric  string   `json:"metric"`
	Labels  string   `json:"labels,omitempty"`
	Kind    string   `json:"kind"`
	Samples int64    `json:"samples"`
	First   *float64 `json:"first"`
	Last    *float64 `json:"last"`
	// last − first; of a counter what it grew by, also where its server started anew, without what it did while the run
	// was interrupted
	Delta  *float64 `json:"delta"`
	Min    *float64 `json:"min"`
	Mean   *float64 `json:"mean"`
	Max    *float64 `json:"max"`
	Resets int      `json:"resets,omitempty"` // of a counter: how often it fell
}

// listedMetrics bounds the Metrics that a Run holds.
const listedMetrics = 1000

// Shorten drops all Metrics but the first thousand, and counts those that it drops.
func (s *Server) Shorten() {
	if n := len(s.Metrics) - listedMetrics; n > 0 {
		s.Missing, s.Metrics = n, s.Metrics[:listedMetrics]
	}
}

// Counter is the Kind of a [Metric] that only grows, until its server starts
// anew; any other is a gauge.
const Counter = scrape.Counter

// SummariseMetrics reads metrics once and sums them up over a time in nanoseconds
// since the start of the run: gauges from fromNS to toNS, counters as
// [ServerMetric] says, and to the last of all when whole is set. A series needs about
// 200 bytes.
func SummariseMetrics(rows trace.Reader[Metric], fromNS, toNS int64, whole bool) (*Server, error) {
	out := &Server{FromNS: fromNS, ToNS: toNS, Metrics: []ServerMetric{}}
	type key struct{ target, metric, labels string }
	known := map[key]*metricSum{}
	var order []*metricSum
	err := trace.Each(rows, func(_ int64, m *Metric) error {
		out.Samples++
		if (&scrape.Series{Metric: m.Name}).Bucket() {
			return nil
		}
		k := key{m.Target, m.Name, m.Labels}
		s := known[k]
		if s == nil {
			s = &metricSum{about: ServerMetric{Target: m.Target, Metric: m.Name, Labels: m.Labels, Kind: m.Kind}}
			known[k] = s
			order = append(order, s)
		}
		switch {
		case m.Kind == scrape.Counter:
			s.count(m, fromNS, toNS, whole)
		case m.AtNS >= fromNS && m.AtNS <= toNS: // a gauge
			if s.about.Samples == 0 {
				s.first, s.least, s.most = m.Value, m.Value, m.Value
			}
			s.about.Samples++
			s.last, s.sum = m.Value, s.sum+m.Value
			s.least, s.most = min(s.least, m.Value), max(s.most, m.Value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(order, func(a, b *metricSum) int {
		return cmp.Or(cmp.Compare(a.about.Target, b.about.Target), cmp.Compare(a.about.Metric, b.about.Metric),
			cmp.Compare(a.about.Labels, b.about.Labels))
	})
	for _, s := range order {
		out.Metrics = append(out.Metrics, s.finish())
	}
	return out, nil
}

// A metricSum sums one series up.
type metricSum struct {
	about         ServerMetric
	first, last   float64
	least, most   float64
	sum, increase float64
}

// count takes a value of a counter.
func (s *metricSum) count(m *Metric, from, to int64, whole bool) {
	switch {
	case s.about.Samples == 0 || m.AtNS <= from && !whole:
		s.first, s.last, s.increase, s.about.Samples, s.about.Resets = m.Value, m.Value, 0, 1, 0
		return
	case m.AtNS > to && !whole:
		return
	case m.Value < s.last: // its server started anew, and counts from zero
		s.about.Resets++
		s.increase += m.Value
	default:
		s.increase += m.Value - s.last
	}
	s.last = m.Value
	s.about.Samples++
}

func (s *metricSum) finish() ServerMetric {
	out := s.about
	if out.Samples == 0 {
		return out
	}
	out.First, out.Last = finite(s.first), finite(s.last)
	if out.Kind == scrape.Counter {
		out.Delta = finite(s.increase)
		return out
	}
	out.Delta = finite(s.last - s.first)
	out.Min, out.Mean, out.Max = finite(s.least), finite(s.sum/float64(out.Samples)), finite(s.most)
	return out
}

// finite is null for what JSON cannot hold.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Values of [CacheDiscipline].Asked and Done.
const (
	CacheSalted = "salted" // asked: prompts that no earlier run sent, so that none warmed them; the default
	CacheCold   = "cold"   // asked: the servers empty their caches
	CacheWarm   = "warm"   // asked: all of the workload was seen before
	CacheAsIs   = "as-is"  // asked: leave the caches and the prompts alone

	CacheSalt     = "salt"         // done: the prompts have a salt, see Salt
	CacheNothing  = "nothing"      // done: the caches hold what they held
	CacheReset    = "reset"        // done: the servers emptied them
	CacheNewSeed  = "new-seed"     // done: prompts of a seed that no run had before, which nothing in a cache matches
	CacheWarmPass = "warm-up-pass" // done: the whole workload was played once before
)

// Caches are the values of [CacheDiscipline].Asked.
func Caches() []string { return []string{CacheSalted, CacheCold, CacheWarm, CacheAsIs} }

// CacheDiscipline says what was done to the servers' prefix caches before a run:
// what an earlier run left in them changes every latency.
type CacheDiscipline struct {
	Asked   string `json:"asked"`
	Salt    string `json:"salt,omitempty"` // that the prompts were made with: salt makes them again
	Done    string `json:"done"`
	Call    string `json:"call,omitempty"`    // the path that emptied them, by POST
	Servers int    `json:"servers,omitempty"` // that were called
	// of a run with other prompts: the seed of its arrivals, which stays
	ArrivalSeed  string `json:"arrival_seed,omitempty"`
	WarmRequests int64  `json:"warm_requests,omitempty"`    // sent in the warm-up pass, and not measured
	WarmFailed   int64  `json:"warm_failed,omitempty"`      // of them
	WarmEnded    string `json:"warm_ended_early,omitempty"` // why
}
