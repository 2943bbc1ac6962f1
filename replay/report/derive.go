package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/replay/figure"
	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/usage"
)

// A Span is a duration in nanoseconds. It is missing where OK is false.
type Span struct {
	NS int64
	OK bool
}

// between is to − from where both happened.
func between(from int64, to *int64) Span {
	if to == nil {
		return Span{}
	}
	return Span{*to - from, true}
}

// The instants from which a latency is counted: indices into [Durations].
const (
	FromSent = iota
	FromDue
	origins
)

// Durations are those of one result, from both origins where there are two.
// Those of failed requests are not derived: a request that was refused in a
// millisecond must not make the server look fast.
type Durations struct {
	Headers, TTFT, TTFO, E2E [origins]Span
	TPOT                     Span
	longest                  Span // gap between token events
	whole                    bool // an embedding: it has no tokens to come one by one
	uncounted                bool // the server counts its tokens so that it cannot be
}

// begun are the latencies that begin when a request was sent, and when it was due: where a request has them, where a
// summary has their statistics, and the curves of the latencies that are drawn.
var begun = []struct {
	of     *figure.Subject
	spans  func(*Durations) *[origins]Span
	stat   func(*Origin) *Stat
	curves func(*Series) [origins]*doc.Series
}{
	{figure.TTFT, func(d *Durations) *[origins]Span { return &d.TTFT }, func(o *Origin) *Stat { return &o.TTFT },
		func(s *Series) [origins]*doc.Series { return [origins]*doc.Series{&s.TTFTSent, &s.TTFTDue} }},
	{figure.TTFO, func(d *Durations) *[origins]Span { return &d.TTFO }, func(o *Origin) *Stat { return &o.TTFO }, nil},
	{figure.E2E, func(d *Durations) *[origins]Span { return &d.E2E }, func(o *Origin) *Stat { return &o.E2E },
		func(s *Series) [origins]*doc.Series { return [origins]*doc.Series{&s.E2ESent, &s.E2EDue} }},
	{figure.Headers, func(d *Durations) *[origins]Span { return &d.Headers },
		func(o *Origin) *Stat { return &o.Headers }, nil},
}

// Measured derives the durations of a result. It is not ok where the request
// failed, was not sent, or is outside the measured window of its run. A result
// that contradicts itself is an error.
func Measured(run *result.Run, r *result.Result) (d Durations, ok bool, err error) {
	if err := CheckResult(r); err != nil {
		return Durations{}, false, err
	}
	before, after := run.Window.Holds(r)
	if end, _ := OutcomeOf(r); before || after || end != Succeeded {
		return Durations{}, false, nil
	}
	return Derive(r), true, nil
}

// Derive computes the latencies of a request that was sent. One whose tokens came at once, or in
// too few pieces, has no TPOT and no gaps.
func Derive(r *result.Result) Durations {
	l := Durations{whole: r.API == result.APIEmbeddings, uncounted: r.Contradictions().Refutes(usage.Output)}
	first, content, last := r.FirstTokenNS, r.FirstContentNS, r.LastTokenNS
	if n := len(r.Uncertain); n > 0 {
		if r.Uncertain[0] {
			first = nil
		}
		if slices.Contains(r.Uncertain, true) && (first == nil || content != nil && *content != *first) {
			content = nil // nothing says which event it is, and one of them is uncertain
		}
		if r.Uncertain[n-1] {
			last = nil
		}
	}
	if l.whole {
		last = r.DoneNS
	}
	for origin, start := range [origins]int64{FromSent: *r.SentNS, FromDue: r.DueNS} {
		l.Headers[origin] = between(start, r.HeadersNS)
		l.TTFT[origin] = between(start, first)
		l.TTFO[origin] = between(start, content)
		l.E2E[origin] = between(start, last)
	}
	if r.Untimed() {
		return l
	}
	if first != nil && r.LastTokenNS != nil && (last != nil || l.whole) && r.Output != nil && *r.Output > 1 {
		steps := float64(*r.Output - 1)
		l.TPOT = Span{int64(math.Round(float64(*r.LastTokenNS-*first) / steps)), true}
	}
	if r.Uncertain == nil && len(r.GapsNS) > 0 {
		l.longest = Span{slices.Max(r.GapsNS), true}
		return l
	}
	for _, gap := range r.Gaps {
		l.longest = Span{max(l.longest.NS, gap), true}
	}
	return l
}

// Meets tells whether a successful request meets every objective, with latencies
// from [FromSent] or [FromDue].
func (l *Durations) Meets(s *SLO, origin int) bool {
	within := func(d Span, limit *time.Duration) bool {
		return limit == nil || d.OK && d.NS <= int64(*limit)
	}
	withinOrNone := func(d Span, limit *time.Duration) bool { return !d.OK || within(d, limit) }
	return (l.whole || within(l.TTFT[origin], s.TTFT)) && within(l.E2E[origin], s.E2E) &&
		withinOrNone(l.TPOT, s.TPOT) && (!l.uncounted || s.TPOT == nil) && withinOrNone(l.longest, s.ITL)
}

