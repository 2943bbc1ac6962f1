package profile

import (
	"fmt"

	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/fleet"
)

// InferredReuse is what is known of reuse where blocks are inferred from cached tokens,
// sessions and tools. The ratios are by token, over the requests of which the server said what it
// found in its cache; null where it never did.
//
// What the server found of earlier requests of the trace was shared for certain: that is
// the least. What it did not find may be evicted or never shared. The most is what a cache
// without limit would find of the inferred blocks, where it keeps the KV of outputs too.
type InferredReuse struct {
	Requests int64    `json:"requests"` // whose blocks are inferred
	Least    *float64 `json:"hit_ratio_least"`
	Inferred *float64 `json:"hit_ratio_inferred"`    // the most
	Measured *float64 `json:"hit_ratio_measured"`    // of the server
	Before   *float64 `json:"hit_ratio_from_before"` // of Measured, what no earlier request of the trace holds
}

// String says it in a sentence without its end.
func (i *InferredReuse) String() string {
	requests := doc.Many(i.Requests, "request")
	if i.Measured == nil {
		return "inferred for " + requests
	}
	says := doc.Percent(*i.Least)
	if most := doc.Percent(*i.Inferred); most != says {
		says += " to " + most
	}
	says += fmt.Sprintf(" of prompt tokens in %s; the server found %s", requests, doc.Percent(*i.Measured))
	if *i.Before > 0 {
		says += fmt.Sprintf(", %s of it from before the trace", doc.Percent(*i.Before))
	}
	return says
}

// inferredTally adds up [InferredReuse], in tokens.
type inferredTally struct{ requests, prompts, known, cached, before int64 }

// add takes a row with inferred blocks, of which so many leading blocks are known from
// prompts and outputs before it.
func (t *inferredTally) add(r *trace.Request, hit, size int) {
	t.requests++
	if !fleet.Recorded(r) {
		return
	}
	known, cached := int64(hitTokens(hit, r, size)), int64(*r.CachedTokens)
	t.prompts, t.known, t.cached = t.prompts+int64(r.InputTokens), t.known+known, t.cached+cached
	if beyond := cached - known; beyond >= int64(size) { // less is rounding to blocks
		t.before += beyond
	}
}

func (t *inferredTally) summary() *InferredReuse {
	if t.requests == 0 {
		return nil
	}
	i := &InferredReuse{Requests: t.requests}
	if n := float64(t.prompts); n > 0 {
		i.Least, i.Inferred = trace.Ptr(float64(t.cached-t.before)/n),
			trace.Ptr(float64(max(t.known, t.cached-t.before))/n)
		i.Measured, i.Before = trace.Ptr(float64(t.cached)/n), trace.Ptr(float64(t.before)/n)
	}
	return i
}
