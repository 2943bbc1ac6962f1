package spec

import (
	"errors"
	"fmt"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
)

// Compact is what an agent does when its prompt has become too long: the history is
// replaced by a summary, behind the prefix of the session. The call that summarises is not
// in the workload.
type Compact struct {
	Above int    `yaml:"above"` // tokens of a prompt that is not sent any more
	To    string `yaml:"to"`    // tokens of the prompt in its place
}

// Agents are sub-agents: a call starts some at once instead of tools, each with a prompt of
// its own, and its agent goes on when all of them are done. Each is a session by itself, as
// in an imported log; parents tie its first call to the one that started it, and the call
// that waited to its last.
type Agents struct {
	Share  float64 `yaml:"share"`  // of the calls that are not the last of their turn
	Count  string  `yaml:"count"`  // sub-agents that are started at once, at most 256
	Calls  string  `yaml:"calls"`  // model calls of each
	Global int     `yaml:"global"` // tokens that prompts of all sub-agents begin with
	Own    string  `yaml:"own"`    // what follows in the first prompt of one
	Result string  `yaml:"result"` // tokens that the results of tools add; empty is that of the session
	Output string  `yaml:"output"` // empty is lengths.output
}

// mostAgents bounds what a short specification can make at once.
const mostAgents = 256

// filled takes what sessions of a part do not say from those of the top level.
func (s *Sessions) filled(from *Sessions) *Sessions {
	if s == nil || from == nil {
		if s == nil {
			s = from
		}
		return s
	}
	out := *s
	for _, key := range []struct{ to, from *string }{{&out.Turns, &from.Turns}, {&out.Added, &from.Added},
		{&out.Think, &from.Think},
		{&out.Calls, &from.Calls}, {&out.Result, &from.Result}, {&out.Tool, &from.Tool}} {
		if *key.to == "" {
			*key.to = *key.from
		}
	}
	if out.Users == 0 {
		out.Users = from.Users
	}
	if out.Compact == nil {
		out.Compact = from.Compact
	}
	if out.Agents == nil {
		out.Agents = from.Agents
	}
	return &out
}

// checkAgents reports what is wrong with the calls of a turn.
func (s *Sessions) checkAgents() error {
	switch {
	case (s.Calls == "") != (s.Tool == ""):
		return at("sessions", errors.New("give calls and tool, or neither: a later call of a turn comes after tools"))
	case s.Calls == "" && (s.Agents != nil || s.Result != ""):
		return at("sessions", errors.New("result and agents need calls: they come between the calls of a turn"))
	}
	if err := checkLengths(map[string]string{"sessions.calls": s.Calls, "sessions.result": s.Result}); err != nil {
		return err
	}
	if err := checkTimes(map[string]string{"sessions.tool": s.Tool}); err != nil {
		return err
	}
	if c := s.Compact; c != nil {
		if c.Above < 1 || c.Above > maxPrompt || c.To == "" {
			return at("sessions.compact", fmt.Errorf("give above, from 1 to %d tokens, and to", maxPrompt))
		}
		if err := checkLengths(map[string]string{"sessions.compact.to": c.To}); err != nil {
			return err
		}
	}
	a := s.Agents
	if a == nil {
		return nil
	}
	switch {
	case !(a.Share > 0 && a.Share <= 1):
		return at("sessions.agents.share", errors.New("want above 0 and at most 1"))
	case a.Count == "" || a.Calls == "" || a.Own == "":
		return at("sessions.agents", errors.New("give count, calls and own"))
	case a.Global < 0 || a.Global > maxPrompt:
		return at("sessions.agents.global", fmt.Errorf("want 0 to %d tokens", maxPrompt))
	}
	return checkLengths(map[string]string{"sessions.agents.count": a.Count, "sessions.agents.calls": a.Calls,
		"sessions.agents.own":    a.Own,
		"sessions.agents.result": a.Result, "sessions.agents.output": a.Output})
}

// A loop draws what an agent does: the calls of a turn and what comes between them.
type loop struct {
	calls, result, output arrival.Length
	global                []uint64       // what its first prompts begin with
	own                   arrival.Length // and go on with, of a sub-agent
}

// agentRows draw for the agents of one kind of session; the zero one has a call each turn.
type agentRows struct {
	root, sub loop
	tool      arrival.Dist
	compactTo arrival.Length // nil for never
	above     int64
	count     arrival.Length // nil without sub-agents
	starts    chooser        // 0 starts sub-agents, 1 tools
}

// A join waits for sub-agents.
type join struct {
	open    int // at work
	at      time.Duration
	parents []int64
	next    *turn // of the agent that started them
}

