package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
)

// minSteady is how many requests a steady state needs: as many as a p99 does.
const minSteady = 100

// A Steady is the part of a run in which the requests in flight had settled, without the
// ramp at its begin and the drain at its end. Figures are null where Reason says why there
// is none.
//
// In flight counts every request that was sent and ended, a warm-up included, from the
// first to the last that was sent. MSER-5 (White 1997; Franklin and White 2008) cuts off
// at both ends what is unlike the rest: of batches of five observations, it leaves out as
// many as make the standard error of the mean of the others smallest, half of them at
// most. What is left is steady unless the requests in flight grew or fell in it (a trend by
// Mann and Kendall, with its variance corrected for correlation), or wandered (von
// Neumann's ratio of the means of its parts), or Little's law does not hold for it.
//
// Latencies are of the measured, successful requests that were sent and finished inside.
// Throughput counts what happened inside, whatever was only partly there: requests by
// their end, output tokens by the instants of their events, prompt tokens by the first
// token.
type Steady struct {
	Method      string   `json:"method"`
	ResolutionS *float64 `json:"resolution_s"` // of an observation

	Window   *Stretch `json:"window"`
	InFlight *float64 `json:"in_flight_mean"` // in the window
	// Change is how much the requests in flight grew, by the trend that is looked at, from
	// its begin to its end: a share of their mean, below 0 where they fell.
	Change *float64 `json:"in_flight_change_share"`
	// Little is the mean of the requests in flight over what Little's law gives: their
	// rate times their mean time. In a steady state it is 1.
	Little *float64 `json:"little_ratio"`

	Inside   int64 `json:"inside_requests"`   // sent and finished inside: those of the latencies
	Finished int64 `json:"finished_requests"` // inside, successfully

	RequestsPerS     *float64 `json:"requests_per_s"`
	PromptTokensPerS *float64 `json:"prompt_tokens_per_s"`
	OutputTokensPerS *float64 `json:"output_tokens_per_s"`

	TTFT     *Stat `json:"ttft"`
	TPOT     *Stat `json:"tpot"`
	ITLChunk *Stat `json:"itl_chunk"`
	E2E      *Stat `json:"e2e"`

	Reason string `json:"reason,omitempty"`
}

// steadyMethod is the name of how a steady state is found.
const steadyMethod = "mser-5"

// A Stretch is a stretch of the run, in seconds from its start.
type Stretch struct {
	FromS     float64 `json:"from_s"`
	ToS       float64 `json:"to_s"`
	DurationS float64 `json:"duration_s"`
}

// findSteady reads the results twice: for the requests in flight over time, and
// for what the steady stretch holds. Its memory does not grow with the run.
func findSteady(run result.Run, reread Reread, opts Options) (Steady, error) {
	opts, err := opts.complete()
	if err != nil {
		return Steady{}, err
	}
	s, in, err := findStretch(run, reread, &opts)
	if err != nil || in == nil {
		return s, err
	}
	err = trace.Each(reread(), func(_ int64, r *result.Result) error {
		if err := CheckResult(r); err != nil {
			return err
		}
		in.add(r)
		return nil
	})
	if err != nil {
		return Steady{}, err
	}
	in.finish(&s)
	return s, nil
}

// SummariseSteady is [Summarise] with the steady state in the summary. It reads the results
// once, after the requests in flight, which are two columns of them.
func SummariseSteady(run result.Run, reread Reread, opts Options) (Summary, error) {
	if err := opts.AddSteady(run, reread); err != nil {
		return Summary{}, err
	}
	if opts.Steady != nil { // the contract needs it before the pass
		s, err := Summarise(run, reread(), opts)
		s.Steady = opts.Steady
		return s, err
	}
	opts, err := opts.complete()
	if err != nil {
		return Summary{}, err
	}
	steady, in, err := findStretch(run, reread, &opts)
	if err != nil {
		return Summary{}, err
	}
	s, err := readOnce(run, reread(), opts, in)
	if err == nil && in != nil {
		in.finish(&steady)
	}
	s.Steady = &steady
	return s, err
}

