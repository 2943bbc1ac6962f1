package engine

import (
	"slices"

	"reprise/trace/fleet"
)

// A Tally adds up the answers of a [Fleet] for a comparison of routers. Make it
// with [NewTally] and give it every answer.
type Tally struct {
	block    int
	answered int64
	refused  int64
	cut      int64
	prompt   int64
	cached   int64
	blocks   int64
	hits     int64
	sent     []int64 // prompt tokens, by replica
	requests []int64
	ttft     []Picos
}

// NewTally begins the sums for a fleet.
func NewTally(c FleetConfig) *Tally {
	return &Tally{block: c.Engine.BlockSize, sent: make([]int64, c.Replicas), requests: make([]int64, c.Replicas)}
}

// Add takes one answer.
func (t *Tally) Add(a *Answer) {
	t.requests[a.Replica]++
	t.sent[a.Replica] += int64(a.Job.Prompt)
	switch a.Err {
	case nil:
		t.answered++
	case ErrCut:
		t.cut++
	default:
		t.refused++
		return
	}
	if len(a.Tokens) > 0 {
		t.ttft = append(t.ttft, a.Tokens[0]-a.At)
	}
	t.prompt += int64(a.Job.Prompt)
	t.cached += int64(a.Job.Cached)
	t.blocks += int64(blocksOf(a.Job.Prompt, t.block))
	t.hits += int64(a.Job.Cached / t.block)
}

// FleetSummary is what one router came to. Ratios are null without anything to
// divide by.
type FleetSummary struct {
	Router      string `json:"router"`
	Replicas    int    `json:"replicas"`
	Answered    int64  `json:"answered"`
	Refused     int64  `json:"refused"`
	Cut         int64  `json:"cut"` // the client hung up, as recorded
	Preemptions int64  `json:"preemptions"`
	// Prompt tokens and blocks, a partial last one included, that were found in
	// the prefix cache of the replica when the request was first scheduled.
	HitByToken *float64 `json:"hit_ratio_by_token"`
	HitByBlock *float64 `json:"hit_ratio_by_block"`
	// The most over the mean of replicas: of prompt tokens computed, and of
	// prompt tokens sent.
	PrefillImbalance *float64 `json:"prefill_imbalance"`
	LoadImbalance    *float64 `json:"load_imbalance"`
	TTFTP50MS        *float64 `json:"ttft_p50_ms"`
	TTFTP99MS        *float64 `json:"ttft_p99_ms"` // null below 100 requests
	MaxUsedBlocks    int      `json:"max_used_blocks"`
	CapacityBlocks   int      `json:"capacity_blocks"` // both of one replica
	// Reached is the most that was asked of one replica, to hold against what its preset covers.
	Reached Covers `json:"-"`
}

// Summary describes the run, once the fleet has finished.
func (t *Tally) Summary(f *Fleet) FleetSummary {
	s := FleetSummary{Router: f.c.Router, Replicas: f.c.Replicas, Answered: t.answered, Refused: t.refused, Cut: t.cut,
		HitByToken: fleet.Ratio(t.cached, t.prompt), HitByBlock: fleet.Ratio(t.hits, t.blocks),
		LoadImbalance: fleet.Imbalance(t.sent), Reached: f.Reached()}
	var computed []int64
	for _, e := range f.Stats() {
		computed = append(computed, e.PrefillTokens)
		s.Preemptions += e.Preemptions
		s.MaxUsedBlocks, s.CapacityBlocks = max(s.MaxUsedBlocks, e.MaxUsedBlocks), e.CapacityBlocks
	}
	s.PrefillImbalance = fleet.Imbalance(computed)
	slices.Sort(t.ttft)
	if len(t.ttft) > 0 {
		s.TTFTP50MS = inMS(quantile(t.ttft, 0.5))
	}
	if len(t.ttft) >= 100 {
		s.TTFTP99MS = inMS(quantile(t.ttft, 0.99))
	}
	return s
}

func inMS(v float64) *float64 {
	v /= float64(1e9)
	return &v
}

// quantile interpolates linearly between sorted values. There must be at least one.
func quantile(sorted []Picos, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	low, high := float64(sorted[i]), float64(sorted[min(i+1, len(sorted)-1)])
	return low + float64((at-float64(i))*(high-low))
}
