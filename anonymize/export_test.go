package anonymize

// WithLimits lowers the limits from which blocks go to disk.
func (p Policy) WithLimits(distinct, refs int) Policy {
	p.limits = limits{distinct: distinct, inferred: distinct, refs: refs}
	return p
}

// MaxModels is the bound of the models that a card compares one by one.
const MaxModels = maxModels
