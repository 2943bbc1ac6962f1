package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"reprise/replay/contract"
	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// A MetricInterval is the 95 % interval of one figure of a level, from how much parts of its
// runs differ: see [sample.Runs].
type MetricInterval struct {
	Metric   string   `json:"metric"` // such as p99 ttft, or a clause of the contract
	Where    string   `json:"where,omitempty"`
	Unit     string   `json:"unit"` // ms or share
	Measured *float64 `json:"measured"`
	Low      *float64 `json:"low"` // null where there is no interval
	High     *float64 `json:"high"`
	// HalfWidth is half of the width as a share of what was measured, such as 0.1 for ±10 %.
	HalfWidth *float64 `json:"half_width_share"`
	// Resolved tells that there is an interval, as narrow as was asked for.
	Resolved    bool    `json:"resolved"`
	Why         string  `json:"why_not_resolved,omitempty"`
	Values      int64   `json:"values"`
	Independent float64 `json:"independent_values"` // that tell as much
}

// confidence is that of the intervals that are shown.
const confidence = 0.95

// searchConfidence is that at which an outcome counts as sure where the highest load is
// searched for: at several loads, and at each of them more than once.
const searchConfidence = 0.99

// A figureOf is a figure of a level, with its values of all runs.
type figureOf struct {
	metric, where, unit string
	percentile          float64 // 0 is a share of requests: that of values of 0
	flip                bool    // the share is of values of 1
	clause              int     // of the contract; -1 is none
	values              sample.Runs
	thin                int // only each so-many-th value is kept, of gaps

	trees    bool        // its values are of whole session trees, not of requests
	censored bool        // some of them were not over
	beyond   sample.Runs // of a percentile of trees in a clause: 1 for each that is beyond its limit, else 0
}

// A measurement gathers the runs of one level.
type measurement struct {
	terms   *contract.Contract // nil is none
	slo     report.SLO
	figures []*figureOf
	budget  int64 // of units, when runs are added until an interval is narrow; 0 is one run
	runs    int
	values  int64         // requests that were measured
	lasted  time.Duration // of what was measured, all runs together
	takes   time.Duration // a request on average, or a session whose turns wait for each other; of the last run

	bySession bool                 // the load is by session: requests are clustered by session
	trees     int64                // session trees that were measured
	sessions  []report.SessionTime // of the last run
	share     float64              // of its sessions, that these are
	main      *figureOf            // what a precision is of, without a contract
}

// ttftPercentiles are those of every level that have intervals.
var ttftPercentiles = []float64{.5, .95, .99}

func newMeasurement(o *report.Options, bySession bool) *measurement {
	m := &measurement{terms: contract.Of(*o), slo: o.SLO, bySession: bySession}
	for _, p := range ttftPercentiles {
		m.main = &figureOf{metric: fmt.Sprintf("p%g ttft", p*100), unit: "ms", percentile: p, clause: -1, thin: 1}
		m.figures = append(m.figures, m.main)
	}
	if bySession {
		for _, p := range []float64{.5, .95} {
			m.main = &figureOf{metric: fmt.Sprintf("p%g session_time", p*100), unit: "s", percentile: p,
				clause: -1, trees: true}
			m.figures = append(m.figures, m.main)
		}
	}
	if m.terms == nil {
		return m
	}
	for i := range m.terms.Clauses {
		c := &m.terms.Clauses[i]
		p, share := c.Counts()
		f := &figureOf{metric: c.String(), where: c.Scope(), unit: "ms", clause: i, thin: 1}
		if p == 0 && !share && bySession {
			p, share = c.CountsSessions()
			f.trees, f.unit = true, "s"
		}
		if f.percentile = p; p == 0 && !share {
			continue
		}
		if share {
			f.unit, f.flip = "share", !c.Floor()
		}
		m.figures = append(m.figures, f)
	}
	return m
}

// mostValues is how many values of a figure a run keeps. Of more, such as the gaps of a long
// run, it keeps each second, fourth and so on: a systematic sample of them.
const mostValues = 1 << 22

// units is how much was measured: session trees of a load by session, else requests.
func (m *measurement) units() int64 {
	if m.bySession {
		return m.trees
	}
	return m.values
}

