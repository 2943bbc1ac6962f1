package report

import (
	"math"

	"reprise/trace/page"
)

const (
	maxSlots  = 1024
	firstSlot = int64(1e8) // 100 ms
)

// A slot is what happened in one bin of time.
type slot struct {
	due, sent, done int64 // requests
	ttft, lag       Span  // largest of the requests sent in it

	prompt, output         int64 // tokens
	asked, looked, allowed int64 // prompt tokens: of all, and where hits are measured, are expected
	cached, reach          int64 // hits, measured and expected
}

// A timeline counts over time in at most maxSlots bins of equal width. When an
// instant lies beyond the last, neighbours are joined and the width doubles;
// slots add up exactly, so the result depends only on the latest instant.
type timeline struct {
	width int64
	slots []slot
}

func (t *timeline) at(ns int64) *slot {
	if t.width == 0 {
		t.width = firstSlot
	}
	for ns/t.width >= maxSlots {
		t.fold()
	}
	for int64(len(t.slots)) <= ns/t.width {
		t.slots = append(t.slots, slot{})
	}
	return &t.slots[ns/t.width]
}

func (t *timeline) fold() {
	t.slots = halve(t.slots, (*slot).join)
	t.width *= 2
}

func (s *slot) join(o slot) {
	s.due += o.due
	s.sent += o.sent
	s.done += o.done
	s.ttft = longer(s.ttft, o.ttft)
	s.lag = longer(s.lag, o.lag)
	s.prompt += o.prompt
	s.output += o.output
	s.asked += o.asked
	s.looked += o.looked
	s.allowed += o.allowed
	s.cached += o.cached
	s.reach += o.reach
}

func longer(a, b Span) Span {
	if !a.OK || b.OK && b.NS > a.NS {
		return b
	}
	return a
}

// seconds is the width of a slot.
func (t *timeline) seconds() float64 { return float64(t.width) / 1e9 }

// series draws a value of each slot at its begin. With an end, a zero follows
// the last slot, so that steps close.
func (t *timeline) series(name string, f func(slot) float64, end bool) page.Series {
	s := page.Series{Name: name}
	for i := range t.slots {
		s.X = append(s.X, float64(i)*t.seconds())
		s.Y = append(s.Y, f(t.slots[i]))
	}
	if end && len(s.X) > 0 {
		s.X = append(s.X, float64(len(t.slots))*t.seconds())
		s.Y = append(s.Y, 0)
	}
	return s
}

// rate is a count of each slot per second.
func (t *timeline) rate(name string, count func(slot) int64) page.Series {
	return t.series(name, func(s slot) float64 { return float64(count(s)) / t.seconds() }, true)
}

// inFlight is the number of requests that are sent and not done at the end of
// each slot, drawn there.
func (t *timeline) inFlight(name string) page.Series {
	var open int64
	s := t.series(name, func(s slot) float64 {
		open += s.sent - s.done
		return float64(open)
	}, false)
	for i := range s.X {
		s.X[i] += t.seconds()
	}
	return s
}

// largest draws the largest duration of each slot in its middle, where it has one.
func (t *timeline) largest(name string, of func(slot) Span) page.Series {
	var out page.Series
	all := t.series(name, func(s slot) float64 {
		if d := of(s); d.OK {
			return float64(d.NS) / 1e6
		}
		return math.NaN()
	}, false)
	out.Name = name
	for i, y := range all.Y {
		if !math.IsNaN(y) {
			out.X = append(out.X, all.X[i]+t.seconds()/2)
			out.Y = append(out.Y, y)
		}
	}
	return out
}
