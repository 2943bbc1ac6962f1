package profile

import "time"

// maxSpans is how many stretches of time are kept apart at most: about 1 MB.
const maxSpans = 1024

// A timeline finds the sums of the second half of a trace in one pass, though
// where that begins shows only at the end. It keeps the sums of up to maxSpans
// spans of 2^shift ns each; when they run out, two neighbours become one. More
// than half of them are then in use, so the middle of the trace is never more
// than a thousandth of the duration from an edge.
//
// With a warm-up that is given there are two spans: before its end, and after.
type timeline struct {
	listed []capacity
	warmUp *time.Duration

	begun       bool
	first, last int64 // arrivals in ns
	shift       uint
	spans       []*span // from first on; nil where there were no requests
	spare       []*span // empty ones
}

// arrive moves the clock to ns. It does not go back: a row that is out of order
// counts with the row before it.
func (t *timeline) arrive(ns int64) {
	if !t.begun {
		t.begun, t.first, t.last = true, ns, ns
	}
	t.last = max(t.last, ns)
}

// elapsed is the time in ns since the first arrival, which an int64 may not hold.
func (t *timeline) elapsed() uint64 { return uint64(t.last) - uint64(t.first) }

// now returns the span that the clock is in.
func (t *timeline) now() *span {
	var i uint64
	if t.warmUp == nil {
		for t.elapsed()>>t.shift >= maxSpans {
			t.fold()
		}
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
		long, width := t.elapsed(), uint64(1)<<t.shift
		middle := long/2 + width/2 + long&width&1 // (long+width)/2, of which the sum may overflow
		edge = middle >> t.shift
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
