package compare

import (
	"math"
	"slices"

	"reprise/replay/figure"
	"reprise/replay/report"
)

// A compared metric is a figure of a run by which two servers are compared.
type metric struct {
	figure.Figure
	// The ratio of single rows has a name, a label and a unit of its own.
	name, label, unit string

	spread int // which of the resampled distributions it is of, or noSpread
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

// Latencies that are always compared. They count from due, so that what a request
// waited in the client is in them.
var latencies = []struct {
	of     *figure.Subject
	spread int
}{
	{figure.TTFT, spreadTTFT}, {figure.TPOT, spreadTPOT}, {figure.ITL, spreadITL}, {figure.E2E, spreadE2E},
	{figure.SessionTime, spreadSession},
}

// Statistics of them, and other figures that are always compared.
var (
	usualStatistics = []figure.Statistic{figure.P50, figure.P95, figure.P99, figure.Mean}
	statistics      = []figure.Statistic{figure.P50, figure.P90, figure.P95, figure.P99, figure.Mean}
	usualFigures    = []figure.Figure{
		figure.Of(0, figure.PromptRate), figure.Of(0, figure.OutputRate), figure.Of(figure.Mean, figure.SessionServerTime),
		figure.Of(0, figure.SessionRate), figure.Of(0, figure.SessionSuccess), figure.Of(0, figure.ErrorRate),
		figure.Of(0, figure.Goodput),
	}
)

// WholePrimary is the metric that decides rounds that are made without pilot rounds to choose one: it has every phase
// of a request in it, and a value after any number of requests.
const WholePrimary = "mean_e2e"

// DefaultPrimary is the metric that decides: the tail of the time to the first
// token is where queueing shows first and what an SLO is about, and from schedule it
// has no coordinated omission.
const DefaultPrimary = "p99_ttft"

// comparable tells whether a figure may decide a comparison: a summary has it, and it is better high or low.
func comparable(f figure.Figure) bool { return report.Summarised(f) && f.Better != figure.Neither }

// ParsePrimary reads the name of a metric that decides a comparison, in any spelling, and returns the one that
// is printed.
func ParsePrimary(text string) (name string, err error) {
	f, err := figure.Parse(text, comparable)
	return f.String(), err
}

// PrimaryMetrics are names of the metrics that may decide a comparison.
func PrimaryMetrics() []string { return figure.Offered(comparable) }

// metricsWith are the metrics that are always compared, and the primary one where that is not among them.
func metricsWith(primary string) (all []metric) {
	for _, l := range latencies {
		for _, statistic := range usualStatistics {
			all = append(all, metricOf(figure.Of(statistic, l.of)))
		}
	}
	for _, f := range usualFigures {
		all = append(all, metricOf(f))
	}
	if f, err := figure.Parse(primary, comparable); err == nil &&
		!slices.ContainsFunc(all, func(m metric) bool { return m.Figure == f }) {
		all = append(all, metricOf(f))
	}
	return all
}

// metricOf is a figure as it is compared.
func metricOf(f figure.Figure) metric {
	m := metric{Figure: f, name: f.String(), label: f.Title(), unit: string(f.Unit), spread: noSpread}
	if !slices.Contains(statistics, f.Statistic) {
		return m
	}
	for _, l := range latencies {
		if l.of == f.Subject {
			m.spread = l.spread
		}
	}
	if f.Subject == figure.SessionServerTime {
		m.spread = spreadSessionServer
	}
	return m
}

// share says that the metric may be zero, so that it is compared by its difference and not by its ratio.
func (m *metric) share() bool { return m.Subject != nil && m.Unit == figure.Share }

// difference is what is tested of a pair: the logarithm of the ratio, since a
// change makes latencies longer by a factor, and rounds under more load must not
// weigh more; of shares, B − A. It is not ok where one of them is missing, or is
// not above zero and has no ratio.
func (m *metric) difference(a, b *float64) (d float64, ok bool) {
	switch {
	case a == nil || b == nil:
		return 0, false
	case m.share():
		return *b - *a, true
	}
	return math.Log(*b / *a), *a > 0 && *b > 0
}

// change turns a difference into what is shown: of a ratio, the share by which B
// is above A.
func (m *metric) change(difference float64) float64 {
	if m.share() {
		return difference
	}
	return math.Expm1(difference)
}
