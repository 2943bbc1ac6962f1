package datasets

import (
	"slices"
	"strconv"
	"time"

	"reprise/datasets/internal/row"
)

// A wekaCall is a request of a conversation with its instants and the requests
// that it waits for, by their place in the plan.
type wekaCall struct {
	*wekaRequest
	at, end          time.Duration // since the start of the conversation
	api, think, ttft *time.Duration
	thread           int // of the conversation; 0 is the root
	parents          []int
	trunk            wekaTrunk
}

// joinSlack is how much later than its start what a request waits for may have
// ended: times are rounded.
const joinSlack = time.Microsecond

// A wekaPlan lists the requests of a conversation, those of subagents among
// them, each after all that it waits for.
type wekaPlan struct {
	calls     []wekaCall
	threads   int    // that there are so far
	path, why string // of what is wrong
}

// A wekaList is what is known of a list of requests, that of a conversation or of a
// subagent, while it is planned.
type wekaList struct {
	shift  time.Duration // of its times
	caller int           // what its first request waits for; -1 is nothing
	chains []wekaThread
	open   []wekaAgent // subagents that nothing waits for yet
}

// A wekaThread is a chain of requests of a list.
type wekaThread struct {
	calls  []int         // in the plan, so far
	left   int           // requests that are not in the plan yet
	end    time.Duration // when all of them were answered
	joined bool
}

// A wekaAgent is a subagent by the last requests of its threads, and until when it ran.
type wekaAgent struct {
	last  []int
	until time.Duration
}

// addList plans a list of requests.
func (p *wekaPlan) addList(requests []wekaRequest, shift time.Duration, caller int, path string,
	trunk wekaTrunk) *wekaList {
	var calls []wekaCall
	for i := range requests {
		r := &requests[i]
		if r.Type == "subagent" {
			continue
		}
		c, ok := p.readCall(r, shift, path+"."+strconv.Itoa(i))
		if !ok {
			return nil
		}
		c.trunk = trunk
		c.trunk.model = c.Model
		calls = append(calls, c)
	}
	l := &wekaList{shift: shift, caller: caller}
	of, first := chainsOf(calls), p.threads
	for i, k := range of {
		for k >= len(l.chains) {
			l.chains = append(l.chains, wekaThread{})
			p.threads++
		}
		l.chains[k].left++
		l.chains[k].end = max(l.chains[k].end, calls[i].end)
	}
	for i := range requests {
		if requests[i].Type == "subagent" {
			p.addAgent(&requests[i], l, path+"."+strconv.Itoa(i))
			if p.why != "" {
				return nil
			}
			continue
		}
		c, k := calls[0], of[0]
		calls, of = calls[1:], of[1:]
		c.thread = first + k
		p.setParents(&c, l, k)
		l.chains[k].calls = append(l.chains[k].calls, len(p.calls))
		l.chains[k].left--
		p.calls = append(p.calls, c)
	}
	return l
}

// addAgent plans a subagent of a list.
func (p *wekaPlan) addAgent(r *wekaRequest, l *wekaList, path string) {
	t, ok := p.seconds(r.T, path+".t")
	if !ok {
		return
	}
	caller := l.caller
	if len(l.chains) > 0 && len(l.chains[0].calls) > 0 {
		caller = p.latestEnded(l.chains[0].calls, t+l.shift)
	}
	// The times of a subagent's requests count from its start when one of them
	// would otherwise be before that.
	basis := l.shift
	for k := range r.Requests {
		if at, ok := readSeconds(r.Requests[k].T); ok && at+joinSlack < t {
			basis = l.shift + t
			break
		}
	}
	own := p.addList(r.Requests, basis, caller, path+".requests", wekaTrunk{tools: r.Tools, system: r.System})
	if own == nil {
		return
	}
	agent := wekaAgent{}
	for i := range own.chains {
		c := &own.chains[i]
		agent.last, agent.until = append(agent.last, c.calls[len(c.calls)-1]), max(agent.until, c.end)
	}
	for _, a := range own.open {
		agent.last, agent.until = append(agent.last, a.last...), max(agent.until, a.until)
	}
	if len(agent.last) == 0 {
		return
	}
	if ms, ok := readSeconds(r.Duration); ok {
		agent.until = t + l.shift + ms/1000
	}
	l.open = append(l.open, agent)
}