// findStretch finds the stretch in which the requests in flight had settled, and what adds
// up what happened in it; nil where there is none.
func findStretch(run result.Run, reread Reread, opts *Options) (Steady, *inside, error) {
	src := reread()
	if some, ok := src.(interface{ Only(columns ...string) }); ok {
		some.Only("row", "sent_ns", "done_ns")
	}
	var c Curve
	requests := 0
	err := trace.Each(src, func(_ int64, r *result.Result) error {
		if err := CheckResult(r); err != nil {
			return err
		}
		if r.SentNS != nil && r.DoneNS != nil {
			c.Add(*r.SentNS, *r.DoneNS)
			requests++
		}
		return nil
	})
	if err != nil {
		return Steady{}, nil, err
	}
	s := Steady{Method: steadyMethod}
	window, ok := c.steady(&s, requests)
	if !ok {
		return s, nil, nil
	}
	in := &inside{run: run, window: window, stalls: newStallMeter(run.Stalls, opts)}
	for _, values := range []*sample.Values{&in.ttft, &in.tpot, &in.itl, &in.e2e} {
		values.Limit = opts.Exact
	}
	return s, in, nil
}

// AddSteady looks for the steady state where a clause of the contract is about it.
func (o *Options) AddSteady(run result.Run, reread Reread) error {
	if o.Contract == nil || !o.Contract.NeedsSteady() {
		return nil
	}
	s, err := findSteady(run, reread, *o)
	o.Steady = &s
	return err
}

// Interval is the steady part, nil without one.
func (s *Steady) Interval() *Interval {
	if s.Window == nil || s.Reason != "" {
		return nil
	}
	ns := func(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }
	return &Interval{ns(s.Window.FromS), ns(s.Window.ToS)}
}

const (
	mserBatch = 5 // observations in a batch
	// Batches: enough that half of them tell a mean, few enough that each has several
	// requests.
	leastBatches, mostBatches, requestsPerBatch = 20, 200, 10
	// steadyParts is how many parts of equal length are looked at for a trend and for
	// wandering. Chance alone gives a trend beyond trendLimit, in standard deviations, in
	// one run of a hundred, and a correlation of neighbours beyond wanderLimit in one of
	// three hundred. What is within steadyChange of the mean matters to nobody.
	steadyParts  = 20
	trendLimit   = 2.6
	wanderLimit  = 0.6
	monotone     = 0.7 // Kendall's tau
	steadyChange = 0.1
	littleLimit  = 0.25 // that the ratio may be from 1
)

// steady finds the settled part of the requests in flight, from the first to the last
// that was sent.
func (c *Curve) steady(s *Steady, requests int) (Interval, bool) {
	first := slices.IndexFunc(c.up, func(n int32) bool { return n > 0 })
	last := len(c.up) - 1
	for ; last > first && c.up[last] == 0; last-- {
	}
	batches := min(max(requests/requestsPerBatch, leastBatches), mostBatches)
	// The level at the end of bin i holds for bin i+1.
	each := (last - first) / (batches * mserBatch) // bins of an observation
	if first < 0 || each == 0 || requests < minSteady {
		s.Reason = fmt.Sprintf("%s in %s s are too few to tell", doc.Many(int64(requests), "request"),
			doc.Number(float64(max(last-first, 0))*float64(c.width)/1e9))
		if first == last && requests > 1 {
			s.Reason = "the results do not say when requests were sent"
		}
		return Interval{}, false
	}
	observations := make([]float64, (last-first)/each)
	for i, open := range c.levels {
		if at := (i - first) / each; i >= first && at < len(observations) {
			observations[at] += float64(open) / float64(each)
		}
	}
	s.ResolutionS = Seconds(int64(each) * c.width)
	from, settled := mser(observations)
	rest := slices.Clone(observations[from:])
	slices.Reverse(rest)
	back, ended := mser(rest)
	to := len(observations) - back
	if !settled || !ended {
		from, to = 0, len(observations)
	}
	if s.Reason = unsettled(s, observations[from:to], *s.ResolutionS); s.Reason == "" && !(settled && ended) {
		s.Reason = "the requests in flight had not settled by the middle of the run"
	}
	if s.Reason != "" {
		return Interval{}, false
	}
	sum := 0.0
	for _, v := range observations[from:to] {
		sum += v
	}
	s.InFlight = Rounded(sum/float64(to-from), 1e6)
	at := func(i int) int64 { return int64(first+1+i*each) * c.width }
	w := Interval{at(from), at(to)}
	s.Window = &Stretch{*Seconds(w.from), *Seconds(w.to), *Seconds(w.to - w.from)}
	return w, true
}

