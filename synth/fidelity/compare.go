package fidelity

import (
	"errors"
	"fmt"
	"math"

	"reprise/trace"
	"reprise/trace/profile"
)

// Schema names the layout of a [Report] as JSON. Fields and measures
// may be added to it; none changes its meaning.
const Schema = "fidelity/1"

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
	// Sessions says what turns are of: source when both traces have their
	// source's own sessions, else inferred, by [profile.Annotator]; empty when
	// the reference has neither.
	Sessions string    `json:"sessions"`
	Measures []Measure `json:"measures"` // in the order of [MeasureNames]
	// LRUCurve is the hit ratio by block of LRU caches, at 61 capacities that
	// are evenly spread on a logarithmic axis. It is empty unless both have one.
	LRUCurve []CurvePair       `json:"lru_curve"`
	IDC      []IDCPair         `json:"idc"`
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

// Compare measures how far cand is from ref. The first comparison ends a
// signature: it reads what was written and takes no more rows; more comparisons
// may follow. It is an error when either side has no request that counts, or
// when the two cannot be measured by the same blocks, see [CommonBlockSize].
func Compare(ref, cand *Signature) (Report, error) {
	size, err := CommonBlockSize(ref.meta, cand.meta)
	if err != nil {
		return Report{}, err
	}
	if size > 0 && ref.size != cand.size {
		return Report{}, fmt.Errorf("the reference is measured in blocks of %d tokens and the candidate in blocks of %d: "+
			"measure both in blocks of %d", ref.size, cand.size, size)
	}
	c := comparison{f: Report{Schema: Schema, LRUCurve: []CurvePair{}, Warnings: []profile.Warning{}}}
	if c.ref, err = countedTally("reference", ref); err != nil {
		return Report{}, err
	}
	if c.cand, err = countedTally("candidate", cand); err != nil {
		return Report{}, err
	}
	if size > 0 {
		c.f.BlockSizeTokens = ref.size
	}
	c.f.Reference, c.f.Candidate = ref.side(), cand.side()
	c.f.Tier = trace.Stricter(ref.meta.Tier, cand.meta.Tier)
	c.reuse()
	c.lengths()
	c.joint()
	c.arrivals()
	c.categories()
	c.sessions()
	c.privacy()
	c.amounts()
	c.warn(ref, cand)
	return c.f, nil
}

func countedTally(name string, s *Signature) (*signatureTally, error) {
	t, err := s.measured()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.requests == 0 {
		if s.read > s.failed {
			return nil, fmt.Errorf("the %s has no request after the warm-up of %g s", name, inSeconds(s.warmUp()))
		}
		return nil, errors.New("the " + name + " has no requests")
	}
	return t, nil
}

func (s *Signature) side() Side {
	m := s.meta
	return Side{Tier: m.Tier, SourceFormat: m.SourceFormat, Tokenizer: m.Tokenizer, Digest: m.Digest, BlockSizeTokens: m.BlockSize,
		Rows: s.read, Failed: s.failed, WarmUpS: inSeconds(s.warmUp()), Requests: s.tally.requests}
}

func inSeconds(ns int64) float64 { return float64(ns) / 1e9 }

// A comparison fills in a Fidelity.
type comparison struct {
	ref, cand *signatureTally
	f         Report
}

// add adds a measure. Without a distance, what names what a side may lack.
func (c *comparison) add(name string, ref, cand, distance *float64, what string) {
	m := Measure{Name: name, Ref: ref, Cand: cand, Distance: distance}
	if distance == nil {
		switch {
		case ref == nil && cand == nil:
			m.Why = "neither has " + what
		case ref == nil:
			m.Why = "the reference has no " + what
		case cand == nil:
			m.Why = "the candidate has no " + what
		default:
			m.Why = "it is relative to the reference, which is 0"
		}
	}
	c.f.Measures = append(c.f.Measures, m)
}

// difference is how far two values are apart, if there are two.
func difference(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return trace.Ptr(math.Abs(*a - *b))
}

// relative is how far cand is from ref, as a share of ref.
func relative(ref, cand *float64) *float64 {
	switch {
	case ref == nil || cand == nil:
		return nil
	case *ref == *cand:
		return trace.Ptr(0.0)
	case *ref == 0:
		return nil
	}
	return trace.Ptr(math.Abs(*cand / *ref - 1))
}
