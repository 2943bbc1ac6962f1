package report

import (
	"slices"

	"reprise/replay/result"
	"reprise/trace/page"
)

// Tokens and cache hits over time.

// addOverTime counts the tokens of a successful request where they came, and its
// cache hits where it was sent.
func (c *collector) addOverTime(r *result.Result) {
	if r.FirstTokenNS != nil && r.Events > 0 {
		c.time.at(*r.FirstTokenNS).prompt += int64(InputTokens(r)) // which ends its prefill
		c.time.addOutput(r)
	}
	if r.Input == nil || *r.Input == 0 {
		return
	}
	s, prompt := c.time.at(*r.SentNS), int64(*r.Input)
	s.asked += prompt
	if r.Cached != nil {
		s.looked += prompt
		s.cached += int64(*r.Cached)
	}
	if block := c.cache.block; block > 0 && r.Known != nil {
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
func (t *timeline) hits(zeros bool) (measured, expected page.Series) {
	measured.Name, expected.Name = "measured", "expected of a cache without limit"
	put := func(s *page.Series, x float64, num, den int64) {
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

var overTimeDefinitions = []Definition{
	{"tokens over time", "1/s", "Tokens of successful requests in each bin of time: those of a prompt at its first token, those of an output at the instants of their events.", "Σ tokens ÷ width of the bin"},
	{"hit ratio over time", "share", "Measured and expected hit ratio of the requests that were sent in each bin of time.", "Σ cached ÷ Σ prompt; Σ ⌊min(known, prompt − 1) ÷ block⌋·block ÷ Σ prompt"},
	{"arrivals", "1/s", "Requests that the schedule wanted sent, and that were sent, in each bin of time.", "n ÷ width of the bin"},
	{"lengths", "tokens", "Successful requests by the length of prompt or output, eight buckets to each doubling.", "n in 2^(k÷8) ≤ length < 2^((k+1)÷8)"},
}
