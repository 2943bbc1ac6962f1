package anonymize

import (
	"reprise/trace"
	"reprise/trace/block"
)

// Reuse counts what a prefix cache without bounds would find, and the lengths, of
// rows whose block ids are dense; it takes a bit for each. Failed rows are no load
// and make nothing known, as in package profile.
type Reuse struct {
	Requests     int64 `json:"requests"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Blocks       int64 `json:"blocks"` // ⌈input/block⌉, in sum
	Hits         int64 `json:"hits"`   // leading known blocks, in sum

	known []uint64 // a bit for each id
}

// HitRatio is by block; nil without blocks.
func (u *Reuse) HitRatio() *float64 {
	if len(u.known) == 0 {
		return nil
	}
	return trace.Ptr(float64(u.Hits) / float64(u.Blocks))
}

// Count takes the next row of a trace whose blocks have so many tokens.
func (u *Reuse) Count(q *trace.Request, size int) {
	u.Requests++
	u.InputTokens, u.OutputTokens = u.InputTokens+int64(q.InputTokens), u.OutputTokens+int64(q.OutputOr(0))
	if size == 0 || !isLoad(q) {
		return
	}
	u.Blocks += int64(block.Count(int(q.InputTokens), size))
	leading := true
	for _, id := range q.Blocks {
		word, bit := id/64, uint64(1)<<(id%64)
		for word >= uint64(len(u.known)) {
			u.known = append(u.known, 0)
		}
		if leading = leading && u.known[word]&bit != 0; leading {
			u.Hits++
		}
		u.known[word] |= bit
	}
}

// isLoad says whether a row takes part in reuse, as package profile has it.
func isLoad(r *trace.Request) bool { return r.Status != trace.StatusFailed && len(r.Blocks) > 0 }