// perToken shares each gap out over tokens, in place of a chunk's: it appends
// gap ÷ tokens to dst, one value for each gap, to the nanosecond. The tokens
// are those of the event that ends the gap, where the server said so for every
// event, else the mean of the request. It appends nothing without either.
func perToken(dst []int64, r *result.Result) []int64 {
	exact := len(r.EventTokens) == int(r.Events) && !slices.Contains(r.EventTokens, 0)
	if !exact && (r.Output == nil || *r.Output == 0) {
		return dst
	}
	for i, gap := range r.Gaps {
		events, tokens := 1.0, 0.0
		if exact {
			tokens = float64(r.EventTokens[i+1])
		} else {
			events, tokens = float64(r.Events), float64(*r.Output)
		}
		dst = append(dst, int64(math.Round(min(float64(gap)*events/tokens, MaxInstant))))
	}
	return dst
}

// tokenEach says that each gap of a result is of one token, so that [perToken] gives the
// gaps as they are: to the nanosecond below 26 days, where a float64 holds gap × events
// well enough.
func tokenEach(r *result.Result) bool {
	if len(r.EventTokens) == int(r.Events) && !slices.Contains(r.EventTokens, 0) {
		later := r.EventTokens[min(1, len(r.EventTokens)):]
		return !slices.ContainsFunc(later, func(n int32) bool { return n != 1 })
	}
	return r.Output != nil && *r.Output == r.Events && (len(r.GapsNS) == 0 || slices.Max(r.GapsNS) < 1<<51)
}

// An Outcome is how a request ended.
type Outcome uint8

// The outcomes of a request.
const (
	Succeeded Outcome = iota
	Failed
	Cancelled // on purpose, as in the trace: load, but neither success nor error
	NotSent
)

var outcomeNames = [...]string{Succeeded: "succeeded", Failed: "failed", Cancelled: "cancelled", NotSent: "not_sent"}

// String is the outcome as the counts of a summary name it.
func (o Outcome) String() string { return outcomeNames[o] }

// unfinished is the error class of a request that was sent, reported no error
// and has no end: its run was killed.
const unfinished = "unfinished"

// OutcomeOf tells how a request ended. One that failed has its error class as well:
// that of the client, or "unfinished" where the end was never recorded.
func OutcomeOf(r *result.Result) (Outcome, string) {
	switch {
	case r.Failed():
		return Failed, r.Error
	case r.Error != "":
		return Cancelled, ""
	case r.SentNS == nil:
		return NotSent, ""
	case r.DoneNS == nil:
		return Failed, unfinished
	}
	return Succeeded, ""
}

// MaxInstant is the longest time in a run, in nanoseconds: 104 days. It keeps every sum and product within 64 bits or
// the exact integers of a float64.
const MaxInstant = 1 << 53

// CheckResult refuses a result that contradicts itself: a summary of it would be
// wrong without a sign of it. Tokens after the end mark do happen.
func CheckResult(r *result.Result) error {
	bad := func(reason string) error { return fmt.Errorf("report: result of row %d: %s", r.RowID, reason) }
	if r.DueNS < 0 || r.DueNS > MaxInstant {
		return bad("its due time is outside the run")
	}
	start := int64(0)
	if r.SentNS != nil {
		start = *r.SentNS
	}
	for _, p := range []*int64{&start, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.FirstContentNS, r.LastTokenNS,
		r.DoneNS} {
		if p != nil && (*p < start || *p < 0 || *p > MaxInstant) {
			return bad("an instant is outside the run, or before the request was sent")
		}
	}
	if r.FirstTokenNS != nil && r.LastTokenNS != nil && *r.LastTokenNS < *r.FirstTokenNS {
		return bad("its last token came before the first")
	}
	if r.FirstContentNS != nil && (r.FirstTokenNS == nil || *r.FirstContentNS < *r.FirstTokenNS) {
		return bad("its answer began before its first token")
	}
	if len(r.GapsNS) != int(max(r.Events-1, 0)) {
		return bad("the number of gaps is not one less than the token events")
	}
	for _, gap := range r.GapsNS {
		if gap < 0 || gap > MaxInstant {
			return bad("a gap is negative or longer than a run can be")
		}
	}
	for _, said := range []*int64{r.QueueNS, r.PrefillNS} {
		if said != nil && (*said < 0 || *said > MaxInstant) {
			return bad("a time that the server said is negative or longer than a run can be")
		}
	}
	for _, n := range []*int32{&r.WantInput, r.WantOutput, &r.Events, r.Known, r.Input, r.Cached, r.Output} {
		if n != nil && *n < 0 {
			return bad("a count is negative")
		}
	}
	for _, n := range r.EventTokens {
		if n < 0 {
			return bad("a count is negative")
		}
	}
	return nil
}
