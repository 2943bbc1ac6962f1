package profile

// maxSpans is how many stretches of time are distinguished at most.
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
	middle := long/2 + width/2 + long&width&1 // (long+width)/2, whose sum may overflow
	return middle >> e.shift
}
