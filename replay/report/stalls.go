package report

import (
	"fmt"
	"sort"

	"reprise/replay/result"
	"reprise/trace/page"
)

// Stalled says how much of what was measured the client stood still in, see
// [result.Stalls]. It is of the successful requests of the measured window. An event
// that comes in a stall is timed at its end, so that these shares bound what the
// client added to the latencies.
type Stalled struct {
	// TTFTShare is the part of all times from sent to first token, of an embedding to
	// its answer, in which the client stood still. Null without one.
	TTFTShare *float64 `json:"ttft_share"`
	// GapP99Share is the part of a gap between token events in which the client stood
	// still, at p99 of all gaps: at most one gap in a hundred has more. It is rounded up
	// to a tenth of a percent. Null without a gap.
	GapP99Share *float64 `json:"gap_p99_share"`
	// StalledRequests are those whose time to the first token holds some of a stall.
	StalledRequests int64 `json:"stalled_requests"`
}

// A stallMeter holds requests against the stalls of the client, which are in order
// and apart.
type stallMeter struct {
	stalls []result.Stall
	before []int64 // ns stalled before each

	ttft, covered float64 // ns, of all requests
	touched       int64   // requests
	gaps          int64
	shares        [shareSteps + 1]int64 // gaps by the part that stalls cover, rounded up
}

// shareSteps is how finely the covered part of a gap is told.
const shareSteps = 1000

func newStallMeter(s *result.Stalls) *stallMeter {
	if s == nil {
		return nil
	}
	m := &stallMeter{stalls: s.Intervals, before: make([]int64, len(s.Intervals))}
	for i, x := range s.Intervals[:max(len(s.Intervals)-1, 0)] {
		m.before[i+1] = m.before[i] + x.ToNS - x.FromNS
	}
	return m
}

// until is how long the client stood still before an instant.
func (m *stallMeter) until(at int64) int64 {
	i := sort.Search(len(m.stalls), func(i int) bool { return m.stalls[i].FromNS >= at }) - 1
	if i < 0 {
		return 0
	}
	return m.before[i] + min(at, m.stalls[i].ToNS) - m.stalls[i].FromNS
}

// within is how long the client stood still between two instants.
func (m *stallMeter) within(from, to int64) int64 { return m.until(to) - m.until(from) }

// add takes a successful request. A nil stallMeter takes none.
func (m *stallMeter) add(r *result.Result) {
	if m == nil {
		return
	}
	first := r.FirstTokenNS
	if r.API == result.APIEmbeddings {
		first = r.DoneNS
	}
	if first == nil {
		return
	}
	m.ttft += float64(*first - *r.SentNS)
	if covered := m.within(*r.SentNS, *first); covered > 0 {
		m.covered += float64(covered)
		m.touched++
	}
	m.gaps += int64(len(r.GapsNS))
	from := *first
	for _, gap := range r.GapsNS {
		step := int64(0)
		if covered := m.within(from, from+gap); covered > 0 {
			step = (covered*shareSteps + gap - 1) / gap
		}
		m.shares[step]++
		from += gap
	}
}

// summary is nil where the run was not watched.
func (m *stallMeter) summary() *Stalled {
	if m == nil {
		return nil
	}
	s := &Stalled{StalledRequests: m.touched}
	if m.ttft > 0 {
		s.TTFTShare = Rounded(m.covered/m.ttft, 1e9)
	}
	if m.gaps > 0 {
		step, above := shareSteps, int64(0)
		for ; step > 0 && 100*(above+m.shares[step]) <= m.gaps; step-- {
			above += m.shares[step]
		}
		s.GapP99Share = Rounded(float64(step)/shareSteps, 1e9)
	}
	return s
}

// Why there is nothing to hold against a limit on stalls.
const (
	stallsNotRecorded   = "not recorded"
	stallsNotApplicable = "not applicable"
)

// stalls checks how much of what was measured the client stood still in.
func (j *judgement) stalls(s *Summary, limits Limits) {
	var stalled Stalled
	why := ""
	switch {
	case s.Run.Simulated != "":
		why = stallsNotApplicable
	case s.Stalled == nil:
		why = stallsNotRecorded
	default:
		stalled = *s.Stalled
	}
	check := func(code string, share *float64, limit float64, format string, args ...any) {
		if share == nil {
			c := unmeasured(limit, "share")
			c.Says = why
			j.check(code, c, "")
			return
		}
		j.check(code, atMost(*share, limit, "share"), format, append([]any{page.Percent(*share)}, append(args, page.Percent(limit))...)...)
	}
	n, longest := int64(0), "0"
	if r := s.Run.Stalls; r != nil {
		n, longest = r.Count, page.Number(float64(r.LongestNS)/1e6)
	}
	check(codeStalledTTFT, stalled.TTFTShare, limits.StallTTFT,
		"the client stood still for %s of the times to first token, those of %s of %s (%s, the longest %s ms): so much of TTFT may be its own; the limit is %s",
		page.Brief(stalled.StalledRequests), page.Many(s.Requests.Succeeded, "request"), page.Many(n, "stall"), longest)
	check(codeStalledGap, stalled.GapP99Share, limits.StallGap,
		"at p99 of the gaps between token events, the client stood still for %s of the gap (%s, the longest %s ms); the limit is %s",
		page.Many(n, "stall"), longest)
}

// sayStalls says what stalls there were, empty where the run was not watched.
func sayStalls(s *result.Stalls) string {
	if s == nil {
		return ""
	}
	if s.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, %s ms in all, the longest %s ms", page.Brief(s.Count), page.Number(float64(s.TotalNS)/1e6), page.Number(float64(s.LongestNS)/1e6))
}
