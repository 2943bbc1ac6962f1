package fidelity

import (
	"fmt"
	"strings"

	"reprise/synth"
	"reprise/trace/page"
	"reprise/trace/profile"
)

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
			add("joined_blocks", "every %d blocks of %d tokens of the %s were joined to one of %d, which chained ids allow",
				s.joined, s.meta.BlockSize, s.name, s.size)
		}
		if s.failed > 0 {
			add("failed_rows", "%s of %s rows of the %s failed; they are in no figure", page.Count(s.failed), page.Count(s.read), s.name)
		}
		if w := s.warmUp(); w > 0 {
			add("warm_up", "the first %s s of the %s are history: known, and in no figure", page.Fixed(inSeconds(w), 3), s.name)
		}
		if s.meta.Timing != "" {
			add("made_up_times", "the times of the %s were made up: measures of arrivals, gaps and reuse time describe that choice", s.name)
		}
		if s.tally.sample.shift > 0 {
			add("sampled_requests", "the %s has more than %s requests: correlations and the two-dimensional distance are of a sample of %s",
				s.name, page.Count(int64(s.limits.rows)), page.Count(int64(len(s.tally.sample.rows))))
		}
		if s.tally.pairs.shift > 0 {
			add("sampled_pairs", "the %s has more than %s pairs of lengths: the pair match is of one in %d of them, the same on both sides",
				s.name, page.Count(int64(s.limits.pairs)), uint64(1)<<s.tally.pairs.shift)
		}
		if s.tally.sampledCurve {
			add("sampled_curve", "the %s has more than %s distinct blocks: its LRU curve is estimated from a sample of them", s.name,
				page.Count(profile.DefaultExactBlocks))
		}
	}
	if n := ref.tally.requests; n < synth.FewRequests && strings.HasPrefix(cand.meta.SourceFormat, synth.GeneratedSource) {
		add("few_requests", "the reference has %s requests: a model wants %s or more, and one of fewer mostly breaks some of the limits",
			page.Count(n), page.Count(synth.FewRequests))
	}
	if ref.meta.Tokenizer != cand.meta.Tokenizer && ref.meta.Tokenizer != "" && cand.meta.Tokenizer != "" {
		add("tokenizers", "the lengths of the two were counted by different tokenizers")
	}
	if c.ref.blocks && c.cand.blocks && max(c.ref.unique, c.cand.unique) <= curveFrom {
		add("small_curve", "neither has more than %d distinct blocks: every capacity of the curve holds them all", curveFrom)
	}
	c.warnScales(add)
}

// warnScales names the scales that were left out, by reason.
func (c *comparison) warnScales(add func(code, format string, args ...any)) {
	for i := 0; i < len(c.f.IDC); {
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