// mser is how many observations MSER-5 leaves out at the begin. It is not settled where
// those would be half of them or more: the series is too short for its transient.
func mser(observations []float64) (leaveOut int, settled bool) {
	n := len(observations) / mserBatch
	best, at := math.Inf(1), 0
	sum, squares := 0.0, 0.0
	for i := n - 1; i >= 0; i-- {
		mean := 0.0
		for _, v := range observations[i*mserBatch : (i+1)*mserBatch] {
			mean += v / mserBatch
		}
		sum, squares = sum+mean, squares+mean*mean
		k := float64(n - i)
		if i > n/2 {
			continue
		}
		if error2 := max(squares-sum*sum/k, 0) / (k * k); error2 <= best {
			best, at = error2, i
		}
	}
	return at * mserBatch, at < n/2
}

// unsettled says why observations are not of a steady state; "" that they are. It notes
// their trend.
func unsettled(s *Steady, observations []float64, width float64) string {
	parts := make([]float64, steadyParts)
	mean := 0.0
	for i := range parts {
		of := observations[i*len(observations)/steadyParts : (i+1)*len(observations)/steadyParts]
		for _, v := range of {
			parts[i] += v / float64(len(of))
		}
		mean += parts[i] / steadyParts
	}
	// Theil and Sen: the median of the slopes of all pairs.
	var slopes []float64
	score := 0.0
	for j, w := range parts {
		for i, v := range parts[:j] {
			slopes = append(slopes, (w-v)/float64(j-i))
			switch {
			case w > v:
				score++
			case w < v:
				score--
			}
		}
	}
	slices.Sort(slopes)
	slope := (slopes[(len(slopes)-1)/2] + slopes[len(slopes)/2]) / 2
	level := make([]float64, steadyParts)
	for i, v := range parts {
		level[i] = v - slope*float64(i)
	}
	// Parts that are alike their neighbours say less than as many that are not.
	n := float64(steadyParts)
	variance := n * (n - 1) * (2*n + 5) / 18
	if r := correlation(level); r > 0 {
		variance *= (1 + r) / (1 - r)
	}
	change := 0.0
	if mean > 0 {
		change = slope * n / mean
	}
	s.Change = Rounded(change, 1e6)
	spread := 0.0
	for _, v := range parts {
		spread += (v - mean) * (v - mean) / n
	}
	wanders := mean > 0 && math.Sqrt(spread) > steadyChange*mean && correlation(parts) > wanderLimit
	trend := math.Abs(score)/math.Sqrt(variance) > trendLimit || wanders && math.Abs(score) > monotone*n*(n-1)/2
	in := doc.Number(*Rounded(float64(len(observations))*width, 1e3))
	number := func(v float64) string { return doc.Number(*Rounded(v, 10)) }
	switch {
	case trend && change > steadyChange:
		return fmt.Sprintf("the requests in flight grew from %s to %s in %s s, so that more were sent than the "+
			"server finished", number(parts[0]), number(parts[steadyParts-1]), in)
	case trend && change < -steadyChange:
		return fmt.Sprintf("the requests in flight fell from %s to %s in %s s", number(parts[0]),
			number(parts[steadyParts-1]), in)
	case wanders:
		return fmt.Sprintf("the requests in flight wandered between %s and %s in %s s, more slowly than chance does",
			number(slices.Min(parts)), number(slices.Max(parts)), in)
	}
	return ""
}

// correlation is that of values with their neighbours, by von Neumann's ratio: 1 less half
// of the mean square of their differences over their variance. Values that are all
// the same have none.
func correlation(values []float64) float64 {
	mean, spread, steps := 0.0, 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for i, v := range values {
		spread += (v - mean) * (v - mean)
		if i > 0 {
			steps += (v - values[i-1]) * (v - values[i-1])
		}
	}
	if spread == 0 {
		return 0
	}
	return min(1-steps/(2*spread), 0.99)
}

