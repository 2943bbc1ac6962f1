package profile

import (
	"reprise/trace/fleet"
)

// traffic is what some requests brought, and what a cache without limit knew of
// it.
type traffic struct {
	load, input, output        int64 // all requests that are load, and their tokens
	requests, references, hits int64 // of those with blocks
	promptTokens, hitTokens    int64 // of these
	serverTokens               int64 // of the hit tokens, those that a server can take
}

func (t *traffic) add(o *traffic) {
	t.load += o.load
	t.input += o.input
	t.output += o.output
	t.requests += o.requests
	t.references += o.references
	t.hits += o.hits
	t.promptTokens += o.promptTokens
	t.hitTokens += o.hitTokens
	t.serverTokens += o.serverTokens
}

// inBlocks is the traffic of the requests with blocks.
func (t *traffic) inBlocks() fleet.Traffic {
	return fleet.Traffic{Requests: t.requests, Blocks: t.references, PromptTokens: t.promptTokens,
		HitTokens: t.hitTokens, ServerTokens: t.serverTokens}
}

// TrafficReuse is the reuse of some of the requests, in a cache without limit
// that every request goes through.
type TrafficReuse struct {
	Requests         int64 `json:"requests"` // load, with blocks or not
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	ReferencesBlocks int64 `json:"references_blocks"`
	HitBlocks        int64 `json:"hit_blocks"`
	PromptTokens     int64 `json:"prompt_tokens_with_blocks"` // input of the requests that carry blocks
	HitTokens        int64 `json:"hit_tokens"`
	// The ratios are null where no request carried blocks.
	HitRatio        *float64 `json:"hit_ratio_by_block"`
	HitRatioByToken *float64 `json:"hit_ratio_by_token"`
	// ServerHitRatio is what a server can take of the prompts, with full blocks of
	// its own size and at most all but the last token; see [ServerReuse].
	ServerHitRatio *float64 `json:"server_hit_ratio_by_token"`
}

func (t *traffic) summary() TrafficReuse {
	return TrafficReuse{Requests: t.load, InputTokens: t.input, OutputTokens: t.output,
		ReferencesBlocks: t.references, HitBlocks: t.hits, PromptTokens: t.promptTokens, HitTokens: t.hitTokens,
		HitRatio: share(t.hits, t.references), HitRatioByToken: share(t.hitTokens, t.promptTokens),
		ServerHitRatio: share(t.serverTokens, t.promptTokens)}
}

// A trail is the traffic of one group of requests over time: in all, and by the
// spans of an epoch in which it has any. Memory: some 80 bytes for each of
// these, so for at most maxSpans of them.
type trail struct {
	whole traffic
	shift uint // of the epoch when the last request was added
	spans []trailSpan
}

type trailSpan struct {
	number uint32
	traffic
}

// add takes a request at the clock of e.
func (t *trail) add(e *epoch, request *traffic) {
	t.whole.add(request)
	n := e.span()
	if t.shift != e.shift {
		t.fold(e.shift)
	}
	if last := len(t.spans) - 1; last >= 0 && t.spans[last].number == n {
		t.spans[last].add(request)
		return
	}
	t.spans = append(t.spans, trailSpan{n, *request})
}

// fold makes the spans as long as those of an epoch that has gone on.
func (t *trail) fold(shift uint) {
	by := shift - t.shift
	t.shift = shift
	kept := t.spans[:0]
	for _, s := range t.spans {
		s.number >>= by
		if last := len(kept) - 1; last >= 0 && kept[last].number == s.number {
			kept[last].add(&s.traffic)
		} else {
			kept = append(kept, s)
		}
	}
	t.spans = kept
}

// from is the traffic of the spans from the given one on.
func (t *trail) from(e *epoch, span uint64) (sum traffic) {
	for _, s := range t.spans {
		if uint64(s.number)>>(e.shift-t.shift) >= span {
			sum.add(&s.traffic)
		}
	}
	return sum
}

// timeBins is how many bins a series over time has at most.
const timeBins = 60

// OverTime is the traffic and its reuse over the trace, in bins of equal width
// from the first arrival on. There are up to 60, and no fewer than 55 of a trace
// that is not of a few instants: bins are made of the spans of 2^k ns that sums
// are kept apart by.
type OverTime struct {
	BinS float64   `json:"bin_s"`
	Bins []TimeBin `json:"bins"`
}

// A TimeBin is one bin: the requests that arrive from its start up to but
// without its end. The last one ends with the trace and holds its last arrival.
type TimeBin struct {
	StartS float64 `json:"start_s"` // since the first arrival
	EndS   float64 `json:"end_s"`
	TrafficReuse
}

// overTime makes the series of a trail that has every request of the epoch, so
// that its spans are as long; or nil without requests.
func (t *trail) overTime(e *epoch) *OverTime {
	if t.whole.load == 0 {
		return nil
	}
	n := int(e.elapsed()>>e.shift) + 1
	each := (n + timeBins - 1) / timeBins
	bins := make([]traffic, (n+each-1)/each)
	for _, s := range t.spans {
		bins[int(s.number)/each].add(&s.traffic)
	}
	width := float64(uint64(each)<<e.shift) / second
	series := &OverTime{BinS: width}
	for i := range bins {
		series.Bins = append(series.Bins, TimeBin{StartS: float64(i) * width, EndS: float64(i+1) * width,
			TrafficReuse: bins[i].summary()})
	}
	series.Bins[len(bins)-1].EndS = float64(e.elapsed()) / second
	return series
}