// add takes the results of another run of the level.
func (m *measurement) add(run *result.Run, results trace.Reader[result.Result]) error {
	type span struct{ from, to int64 }
	times := report.NewSessionTimes(run)
	spans, last := map[result.SessionKey]*span{}, int64(0)
	kept := make([]keptValues, len(m.figures))
	var scratch []int64

	err := trace.Each(results, func(_ int64, r *result.Result) error {
		key, ok := r.SessionKey()
		if !ok {
			key = result.SessionKey{Session: -1 - r.RowID, Round: r.Round}
		}
		if m.bySession {
			times.Add(r)
		}

		last = max(last, r.DueNS)
		if r.DoneNS != nil {
			of := key
			if run.Timing != result.Causal {
				of = result.SessionKey{Session: -1 - r.RowID, Round: r.Round}
			}
			if s := spans[of]; s == nil {
				spans[of] = &span{r.DueNS, *r.DoneNS}
			} else {
				s.from, s.to = min(s.from, r.DueNS), max(s.to, *r.DoneNS)
			}
		}

		for i, f := range m.figures {
			if f.trees {
				continue
			}
			switch {
			case f.clause >= 0:
				scratch = m.terms.Clauses[f.clause].Values(scratch[:0], run, r, &m.slo)
			default:
				scratch = scratch[:0]
				if d, ok, err := report.Measured(run, r); err != nil {
					return err
				} else if ok {
					scratch = d.Append(scratch, r, report.Timing{Of: figure.TTFT, Origin: report.FromDue})
				}
				if i == 0 && len(scratch) > 0 {
					m.values++
				}
			}
			kept[i].keep(f, r.DueNS, key, scratch)
		}
		return nil
	})
	if err != nil {
		return err
	}

	var tree map[result.SessionKey]int32
	if m.bySession {
		m.sessions, tree = treesOf(times)
		m.addTrees()
	}
	for i, f := range m.figures {
		if f.trees {
			continue
		}
		f.values.AddIn(kept[i].inOrder(tree))
	}

	from, to := run.Window.Span(last)
	m.lasted, m.takes = m.lasted+time.Duration(max(to-from, 0)), 0
	for _, s := range spans {
		m.takes += time.Duration((s.to - s.from) / int64(len(spans)))
	}
	m.share = times.Share()
	m.runs++
	return nil
}

// keptValues are those of a figure in a run, by request, of which every so many is kept.
type keptValues struct {
	rows           []valuesOfRow
	count, skipped int
}

type valuesOfRow struct {
	due    int64
	key    result.SessionKey // without one, the row below zero
	values []int64
}

// keep takes the values of a request. Where there are too many, it keeps half of them, and of the figure half of those
// to come.
func (k *keptValues) keep(f *figureOf, due int64, key result.SessionKey, all []int64) {
	var values []int64
	for _, v := range all {
		if k.skipped++; k.skipped%f.thin == 0 {
			values = append(values, v)
		}
	}
	if len(values) > 0 {
		k.rows = append(k.rows, valuesOfRow{due, key, values})
		k.count += len(values)
	}

	if k.count > mostValues {
		f.thin, k.count = 2*f.thin, 0
		for j := range k.rows {
			k.rows[j].values = everySecond(k.rows[j].values, j)
			k.count += len(k.rows[j].values)
		}
	}
}

// inOrder are the values by their due times. Where trees is not nil, each has its tree too: a session that has none
// becomes one of its own.
func (k *keptValues) inOrder(trees map[result.SessionKey]int32) (values []int64, clusters []int32) {
	slices.SortStableFunc(k.rows, func(a, b valuesOfRow) int { return cmp.Compare(a.due, b.due) })
	values = make([]int64, 0, k.count)
	for _, row := range k.rows {
		values = append(values, row.values...)
		if trees == nil {
			continue
		}

		of, ok := trees[row.key]
		if !ok {
			of = int32(len(trees))
			trees[row.key] = of
		}
		for range row.values {
			clusters = append(clusters, of)
		}
	}
	return values, clusters
}

// forget leaves what was measured out, but for how long things take.
func (m *measurement) forget() {
	for _, f := range m.figures {
		f.values, f.beyond, f.censored = sample.Runs{}, sample.Runs{}, false
	}
	m.values, m.trees, m.lasted = 0, 0, 0
}