// inside adds up what happened in a stretch.
type inside struct {
	run                  result.Run
	window               Interval
	finished, sent       int64
	prompt               int64
	output               float64
	impossible           bool // the output counts of some cannot be, and are not in output
	ttft, tpot, itl, e2e sample.Values

	stalls *stallMeter
	begun  float64 // ns of all requests that were sent inside, to their ends
}

func (in *inside) add(r *result.Result) {
	if r.SentNS != nil && r.DoneNS != nil && in.window.Contains(*r.SentNS) {
		in.begun += float64(*r.DoneNS - *r.SentNS)
	}
	if end, _ := OutcomeOf(r); end != Succeeded {
		return
	}
	if in.stalls.kernel {
		r = in.stalls.kernelInstants(r)
	}
	done := in.window.Contains(*r.DoneNS)
	if done {
		in.finished++
	}
	in.addTokens(r)
	before, after := in.run.Window.Holds(r)
	if before || after || !done || !in.window.Contains(*r.SentNS) {
		return
	}
	in.sent++
	l := Derive(r)
	addSpan(&in.ttft, l.TTFT[FromSent])
	addSpan(&in.e2e, l.E2E[FromSent])
	addSpan(&in.tpot, l.TPOT)
	addGaps(&in.itl, r)
}

// addTokens counts the tokens of the events inside. Where the server did not
// say how many each carried, all of a request's carried as many.
func (in *inside) addTokens(r *result.Result) {
	if r.FirstTokenNS == nil || r.Events == 0 {
		return
	}
	if in.window.Contains(*r.FirstTokenNS) {
		in.prompt += int64(InputTokens(r))
	}
	exact := len(r.EventTokens) == int(r.Events)
	each := 0.0
	in.impossible = in.impossible || r.Contradictions() != 0 && r.Output == nil
	if r.Output != nil {
		each = float64(*r.Output) / float64(r.Events)
	}
	at := *r.FirstTokenNS
	for i := range int(r.Events) {
		if i > 0 {
			at += r.GapsNS[i-1]
		}
		switch {
		case !in.window.Contains(at):
		case exact:
			in.output += float64(r.EventTokens[i])
		default:
			in.output += each
		}
	}
}

func (in *inside) finish(s *Steady) {
	s.Inside, s.Finished = in.sent, in.finished
	ns := in.window.to - in.window.from
	if in.begun > 0 {
		s.Little = Rounded(*s.InFlight*float64(ns)/in.begun, 1e6)
	}
	switch {
	case in.sent < minSteady:
		s.Reason = fmt.Sprintf("%s %s sent and finished in the %s s from %s s on in which the requests in flight had "+
			"settled; %d are needed",
			doc.Many(in.sent, "request"), doc.Was(in.sent), doc.Number(s.Window.DurationS),
			doc.Number(s.Window.FromS), minSteady)
		return
	case s.Little == nil || math.Abs(*s.Little-1) > littleLimit:
		s.Reason = fmt.Sprintf("from %s s to %s s there were %s times as many requests in flight as Little's law "+
			"gives, so that they did not come and go at one rate",
			doc.Number(s.Window.FromS), doc.Number(s.Window.ToS), numberOrDash(s.Little))
		return
	}
	s.RequestsPerS = PerSecond(in.finished, ns)
	s.PromptTokensPerS = PerSecond(in.prompt, ns)
	if !in.impossible {
		s.OutputTokensPerS = Rounded(in.output/float64(ns)*1e9, 1e6)
	}
	for _, m := range []struct {
		into **Stat
		of   *sample.Values
	}{{&s.TTFT, &in.ttft}, {&s.TPOT, &in.tpot}, {&s.ITLChunk, &in.itl}, {&s.E2E, &in.e2e}} {
		st, _ := StatOf(m.of)
		*m.into = &st
	}
}

