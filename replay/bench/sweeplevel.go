package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"reprise/replay/contract"
	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
)

// Roles of a level in a sweep.
const (
	roleLevel   = "level"   // of the ladder
	roleConfirm = "confirm" // at the highest load that was estimated
	roleSustain = "sustain" // the same for longer
)

// Outcomes of a level.
const (
	outcomeHolds     = "holds"     // the contract does, and the server follows
	outcomeFails     = "fails"     // the contract does not hold
	outcomeSaturated = "saturated" // see [Sweep.StopTTFT]
	outcomeUnjudged  = "unjudged"  // the run is too short for what the contract asks
	outcomeUntrusted = "untrusted" // the client was the limit: it says nothing of the server
)

// A Level is what was measured at one load.
type Level struct {
	Name      string  `json:"name"` // also of its directory
	Role      string  `json:"role"` // level, confirm or sustain
	Load      float64 `json:"load"` // in the unit of the sweep
	Seed      string  `json:"seed"` // of its prompts and arrivals
	Warmup    string  `json:"warm_up"`
	DurationS float64 `json:"duration_s"` // of sending, with the warm-up

	Requests    report.Requests `json:"requests"`
	Flow        Flow            `json:"flow"`
	OutputPerS  *float64        `json:"output_tokens_per_s"` // over the whole run, with its tail
	PromptPerS  *float64        `json:"prompt_tokens_per_s"`
	OutputMean  *float64        `json:"output_tokens_per_request"`
	PromptMean  *float64        `json:"prompt_tokens_per_request"`
	GoodShare   *float64        `json:"goodput_share"`  // from schedule; null without objectives
	InFlight    *float64        `json:"in_flight_mean"` // over the whole run, with its tail; that of [Flow] is without
	TTFTDue     report.Stat     `json:"ttft_from_due"`
	TTFTSent    report.Stat     `json:"ttft_from_sent"`
	TPOT        report.Stat     `json:"tpot"`
	ITL         report.Stat     `json:"itl_chunk"`
	E2E         report.Stat     `json:"e2e_from_due"`
	Sessions    *LevelSessions  `json:"sessions,omitempty"` // of a load by session
	Trustworthy bool            `json:"trustworthy"`
	// Loosened are the limits of that verdict that allow more than their defaults.
	Loosened report.LoosenedLimits `json:"loosened_limits,omitempty"`
	// Extrapolates are the bounds of what a simulated engine was fitted to that the level passed.
	Extrapolates []result.Beyond `json:"extrapolates,omitempty"`

	Contract *report.ContractResult `json:"contract,omitempty"`
	Outcome  string                 `json:"outcome"` // holds, fails, saturated, unjudged or untrusted
	Why      string                 `json:"why,omitempty"`
	Note     string                 `json:"note,omitempty"` // how far the level can be trusted
	// Sure tells that the outcome is beyond chance, by the intervals: at 95 %, and where the
	// sweep searches with a precision at 99 %. See [measurement.sure], and for levels near
	// saturation [SweepResult.findSaturation].
	Sure bool `json:"sure"`

	// Runs are the runs with seeds of their own that were made at the load. Percentiles of
	// TTFT, what the contract measures of requests, and the intervals are of all of them,
	// other figures of the last, which is the longest.
	Runs      int              `json:"runs"`
	Measured  int64            `json:"measured_requests"` // of all runs
	Intervals []MetricInterval `json:"intervals"`
}

// ofServer are the reasons against a run that are the server's doing. All others
// are about the client, or about a run that was not the one asked for.
var ofServer = map[string]bool{report.CodeErrors: true, report.CodeRefused: true, report.CodeSkipped: true,
	report.CodeNoSamples: true}