// everySecond keeps every second value, from the first or the second on by turns.
func everySecond(values []int64, row int) []int64 {
	out := values[:0]
	for i := row & 1; i < len(values); i += 2 {
		out = append(out, values[i])
	}
	return out
}

// interval is that of a figure in its unit.
func (f *figureOf) interval(confidence float64) sample.Interval {
	if f.percentile > 0 {
		i := f.values.Quantile(f.percentile, confidence)
		per := 1e6
		if f.unit == "s" {
			per = 1e9
		}
		i.At, i.Low, i.High = i.At/per, i.Low/per, i.High/per
		return f.whole(i)
	}
	i := f.values.Share(0, confidence)
	if f.flip {
		i.At, i.Low, i.High = 1-i.At, 1-i.High, 1-i.Low
	}
	return f.whole(i)
}

// whole is the interval, or none where some values were cut.
func (f *figureOf) whole(i sample.Interval) sample.Interval {
	if f.censored && i.Lacks == "" {
		i.Lacks = "some sessions were not over when the level had to end"
	}
	return i
}

// intervals are those of all figures. precision is how narrow they were asked for, as half of
// their width and a share; 0 asks for none.
func (m *measurement) intervals(precision float64) (out []MetricInterval) {
	for _, f := range m.figures {
		i := f.interval(m.repeated(confidence, shownPower))
		got := MetricInterval{Metric: f.metric, Where: f.where, Unit: f.unit, Values: f.values.N(),
			Independent: *report.Rounded(i.Effective, 1e3), Why: i.Lacks}
		if f.values.N() > 0 {
			got.Measured = report.Rounded(i.At, 1e6)
		}
		if i.Lacks == "" {
			got.Low, got.High, got.Resolved = report.Rounded(i.Low, 1e6), report.Rounded(i.High, 1e6), true
			if i.At > 0 {
				half := i.Half()
				got.HalfWidth = report.Rounded(half, 1e6)
				if f.unit != "share" && precision > 0 && half > precision {
					got.Resolved, got.Why = false, fmt.Sprintf("±%s, and ±%s was asked for", doc.Percent(half),
						doc.Percent(precision))
				}
			}
		}
		out = append(out, got)
	}
	return out
}

// repeated is the confidence of an interval that is looked at after every run, so that it holds
// the truth with the confidence that was asked for whenever that is the last: repeated confidence
// intervals (Jennison and Turnbull, "Interim analyses: the repeated confidence interval approach",
// Journal of the Royal Statistical Society B, 1989). The normal quantile grows towards the first
// looks by a power of budget ÷ what was measured (Wang and Tsiatis, "Approximately optimal
// one-parameter boundaries for group sequential trials", Biometrics, 1987): a level whose
// runs happen to be alike would else end first, with an interval too narrow.
func (m *measurement) repeated(confidence, power float64) float64 {
	if m.budget <= m.units() {
		return confidence
	}
	z := distuv.UnitNormal.Quantile((1+confidence)/2) * math.Pow(float64(m.budget)/float64(m.units()), power)
	return 2*distuv.UnitNormal.CDF(z) - 1
}

// The powers of [measurement.repeated]: of the interval that ends a level, which is the one
// that was chosen for being narrow, and of the one that is shown. Both were chosen by
// TestIntervalsCover.
const (
	endingPower = 0.15
	shownPower  = 0.075
)

// leastSpans is how many times as long a level is measured as what arrives takes, a request or
// a session, before its interval can be narrow enough: what is slow shows in no parts of a run
// that is hardly longer.
const leastSpans = 30

// resolved tells whether the latencies that the contract is about are as narrow as asked, or
// without one the p99 of TTFT.
func (m *measurement) resolved(precision float64) bool {
	some := false
	for _, f := range m.figures {
		if f.clause >= 0 && f.percentile > 0 {
			some = true
			if !m.narrow(f, precision) {
				return false
			}
		}
	}
	return some || m.narrow(m.main, precision)
}

// narrow tells whether the interval of a figure is as narrow as asked, and of runs long enough
// to say so.
func (m *measurement) narrow(f *figureOf, precision float64) bool {
	if m.lasted < leastSpans*m.takes {
		return false
	}
	i := f.interval(m.repeated(confidence, endingPower))
	return i.Half() <= precision
}

