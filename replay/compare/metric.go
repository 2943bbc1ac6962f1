package compare

import (
	"math"

	"reprise/replay/report"
)

// A compared metric is a figure of a run by which two servers are compared.
type metric struct {
	name  string // also in --primary: p99_ttft
	label string // for people: p99 TTFT
	unit  string
	// The better one is higher: throughput and goodput.
	higher bool
	// Shares may be zero, and are compared by their difference; everything else by
	// its ratio.
	share bool
	of    func(*report.Summary) *float64
	// Which of the resampled distributions it is of, and at which quantile; NaN is
	// its mean, and a distribution below 0 none.
	spread   int
	quantile float64
}

// Distributions that are resampled, see [Clusters].
const (
	spreadTTFT = iota
	spreadTPOT
	spreadITL
	spreadE2E
	spreadTTFTPairs // of single rows: replayed over recorded, in parts per million
	spreadE2EPairs
	spreadSession       // of sessions: from the first due time to the last answer
	spreadSessionServer // the part of that along the critical path that the server had
	spreads
	noSpread = -1
)

// Latencies that are compared. From due, so that what a request waited in the
// client is in them.
var latencies = [...]struct {
	name, label string
	of          func(*report.Summary) *report.Stat
	spread      int
}{
	{"ttft", "TTFT", func(s *report.Summary) *report.Stat { return &s.Latency.FromDue.TTFT }, spreadTTFT},
	{"tpot", "TPOT", func(s *report.Summary) *report.Stat { return &s.Latency.TPOT }, spreadTPOT},
	{"itl", "ITL", func(s *report.Summary) *report.Stat { return &s.Latency.ITLChunk }, spreadITL},
	{"e2e", "E2E", func(s *report.Summary) *report.Stat { return &s.Latency.FromDue.E2E }, spreadE2E},
	{sessionTime, "session time", func(s *report.Summary) *report.Stat {
		if s.Sessions == nil {
			return &report.Stat{}
		}
		return &s.Sessions.Completion
	}, spreadSession},
}

// sessionTime is the name of the time of sessions, as contracts have it.
const sessionTime = "session_time"

// Statistics of them.
var statistics = [...]struct {
	name     string
	of       func(*report.Stat) *float64
	quantile float64
	usual    bool // compared unless another is asked for
}{
	{"p50", func(s *report.Stat) *float64 { return s.P50 }, 0.5, true},
	{"p90", func(s *report.Stat) *float64 { return s.P90 }, 0.9, false},
	{"p95", func(s *report.Stat) *float64 { return s.P95 }, 0.95, true},
	{"p99", func(s *report.Stat) *float64 { return s.P99 }, 0.99, true},
	{"mean", func(s *report.Stat) *float64 { return s.Mean }, math.NaN(), true},
}

// DefaultPrimary is the metric that decides: the tail of the time to the first
// token is where queueing shows first and what an SLO is about, and from schedule it
// has no coordinated omission.
const DefaultPrimary = "p99_ttft"

// PrimaryMetrics are the names of what may decide a comparison.
func PrimaryMetrics() (names []string) {
	for _, m := range metricsWith("") {
		names = append(names, m.name)
	}
	return names
}

// metricsWith are those that are usual and the primary one, or all of them
// when primary is empty.
func metricsWith(primary string) (all []metric) {
	for _, l := range latencies {
		for _, st := range statistics {
			name := st.name + "_" + l.name
			if !st.usual && primary != "" && primary != name {
				continue
			}
			all = append(all, metric{name: name, label: st.name + " " + l.label, unit: "ms", spread: l.spread, quantile: st.quantile,
				of: func(s *report.Summary) *float64 { return st.of(l.of(s)) }})
		}
	}
	return append(all,
		metric{name: "prompt_tokens_per_s", label: "prompt tok/s", unit: "1/s", higher: true, spread: noSpread,
			of: func(s *report.Summary) *float64 { return s.Throughput.PromptTokensPerS }},
		metric{name: "output_tokens_per_s", label: "output tok/s", unit: "1/s", higher: true, spread: noSpread,
			of: func(s *report.Summary) *float64 { return s.Throughput.OutputTokensPerS }},
		metric{name: "mean_session_server_time", label: "mean session server time", unit: "ms", spread: spreadSessionServer, quantile: math.NaN(),
			of: ofSessions(func(o *report.Sessions) *float64 {
				if o.Path == nil || o.Path.Server.MeanS == nil {
					return nil
				}
				return report.Rounded(*o.Path.Server.MeanS*1000, 1e9)
			})},
		metric{name: "sessions_per_s", label: "sessions/s", unit: "1/s", higher: true, spread: noSpread,
			of: ofSessions(func(o *report.Sessions) *float64 { return o.PerS })},
		metric{name: "session_success_share", label: "session success share", unit: "share", share: true, higher: true, spread: noSpread,
			of: ofSessions(func(o *report.Sessions) *float64 { return o.SuccessShare })},
		metric{name: errorShare, label: "error share", unit: "share", share: true, spread: noSpread,
			of: func(s *report.Summary) *float64 { return s.Requests.ErrorShare }},
		metric{name: "goodput_share", label: "goodput share", unit: "share", share: true, higher: true, spread: noSpread,
			of: func(s *report.Summary) *float64 {
				if s.Goodput == nil {
					return nil
				}
				return s.Goodput.FromDue.Share
			}})
}

// ofSessions is a figure by session; nil of a run without sessions.
func ofSessions(of func(*report.Sessions) *float64) func(*report.Summary) *float64 {
	return func(s *report.Summary) *float64 {
		if s.Sessions == nil {
			return nil
		}
		return of(s.Sessions)
	}
}

// difference is what is tested of a pair: the logarithm of the ratio, since a
// change makes latencies longer by a factor, and rounds under more load must not
// weigh more; of shares, B − A. It is not ok where one of them is missing, or is
// not above zero and has no ratio.
func (m *metric) difference(a, b *float64) (d float64, ok bool) {
	switch {
	case a == nil || b == nil:
		return 0, false
	case m.share:
		return *b - *a, true
	}
	return math.Log(*b / *a), *a > 0 && *b > 0
}

// change turns a difference into what is shown: of a ratio, the share by which B
// is above A.
func (m *metric) change(difference float64) float64 {
	if m.share {
		return difference
	}
	return math.Expm1(difference)
}
