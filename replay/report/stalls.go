package report

import (
	"sort"

	"reprise/replay/result"
)

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
