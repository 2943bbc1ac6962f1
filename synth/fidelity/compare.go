package fidelity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
)

// Compare measures how far cand is from ref. It ends both signatures, see [Signature.End]; more
// comparisons may follow. It is an error when either side has no request that counts, or
// when the two cannot be measured by the same blocks, see [CommonBlockSize].
func Compare(ref, cand *Signature) (Report, error) {
	size, err := CommonBlockSize(ref.meta, cand.meta)
	if err != nil {
		return Report{}, err
	}
	if size > 0 && ref.size != cand.size {
		return Report{}, fmt.Errorf(
			"the reference is measured in blocks of %d tokens and the candidate in blocks of %d: "+
				"measure both in blocks of %d", ref.size, cand.size, size)
	}
	c := comparison{brief: ref.opts.Brief || cand.opts.Brief, f: Report{Schema: schema, LRUCurve: []CurvePair{},
		Routes: []RoutePair{}, Queues: []QueuePair{}, Rates: []RatePair{}, Warnings: []profile.Warning{}}}
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
	c.pairs()
	c.felt()
	for _, amount := range []struct {
		name string
		of   func(t *signatureTally) float64
	}{
		{"requests", func(t *signatureTally) float64 { return float64(t.requests) }},
		{"input_tokens", func(t *signatureTally) float64 { return float64(t.in) }},
		{"output_tokens", func(t *signatureTally) float64 { return float64(t.out) }},
		{"duration_s", func(t *signatureTally) float64 { return inSeconds(t.last - t.first) }},
	} {
		ref, cand := amount.of(c.ref), amount.of(c.cand)
		c.add(amount.name, &ref, &cand, relative(&ref, &cand), "")
	}
	slices.SortStableFunc(c.f.Measures, func(a, b Measure) int {
		return cmp.Compare(measurePlace(a.Name), measurePlace(b.Name))
	})
	c.warn(ref, cand)
	return c.f, nil
}

// felt compares what a benchmark feels of the first requests, and what of them repeats.
func (c *comparison) felt() {
	switch {
	case c.brief:
	case c.ref.kept.counted() > 0 && c.cand.kept.counted() > 0:
		c.links()
		c.routing()
		c.queues()
		c.tokenRates()
		c.clockTicks()
		c.copies()
	default: // the warm-up is longer than the first requests
		for _, m := range catalogue {
			if m.first {
				c.add(m.name, nil, nil, nil, fmt.Sprintf("requests that count among the first %d",
					c.ref.kept.limit.rows))
			}
		}
	}
}

// countedTally measures a signature, once, and returns what its requests told. It is an
// error when none of them counts.
func countedTally(name string, s *Signature) (*signatureTally, error) {
	s.End()
	if s.err != nil {
		return nil, fmt.Errorf("%s: %w", name, s.err)
	}
	t := s.tally
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
	return Side{Tier: m.Tier, SourceFormat: m.SourceFormat, Tokenizer: m.Tokenizer, Digest: m.Digest,
		BlockSizeTokens: m.BlockSize,
		Rows:            s.read, Failed: s.failed, WarmUpS: inSeconds(s.warmUp()), Requests: s.tally.requests}
}

func inSeconds(ns int64) float64 { return float64(ns) / 1e9 }

// A comparison fills in a Fidelity.
type comparison struct {
	ref, cand *signatureTally
	brief     bool // without what a benchmark feels
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

// warn says what a reader of the measures must know.
func (c *comparison) warn(ref, cand *Signature) {
	add := func(code, format string, args ...any) {
		c.f.Warnings = append(c.f.Warnings, profile.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	for _, s := range []struct {
		name string
		*Signature
	}{{"reference", ref}, {"candidate", cand}} {
		if s.joined > 1 {
			add("joined_blocks", "every %d blocks of %d tokens of the %s were joined into one of %d, as "+
				"chained ids allow",
				s.joined, s.meta.BlockSize, s.name, s.size)
		}
		if s.failed > 0 {
			add("failed_rows", "%s of %s rows of the %s failed; they are left out", doc.Count(s.failed),
				doc.Count(s.read), s.name)
		}
		if w := s.warmUp(); w > 0 {
			add("warm_up", "the first %s s of the %s are warm-up: they fill the cache and are left out",
				doc.Number(inSeconds(w)), s.name)
		}
		if s.meta.Timing != "" {
			add("made_up_times", "the times of the %s were made up: measures of arrivals, gaps and reuse times "+
				"describe that choice", s.name)
		}
		if s.tally.sample.shift > 0 {
			add("sampled_requests", "the %s has more than %s requests: correlations are of a sample of %s",
				s.name, doc.Count(int64(s.limits.rows)), doc.Count(int64(len(s.tally.sample.rows))))
		}
		if s.tally.pairs.shift > 0 {
			add("sampled_pairs", "the %s has more than %s pairs of lengths: the pair match is of one in %d of them, "+
				"the same on both sides",
				s.name, doc.Count(int64(s.limits.pairs)), uint64(1)<<s.tally.pairs.shift)
		}
		if k := s.tally.kept; k.more {
			add("first_requests", "the %s is long: links, routing, queues, the rate of tokens and copies are of its "+
				"first %s requests, routing of as many of these as have %s blocks",
				s.name, doc.Count(int64(len(k.at))), doc.Count(int64(k.limit.routed)))
		}
		if n := s.tally.oneIn; n > 0 {
			add("sampled_trees", "the %s has more than %s distinct blocks: inferred sessions, the longest too, are "+
				"of one in %d prefix trees, whole, and times to reuse of as many blocks",
				s.name, doc.Count(profile.DefaultExactBlocks), n)
		}
		if s.tally.sampledCurve {
			add("sampled_curve", "the %s has more than %s distinct blocks: its LRU curve is estimated from a "+
				"sample of them", s.name,
				doc.Count(curveExact))
		}
	}
	if n := ref.tally.requests; n < synth.FewRequests &&
		strings.HasPrefix(cand.meta.SourceFormat, synth.GeneratedSource) {
		add("few_requests", "the reference has %s requests: a model of so few knows less of the traffic than one of "+
			"%s or more, and limits are wider", doc.Count(n), doc.Count(synth.FewRequests))
	}
	if ref.meta.Tokenizer != cand.meta.Tokenizer && ref.meta.Tokenizer != "" && cand.meta.Tokenizer != "" {
		add("tokenizers", "the two were counted with different tokenizers")
	}
	if c.ref.blocks && c.cand.blocks && max(c.ref.unique, c.cand.unique) <= curveFrom {
		add("small_curve", "neither has more than %d distinct blocks, so every capacity of the curve holds them all",
			curveFrom)
	}
	for i := 0; i < len(c.f.IDC); { // scales that were left out, by reason
		why := c.f.IDC[i].LeftOut
		var scales []string
		for ; i < len(c.f.IDC) && c.f.IDC[i].LeftOut == why; i++ {
			scales = append(scales, fmt.Sprintf("%g", c.f.IDC[i].WindowS))
		}
		if why != "" {
			add("idc_scales", "the IDC at %s s is left out: %s", strings.Join(scales, ", "), why)
		}
	}
}