// saySteady says which stretch it was and what the server did in it.
func saySteady(s *Steady) []string {
	switch {
	case s == nil:
		return nil
	case s.Reason != "":
		return []string{"No steady state: " + s.Reason + "."}
	}
	out := fmt.Sprintf("Steady from %s s to %s s, with %s requests in flight. %s requests, %s prompt tokens and %s "+
		"output tokens per second; %s sent and finished inside have the latencies.",
		doc.Number(s.Window.FromS), doc.Number(s.Window.ToS), doc.Number(*s.InFlight),
		doc.Number(*s.RequestsPerS), doc.Number(*s.PromptTokensPerS), doc.OrDash(s.OutputTokensPerS, doc.Number),
		doc.Many(s.Inside, "request"))
	return []string{out}
}

func steadySection(s *Steady) doc.Section {
	sec := doc.Section{Text: saySteady(s)}
	if len(sec.Text) > 0 {
		sec.Title = "Steady state"
	}
	if s != nil && s.TTFT != nil {
		t := latencyTable("Latency in ms, of requests sent and finished inside", []metric{
			{"ttft", "TTFT from sent", s.TTFT}, {"itl_chunk", "Chunk ITL", s.ITLChunk}, {"tpot", "TPOT", s.TPOT},
			{"e2e", "E2E from sent", s.E2E}})
		t.HeadTerms[0] = termOf("latencies of the steady state")
		sec.Tables = []doc.Table{t}
	}
	return sec
}

const (
	maxBins  = 1 << 20
	firstBin = int64(1e6) // 1 ms
)

// A Curve holds how many requests began and ended in each bin of time: at most
// maxBins of equal width, 8 MB, which double in width as the run grows. How
// many were open is exact at the edges of the bins.
type Curve struct {
	width    int64
	up, down []int32
}

func (c *Curve) bin(ns int64) int64 {
	c.width = cmp.Or(c.width, firstBin)
	for ns/c.width >= maxBins {
		c.up, c.down = halve(c.up, add32), halve(c.down, add32)
		c.width *= 2
	}
	b := ns / c.width
	if n := int(b) + 1 - len(c.up); n > 0 {
		c.up = append(c.up, make([]int32, n)...)
		c.down = append(c.down, make([]int32, n)...)
	}
	return b
}

func add32(into *int32, n int32) { *into += n }

// halve joins the bins of a series by twos, in place.
func halve[T any](bins []T, join func(into *T, other T)) []T {
	half := (len(bins) + 1) / 2
	for i := range half {
		b := bins[2*i]
		if 2*i+1 < len(bins) {
			join(&b, bins[2*i+1])
		}
		bins[i] = b
	}
	return bins[:half]
}

// Add counts a request that was open from one instant to another, in nanoseconds
// since the run began.
func (c *Curve) Add(from, to int64) {
	last := c.bin(max(from, to)) // first, since it may change the width
	c.up[c.bin(from)]++
	c.down[last]++
}

// levels yields how many requests were open at the end of each bin.
func (c *Curve) levels(yield func(bin int, open int64) bool) {
	var open int64
	for i := range c.up {
		open += int64(c.up[i]) - int64(c.down[i])
		if !yield(i, open) {
			return
		}
	}
}

// Parts cuts the time of a curve into intervals of at most limit beginnings and
// ends, or of one bin.
func (c *Curve) Parts(limit int) []Interval {
	var out []Interval
	held, from := 0, int64(0)
	for i := range c.up {
		n := int(c.up[i]) + int(c.down[i])
		if at := int64(i) * c.width; held > 0 && held+n > limit {
			out = append(out, Interval{from, at})
			held, from = 0, at
		}
		held += n
	}
	return append(out, Interval{from, MaxInstant + 1})
}

// An Interval is a part of a run's time. Its end is not in it.
type Interval struct{ from, to int64 } // nanoseconds

// Contains tells whether an instant, in nanoseconds, is within the interval.
func (p Interval) Contains(ns int64) bool { return p.from <= ns && ns < p.to }

// Reread opens the results of a run from their beginning; it is called once for each pass
// over them. A pass that needs a few columns says so to a reader that can leave the others
// unread, as those of a results file can, by its method Only.
type Reread func() trace.Reader[result.Result]
