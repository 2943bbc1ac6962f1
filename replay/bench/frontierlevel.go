package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"reprise/replay"
	"reprise/replay/openai"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/sample"
)

// A frontierLoad is the load of a level: requests in flight of a closed loop, or Poisson
// arrivals at a rate in requests per second.
type frontierLoad struct {
	inFlight int
	rate     float64
}

// name is that of files and random streams.
func (l frontierLoad) name() string {
	if l.rate > 0 {
		return "rate-" + spelled(l.rate)
	}
	return fmt.Sprintf("concurrency-%d", l.inFlight)
}

// at begins what is said of a level.
func (l frontierLoad) at() string {
	if l.rate > 0 {
		return "at " + spelled(l.rate) + " req/s"
	}
	return fmt.Sprintf("with %d in flight", l.inFlight)
}

// checkLoads refuses levels that cannot be measured.
func (f *Frontier) checkLoads() error {
	for i, n := range f.Concurrencies {
		if n < 1 || n > mostInFlight || i > 0 && n <= f.Concurrencies[i-1] {
			return fmt.Errorf("requests in flight are from 1 to %d, in ascending order", mostInFlight)
		}
	}
	for i, rate := range f.Rates {
		if _, err := arrival.ParseProcess(processAt("poisson", rate)); err != nil || !(rate > 0) ||
			i > 0 && rate <= f.Rates[i-1] {
			return errors.New("rates are above 0, in ascending order")
		}
	}
	if len(f.Rates) > 0 && (f.Duration <= 0 || f.Requests < 0) {
		return errors.New("a level of a rate lasts some time")
	}
	return nil
}

// Searches tells whether the levels are found by doubling.
func (f *Frontier) Searches() bool { return len(f.Concurrencies) == 0 && len(f.Rates) == 0 }

// ladders are the levels of an engine: those of closed loops, and those of rates.
func (f *Frontier) ladders(e *FrontierEngine) [2][]frontierLoad {
	var out [2][]frontierLoad
	for _, n := range f.Concurrencies {
		out[0] = append(out[0], frontierLoad{inFlight: n})
	}
	for _, rate := range f.Rates {
		out[1] = append(out[1], frontierLoad{rate: rate})
	}
	most := mostInFlight
	if e.Target != nil {
		most = mostAtServer
	}
	for n := 1; f.Searches() && n <= most; n *= 2 {
		out[0] = append(out[0], frontierLoad{inFlight: n})
	}
	return out
}

// rows are n requests of the class, those of a level.
func (c *LengthClass) rows(n int, seed uint64, load frontierLoad) ([]trace.Request, error) {
	prompt, err := arrival.ParseLength(c.Prompt)
	if err != nil {
		return nil, err
	}
	output, err := arrival.ParseLength(c.Output)
	if err != nil {
		return nil, err
	}
	stream := fmt.Sprintf("frontier %s %d", c.Name, load.inFlight)
	if load.rate > 0 {
		stream = "frontier " + c.Name + " " + load.name()
	}
	rng := arrival.Stream(seed, stream)
	p, o := prompt.New(rng), output.New(rng)
	rows := make([]trace.Request, n)
	for i := range rows {
		rows[i].InputTokens, rows[i].OutputTokens = p.Draw(), trace.Ptr(o.Draw())
	}
	return rows, nil
}

// A frontierEnd says why a level is no point of a curve; one of both, or none.
type frontierEnd struct{ refused, untrusted string }

// A frontierRun is one run of a level.
type frontierRun struct {
	load   frontierLoad
	rows   []trace.Request
	warmup float64 // s of an open loop that are not measured
	again  int     // how often it was made before, shorter
}

// run is the next run of a level, whose requests take about e2e seconds. A closed loop has ten
// times as many requests as are in flight. An open loop is warm after twice the time that a
// request takes, and measures as long at least.
func (f *Frontier) run(class *LengthClass, e *FrontierEngine, load frontierLoad, e2e float64) (frontierRun, error) {
	r := frontierRun{load: load}
	least := int64(leastMeasured)
	if e.Target != nil {
		least = max(f.Requests, 1)
	}
	n := load.inFlight
	count := float64(n * (2 + max(generations, (int(least)+n-1)/max(n, 1))))
	if load.rate > 0 {
		r.warmup = math.Ceil(max(warmupTime.Seconds(), warmupRequests/load.rate, 2*e2e))
		count = load.rate * (r.warmup + max(f.Duration.Seconds(), float64(f.Requests)/load.rate, 2*e2e))
		count = math.Ceil(count + 3*math.Sqrt(count)) // arrivals are random, and to last so long takes some more
	}
	if !(count <= mostLevelRequests) {
		return r, fmt.Errorf("a level %s has more than %d requests", load.at(), mostLevelRequests)
	}
	var err error
	r.rows, err = class.rows(int(count), f.Seed, load)
	return r, err
}