// takeSummary takes over what the summary says.
func (l *Level) takeSummary(s *report.Summary) {
	l.Requests, l.InFlight, l.Trustworthy, l.Contract = s.Requests, s.InFlight.Mean, s.Verdict.Trustworthy, s.Contract
	l.Loosened = s.Verdict.Loosened
	l.OutputPerS, l.PromptPerS = s.Throughput.OutputTokensPerS, s.Throughput.PromptTokensPerS
	l.TTFTDue, l.TTFTSent = s.Latency.FromDue.TTFT, s.Latency.FromSent.TTFT
	l.TPOT, l.ITL, l.E2E = s.Latency.TPOT, s.Latency.ITLChunk, s.Latency.FromDue.E2E
	l.PromptMean, l.OutputMean = s.MeanLengths()
	if s.Goodput != nil {
		l.GoodShare = s.Goodput.FromDue.Share
	}
}

// farBeyond is how many times what a contract allows is so far beyond it that no
// higher load is of interest.
const farBeyond = 4

// judgeOutcome settles the outcome. stop is the p99 of TTFT at which a server counts as
// saturated.
func (l *Level) judgeOutcome(s *report.Summary, doubt *report.Reason, closed bool, stop time.Duration) {
	if doubt != nil {
		l.Outcome, l.Why = outcomeUntrusted, doubt.Text
		// Of several reasons of one cause the last one names the limit, and this may be the first.
		if _, key := doubt.Doubts(); key != "" && !strings.Contains(l.Why, "--trust ") {
			l.Why += "; --trust " + key + "=… accepts it"
		}
		return
	}
	if mean := l.E2E.Mean; mean != nil && *mean/1e3 > l.Flow.Seconds {
		l.note(fmt.Sprintf("a request takes %s s on average, and half of the level %s s: the server may not be in "+
			"its steady state", doc.Number(*mean/1e3), doc.Number(l.Flow.Seconds)))
	}
	for i := range s.Verdict.Reasons {
		if r := &s.Verdict.Reasons[i]; !ofServer[r.Code] {
			l.note("it counts, since this cannot change whether the contract holds: " + r.Text)
		}
	}
	if why := l.saturation(s, closed, stop); why != "" {
		l.Outcome, l.Why = outcomeSaturated, why
		return
	}
	switch c := s.Contract; {
	case c == nil || c.Holds:
		l.Outcome = outcomeHolds
	case c.Fails():
		l.Outcome, l.Why = outcomeFails, c.String()
	default:
		l.Outcome, l.Why = outcomeUnjudged, c.String()
	}
}

// judgeSteady takes a run that is to be sustained for saturated where requests in flight grew: what
// holds while a queue builds up does not hold for good.
func (l *Level) judgeSteady(closed bool) {
	if f := &l.Flow; l.Outcome == outcomeHolds && l.Sessions == nil && !closed && !f.Steady() {
		l.Outcome = outcomeSaturated
		l.Why = f.growth(cell(f.Early), cell(f.Late), " on average")
	}
}

// note adds a sentence on how far the level can be trusted.
func (l *Level) note(says string) { l.Note = strings.TrimPrefix(l.Note+"; "+says, "; ") }

// NotHeld tells whether a level shows a load to be too high; Why says how.
func (l *Level) NotHeld() bool { return l.Outcome == outcomeFails || l.Outcome == outcomeSaturated }

// countsThough tells whether the client read late at a level that counts all the same.
func (l *Level) countsThough() bool {
	return !l.Trustworthy && (l.Outcome == outcomeHolds || l.Outcome == outcomeFails)
}

// clientLimit is why a run says nothing of the server, nil when it does. Reasons that cannot change whether the
// contract holds are passed over.
func (s *Sweep) clientLimit(summary *report.Summary) *report.Reason {
	for i := range summary.Verdict.Reasons {
		if r := &summary.Verdict.Reasons[i]; !ofServer[r.Code] && s.decides(r, summary.Contract) {
			return r
		}
	}
	return nil
}

