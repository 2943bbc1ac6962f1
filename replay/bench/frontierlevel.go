package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/sample"
)

// checkLevels refuses levels that cannot be measured.
func (f *Frontier) checkLevels() error {
	for i, n := range f.Concurrencies {
		if n < 1 || n > mostInFlight || i > 0 && n <= f.Concurrencies[i-1] {
			return fmt.Errorf("requests in flight are from 1 to %d, in ascending order", mostInFlight)
		}
	}
	return nil
}

// levels are the requests in flight that an engine is measured with.
func (f *Frontier) levels(e *FrontierEngine) []int {
	if len(f.Concurrencies) > 0 {
		return f.Concurrencies
	}
	most := mostInFlight
	if e.Target != nil {
		most = mostAtServer
	}
	var out []int
	for n := 1; n <= most; n *= 2 {
		out = append(out, n)
	}
	return out
}

// rows are n requests of the class, for a level with so many in flight.
func (c *LengthClass) rows(n int, seed uint64, inFlight int) ([]trace.Request, error) {
	prompt, err := arrival.ParseLength(c.Prompt)
	if err != nil {
		return nil, err
	}
	output, err := arrival.ParseLength(c.Output)
	if err != nil {
		return nil, err
	}
	rng := arrival.Stream(seed, fmt.Sprintf("frontier %s %d", c.Name, inFlight))
	p, o := prompt.New(rng), output.New(rng)
	rows := make([]trace.Request, n)
	for i := range rows {
		rows[i].InputTokens, rows[i].OutputTokens = p.Draw(), trace.Ptr(o.Draw())
	}
	return rows, nil
}

// A frontierEnd says why a level is no point of a curve; one of both, or none.
type frontierEnd struct{ refused, untrusted string }

// A frontierRun is the run of a level.
type frontierRun struct {
	inFlight int
	rows     []trace.Request
}

// run is the run of a level, with ten times as many requests as are in flight.
func (f *Frontier) run(class *LengthClass, e *FrontierEngine, inFlight int) (frontierRun, error) {
	r := frontierRun{inFlight: inFlight}
	least := leastMeasured
	if e.Target != nil {
		least = int(max(f.Requests, 1))
	}
	count := inFlight * (2 + max(generations, (least+inFlight-1)/inFlight))
	if count > mostLevelRequests {
		return r, fmt.Errorf("a level with %d in flight has more than %d requests", inFlight, mostLevelRequests)
	}
	var err error
	r.rows, err = class.rows(count, f.Seed, inFlight)
	return r, err
}

// measure makes a level.
func (f *Frontier) measure(ctx context.Context, class *LengthClass, e *FrontierEngine,
	inFlight int) (p FrontierPoint, end frontierEnd, err error) {
	run, err := f.run(class, e, inFlight)
	if err != nil {
		return p, end, err
	}
	var ended endedRequests
	if e.Target != nil {
		end, err = f.measureServer(ctx, class, e, &run, &ended)
	} else {
		end.refused, err = f.simulate(ctx, e, &run, &ended)
	}
	if err == nil && end == (frontierEnd{}) {
		p, end.refused, err = ended.point(inFlight, e)
	}
	return p, end, err
}

// simulate plays a run in virtual time. refused says why the engine does not answer all
// requests.
func (f *Frontier) simulate(ctx context.Context, e *FrontierEngine, run *frontierRun,
	ended *endedRequests) (refused string, err error) {
	o := replay.Options{Concurrency: run.inFlight}
	s := Simulation{Fleet: e.Fleet, Rows: &trace.SliceReader[trace.Request]{Rows: run.rows}, Options: o, Results: ended}
	summary, _, err := s.Run(ctx)
	if e.Covers != nil {
		ended.beyond = e.Covers.Beyond(summary.Reached)
	}
	return ended.failed, err
}

// endedRequests keeps of results what a level is computed from, and not their gaps.
type endedRequests struct {
	all    []endedRequest
	failed string // why one was refused
	joules *float64
	beyond []result.Beyond
}

// An endedRequest has instants and durations in nanoseconds.
type endedRequest struct {
	done, ttft, tpot, e2e int64
	prompt, output        int64
}

