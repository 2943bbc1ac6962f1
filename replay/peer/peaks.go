package peer

import (
	"slices"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// peakEvents is how many beginnings and ends are sorted at once, 32 MB of
// them. A run with more takes a pass over the results for each such part.
// Requests that begin in one bin of a curve are never parted, so one burst of
// more than this takes memory by its size.
const peakEvents = 1 << 22

// findPeaks computes the two figures of vLLM that need every instant in its
// order: the most requests open at once, each from its sending to its last
// chunk without that instant itself, and the most chunks in a second, counted
// from the first sending. It sorts about limit beginnings and ends at once.
func (p *peerPass) findPeaks(reread report.Reread, limit int) error {
	if p.totals.completed == 0 {
		return nil
	}
	parts := p.flow.Parts(limit)
	perSecond := make([]int64, (p.totals.okEnd-p.totals.okFirst)/1e9+1)
	var open, most int64
	for i, part := range parts {
		var events []int64
		err := trace.Each(reread(), func(_ int64, r *result.Result) error {
			if !p.measured(r) {
				return nil
			}
			v, ok := p.look(r)
			if !ok {
				return nil
			}
			if i == 0 {
				at, last := v.start+v.ttft-p.totals.okFirst, int64(len(perSecond)-1)
				perSecond[min(at/1e9, last)]++
				for _, gap := range v.gaps {
					at += gap
					perSecond[min(at/1e9, last)]++
				}
			}
			if part.Contains(v.start) {
				events = append(events, v.start<<1|1)
			}
			if part.Contains(v.end) {
				events = append(events, v.end<<1) // before a beginning at the same instant
			}
			return nil
		})
		if err != nil {
			return err
		}
		slices.Sort(events)
		for _, e := range events {
			open += e&1*2 - 1
			most = max(most, open)
		}
	}
	p.totals.peakRequests, p.totals.peakTokens = most, slices.Max(perSecond)
	return nil
}