// decides tells whether a reason against a run leaves open what becomes of the contract: all do but those about
// latencies that no clause asks for, and in an open loop those by which times that hold may be too long. A closed
// loop sends later by them. With a precision such a run would count among others that do not hold.
func (s *Sweep) decides(r *report.Reason, judged *report.ContractResult) bool {
	of, _ := r.Doubts()
	terms := contract.Of(s.Report)
	if of == nil || terms == nil || s.Sessions != nil {
		return true
	}
	asked, ok := terms.Latencies(s.Report.SLO)
	return !ok || slices.ContainsFunc(asked, func(l *figure.Subject) bool {
		tooLong := l == figure.TTFT || l == figure.E2E
		return slices.Contains(of, l) && !(tooLong && judged != nil && judged.Holds && !s.Closed() && s.Precision == 0)
	})
}

// saturation says why the server is saturated, "" when it is not.
func (l *Level) saturation(s *report.Summary, closed bool, stop time.Duration) string {
	for _, r := range s.Verdict.Reasons {
		if ofServer[r.Code] {
			return r.Text
		}
	}
	if p99 := l.TTFTDue.P99; p99 != nil && *p99 > float64(stop)/1e6 {
		return fmt.Sprintf("p99 TTFT from schedule is %s s, beyond %v", doc.Number(*p99/1e3), stop)
	}
	if l.Sessions != nil {
		if why := l.Sessions.growth(); !closed && why != "" {
			return why
		}
	} else if f := &l.Flow; !closed && !f.Follows() { // where turns wait for answers, no more are offered than come out
		return f.growth(fmt.Sprint(f.OpenBefore), fmt.Sprint(f.OpenAfter), "")
	}
	if s.Contract == nil {
		return ""
	}
	for i := range s.Contract.Clauses {
		if c := &s.Contract.Clauses[i]; (c.Unit == "ms" || c.Unit == "s") && c.Margin != nil &&
			*c.Margin <= 1-farBeyond {
			return fmt.Sprintf("far beyond the contract: %s", s.Contract)
		}
	}
	return ""
}

// A Flow compares what went in with what came out in the second half of the time in
// which measured requests were due. The first half is left out, since a server that
// was idle takes in more than it gives until it is full. Throughput over a whole run
// says too little: it has the time in it which the last requests took to end.
type Flow struct {
	Seconds      float64  `json:"seconds"` // of the half
	OfferedPerS  *float64 `json:"offered_requests_per_s"`
	AchievedPerS *float64 `json:"achieved_requests_per_s"` // that ended and succeeded
	OutputPerS   *float64 `json:"output_tokens_per_s"`     // of those
	InFlight     *float64 `json:"in_flight_mean"`          // sent and not over, on average over the time
	Early        *float64 `json:"in_flight_mean_early"`    // the same in the first part of the half
	Late         *float64 `json:"in_flight_mean_late"`     // and in the second
	OpenBefore   int64    `json:"in_flight_at_begin"`
	OpenAfter    int64    `json:"in_flight_at_end"`
	// Dispersion is the variance over the mean of how many requests are due while one is in flight: 1 of
	// a Poisson process, more where they come in bursts.
	Dispersion *float64 `json:"arrival_dispersion"`
}

// Limits of a flow that follows.
const (
	followShare = 0.95
	followSD    = 3
)

// Follows tells whether the server keeps up with an open loop: it does not when less
// than 95 % of what was offered came out, and the requests in flight grew by more
// than three standard deviations of what chance does. In a server without a queue the
// number in flight is Poisson distributed (M/G/∞), so that two of its values, far
// enough apart, differ with a variance of their sum. Arrivals in bursts multiply that by
// their dispersion at most, which is the peakedness of G/D/∞ (Eckberg, "Generalized peakedness
// of teletraffic processes", 1983).
func (f *Flow) Follows() bool {
	if f.OfferedPerS == nil || f.AchievedPerS == nil || *f.AchievedPerS >= followShare**f.OfferedPerS {
		return true
	}
	variance := float64(f.OpenAfter + f.OpenBefore)
	if f.Dispersion != nil {
		variance *= max(*f.Dispersion, 1)
	}
	return float64(f.OpenAfter-f.OpenBefore) <= followSD*math.Sqrt(variance)
}

// Limits of a flow that is steady.
const (
	steadyShare = 0.01
	steadySD    = 1
)

