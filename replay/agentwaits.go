package replay

import "time"

// An agentWait is how a row waits as AIPerf 0.13 does in its mode agentic_replay. A thread
// is a stream of its, a row's parents are what it waits for:
//
//   - A turn is due after the end of the turn before it of its thread, by what was recorded
//     between the two. Where that turn's length is not known, it counts as 0.
//   - A turn that joins agents, of which one ends after that turn, is due at once when the
//     last of them is over: its own wait is dropped.
//   - The first request of an agent is due as long after the answer of its caller as it
//     was after the earliest call of those agents that have the same caller and are joined
//     by the same turn, or by none. The call of an agent is its first request.
//   - A row whose thread is history where its tree begins is due as long after the begin as
//     recorded after the tree's instant, or, where agents that it joins go on, at once when the
//     last of them is over.
//   - No row is sent before all of its parents are over.
//   - An error breaks nothing off: what follows is sent. Only after a prompt that does not fit the
//     context nothing more of its thread is.
type agentWait struct {
	own, caller int32   // the turn before, or for the first of a thread its caller; -1 is none
	joins       []int32 // last rows of agents that it is the first to wait for
	after       int64   // of the first of an agent: from the earliest call to its own
}

// findAgents finds how each row of a tree waits.
func (t *liveTree) findAgents() {
	t.agents = make([]agentWait, len(t.rows))
	last, first := map[int32]int32{}, map[int32]int32{} // rows of each thread
	for i := range t.rows {
		r, a := &t.rows[i], &t.agents[i]
		a.own, a.caller = -1, -1
		if _, begun := first[r.thread]; !begun {
			first[r.thread] = int32(i)
		}
		last[r.thread] = int32(i)
		for _, p := range r.parents { // ascending
			thread := t.rows[p].thread
			switch {
			case thread == r.thread:
				a.own = p
			case a.caller < 0 || thread <= t.rows[a.caller].thread:
				a.caller = p
			}
		}
		if a.own >= 0 {
			a.caller = -1
		}
	}
	joined := map[int32]int32{} // by thread: the row that joins it
	for i := range t.rows {
		r, a := &t.rows[i], &t.agents[i]
		for _, p := range r.parents {
			thread := t.rows[p].thread
			called := int32(0)
			if c := t.agents[first[thread]].caller; c >= 0 {
				called = t.rows[c].thread
			}
			if _, done := joined[thread]; thread != r.thread && !done && last[thread] == p && called == r.thread {
				joined[thread] = int32(i)
				a.joins = append(a.joins, p)
			}
		}
	}
	type group struct {
		caller, joined int32
	}
	of := func(thread int32) group {
		by, ok := joined[thread]
		if !ok {
			by = -1
		}
		return group{t.agents[first[thread]].caller, by}
	}
	earliest := map[group]int64{}
	for thread, i := range first {
		g, at := of(thread), t.rows[i].arrival
		if before, ok := earliest[g]; !ok || at < before {
			earliest[g] = at
		}
	}
	for thread, i := range first {
		t.agents[i].after = t.rows[i].arrival - earliest[of(thread)]
	}
}

// breaks tells whether a row is not sent after one of its parents, which failed, or after
// which nothing of its thread is sent.
func (t *liveTree) breaks(parent, row int32, failed, stops bool) bool {
	if t.agents == nil {
		return failed
	}
	return stops && t.agents[row].own == parent
}

// dueOfAgent is when a row is due, as [agentWait] says.
func (l *liveTrees) dueOfAgent(t *liveTree, r *treeRow, i int) time.Duration {
	a := &t.agents[i]
	latest := max(r.latest, t.start) // of all that it waits for
	before := max(a.own, a.caller)
	joins := time.Duration(-1)
	for _, p := range a.joins {
		if j := &t.rows[p]; !j.history {
			joins = max(joins, j.end)
		}
	}
	wait := func(ns int64) time.Duration { return l.capped(r, l.opt.wait(&ns, nil)) }
	switch p := &t.rows[before]; {
	case p.history && joins >= 0, joins > p.end:
		return latest
	case p.history:
		return max(latest, l.dueInside(t, r))
	case a.own < 0:
		return max(latest, p.end+wait(a.after))
	default:
		return max(latest, p.end+wait(max(r.arrival-p.arrival-max(p.e2e, 0), 0)))
	}
}
