package profile

import "time"

// A timeline finds the sums of the second half of a trace in one pass, though
// where that begins shows only at the end. It keeps the sums of each span of its
// epoch, about 1 MB.
//
// With a warm-up that is given there are two spans: before its end, and after.
type timeline struct {
	listed []capacity
	warmUp *time.Duration

	epoch
	spans []*span // from first on; nil where there were no requests
	spare []*span // empty ones
}

// arrive moves the clock to ns.
func (t *timeline) arrive(ns int64) {
	t.epoch.arrive(ns)
	for t.warmUp == nil && t.elapsed()>>t.shift >= maxSpans {
		t.fold()
	}
}

// now returns the span that the clock is in.
func (t *timeline) now() *span {
	var i uint64
	if t.warmUp == nil {
		i = t.elapsed() >> t.shift
	} else if t.elapsed() >= uint64(max(*t.warmUp, 0)) {
		i = 1
	}
	if n := int(i) + 1 - len(t.spans); n > 0 {
		t.spans = append(t.spans, make([]*span, n)...)
	}
	if t.spans[i] == nil {
		t.spans[i] = t.empty()
	}
	return t.spans[i]
}

func (t *timeline) empty() *span {
	n := len(t.spare)
	if n == 0 {
		return newSpan(len(t.listed))
	}
	s := t.spare[n-1]
	t.spare = t.spare[:n-1]
	return s
}

// fold makes one span of every two.
func (t *timeline) fold() {
	t.shift++
	for i, s := range t.spans {
		t.spans[i] = nil
		switch into := &t.spans[i/2]; {
		case s == nil:
		case *into == nil:
			*into = s
		default:
			(*into).add(s)
			clear(s.within)
			s.sums = sums{}
			t.spare = append(t.spare, s)
		}
	}
	t.spans = t.spans[:(len(t.spans)+1)/2]
}

// steady returns the sum of the spans from the warm-up on, and its end in ns:
// the edge that is nearest to the middle of the time so far.
func (t *timeline) steady() (warmUp uint64, sum *span) {
	sum = newSpan(len(t.listed))
	edge := uint64(1)
	if t.warmUp != nil {
		warmUp = uint64(max(*t.warmUp, 0))
	} else {
		edge = t.middle()
		warmUp = edge << t.shift
	}
	for _, s := range t.spans[min(edge, uint64(len(t.spans))):] {
		if s != nil {
			sum.add(s)
		}
	}
	return warmUp, sum
}

func (t *timeline) clone() timeline {
	c := *t
	c.spans, c.spare = make([]*span, len(t.spans)), nil
	for i, s := range t.spans {
		if s != nil {
			c.spans[i] = newSpan(len(t.listed))
			c.spans[i].add(s)
		}
	}
	return c
}
