package datasets

import (
	"strconv"
	"time"
)

// A wekaCall is a request of a conversation with its instants and the requests
// that it waits for, by their place in the plan.
type wekaCall struct {
	*wekaRequest
	at, end          time.Duration // since the start of the conversation
	api, think, ttft *time.Duration
	parents          []int
}

// joinSlack is how much later than its start what a request waits for may have
// ended: times are rounded.
const joinSlack = time.Microsecond

// A wekaPlan lists the requests of a conversation, those of subagents among
// them, each behind all that it waits for.
type wekaPlan struct {
	calls     []wekaCall
	path, why string // of what is wrong
}

// planWeka plans a conversation. why says what is wrong with it, and path where.
func planWeka(requests []wekaRequest) (calls []wekaCall, path, why string) {
	var p wekaPlan
	p.stream(requests, 0, -1, "requests")
	return p.calls, p.path, p.why
}

// stream plans the requests of a conversation or a subagent, with their times
// moved by shift. The first waits for spawn, unless that is -1. It returns the
// request that ends last, or -1.
func (p *wekaPlan) stream(requests []wekaRequest, shift time.Duration, spawn int, path string) int {
	var own []int  // requests of this stream so far
	var open []int // last requests of subagents that nothing waits for yet
	last := -1
	for i := range requests {
		r := &requests[i]
		at := path + "." + strconv.Itoa(i)
		if r.Type == "subagent" {
			t, ok := p.seconds(r.T, at+".t")
			if !ok {
				return -1
			}
			before := spawn
			if len(own) > 0 {
				before = p.ended(own, t+shift)
			}
			if end := p.stream(r.Requests, p.basis(r.Requests, t, shift), before, at+".requests"); end >= 0 {
				open = append(open, end)
			}
		} else {
			call, ok := p.call(r, shift, at)
			if !ok {
				return -1
			}
			open = p.wait(&call, own, open, spawn)
			p.calls = append(p.calls, call)
			own = append(own, len(p.calls)-1)
		}
		if p.why != "" {
			return -1
		}
	}
	for _, i := range append(own, open...) {
		if last < 0 || p.calls[i].end >= p.calls[last].end {
			last = i
		}
	}
	return last
}

// basis returns what to add to the times of a subagent's requests: they count
// from its start t when one of them would otherwise be before that.
func (p *wekaPlan) basis(requests []wekaRequest, t, shift time.Duration) time.Duration {
	for i := range requests {
		if at, ok := readSeconds(requests[i].T); ok && at+joinSlack < t {
			return shift + t
		}
	}
	return shift
}

// wait sets what a request waits for and returns the subagents that nothing
// waits for yet.
func (p *wekaPlan) wait(c *wekaCall, own, open []int, spawn int) (still []int) {
	before := spawn
	if len(own) > 0 {
		before = p.ended(own, c.at)
	}
	if before >= 0 && p.calls[before].end <= c.at+joinSlack && p.calls[before].at <= c.at {
		c.parents = append(c.parents, before)
	}
	for _, i := range open {
		if p.calls[i].end <= c.at+joinSlack && p.calls[i].at <= c.at {
			c.parents = append(c.parents, i)
		} else {
			still = append(still, i)
		}
	}
	return still
}

// ended returns the latest request of a stream that had ended by t, or -1.
func (p *wekaPlan) ended(own []int, t time.Duration) int {
	for i := len(own) - 1; i >= 0; i-- {
		if c := &p.calls[own[i]]; c.end <= t+joinSlack && c.at <= t {
			return own[i]
		}
	}
	return -1
}

func (p *wekaPlan) call(r *wekaRequest, shift time.Duration, path string) (c wekaCall, ok bool) {
	c.wekaRequest = r
	switch {
	case r.Type != "s" && r.Type != "n":
		return c, p.fail(path+".type", "type: want s, n or subagent")
	case r.In == nil || *r.In < 0:
		return c, p.fail(path+".in", "in: want a whole number from 0 to 2147483647")
	case r.Out == nil || *r.Out < 0:
		return c, p.fail(path+".out", "out: want a whole number from 0 to 2147483647")
	}
	if c.at, ok = p.seconds(r.T, path+".t"); !ok {
		return c, false
	}
	c.at += shift
	c.end = c.at
	for _, f := range []struct {
		name string
		n    *number
		to   **time.Duration
	}{{"api_time", r.APITime, &c.api}, {"think_time", r.ThinkTime, &c.think}, {"ttft", r.TTFT, &c.ttft}} {
		if f.n == nil {
			continue
		}
		d, ok := p.seconds(f.n, path+"."+f.name)
		if !ok {
			return c, false
		}
		*f.to = &d
	}
	if c.api != nil {
		c.end += *c.api
	}
	return c, true
}

func (p *wekaPlan) seconds(n *number, path string) (time.Duration, bool) {
	d, ok := readSeconds(n)
	if !ok {
		return 0, p.fail(path, "want seconds that are not negative")
	}
	return d, true
}

// readSeconds reads a number of seconds below a thousand years.
func readSeconds(n *number) (time.Duration, bool) {
	if n == nil {
		return 0, false
	}
	whole, nano, ok := readDecimal(string(*n))
	if !ok || whole < 0 || nano < 0 || whole >= 1e9 {
		return 0, false
	}
	return time.Duration(whole)*time.Second + time.Duration(nano), true
}

func (p *wekaPlan) fail(path, why string) bool {
	p.path, p.why = path, why
	return false
}

// wekaIDs renumbers the block ids of a conversation.
type wekaIDs struct {
	d    *wekaDecoder
	own  map[uint64]uint64
	next uint64
}

func (w *wekaIDs) fresh() uint64 {
	w.next++
	return w.next - 1
}

const (
	noteWekaFloor = "requests with another number of block ids than full blocks, cut or filled up with new ones"
	noteWekaNone  = "requests with ids for less than half of their blocks, left without any"
)

// fit makes of the ids of full blocks one for each block. Of ids that are more
// than these, the first stands for the rest of the input, when there is one, and
// others are left out; too few are filled up, as blocks that nothing shares,
// unless most are missing: then it is not known what the prompt shares.
func (w *wekaIDs) fit(ids []uint64, input, size int32) []uint64 {
	full, n := int(input/size), blocksOf(input, int(size))
	if len(ids) != full {
		if full > 2*len(ids) {
			w.d.s.notes.count(noteWekaNone)
			return nil
		}
		w.d.s.notes.count(noteWekaFloor)
	}
	out := make([]uint64, 0, n)
	for _, id := range ids[:min(n, len(ids))] {
		renumbered, ok := w.own[id]
		if !ok {
			renumbered = w.fresh()
			w.own[id] = renumbered
		}
		out = append(out, renumbered)
	}
	for len(out) < n {
		out = append(out, w.fresh())
	}
	return out
}