// remeasure puts the figures of all runs into what became of the contract and of TTFT in the
// last of them.
func (m *measurement) remeasure(l *Level) {
	for i, p := range []**float64{&l.TTFTDue.P50, &l.TTFTDue.P95, &l.TTFTDue.P99} {
		if f := m.figures[i]; *p != nil {
			*p = report.Rounded(f.interval(confidence).At, 1e6)
		}
	}
	l.TTFTDue.Count = m.values
	if l.Contract == nil {
		return
	}
	l.Contract.Holds, l.Contract.Judged = true, true
	for _, f := range m.figures {
		if f.clause >= 0 && !f.censored && l.Contract.Clauses[f.clause].Measured != nil {
			m.terms.Clauses[f.clause].Remeasure(&l.Contract.Clauses[f.clause], f.interval(confidence).At, f.values.N())
		}
	}
	for i := range l.Contract.Clauses {
		outcome := l.Contract.Clauses[i].Outcome
		l.Contract.Holds = l.Contract.Holds && outcome == report.Holds
		l.Contract.Judged = l.Contract.Judged && outcome != report.Unjudged
	}
}

// sure tells whether what became of the contract is beyond chance: whether every clause holds
// at the worse end of its interval, or one of them fails at the better end. A clause without
// an interval is not sure, and one about a mean, a throughput, a cost or a hit ratio counts as
// it is. Percentiles of sessions are judged by the run with other percentiles, see
// [sessionBounds].
func (m *measurement) sure(got *report.ContractResult, confidence float64,
	sessions func(*contract.Contract) (*report.ContractResult, error)) (bool, error) {
	bounded, few, err := m.sessionBounds(got, sessions)
	if err != nil {
		return false, err
	}
	holds := got.Holds
	for i := range got.Clauses {
		clause := &got.Clauses[i]
		if bounded != nil && bounded.Clauses[i].Clause != clause.Clause {
			clause = &bounded.Clauses[i]
		}
		if few[i] || clause.Outcome == report.Unjudged {
			holds = false
			continue
		}
		met, failed := clause.Outcome == report.Holds, clause.Outcome == report.Fails
		if f := m.ofClause(i); f != nil {
			met, failed = f.settled(&m.terms.Clauses[i], confidence)
		}
		if !got.Holds && failed {
			return true, nil
		}
		holds = holds && met
	}
	return holds, nil
}

// settled tells whether a clause surely holds, or surely fails: whether its limit is beyond the
// interval of its figure. For a percentile of session trees that are to be over by its limit that
// is whether the share of trees that were is surely as large or smaller, since trees are few.
func (f *figureOf) settled(c *contract.Clause, confidence float64) (holds, fails bool) {
	if f.trees && f.percentile > 0 && !c.Floor() {
		at := f.beyond.Share(0, confidence)
		return at.Lacks == "" && at.Low >= f.percentile, at.Lacks == "" && at.High < f.percentile
	}
	at := f.interval(confidence)
	low, high := c.Met(at.Low), c.Met(at.High)
	return at.Lacks == "" && low && high, at.Lacks == "" && !low && !high
}

func (m *measurement) ofClause(i int) *figureOf {
	for _, f := range m.figures {
		if f.clause == i && !f.censored {
			return f
		}
	}
	return nil
}

// sessionBounds holds the contract against a run with each percentile of sessions at that
// end of [percentileBounds] at which it is most at risk, or, where the contract fails, least.
// It is nil where no clause has such bounds. few are the clauses with too few sessions.
func (m *measurement) sessionBounds(got *report.ContractResult, judge func(*contract.Contract) (*report.ContractResult,
	error)) (r *report.ContractResult, few map[int]bool, err error) {
	at := 1
	if !got.Holds {
		at = 0
	}
	bounded, some := *m.terms, false
	bounded.Clauses, few = slices.Clone(m.terms.Clauses), map[int]bool{}
	for i := range bounded.Clauses {
		p, ok := bounded.Clauses[i].Percentile()
		if !ok || m.ofClause(i) != nil || got.Clauses[i].Samples == 0 {
			continue
		}
		lo, hi := percentileBounds(got.Clauses[i].Samples, p)
		if bound := [2]float64{lo, hi}[at]; bound < 0 || bound > 1 {
			few[i] = true
		} else {
			bounded.Clauses[i], some = bounded.Clauses[i].At(bound), true
		}
	}
	if some {
		r, err = judge(&bounded)
	}
	return r, few, err
}