// measure makes a level, of requests that take about e2e seconds as far as is known. An open
// loop is made again, longer, where they took longer than its warm-up.
func (f *Frontier) measure(ctx context.Context, class *LengthClass, e *FrontierEngine, load frontierLoad,
	e2e float64) (p FrontierPoint, end frontierEnd, err error) {
	for again := range mostTries {
		run, err := f.run(class, e, load, e2e)
		if err != nil {
			return p, end, err
		}
		run.again = again
		var ended endedRequests
		if e.Target != nil {
			end, err = f.measureServer(ctx, class, e, &run, &ended)
		} else {
			end.refused, err = f.simulate(ctx, class, e, &run, &ended)
		}
		if err != nil || end != (frontierEnd{}) {
			return p, end, err
		}
		p, end.refused, err = ended.point(&run, e)
		if err != nil || load.rate == 0 {
			return p, end, err
		}
		if e2e = ended.firstE2E(); e2e <= run.warmup && p.Requests > 0 {
			return p, end, nil
		}
	}
	return p, frontierEnd{refused: fmt.Sprintf("no request ended in the measured part of %d longer and longer runs",
		mostTries)}, nil
}

// simulate plays a run in virtual time. refused says why the engine does not answer all
// requests.
func (f *Frontier) simulate(ctx context.Context, class *LengthClass, e *FrontierEngine, run *frontierRun,
	ended *endedRequests) (refused string, err error) {
	o := replay.Options{Concurrency: run.load.inFlight}
	if run.load.rate > 0 {
		process, err := arrival.ParseProcess(processAt("poisson", run.load.rate))
		if err != nil {
			return "", err
		}
		o.Arrivals = process.New(arrival.Stream(f.Seed, "frontier arrivals "+class.Name+" "+run.load.name()))
	}
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
	due, done, ttft, tpot, e2e int64
	prompt, output             int64
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
	kept := endedRequest{due: r.DueNS, done: *r.DoneNS, ttft: ttft.NS, tpot: d.TPOT.NS, e2e: e2e.NS,
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

// firstE2E is the median of the first requests to be due, in seconds: of a server that falls
// behind, later ones say how long the run was.
func (w *endedRequests) firstE2E() float64 {
	first := slices.Clone(w.all)
	slices.SortStableFunc(first, func(a, b endedRequest) int { return cmp.Compare(a.due, b.due) })
	first = first[:min(len(first), firstRequests)]
	values := make([]int64, len(first))
	for i := range first {
		values[i] = first[i].e2e
	}
	return medianMS(values) / 1e3
}

// window is the measured time of a run, and the requests that ended in it. Of a closed loop
// with n in flight the first n requests to end fill the engine, and the last n drain it: the
// others are measured, from the end of the n-th on. So the engine is full all the time, and
// requests that began together count as whole generations. Of an open loop it is from the
// warm-up to the last arrival.
func (w *endedRequests) window(run *frontierRun) (measured []endedRequest, from, to int64) {
	slices.SortStableFunc(w.all, func(a, b endedRequest) int { return cmp.Compare(a.done, b.done) })
	if n := run.load.inFlight; run.load.rate == 0 {
		if len(w.all) <= 2*n {
			return nil, 0, 0
		}
		measured = w.all[n : len(w.all)-n]
		return measured, w.all[n-1].done, measured[len(measured)-1].done
	}
	from = int64(run.warmup * 1e9)
	for _, r := range w.all {
		to = max(to, r.due)
	}
	for _, r := range w.all {
		if r.done > from && r.done <= to {
			measured = append(measured, r)
		}
	}
	return measured, from, to
}

// follows tells whether as many requests came out as arrived, see [Flow.Follows].
func (w *endedRequests) follows(measured int, from, to int64) bool {
	offered, flow := 0, Flow{}
	for _, r := range w.all {
		if r.due > from && r.due <= to {
			offered++
		}
		if r.due <= from && r.done > from {
			flow.OpenBefore++
		}
		if r.due <= to && r.done > to {
			flow.OpenAfter++
		}
	}
	seconds := float64(to-from) / 1e9
	flow.OfferedPerS, flow.AchievedPerS = trace.Ptr(float64(offered)/seconds), trace.Ptr(float64(measured)/seconds)
	return flow.Follows()
}

// point computes a level.
func (w *endedRequests) point(run *frontierRun, e *FrontierEngine) (p FrontierPoint, refused string, err error) {
	measured, from, to := w.window(run)
	p = FrontierPoint{Extrapolates: w.beyond, Concurrency: run.load.inFlight, Rate: run.load.rate,
		Requests: len(measured), Seconds: float64(to-from) / 1e9}
	if len(measured) == 0 {
		if run.load.rate > 0 { // they take longer than the run
			return p, "", nil
		}
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
	p.Saturated = run.load.rate > 0 && !w.follows(len(measured), from, to)
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
