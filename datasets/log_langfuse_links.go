package datasets

import (
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// langfuseLinks say what the generations of a trace waited for, by its observations. The
// rules:
//
//   - Observations of types AGENT and CHAIN are agents, and a trace is one too. A
//     generation belongs to the agent next above it.
//   - It waits for the one of its agent that ended last before it began, and for the last
//     of each agent below that ended since. The first of an agent waits for what a
//     generation of the agent above would wait for.
//   - Of the time since then, tools have what observations of type TOOL, and those named
//     execute_tool, cover together; the rest is think time, which is the client's own.
//
// Only traces that stand as one record have links: with observations one by one, it is not
// known what is still to come.
type langfuseLinks struct {
	of      map[string]*langfuseCall // of the trace at hand, by observation
	current *langfuseCall            // of the row that was read last; nil for none
}

// maxLangfuseDepth is how far above an observation its agent is looked for.
const maxLangfuseDepth = 1000

// A langfuseCall is a generation of a trace.
type langfuseCall struct {
	start, end  time.Time
	position    int64 // of its entry; -1 before that is handed out
	before      []*langfuseCall
	tool, think time.Duration
}

// A langfuseAgent has generations, tools, and agents below.
type langfuseAgent struct {
	above *langfuseAgent
	below []*langfuseAgent
	began []*langfuseCall // what its first generation waited for
	some  bool            // it has generations so far
	ended []*langfuseCall // the last eight, in the order of their ends
	tools []interval
	news  bool // generations since the agent above waited for it
}

// link finds the links of a trace, of whose observations calls are generations that count. It
// puts these in the order of their starts.
func (l *langfuseLinks) link(all, calls []row.MemberRow) {
	l.of = map[string]*langfuseCall{}
	root := &langfuseAgent{}
	parents, agents := map[string]string{}, map[string]*langfuseAgent{}
	for _, m := range all {
		id, parent, kind := observationOf(m)
		if parents[id] = parent; (kind == "AGENT" || kind == "CHAIN") && id != "" {
			agents[id] = &langfuseAgent{}
		}
	}
	agentOf := func(id string) *langfuseAgent { // next above an observation
		for range maxLangfuseDepth {
			if id = parents[id]; agents[id] != nil {
				return agents[id]
			}
		}
		return root
	}
	for id, a := range agents {
		a.above = agentOf(id)
	}
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		a, depth := agents[id], 0
		for up := a.above; up != root; up = up.above {
			if depth++; depth > maxLangfuseDepth { // a circle, or as good as one
				a.above = root
				break
			}
		}
	}
	for _, a := range agents {
		a.above.below = append(a.above.below, a)
	}
	for _, m := range all {
		id, _, kind := observationOf(m)
		name, _ := m.Value("name")
		from, to := observedTimes(m)
		if (kind == "TOOL" || strings.HasPrefix(row.Plain(name), "execute_tool")) && to.After(from) {
			a := agentOf(id)
			a.tools = append(a.tools, interval{from, to})
		}
	}
	slices.SortStableFunc(calls, func(a, b row.MemberRow) int {
		from, _ := observedTimes(a)
		other, _ := observedTimes(b)
		return from.Compare(other)
	})
	for _, m := range calls {
		id, _, kind := observationOf(m)
		c := &langfuseCall{position: -1}
		if c.start, c.end = observedTimes(m); kind != "GENERATION" || c.end.Before(c.start) ||
			c.start.IsZero() || l.of[id] != nil {
			continue
		}
		l.of[id] = c
		agentOf(id).add(c)
	}
}

// add sets what a generation waits for, and keeps it for those that wait for it.
func (a *langfuseAgent) add(c *langfuseCall) {
	if a.some {
		c.before, _ = a.awaited(c.start, true)
	} else {
		found := false
		for up := a.above; up != nil && !found; up = up.above {
			var more []*langfuseCall
			more, found = up.awaited(c.start, false)
			c.before = append(c.before, more...)
		}
		a.some, a.began = true, c.before
	}
	var done time.Time
	for _, before := range c.before {
		if before.end.After(done) {
			done = before.end
		}
	}
	if len(c.before) > 0 {
		c.tool = covered(slices.Clone(a.tools), done, c.start)
		c.think = c.start.Sub(done) - c.tool
	}
	a.news = true
	a.ended = append(a.ended, c)
	slices.SortStableFunc(a.ended, func(x, y *langfuseCall) int { return x.end.Compare(y.end) })
	if len(a.ended) > keptRequests {
		a.ended = a.ended[1:]
	}
}

// awaited is what a generation of an agent waits for that begins at an instant; found is
// false where the agents above have to be asked too. The agents below are waited for once, if
// own says that the generation is of this agent.
func (a *langfuseAgent) awaited(by time.Time, own bool) (before []*langfuseCall, found bool) {
	for _, c := range slices.Backward(a.ended) {
		if !c.end.After(by) {
			before = append(before, c)
			break
		}
	}
	if before == nil {
		before = slices.Clone(a.began)
	}
	for _, b := range a.below {
		if n := len(b.ended); n > 0 && b.news && !b.ended[n-1].end.After(by) {
			before = append(before, b.ended[n-1])
			b.news = !own
		}
	}
	return before, a.some
}

// observedTimes are the start and the end of an observation; zero where they are no dates.
func observedTimes(r row.Row) (from, to time.Time) {
	for names, at := range map[*[]string]*time.Time{&langfuseTimes.Start: &from, &langfuseTimes.End: &to} {
		v, _, _ := row.Find(r, *names)
		if st, ok := stamp.ReadISO(row.Plain(v)); ok && st.Style != stamp.Numeric {
			*at = st.Time
		}
	}
	return from, to
}

// langfuseLink is where a row has its [langfuseCall].
const langfuseLink = "link"

// linkedRows tell the links of the row that was read last.
type linkedRows struct {
	in    row.Reader
	links *langfuseLinks
}

func (l linkedRows) Next() (row.Row, error) {
	r, err := l.in.Next()
	l.links.current = nil
	if v, ok := r.(row.View); ok {
		l.links.current, _ = v.Made[langfuseLink].(*langfuseCall)
	}
	return r, err
}

// A langfuseDecoder gives entries their links.
type langfuseDecoder struct {
	*mappedDecoder
	links *langfuseLinks
}

func (d *langfuseDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *langfuseDecoder) { d.rows, d.links = n.rows, n.links })
}

func (d *langfuseDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	d.links.current = nil
	position := d.entries
	out, err := d.mappedDecoder.decode(dst)
	c := d.links.current
	if err != nil || c == nil || len(out) == len(dst) {
		return out, err
	}
	e := &out[len(out)-1]
	c.position = position
	for _, before := range c.before {
		if before.position >= 0 {
			e.Parents = append(e.Parents, before.position)
		}
	}
	slices.Sort(e.Parents)
	if e.Parents = slices.Compact(e.Parents); len(e.Parents) > 0 {
		if e.Think = &c.think; c.tool > 0 {
			e.Tool = &c.tool
		}
	}
	return out, nil
}