// add keeps a request that was answered, and tells whether it has what a level needs.
func (w *endedRequests) add(r *result.Result) bool {
	if r.SentNS == nil || r.DoneNS == nil {
		return false
	}
	d := report.Derive(r)
	ttft, e2e := d.TTFT[report.FromDue], d.E2E[report.FromDue]
	if r.Untimed() {
		d.TPOT = report.Span{OK: true} // a level says how many of its answers came at once
	}
	if !ttft.OK || !d.TPOT.OK || !e2e.OK || r.Output == nil {
		return false
	}
	kept := endedRequest{done: *r.DoneNS, ttft: ttft.NS, tpot: d.TPOT.NS, e2e: e2e.NS,
		prompt: int64(r.WantInput), output: int64(*r.Output)}
	if r.Input != nil {
		kept.prompt = int64(*r.Input)
	}
	w.all = append(w.all, kept)
	return true
}

// Write implements [trace.Writer], for engines in virtual time, which answer all requests.
func (w *endedRequests) Write(rows []result.Result) (int, error) {
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Error == openai.KindTooLong:
			w.failed = "requests are longer than the KV memory"
		case r.Error == openai.KindRateLimited:
			w.failed = "the queue is full"
		case r.Error != "" || !w.add(r):
			return i, fmt.Errorf("a request was not answered: %s", cmp.Or(r.Error, "no tokens"))
		}
	}
	return len(rows), nil
}

// window is the measured time of a run, and the requests that ended in it. Of n in flight the first n
// requests to end fill the engine, and the last n drain it: the others are measured, from the end of
// the n-th on. So the engine is full all the time, and requests that began together count as whole
// generations.
func (w *endedRequests) window(n int) (measured []endedRequest, from, to int64) {
	slices.SortStableFunc(w.all, func(a, b endedRequest) int { return cmp.Compare(a.done, b.done) })
	if len(w.all) <= 2*n {
		return nil, 0, 0
	}
	measured = w.all[n : len(w.all)-n]
	return measured, w.all[n-1].done, measured[len(measured)-1].done
}

// point computes a level.
func (w *endedRequests) point(inFlight int, e *FrontierEngine) (p FrontierPoint, refused string, err error) {
	measured, from, to := w.window(inFlight)
	p = FrontierPoint{Extrapolates: w.beyond, Concurrency: inFlight, Requests: len(measured),
		Seconds: float64(to-from) / 1e9}
	if len(measured) == 0 {
		return p, "too few requests were answered", nil
	}
	var prompt, output int64
	var ttft, tpot, e2e []int64
	for _, r := range measured {
		prompt, output = prompt+r.prompt, output+r.output
		ttft, tpot, e2e = append(ttft, r.ttft), append(tpot, r.tpot), append(e2e, r.e2e)
	}
	p.TTFT, p.TPOT, p.E2E = medianMS(ttft), medianMS(tpot), medianMS(e2e)
	switch idle := !(p.TPOT > 0) || !(p.Seconds > 0); {
	case idle && e.Target != nil:
		return p, "the tokens of most answers were read at once, which tells nothing of interactivity: the client " +
			"was late, or the server does not stream", nil
	case idle:
		return p, "", errors.New("the engine takes no time: its costs are 0")
	}
	p.PerUser = 1e3 / p.TPOT
	p.OutputPerGPU = float64(output) / p.Seconds / float64(e.GPUs)
	p.TotalPerGPU = float64(prompt+output) / p.Seconds / float64(e.GPUs)
	if w.joules != nil && (e.Watts == 0 || e.DataSheet) {
		e.Metered = true
		p.JoulesPerToken = w.joules
	}
	p.price(e)
	return p, "", nil
}

// price computes what tokens cost and take, by the prices of the engine.
func (p *FrontierPoint) price(e *FrontierEngine) {
	if e.PerGPUHour > 0 {
		p.PerMillion, _ = shared(e.PerGPUHour, p.OutputPerGPU*3600)
		p.PerMillionTotal, _ = shared(e.PerGPUHour, p.TotalPerGPU*3600)
	}
	if e.Watts > 0 && !e.Metered {
		p.JoulesPerToken = trace.Ptr(e.Watts / p.OutputPerGPU)
	}
}

// medianMS is the median of nanoseconds, in milliseconds. It sorts them.
func medianMS(values []int64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	order := sample.Sorted(values)
	return float64(order.At(1, 2)) / 1e6
}
