package fidelity

import (
	"reprise/trace/profile"
)

// schema names the layout of a [Report] as JSON. Fields and measures
// may be added to it; none changes its meaning.
const schema = "fidelity/1"

// A Report says how close a candidate workload is to a reference trace.
// Nothing is hidden in a score: each measure stands by itself.
type Report struct {
	Schema    string `json:"schema"`
	Tier      string `json:"tier,omitempty"` // the stricter of both sides', see [trace.Stricter]
	Reference Side   `json:"reference"`
	Candidate Side   `json:"candidate"`
	// BlockSizeTokens is the block size by which both were measured, 0 when
	// either has no blocks.
	BlockSizeTokens int `json:"block_size_tokens"`
	// Sessions says where turns come from: source when both traces have their
	// source's own sessions, else inferred, by [profile.Annotator]; empty when
	// the reference has neither.
	Sessions string    `json:"sessions"`
	Measures []Measure `json:"measures"` // in the order of [MeasureNames]
	// LRUCurve is the hit ratio by block of LRU caches, at 61 capacities that
	// are evenly spread on a logarithmic axis. It is empty unless both have one.
	LRUCurve []CurvePair       `json:"lru_curve"`
	IDC      []IDCPair         `json:"idc"`
	Routes   []RoutePair       `json:"routes"`
	Queues   []QueuePair       `json:"queues"`
	Rates    []RatePair        `json:"token_rates"`
	Warnings []profile.Warning `json:"warnings"`

	curves []cdfPair // for the page
}

// A Side describes one of the two traces.
type Side struct {
	Tier            string  `json:"tier,omitempty"`
	SourceFormat    string  `json:"source_format,omitempty"`
	Tokenizer       string  `json:"tokenizer,omitempty"`
	Digest          string  `json:"digest,omitempty"`
	BlockSizeTokens int     `json:"block_size_tokens,omitempty"` // as stored
	Rows            int64   `json:"rows"`
	Failed          int64   `json:"failed"`    // rows that are in no figure
	WarmUpS         float64 `json:"warm_up_s"` // from the first arrival until requests count
	Requests        int64   `json:"requests"`  // that count
}

// A Measure is one distance between the two, with a value of each side to read
// it by. The catalogue says what the three are.
type Measure struct {
	Name string `json:"name"`
	// Ref and Cand are null when that side lacks what is measured.
	Ref  *float64 `json:"ref"`
	Cand *float64 `json:"cand"`
	// Distance is 0 when the two agree. It is null when it cannot be computed,
	// and Why then says why.
	Distance *float64 `json:"distance"`
	Why      string   `json:"why,omitempty"`
}

// A CurvePair is the hit ratio by block of a cache of one capacity.
type CurvePair struct {
	CapacityBlocks int64   `json:"capacity_blocks"`
	Ref            float64 `json:"ref"`
	Cand           float64 `json:"cand"`
}

// An IDCPair is the index of dispersion for counts at one width of window, the
// variance of the number of arrivals over its mean: see [profile.IDC].
type IDCPair struct {
	WindowS float64  `json:"window_s"`
	Ref     *float64 `json:"ref"` // null below two windows
	Cand    *float64 `json:"cand"`
	// LeftOut says why the scale has no part in the distance; empty when it has.
	LeftOut string `json:"left_out,omitempty"`
}

// A RoutePair is the hit ratio by block behind a router: round_robin, sticky or prefix.
type RoutePair struct {
	Router         string  `json:"router"`
	Replicas       int     `json:"replicas"`
	CapacityBlocks int64   `json:"capacity_blocks"` // of each replica
	Ref            float64 `json:"ref"`
	Cand           float64 `json:"cand"`
}

// A QueuePair is how long requests take until the end of their prompt, in a queue of one
// server that is busy for a share of the time.
type QueuePair struct {
	Load float64     `json:"load"`
	Ref  *QueueTimes `json:"ref"` // null when all arrive at once
	Cand *QueueTimes `json:"cand"`
}

// QueueTimes are quantiles in seconds.
type QueueTimes struct {
	P50 float64 `json:"p50_s"`
	P90 float64 `json:"p90_s"`
	P99 float64 `json:"p99_s"`
}

// A RatePair is how rates vary: the CV of input tokens and the IDC of requests over windows
// of so many seconds, and the autocorrelation of input tokens per second at a lag of as
// many. They are null below five windows, and when less than three of the lag fit.
type RatePair struct {
	Seconds int      `json:"seconds"`
	RefCV   *float64 `json:"ref_cv"`
	CandCV  *float64 `json:"cand_cv"`
	RefIDC  *float64 `json:"ref_idc"`
	CandIDC *float64 `json:"cand_idc"`
	RefACF  *float64 `json:"ref_autocorrelation"`
	CandACF *float64 `json:"cand_autocorrelation"`
}

// A cdfPair is a distribution of both sides.
type cdfPair struct {
	name, unit string
	per        float64 // divides values
	ref, cand  valueList
}

// Measure returns the measure of that name.
func (f Report) Measure(name string) (Measure, bool) {
	for _, m := range f.Measures {
		if m.Name == name {
			return m, true
		}
	}
	return Measure{}, false
}
