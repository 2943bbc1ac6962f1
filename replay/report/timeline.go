package report

import (
	"cmp"
	"math"
	"slices"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/sample"
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
	t.width = cmp.Or(t.width, firstSlot)
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
func (t *timeline) series(name string, f func(slot) float64, end bool) doc.Series {
	s := doc.Series{Name: name}
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
func (t *timeline) rate(name string, count func(slot) int64) doc.Series {
	return t.series(name, func(s slot) float64 { return float64(count(s)) / t.seconds() }, true)
}

// largest draws the largest duration of each slot in its middle, where it has one.
func (t *timeline) largest(name string, of func(slot) Span) doc.Series {
	var out doc.Series
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

// Series are what the plots of [Page] draw, in seconds since the start of the
// run, milliseconds and tokens. None has more than a few thousand points.
type Series struct {
	Input, Output, Wanted doc.Series // token lengths, as bars
	DuePerS, SentPerS     doc.Series // requests per second over time
	InFlight              doc.Series // at the end of each bin
	CoarseS               float64    // width of the bins of what follows
	PromptPerS            doc.Series // tokens per second, by the first token of a prompt
	OutputPerS            doc.Series // tokens per second, by the events of an output
	Hits, HitsAllowed     doc.Series // hit ratios over the time of sending, as shares
	BinS                  float64    // width of the bins of time

	TTFTSent, TTFTDue    doc.Series // cumulative distributions
	E2ESent, E2EDue      doc.Series
	ITLChunk, ITLToken   doc.Series
	TPOT, Lag            doc.Series
	TTFTPoints, TTFTMax  doc.Series // over the time of sending: sampled requests, slowest of each bin
	E2EPoints            doc.Series // of the same requests
	LagPoints, LagMax    doc.Series // over the due time, over the time of sending
	Running, Waiting     doc.Series // at the servers, over time, from here on
	KVUse, ServerHits    doc.Series // shares
	Generated, Prefilled doc.Series // tokens per second
	Preempted            doc.Series // per second
	GPUUse, GPUPower     doc.Series // share, watts
	Sampled, SampledFrom int64      // requests drawn as points, and those that were sent

	FirstSessions, SlowSessions *lanes // nil without sessions to draw
}

// minDrawnMS is where gaps and lags stop on a logarithmic axis, which has no place for
// zero: a microsecond.
const minDrawnMS = 1e-3

// addTokens counts the tokens of a successful request where they came, and its cache
// hits where it was sent, in whole blocks.
func (t *timeline) addTokens(r *result.Result, block int64) {
	if r.FirstTokenNS != nil && r.Events > 0 {
		t.at(*r.FirstTokenNS).prompt += int64(InputTokens(r)) // which ends its prefill
		t.addOutput(r)
	}
	if r.Input == nil || *r.Input == 0 {
		return
	}
	s, prompt := t.at(*r.SentNS), int64(*r.Input)
	s.asked += prompt
	if r.Cached != nil {
		s.looked += prompt
		s.cached += int64(*r.Cached)
	}
	if block > 0 && r.Known != nil {
		s.allowed += prompt
		s.reach += min(int64(*r.Known), prompt-1) / block * block
	}
}

// addOutput counts the tokens of an output at their events. Where the server did not
// say how many an event carried, they are spread over the events in whole tokens, so
// that sums do not depend on any order.
func (t *timeline) addOutput(r *result.Result) {
	at := *r.FirstTokenNS
	last := at
	for _, gap := range r.GapsNS {
		last = min(last+gap, MaxInstant)
	}
	t.at(last) // first, since it may change the width
	var output int64
	if r.Output != nil {
		output = int64(*r.Output)
	}
	events := int64(r.Events)
	each, rest, left := output/events, output%events, int64(0)
	exact := len(r.EventTokens) == int(r.Events)
	s, end := t.at(at), (at/t.width+1)*t.width
	for i := range int(events) {
		if i > 0 {
			if at = min(at+r.GapsNS[i-1], MaxInstant); at >= end {
				s, end = t.at(at), (at/t.width+1)*t.width
			}
		}
		if exact {
			s.output += int64(r.EventTokens[i])
			continue
		}
		s.output += each
		if left += rest; left >= events {
			left -= events
			s.output++
		}
	}
}

// coarseSlots is how many bins tokens and hit ratios are drawn in at most: prompts
// are long and few, and finer bins would show each of them as a spike.
const coarseSlots = 240

// coarse joins bins until there are few enough to draw.
func (t *timeline) coarse() *timeline {
	out := &timeline{width: t.width, slots: slices.Clone(t.slots)}
	for len(out.slots) > coarseSlots {
		out.fold()
	}
	return out
}

// hits draws the hit ratios over time.
func (t *timeline) hits(zeros bool) (measured, expected doc.Series) {
	measured.Name, expected.Name = "measured", "expected of a cache without limit"
	put := func(s *doc.Series, x float64, num, den int64) {
		if den > 0 {
			s.X, s.Y = append(s.X, x), append(s.Y, float64(num)/float64(den))
		}
	}
	for i, s := range t.slots {
		x, looked := (float64(i)+0.5)*t.seconds(), s.looked
		if zeros {
			looked = s.asked
		}
		put(&measured, x, s.cached, looked)
		put(&expected, x, s.reach, s.allowed)
	}
	return measured, expected
}

// growth compares the mean of the requests in flight over the first and over the
// last quarter of the due times, where there are bins enough, and says by what
// factor the requests that were due changed.
func (t *timeline) growth(from, to int64) (first, last, came float64, ok bool) {
	var open int64
	var sums, bins, due [2]float64
	quarter := (to - from) / 4
	for i, s := range t.slots {
		open += s.sent - s.done
		at := int64(i+1)*t.width - from
		part := 0
		switch {
		case at <= 0, at > quarter && at <= to-from-quarter, at > to-from:
			continue
		case at > quarter:
			part = 1
		}
		sums[part] += float64(open)
		due[part] += float64(s.due)
		bins[part]++
	}
	if min(bins[0], bins[1]) < 4 || due[0] == 0 {
		return 0, 0, 0, false
	}
	return sums[0] / bins[0], sums[1] / bins[1], due[1] / bins[1] / (due[0] / bins[0]), true
}

// A pick is one request of a [picks].
type pick struct {
	hash      uint64
	due, sent int64
	ttft, e2e Span
}

func (p *pick) lag() int64 { return p.sent - p.due }

// picks is a uniform sample of at most maxPicks requests: those whose row
// numbers have the smallest hashes. A reservoir over a random stream was
// rejected: it would depend on the order of the results.
type picks struct {
	held []pick
	full bool   // held has been cut, so the bound below is valid
	top  uint64 // largest hash among the kept
}

const maxPicks = 2000

func (p *picks) add(row int64, q pick) {
	q.hash = sample.Mix64(uint64(row) + sample.Golden)
	if p.full && q.hash > p.top {
		return
	}
	p.held = append(p.held, q)
	if len(p.held) == 2*maxPicks {
		p.cut()
	}
}

// cut keeps the smallest hashes. Results of one row tie, and are distinguished by
// their instants.
func (p *picks) cut() {
	slices.SortFunc(p.held, func(a, b pick) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.due, b.due),
			cmp.Compare(a.sent, b.sent), cmp.Compare(a.ttft.NS, b.ttft.NS), cmp.Compare(a.e2e.NS, b.e2e.NS))
	})
	if len(p.held) > maxPicks {
		p.held = p.held[:maxPicks]
		p.full, p.top = true, p.held[maxPicks-1].hash
	}
}

