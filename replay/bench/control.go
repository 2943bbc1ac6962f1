package bench

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"

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
	load      func() func() twin.Request // begins the requests of the load in the long run, which have no end
	rows      *workloadRows
	precision float64 // that is wanted: intervals as narrow as that need no control

	runs  [][]twin.Request // in the order in which they were due
	rowOf [][]int32        // of the workload, of each request

	fitted   int64     // requests measured when the twin was fitted
	played   [][]int64 // TTFT of the twin in the runs, in ns
	expected *sample.LongRun
	limited  *sample.LongRun // the same of a twin with as few places as the level allows, where it does not tell
}

// workloadRows are the lengths of the rows of a workload, in tokens. The twin answers the same row alike in
// the runs and in the long run, else the one could not be held against the other: so prompts are without what the
// server had cached of them where that is known of all rows, and whole where it is not.
type workloadRows struct {
	prompt, output []int32
	cached         []int32 // -1 is of a row that was not answered yet
	unknown        int     // such rows
}

// length is how many tokens of a row are computed and generated.
func (w *workloadRows) length(row int) (prompt, output int32) {
	prompt, output = w.prompt[row], w.output[row]
	if w.unknown == 0 {
		prompt -= min(w.cached[row], max(prompt-1, 0))
	}
	return prompt, output
}

const (
	// mostRows is how many rows of a workload a control knows: 12 MB.
	mostRows = 1 << 20
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
func (s *Sweep) control(role string, load float64) (*control, error) {
	if s.Precision == 0 || role != roleLevel || s.unit() != unitRate || s.Workload == "" {
		return nil, nil
	}
	process, err := arrival.ParseProcess(processAt(s.Process, load))
	if err != nil {
		return nil, err
	}
	c := &control{precision: s.Precision}
	if c.rows, err = readWorkloadRows(s.Workload); err != nil {
		return nil, err
	}
	c.load = func() func() twin.Request {
		gaps, at, row := process.New(arrival.Stream(s.Seed, "twin at "+spelled(load))), int64(0), 0
		return func() twin.Request {
			at += int64(gaps.Next())
			prompt, output := c.rows.length(row)
			row = (row + 1) % len(c.rows.prompt)
			return twin.Request{DueNS: at, Prompt: prompt, Output: output}
		}
	}
	return c, nil
}

// readWorkloadRows reads the lengths of the rows of a workload.
func readWorkloadRows(path string) (*workloadRows, error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	reader, err := t.Reader()
	if err != nil {
		return nil, err
	}
	var w workloadRows
	buf := make([]trace.Request, 512)
	for len(w.prompt) < mostRows {
		n, err := reader.Read(buf)
		for i := range buf[:n] {
			w.prompt, w.output, w.cached = append(w.prompt, buf[i].InputTokens), append(w.output, buf[i].OutputTokens), append(w.cached, -1)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	w.unknown = len(w.prompt)
	return &w, nil
}

// takeCached takes what the server had of a row in its cache.
func (w *workloadRows) takeCached(r *result.Result) {
	if r.Error != "" || r.RowID < 0 || r.RowID >= int64(len(w.cached)) {
		return
	}
	if w.cached[r.RowID] < 0 {
		w.unknown--
	}
	w.cached[r.RowID] = 0
	if r.Cached != nil {
		w.cached[r.RowID] = *r.Cached
	}
}

// controlledRows are the requests of a run, as they come.
type controlledRows []controlledRow

type controlledRow struct {
	of    twin.Request // without its lengths
	round int32
	row   int64
	place int32 // as it came
}

// take takes a request, and returns its place.
func (c *controlledRows) take(r *result.Result) int32 {
	of := twin.Request{DueNS: r.DueNS}
	if r.Error == "" && r.FirstTokenNS != nil && r.LastTokenNS != nil {
		of.TTFTNS, of.E2ENS = *r.FirstTokenNS-r.DueNS, *r.LastTokenNS-r.DueNS
	}
	place := int32(len(*c))
	*c = append(*c, controlledRow{of, r.Round, r.RowID, place})
	return place
}

// takeRun takes a run over, and returns where in the order of due times the request of each place is. A
// run whose arrivals waited for answers is none for a control.
func (c *control) takeRun(run *result.Run, all controlledRows) (at []int32, ok bool) {
	if run.Timing != result.OpenLoop || len(all) == 0 {
		return nil, false
	}
	slices.SortFunc(all, func(a, b controlledRow) int {
		return cmp.Or(cmp.Compare(a.of.DueNS, b.of.DueNS), cmp.Compare(a.round, b.round), cmp.Compare(a.row, b.row))
	})
	at = make([]int32, len(all))
	requests, rows := make([]twin.Request, len(all)), make([]int32, len(all))
	for i, r := range all {
		if r.row < 0 || r.row >= int64(len(c.rows.prompt)) {
			return nil, false
		}
		at[r.place], requests[i], rows[i] = int32(i), r.of, int32(r.row)
	}
	c.runs, c.rowOf = append(c.runs, requests), append(c.rowOf, rows)
	return at, true
}

// fit fits a twin to the longest run, and plays all of them to it. Without one that can
// answer the load there are no controls.
func (c *control) fit(measured int64) {
	if c.fitted == measured {
		return
	}
	c.fitted, c.played, c.expected, c.limited = measured, nil, nil, nil
	most := int64(0)
	for i, run := range c.runs {
		for j := range run {
			if r := &run[j]; c.rows != nil {
				r.Prompt, r.Output = c.rows.length(int(c.rowOf[i][j]))
			}
			most = max(most, run[j].TTFTNS)
		}
	}
	e, limited, err := twin.Fit(c.runs)
	if err != nil {
		return
	}
	expected := c.expect(&e, overloadedBy*most)
	if c.limited = expected; expected != nil && limited != e {
		c.limited = c.expect(&limited, overloadedBy*most)
	}
	if c.limited == nil {
		return
	}
	c.expected = expected
	for _, run := range c.runs {
		ttft, _ := e.Answer(run)
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
	}, func(request int, took int64) {
		if request < expectedWarmup || over {
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
	}, func(int, int64) {})
	if fails {
		return nil
	}
	return &out
}

// knows tells whether a figure is a TTFT of the runs that the control has.
func (c *control) knows(f *figureOf) bool { return len(f.requests) == len(c.runs) }

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
	// Places that never filled up may be as few as were taken: the percentile may then be as much
	// higher as that makes the twin's.
	out.High *= max(float64(c.limited.Quantile(f.percentile))/float64(c.expected.Quantile(f.percentile)), 1)
	return out, out.Lacks == "" && !math.IsInf(out.Half(), 0)
}