// setParents sets what the next request of a list waits for, of chain k of the list:
//
//   - the request before it of its own chain; or, where it is the first of it, the one that
//     called: the latest of the main chain before it that had ended, or what called the subagent;
//   - if it is of the main chain, agents and other chains that had ended since the request before it;
//   - of each other chain the latest request that had ended when it began, unless one of the
//     others waited for that in its turn.
func (p *wekaPlan) setParents(c *wekaCall, l *wekaList, k int) {
	own := &l.chains[k]
	before := p.latestEnded(own.calls, c.at)
	since := time.Duration(-1) // what was over by then was waited for
	switch {
	case before >= 0:
		since = p.calls[before].at
	case len(own.calls) > 0: // it began while those were being answered
	case k > 0 && l.caller < 0:
		before = p.latestEnded(l.chains[0].calls, c.at)
	default:
		before = l.caller
	}
	if before >= 0 && p.calls[before].end <= c.at+joinSlack && p.calls[before].at <= c.at {
		c.parents = append(c.parents, before)
	}
	wait := func(i int) {
		if !slices.Contains(c.parents, i) {
			c.parents = append(c.parents, i)
		}
	}
	if k == 0 {
		p.joinEnded(c, l, wait)
	}
	var front []int
	for o := range l.chains {
		if o == k {
			continue
		}
		if i := p.latestEnded(l.chains[o].calls, c.at); i >= 0 && (p.calls[i].end > since || p.calls[i].at >= since) {
			front = append(front, i)
		}
	}
	for _, i := range front {
		if !slices.ContainsFunc(front, func(o int) bool {
			return p.calls[o].at > p.calls[i].at && p.calls[o].at >= p.calls[i].end
		}) {
			wait(i)
		}
	}
}

// joinEnded has a request of the main chain wait for agents and other chains that had
// ended, and that nothing waits for yet.
func (p *wekaPlan) joinEnded(c *wekaCall, l *wekaList, wait func(int)) {
	l.open = slices.DeleteFunc(l.open, func(a wekaAgent) bool {
		if a.until > c.at+joinSlack || slices.ContainsFunc(a.last, func(i int) bool { return p.calls[i].at > c.at }) {
			return false
		}
		for _, i := range a.last {
			wait(i)
		}
		return true
	})
	for i := range l.chains[1:] {
		if o := &l.chains[1+i]; o.left == 0 && !o.joined && o.end <= c.at+joinSlack {
			o.joined = true
			wait(o.calls[len(o.calls)-1])
		}
	}
}

// latestEnded returns the latest of some requests that had ended by t, or -1.
func (p *wekaPlan) latestEnded(own []int, t time.Duration) int {
	for i := len(own) - 1; i >= 0; i-- {
		if c := &p.calls[own[i]]; c.end <= t+joinSlack && c.at <= t {
			return own[i]
		}
	}
	return -1
}

func (p *wekaPlan) readCall(r *wekaRequest, shift time.Duration, path string) (c wekaCall, ok bool) {
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
		n    *row.Number
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

func (p *wekaPlan) seconds(n *row.Number, path string) (time.Duration, bool) {
	d, ok := readSeconds(n)
	if !ok {
		return 0, p.fail(path, "want seconds that are not negative")
	}
	return d, true
}

// readSeconds reads a number of seconds below a thousand years.
func readSeconds(n *row.Number) (time.Duration, bool) {
	if n == nil {
		return 0, false
	}
	return lengthOf(string(*n), time.Second, 1e9)
}

func (p *wekaPlan) fail(path, why string) bool {
	p.path, p.why = path, why
	return false
}