// finish cuts the sample and puts it in order of due time.
func (p *picks) finish() {
	p.cut()
	slices.SortStableFunc(p.held, func(a, b pick) int { return cmp.Compare(a.due, b.due) })
}

// minDrift is how many requests a drift needs: ten in each quarter.
const minDrift = 40

// drift is the median lag of the last quarter of the sample, by due time,
// minus that of the first. A slope by least squares was rejected: one stall
// near the end would tilt it.
func (p *picks) drift() Span {
	quarter := len(p.held) / 4
	if len(p.held) < minDrift {
		return Span{}
	}
	median := func(part []pick) int64 {
		lags := make([]int64, len(part))
		for i := range part {
			lags[i] = part[i].lag()
		}
		slices.Sort(lags)
		q := sample.Sorted(lags)
		return q.At(1, 2)
	}
	return Span{median(p.held[len(p.held)-quarter:]) - median(p.held[:quarter]), true}
}

// points draws a duration of the sampled requests, in milliseconds, over an
// instant, in seconds.
func (p *picks) points(name string, at func(pick) int64, of func(pick) Span) doc.Series {
	s := doc.Series{Name: name}
	for _, q := range p.held {
		if d := of(q); d.OK {
			s.X = append(s.X, float64(at(q))/1e9)
			s.Y = append(s.Y, float64(d.NS)/1e6)
		}
	}
	return s
}
