package anonymize

// WithLimits lowers the limits from which blocks go to disk.
func (p Policy) WithLimits(distinct, refs int) Policy {
	p.limits = limits{distinct: distinct, refs: refs}
	return p
}

// WithLimits lowers those, and the bytes for the units of blocks.
func (p PartnerPolicy) WithLimits(distinct, refs int, sharing int64) PartnerPolicy {
	p.limits = limits{distinct: distinct, refs: refs, sharing: sharing}
	return p
}

// Watched tells which row of the source each row came from that is written, and
// what instant it got.
func (p PartnerPolicy) Watched(f func(row, at int64)) PartnerPolicy {
	p.watch = f
	return p
}

// MaxModels is the bound of the models that a card compares one by one.
const MaxModels = maxModels
