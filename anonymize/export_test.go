package anonymize

// WithLimits lowers the limits from which blocks go to disk.
func (p Policy) WithLimits(distinct, refs int) Policy {
	p.limits = limits{distinct, refs}
	return p
}
