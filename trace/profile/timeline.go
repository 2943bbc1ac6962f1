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

// maxSpans is how many stretches of time are told apart at most.
const maxSpans = 1024

// An epoch cuts the time since the first arrival into spans of 2^shift ns, as
// few as maxSpans of them. How long a trace is shows only at its end; whenever
// the spans run out, two neighbours become one. More than half of them are then
// in use, so every instant is within a thousandth of the duration of an edge.
type epoch struct {
	begun       bool
	first, last int64 // arrivals in ns
	shift       uint
}

// arrive moves the clock to ns. It does not go back: a row that is out of order
// counts with the row before it.
func (e *epoch) arrive(ns int64) {
	if !e.begun {
		e.begun, e.first, e.last = true, ns, ns
	}
	e.last = max(e.last, ns)
}

// elapsed is the time in ns since the first arrival, which an int64 may not hold.
func (e *epoch) elapsed() uint64 { return uint64(e.last) - uint64(e.first) }

// span makes spans longer until they reach to the clock, and returns the number
// of the one that it is in.
func (e *epoch) span() uint32 {
	for e.elapsed()>>e.shift >= maxSpans {
		e.shift++
	}
	return uint32(e.elapsed() >> e.shift)
}

// middle is the number of spans before the edge that is nearest to the middle of
// the time so far.
func (e *epoch) middle() uint64 {
	long, width := e.elapsed(), uint64(1)<<e.shift
	middle := long/2 + width/2 + long&width&1 // (long+width)/2, of which the sum may overflow
	return middle >> e.shift
}