// callsOf draws the calls of a turn.
func (l *loop) callsOf() int32 {
	if l.calls == nil {
		return 1
	}
	return max(1, l.calls.Draw())
}

// grow makes r the prompt after x, with what was added to it, or a summary.
func (t *partRows) grow(x *turn, r *trace.Request, added int32) {
	grown := int64(x.row.InputTokens) + int64(x.row.OutputOr(0)) + int64(max(1, added))
	if t.agents.compactTo != nil && grown > t.agents.above {
		r.InputTokens = max(int32(len(x.prefix)*t.g.s.Block)+1, t.agents.compactTo.Draw())
		r.Blocks = t.g.fresh(x.prefix, r.InputTokens)
		return
	}
	r.InputTokens = int32(grown)
	r.Blocks = t.g.fresh(t.full(&x.row), r.InputTokens)
}

// call plans a call after x in its turn.
func (t *partRows) call(x *turn, l *loop, at time.Duration, n int64, tool time.Duration) *turn {
	next := &turn{at: at + tool, part: t, left: x.left, calls: x.calls - 1, row: x.row, later: x,
		prefix: x.prefix, join: x.join}
	r := &next.row
	r.Turn, r.Parents, r.ThinkNS, r.ToolNS = trace.Ptr(*x.row.Turn+1), []int64{n}, nil, trace.Ptr(int64(tool))
	t.grow(x, r, l.result.Draw())
	r.OutputTokens = trace.Ptr(l.output.Draw())
	return next
}

// nextCalls plans what follows a call that is not the last of its turn, or the last of a
// sub-agent: the next one, sub-agents, or the call that waited for them. It is not asked of
// the last call of a person's turn.
func (t *partRows) nextCalls(x *turn, n int64) []*turn {
	done := x.at + t.answer.Draw()
	x.later = nil // or every turn would be kept until the last
	over := int64(x.row.InputTokens)+int64(x.row.OutputOr(0)) > maxPrompt
	switch {
	case x.join != nil && (x.calls <= 1 || over):
		j := x.join
		j.open--
		j.at, j.parents = max(j.at, done), append(j.parents, n)
		if j.open > 0 {
			return nil
		}
		j.next.at, j.next.row.Parents = j.at, j.parents
		return []*turn{j.next}
	case over:
		return nil
	case x.join != nil:
		return []*turn{t.call(x, &t.agents.sub, done, n, t.agents.tool.Draw())}
	case t.agents.count == nil || t.agents.starts.draw() > 0:
		return []*turn{t.call(x, &t.agents.root, done, n, t.agents.tool.Draw())}
	}
	return t.start(x, done, n)
}

// start plans the first calls of sub-agents, and the call that waits for them.
func (t *partRows) start(x *turn, done time.Duration, n int64) []*turn {
	j := &join{open: int(min(max(1, t.agents.count.Draw()), mostAgents)), parents: []int64{n},
		next: t.call(x, &t.agents.root, 0, n, 0)}
	var first []*turn
	for range j.open {
		sub := &turn{at: done, part: t, calls: t.agents.sub.callsOf(), row: x.row, later: x,
			prefix: t.agents.sub.global, join: j}
		r := &sub.row
		r.Session, r.Turn = trace.Ptr(t.g.sessions), trace.Ptr(int32(0))
		r.Parents, r.ThinkNS, r.ToolNS = []int64{n}, nil, trace.Ptr(int64(0))
		r.InputTokens = int32(len(t.agents.sub.global)*t.g.s.Block) + max(1, t.agents.sub.own.Draw())
		r.Blocks = t.g.fresh(t.agents.sub.global, r.InputTokens)
		r.OutputTokens = trace.Ptr(t.agents.sub.output.Draw())
		t.g.sessions++
		first = append(first, sub)
	}
	return first
}

// newAgentRows prepares the draws of a part's agents. lengths and times are those that are
// parsed with the part's other keys.
func (t *partRows) newAgentRows(s *Sessions, seed uint64, name string) {
	a := &t.agents
	a.root.output = t.output
	if a.root.result == nil {
		a.root.result = t.added
		if a.root.result == nil {
			a.root.result = t.own
		}
	}
	if s.Compact != nil {
		a.above = int64(s.Compact.Above)
	}
	if s.Agents == nil {
		return
	}
	if a.sub.output == nil {
		a.sub.output = t.output
	}
	if a.sub.result == nil {
		a.sub.result = a.root.result
	}
	a.starts = newChooser([]float64{s.Agents.Share, 1 - s.Agents.Share}, arrival.Stream(seed, name+"starts"))
	if s.Agents.Global > 0 {
		a.sub.global = t.g.fresh(nil, t.wholeBlocks(s.Agents.Global))
	}
}