// Steady tells whether the queue was stationary: from the one part of the half to the other the mean
// of the requests in flight grew by no more than 1 % of what was offered meanwhile, or than the standard
// deviation of what chance does. In a server without a queue (M/G/∞) a mean of L over a time T, in
// which requests of L ÷ offered each are independent, has a variance of some 2·L²÷(offered·T). It asks for
// more than [Flow.Follows], which calls a server saturated: a queue that is too short to say
// so is not shown to be none.
func (f *Flow) Steady() bool {
	if f.OfferedPerS == nil || f.Early == nil || f.Late == nil {
		return true
	}
	offered := *f.OfferedPerS * f.Seconds / 2 // in a part
	variance := 2 * 2 * *f.Early * *f.Early / max(offered, 1)
	if f.Dispersion != nil {
		variance *= max(*f.Dispersion, 1)
	}
	return *f.Late-*f.Early <= max(steadyShare*offered, steadySD*math.Sqrt(variance))
}

// growth says that the queue grows, from so many requests in flight to so many.
func (f *Flow) growth(from, to, how string) string {
	return fmt.Sprintf("the queue grows: %s of %s requests per second came out, and requests in flight "+
		"went from %s to %s%s",
		cell(f.AchievedPerS), cell(f.OfferedPerS), from, to, how)
}

// dispersionOf is the variance over the mean of how many of the due times, of some span, lie in a
// window, or in a 30th of the span where that is shorter.
func dispersionOf(due []int64, first, last int64, window time.Duration) *float64 {
	const least = 30
	window = min(window, time.Duration(last-first)/least)
	if window <= 0 {
		return nil
	}
	counts := make([]float64, min((last-first)/int64(window), int64(len(due))*least))
	for _, at := range due {
		if i := (at - first) / int64(window); i >= 0 && i < int64(len(counts)) {
			counts[i]++
		}
	}
	mean, variance := stat.MeanVariance(counts, nil)
	if mean == 0 {
		return nil
	}
	return trace.Ptr(variance / mean)
}

// flowOf reads the results of a run twice: for the time in which requests were due,
// and for what happened in its second half.
func flowOf(run *result.Run, open func() trace.Reader[result.Result]) (Flow, error) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	var due []int64
	var took time.Duration
	err := trace.Each(open(), func(_ int64, r *result.Result) error {
		if before, after := run.Window.Holds(r); !before && !after && r.SentNS != nil {
			first, last = min(first, r.DueNS), max(last, r.DueNS)
			if r.DoneNS != nil {
				due, took = append(due, r.DueNS), took+time.Duration(*r.DoneNS-r.DueNS)
			}
		}
		return nil
	})
	if err != nil || first >= last {
		return Flow{}, err
	}
	from := first + (last-first)/2
	var f Flow
	var in, out, tokens, impossible int64
	var early, late time.Duration // in flight, of all requests together
	middle := from + (last-from)/2
	err = trace.Each(open(), func(_ int64, r *result.Result) error {
		if r.SentNS == nil || r.DoneNS == nil {
			return nil
		}
		if r.DueNS > from && r.DueNS <= last {
			in++
		}
		if *r.DoneNS > from && *r.DoneNS <= last && r.Error == "" {
			out++
			if r.Output != nil {
				tokens += int64(*r.Output)
			} else if r.Contradictions() != 0 {
				impossible++
			}
		}
		early += time.Duration(max(min(*r.DoneNS, middle)-max(*r.SentNS, from), 0))
		late += time.Duration(max(min(*r.DoneNS, last)-max(*r.SentNS, middle), 0))
		f.OpenBefore += openAt(r, from)
		f.OpenAfter += openAt(r, last)
		return nil
	})
	f.Seconds = float64(last-from) / 1e9
	if len(due) > 0 {
		f.Dispersion = dispersionOf(due, first, last, took/time.Duration(len(due)))
	}
	f.OfferedPerS, f.AchievedPerS = trace.Ptr(float64(in)/f.Seconds), trace.Ptr(float64(out)/f.Seconds)
	if impossible == 0 {
		f.OutputPerS = trace.Ptr(float64(tokens) / f.Seconds)
	}
	f.InFlight = trace.Ptr((early + late).Seconds() / f.Seconds)
	f.Early, f.Late = trace.Ptr(early.Seconds()/(f.Seconds/2)), trace.Ptr(late.Seconds()/(f.Seconds/2))
	return f, err
}

