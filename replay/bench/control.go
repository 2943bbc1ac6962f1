package bench

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/replay/twin"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/sample"
)

// A control holds the TTFT of a level against what a twin of the server makes of the same
// arrivals, and of very many more. Where a level happened to have few queues for its load, or
// many, its twin has as well: see [sample.Runs.Controlled].
type control struct {
	// load begins the requests of the load in the long run, which have no end.
	load      func() func() twin.Request
	lengths   []lengths // of the rows of the workload
	precision float64   // that is wanted: intervals as narrow as that need no control
	runs      [][]twin.Request

	fitted   int64     // requests measured when the twin was fitted
	played   [][]int64 // TTFT of the twin in the runs, in ns
	expected *sample.LongRun
}

// A row of a workload has lengths in tokens.
type lengths struct{ prompt, output int32 }

const (
	// mostLengths is how many rows of a workload a control knows: 8 MB.
	mostLengths = 1 << 20
	// controlledLeast is how many measured requests a control is tried from, and controlledShare
	// of the level's budget: a twin fitted to 2,000 requests made wrong intervals for a quarter of levels.
	controlledLeast = 10_000
	controlledShare = 0.25
	// The twin answers requests of the load until the intervals of its own percentiles are half
	// as wide as what is asked of the server's, or 16 million.
	expectedShare  = 0.5
	expectedWarmup = 50_000
	expectedLeast  = 1 << 18
	expectedMost   = 1 << 24
	// overloadedBy is how many times as long as any measured TTFT one of the twin takes when
	// the load is more than it can answer.
	overloadedBy = 10
)

// control is that of a level of the ladder at a rate, nil where the sweep has none: a load by
// session or of requests in flight waits for answers, and a search decides by what was measured alone.
// Poisson arrivals resolve without: with twins 12 of 100 intervals of p99 at 80 % of an engine's
// capacity did not hold the truth, and 7 without.
func (s *Sweep) control(role string, load float64) (*control, error) {
	if kind, _, _ := strings.Cut(s.Process, ":"); kind == "poisson" || kind == "constant" {
		return nil, nil
	}
	if s.Precision == 0 || role != roleLevel || s.unit() != unitRate || s.Workload == "" {
		return nil, nil
	}
	process, err := arrival.ParseProcess(processAt(s.Process, load))
	if err != nil {
		return nil, err
	}
	c := &control{precision: s.Precision}
	if c.lengths, err = workloadLengths(s.Workload); err != nil {
		return nil, err
	}
	c.load = func() func() twin.Request {
		gaps, at, row := process.New(arrival.Stream(s.Seed, "twin at "+spelled(load))), int64(0), 0
		return func() twin.Request {
			at += int64(gaps.Next())
			l := c.lengths[row%len(c.lengths)]
			row++
			return twin.Request{DueNS: at, Prompt: l.prompt, Output: l.output}
		}
	}
	return c, nil
}

