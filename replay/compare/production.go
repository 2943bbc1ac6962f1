package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// A Recorded is a row of a trace with what its request took in production.
type Recorded struct {
	trace.Row `parquet:"-"`

	InputTokens  int32  `parquet:"input_tokens"`
	OutputTokens *int32 `parquet:"output_tokens,optional"`
	Status       string `parquet:"status,optional,dict"`
	TTFTNS       *int64 `parquet:"ttft_ns,optional"`
	E2ENS        *int64 `parquet:"e2e_ns,optional"`
}

// Production compares what a trace recorded of its requests with a replay
// of it, row by row: the rows that ended well in both, from when they were sent,
// since a server or gateway records nothing of what came before. Its memory is that
// of two [Clusters] and of the exact values of a report. The results must be in
// the order of their rows, as in a results file; of a workload that was played
// several times it takes the first.
func Production(meta trace.Meta, recorded trace.Reader[Recorded], s report.Summary, results trace.Reader[result.Result],
	options Options) (Comparison, error) {
	given := options.Primary != ""
	o, err := options.complete()
	if err != nil {
		return Comparison{}, err
	}
	p := production{next: -1, recorded: recorded, same: meta.Digest == s.Run.Workload, run: s.Run}
	if err := trace.Each(results, func(_ int64, r *result.Result) error { return p.add(r) }); err != nil {
		return Comparison{}, err
	}
	if p.joined == 0 {
		return Comparison{}, fmt.Errorf(
			"no row has a time both in the trace and in the replay: the trace recorded %s for %s",
			doc.Many(p.times, "time"), doc.Many(p.rows, "replayed row"))
	}
	if p.arms[0].spreads[spreadTTFT].cells == nil && !given {
		o.Primary = "p99_e2e"
	}
	c := Comparison{Schema: schema, Kind: kindProduction, Primary: o.Primary, Alpha: o.Alpha,
		FamilyAlpha: o.FamilyAlpha,
		Confidence:  1 - o.Alpha, Power: power, LeastRounds: LeastRounds(o.Alpha, 1), A: "recorded",
		Tier: trace.Stricter(meta.Tier, s.Run.Tier), Runs: []Run{runOf("replayed", 1, &s)},
		Loosened: s.Verdict.Loosened, Warnings: []report.Warning{}}
	v := Versus{B: "replayed", Rounds: 1, Metrics: p.contrasts(o)}
	if len(v.Metrics) == 0 || !v.Metrics[0].Primary {
		return Comparison{}, fmt.Errorf("a trace has only TTFT and E2E, so the primary metric cannot be %s", o.Primary)
	}
	c.Versus = []Versus{v}
	for i, name := range []string{c.A, v.B} {
		c.curves = append(c.curves, p.arms[i].spreads[c.drawnSpread()].curve(name))
	}
	// What else than the server is in the difference.
	warn := func(when bool, code, format string, args ...any) {
		if when {
			c.Warnings = append(c.Warnings, report.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	r := &p.run
	warn(!p.same, warnWorkload, "the replay was of another workload than the trace, with the same lengths in every "+
		"row: the rows are taken for the same")
	warn(r.Speed != 0 && math.Abs(r.Speed-1) > 1e-9, warnSettings,
		"the replay was %s times as fast as the recording", doc.Number(r.Speed))
	warn(r.Rate != "", warnSettings, "the replay had the arrival process %s in place of the recorded times", r.Rate)
	warn(r.Timing == result.ClosedLoop, warnSettings,
		"the replay was a closed loop: its requests were not sent when the recorded ones were")
	if d := r.Drift; d != nil {
		warn(time.Duration(d.P50NS).Abs() > time.Second, warnSettings,
			"half of the turns that follow others were sent %v or more from their recorded time, as the server was "+
				"faster or slower", time.Duration(d.P50NS))
	}
	warn(p.joined < p.rows, warnJoin, "%s of %s have a time on both sides and ended well; the others are left out",
		doc.Brief(p.joined), doc.Many(p.rows, "row"))
	warn(p.again > 0, warnJoin, "%s of further rounds of the workload are left out", doc.Many(p.again, "result"))
	c.Warnings = append(c.Warnings, runWarnings([]Arm{{Name: "the replay", Runs: []report.Summary{s}}})...)
	c.resultWarnings()
	c.decide()
	return c, nil
}

// A production joins results to the rows of their trace.
type production struct {
	recorded trace.Reader[Recorded]
	same     bool // the workload is this trace
	run      result.Run
	buffer   [512]Recorded
	held, at int   // rows in the buffer, and which of them is the next
	next     int64 // row that was taken last

	rows, joined, times, again int64
	arms                       [2]Clusters
	exact                      [2][spreads]sample.Values
}

// to reads on to a row of the trace.
func (p *production) to(row int64) (*Recorded, error) {
	for {
		if skip := min(row-p.next, int64(p.held-p.at)); skip > 0 {
			p.next, p.at = p.next+skip, p.at+int(skip)
		}
		if p.next == row {
			return &p.buffer[p.at-1], nil
		}
		n, err := p.recorded.Read(p.buffer[:])
		if p.held, p.at = n, 0; n > 0 {
			continue
		}
		if err == io.EOF {
			return nil, fmt.Errorf("the results have row %d, and the trace ends with row %d: they are not "+
				"of this trace", row, p.next)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *production) add(r *result.Result) error {
	l, measured, err := report.Measured(&p.run, r)
	if err != nil {
		return err
	}
	if r.Round > 0 {
		p.again++
		return nil
	}
	if r.RowID <= p.next {
		return fmt.Errorf("the results are out of order at row %d", r.RowID)
	}
	rec, err := p.to(r.RowID)
	if err != nil {
		return err
	}
	if !p.same && (rec.InputTokens != r.WantInput || r.WantOutput != nil && rec.OutputTokens != nil &&
		*rec.OutputTokens != *r.WantOutput) {
		return fmt.Errorf("row %d has different lengths in the trace and in the replay: they are not of the "+
			"same workload", r.RowID)
	}
	p.rows++
	for _, at := range []*int64{rec.TTFTNS, rec.E2ENS} {
		if at != nil {
			p.times++
		}
	}
	if !measured || rec.Status != trace.StatusOK && rec.Status != "" {
		return nil
	}
	group, ok := groupOf(r.Session, r.RowID), false
	for _, m := range []struct {
		spread, pairs int
		was           *int64
		is            report.Span
	}{{spreadTTFT, spreadTTFTPairs, rec.TTFTNS, l.TTFT[report.FromSent]},
		{spreadE2E, spreadE2EPairs, rec.E2ENS, l.E2E[report.FromSent]}} {
		if m.was == nil || *m.was <= 0 || *m.was > report.MaxInstant || !m.is.OK {
			continue
		}
		ok = true
		const one = 1e6
		p.value(0, m.spread, group, *m.was)
		p.value(1, m.spread, group, m.is.NS)
		p.value(0, m.pairs, group, one)
		p.value(1, m.pairs, group, int64(math.Round(min(float64(m.is.NS)/float64(*m.was)*one, report.MaxInstant))))
	}
	if ok {
		p.joined++
	}
	return nil
}

func (p *production) value(arm, spread, group int, v int64) {
	p.arms[arm].spreads[spread].add(group, v)
	s := &p.exact[arm][spread]
	s.Limit = report.DefaultExact
	s.Add(v)
}

// contrasts are the percentiles and means of both sides, and the median of the
// ratio of single rows; the primary metric first.
func (p *production) contrasts(o Options) (all []Contrast) {
	p.arms[0].digest, p.arms[1].digest = "joined", "joined" // the same rows on both sides
	resampled := resample(&p.arms[0], &p.arms[1], o.Alpha)
	var stats [2][spreads]report.Stat
	for arm := range stats {
		for s := range spreads {
			stats[arm][s], _ = report.StatOf(&p.exact[arm][s])
		}
	}
	add := func(m metric) {
		a, _ := stats[0][m.spread].At(m.Statistic)
		b, _ := stats[1][m.spread].At(m.Statistic)
		d, ok := m.difference(a, b)
		if !ok && m.name != o.Primary {
			return
		}
		c := Contrast{Metric: m.name, Label: m.label, Unit: m.unit, Primary: m.name == o.Primary, Relative: true,
			Rounds: 1, A: a, B: b,
			AEach: []*float64{a}, BEach: []*float64{b}}
		if ok {
			c.Change = &Interval{Estimate: *report.Rounded(m.change(d), 1e9)}
			c.Resampled = resampled.of(&m).of(a, b, c.Change)
		}
		if c.Primary {
			all = append([]Contrast{c}, all...)
			return
		}
		all = append(all, c)
	}
	for _, l := range latencies {
		pairs := map[int]int{spreadTTFT: spreadTTFTPairs, spreadE2E: spreadE2EPairs}[l.spread]
		if pairs == 0 {
			continue
		}
		for _, statistic := range statistics {
			m := metricOf(figure.Of(statistic, l.of))
			if slices.Contains(usualStatistics, statistic) || m.name == o.Primary {
				add(m)
			}
		}
		median := figure.Of(figure.P50, l.of)
		add(metric{Figure: median, name: "median_ratio_" + l.of.Name,
			label: median.Label + " median row ratio", spread: pairs})
	}
	return all
}