// openAt is 1 for a request that was due by an instant and not over. A request that
// waits in the client counts as well.
func openAt(r *result.Result, at int64) int64 {
	if r.DueNS <= at && *r.DoneNS > at {
		return 1
	}
	return 0
}

// nearShare is the share of the throughput at saturation from which a level is near it: where the
// queues that make its percentiles come so rarely that an interval from its runs may know
// nothing of them. TestIntervalsCoverOfTheEngine has levels on both sides: of an engine with 256 places, the
// p99 at 90 % of saturation is too low in a quarter of levels of 50,000 requests, and no
// percentile is at 80 %.
const nearShare = 0.85

const lacksNear = "near saturation, at %.0f %% of the throughput there or above: the queues that decide come too " +
	"rarely for these runs to tell"

// overloaded tells whether less came out of a saturated level than went in.
func (l *Level) overloaded() bool {
	in, out := l.Flow.OfferedPerS, l.Flow.AchievedPerS
	return l.Outcome == outcomeSaturated && in != nil && out != nil && *out < followShare**in
}

// findSaturation finds the throughput at saturation, the most that came out of any level, where an open
// loop of requests offered more than came out. Levels near it have no intervals, and do not hold for
// sure, but those of a search, which are measured by their whole budget at 99 %:
// TestSearchHoldsTheTruth has searches at 90 % of saturation. Of sessions too few end in a
// level to tell a throughput.
func (r *SweepResult) findSaturation() {
	most, found := 0.0, false
	for i := range r.Levels {
		l := &r.Levels[i]
		if out := l.Flow.AchievedPerS; r.Unit == unitRate && out != nil && l.Outcome != outcomeUntrusted {
			most, found = max(most, *out), found || l.overloaded()
		}
	}
	if !found {
		return
	}
	r.Saturation = &most
	for i := range r.Levels {
		l := &r.Levels[i]
		if out := l.Flow.AchievedPerS; out == nil || *out < nearShare*most && !l.overloaded() {
			continue
		}
		l.Sure = l.Sure && (l.Outcome != outcomeHolds || r.Precision > 0 && l.Role == roleConfirm)
		for j := range l.Intervals {
			m := &l.Intervals[j]
			m.Low, m.High, m.HalfWidth, m.Resolved, m.Why = nil, nil, nil, false, fmt.Sprintf(lacksNear, 100*nearShare)
		}
	}
}

// percentileBounds are the percentiles of a sample of n independent values between
// which the true percentile p lies in 95 of 100 samples: those of the order
// statistics of the binomial distribution (David and Nagaraja, "Order statistics",
// 2003, section 7.1). It is below 0 or above 1 where the sample is too small for one.
//
// It is for percentiles of whole sessions. Requests that queue behind each other are not
// independent, and have the intervals of a [measurement].
func percentileBounds(n int64, p float64) (lo, hi float64) {
	b := distuv.Binomial{N: float64(n), P: p}
	const tail = (1 - confidence) / 2
	first := func(holds func(k int64) bool) int64 { // the least k from 0 to n+1
		from, to := int64(0), n+1
		for from < to {
			if mid := (from + to) / 2; holds(mid) {
				to = mid
			} else {
				from = mid + 1
			}
		}
		return from
	}
	// values below the truth, at least
	least := first(func(k int64) bool { return k > n || b.CDF(float64(k)) > tail })
	most := first(func(k int64) bool { return k > n || b.CDF(float64(k)) >= 1-tail }) + 1 // rank of the value above it
	// ranks count from 1, and percentiles interpolate between them
	span := float64(max(n-1, 1))
	return float64(least-1) / span, float64(most-1) / span
}