// workloadLengths reads the lengths of the rows of a workload.
func workloadLengths(path string) (out []lengths, err error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		return nil, err
	}
	buf := make([]trace.Request, 512)
	for len(out) < mostLengths {
		n, err := rows.Read(buf)
		for i := range buf[:n] {
			out = append(out, lengths{buf[i].InputTokens, buf[i].OutputTokens})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A controlledRun gathers the requests of a run for the control, as they come.
type controlledRun struct {
	rows []controlledRow
}

type controlledRow struct {
	of    twin.Request
	round int32
	row   int64
	place int32 // as it came
}

// take takes a request of the run, and returns its place.
func (c *controlledRun) take(r *result.Result) int32 {
	of := twin.Request{DueNS: r.DueNS, Prompt: r.WantInput, Output: r.WantOutput}
	if r.Cached != nil {
		of.Prompt -= min(*r.Cached, of.Prompt-1)
	}
	if r.Error == "" && r.FirstTokenNS != nil && r.LastTokenNS != nil {
		of.TTFTNS, of.E2ENS = *r.FirstTokenNS-r.DueNS, *r.LastTokenNS-r.DueNS
	}
	place := int32(len(c.rows))
	c.rows = append(c.rows, controlledRow{of, r.Round, r.RowID, place})
	return place
}

// order takes over a run in the order in which its requests were due, and returns where those
// of each place are. Prompts count without what the server had of them in its cache, here and in the
// rows of the workload. A run whose arrivals waited for answers is none for a control.
func (c *control) order(run *result.Run, all *controlledRun) (at []int32, ok bool) {
	if run.Timing != result.OpenLoop || len(all.rows) == 0 {
		return nil, false
	}
	slices.SortFunc(all.rows, func(a, b controlledRow) int {
		return cmp.Or(cmp.Compare(a.of.DueNS, b.of.DueNS), cmp.Compare(a.round, b.round), cmp.Compare(a.row, b.row))
	})
	at = make([]int32, len(all.rows))
	requests := make([]twin.Request, len(all.rows))
	for i, r := range all.rows {
		if r.row < 0 || r.row >= int64(len(c.lengths)) {
			return nil, false
		}
		at[r.place], requests[i] = int32(i), r.of
		if len(c.runs) == 0 {
			c.lengths[r.row].prompt = r.of.Prompt
		}
		requests[i].Prompt = c.lengths[r.row].prompt
	}
	c.runs = append(c.runs, requests)
	return at, true
}

// fit fits a twin to the longest run, and plays all of them to it. Without one that can
// answer the load there are no controls.
func (c *control) fit(measured int64) {
	if c.fitted == measured {
		return
	}
	c.fitted, c.played, c.expected = measured, nil, nil
	e, err := twin.Fit(c.runs)
	if err != nil {
		return
	}
	most := int64(0)
	for _, run := range c.runs {
		for i := range run {
			most = max(most, run[i].TTFTNS)
		}
	}
	expected := c.expect(&e, overloadedBy*most)
	if expected == nil {
		return
	}
	c.expected = expected
	for _, run := range c.runs {
		ttft, i := make([]int64, len(run)), 0
		e.Play(func() (r twin.Request, ok bool) {
			if ok = i < len(run); ok {
				r, i = run[i], i+1
			}
			return r, ok
		}, func(request int, took, _ int64) {
			if took >= 0 {
				ttft[request] = took
			}
		})
		c.played = append(c.played, ttft)
	}
}

// expect plays the load to the twin for as long as it takes to know its percentiles. It is nil
// where a TTFT is above most.
func (c *control) expect(e *twin.Engine, most int64) *sample.LongRun {
	next, over, fails := c.load(), false, false
	var out sample.LongRun
	e.Play(func() (twin.Request, bool) {
		if over {
			return twin.Request{}, false
		}
		return next(), true
	}, func(request int, took, _ int64) {
		if took < 0 || request < expectedWarmup || over {
			return
		}
		if out.Add(took); took > most {
			over, fails = true, true
		}
		if n := out.N(); n >= expectedLeast && n&(n-1) == 0 {
			over = n >= expectedMost || !slices.ContainsFunc(ttftPercentiles, func(p float64) bool {
				return out.Half(p, confidence) > expectedShare*c.precision
			})
		}
	})
	if fails {
		return nil
	}
	return &out
}

// interval is that of a figure whose values are of some requests of each run.
func (c *control) interval(m *measurement, f *figureOf, confidence float64) (out sample.Interval, ok bool) {
	if c.fit(m.values); c.expected == nil {
		return out, false
	}
	var runs sample.Runs
	for i, of := range f.requests {
		values := make([]int64, len(of))
		for j, r := range of {
			values[j] = c.played[i][r]
		}
		runs.Add(values)
	}
	out = f.values.Controlled(f.percentile, confidence, &sample.Control{Runs: &runs, Expected: c.expected})
	return out, out.Lacks == "" && !math.IsInf(out.Half(), 0)
}
