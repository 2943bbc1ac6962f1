package spec

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
)

// partRows makes the rows of one kind of request. Each quantity has a stream
// of its own, so that no two of them are correlated and a change of one moves
// none of the others.
type partRows struct {
	g *generator
	Part
	input, own, output, maxTokens, turns, added arrival.Length // nil where not said
	answer, think, warm                         arrival.Dist
	global                                      []uint64
	groups                                      []*groupRows
	group                                       chooser // the last choice is none
	category                                    chooser
	recent                                      []*past // the last ones, for categories
	oldest                                      int
	any                                         *rand.Rand
	agents                                      agentRows
}

func newPartRows(g *generator, p Part, seed uint64, name string) (*partRows, error) {
	t := &partRows{g: g, Part: p, any: arrival.Stream(seed, name+"any")}
	lengths := map[string]*arrival.Length{"input": &t.input, "own": &t.own, "output": &t.output,
		"max tokens": &t.maxTokens}
	specs := map[string]string{"input": p.Lengths.Input, "own": p.Lengths.Own, "output": p.Lengths.Output,
		"max tokens": p.Lengths.MaxTokens}
	times := map[string]*arrival.Dist{"answer": &t.answer, "warm": &t.warm}
	durations := map[string]string{"answer": p.Answer, "warm": p.Warm}
	if s := p.Sessions; s != nil {
		lengths["turns"], lengths["added"], times["think"] = &t.turns, &t.added, &t.think
		specs["turns"], specs["added"], durations["think"] = s.Turns, s.Added, s.Think
		a := &t.agents
		lengths["calls"], lengths["result"], times["tool"] = &a.root.calls, &a.root.result, &a.tool
		specs["calls"], specs["result"], durations["tool"] = s.Calls, s.Result, s.Tool
		if c := s.Compact; c != nil {
			lengths["compact to"], specs["compact to"] = &a.compactTo, c.To
		}
		if sub := s.Agents; sub != nil {
			for key, of := range map[string]struct {
				to   *arrival.Length
				spec string
			}{"count": {&a.count, sub.Count}, "calls": {&a.sub.calls, sub.Calls}, "own": {&a.sub.own, sub.Own},
				"result": {&a.sub.result, sub.Result},
				"output": {&a.sub.output, sub.Output}} {
				lengths["agents "+key], specs["agents "+key] = of.to, of.spec
			}
		}
	}
	for key, spec := range specs {
		if spec == "" {
			continue
		}
		l, err := arrival.ParseLength(spec)
		if err != nil {
			return nil, err
		}
		*lengths[key] = l.New(arrival.Stream(seed, name+key))
	}
	for key, spec := range durations {
		if spec == "" {
			continue
		}
		d, err := arrival.ParseDist(spec)
		if err != nil {
			return nil, err
		}
		*times[key] = d.New(arrival.Stream(seed, name+key))
	}
	err := t.prefixes(seed, name)
	if p.Sessions != nil {
		t.newAgentRows(p.Sessions, seed, name)
	}
	return t, err
}

// prefixes prepares what prompts begin with.
func (t *partRows) prefixes(seed uint64, name string) error {
	if c := t.Categories; c != nil {
		percent := c.percent()
		t.category = newChooser(percent[:], arrival.Stream(seed, name+"categories"))
	}
	if t.Prefix == nil {
		return nil
	}
	if t.Prefix.Global > 0 {
		t.global = t.g.fresh(nil, t.wholeBlocks(t.Prefix.Global))
	}
	rest, weights := 1.0, []float64{}
	for _, p := range t.Prefix.Groups {
		chances, err := p.weights()
		if err != nil {
			return err
		}
		group := name + "group " + strconv.Itoa(len(t.groups)) + " "
		g := &groupRows{t: t, which: newChooser(chances, arrival.Stream(seed, group+"which")),
			alive: make([]livePrefix, len(chances))}
		depth, err := arrival.ParseLength(p.Depth)
		if err != nil {
			return err
		}
		g.depth = depth.New(arrival.Stream(seed, group+"depth"))
		if p.Turnover != "" {
			turnover, err := arrival.ParseDist(p.Turnover)
			if err != nil {
				return err
			}
			g.turnover = turnover.New(arrival.Stream(seed, group+"turnover"))
		}
		t.groups, weights, rest = append(t.groups, g), append(weights, p.Share), rest-p.Share
	}
	if t.Categories != nil && t.global == nil {
		rest = 0 // a template is one of a group
	}
	if len(weights) > 0 {
		t.group = newChooser(append(weights, max(0, rest)), arrival.Stream(seed, name+"groups"))
	}
	return nil
}

// wholeBlocks rounds tokens to the nearest number of whole blocks, at least one.
func (t *partRows) wholeBlocks(tokens int) int32 {
	size := t.g.s.Block
	return int32(max(1, (tokens+size/2)/size) * size)
}

// first makes the first turn of a session that arrives now.
func (t *partRows) first(at time.Duration) *turn {
	x := &turn{at: at, part: t, left: 1,
		row: trace.Request{Kind: "chat", Status: trace.StatusOK, OutputTokens: trace.Ptr(t.output.Draw())}}
	if t.Class != "" {
		x.row.Class = trace.Ptr(t.Class)
	}
	if t.maxTokens != nil {
		x.row.MaxTokens = trace.Ptr(t.maxTokens.Draw())
	}
	if t.Categories != nil {
		t.categorised(x)
		return x
	}
	begin := t.template(at)
	t.prompt(&x.row, begin)
	if s := t.Sessions; s != nil {
		x.left = t.turns.Draw()
		x.row.Session, x.row.Turn = trace.Ptr(t.g.sessions), trace.Ptr(int32(0))
		t.g.sessions++
		x.prefix, x.calls = begin, t.agents.root.callsOf()
		if s.Users > 0 {
			x.row.User = trace.Ptr(t.any.Int64N(s.Users))
		}
	}
	return x
}

// template draws what a prompt begins with that others begin with too: the prefix of a group, or the global
// one alone.
func (t *partRows) template(at time.Duration) []uint64 {
	if len(t.groups) > 0 {
		if i := t.group.draw(); i < len(t.groups) {
			return t.groups[i].prefix(at)
		}
	}
	return t.global
}

// prompt gives a row a prompt that begins with whole blocks and goes on with
// its own.
func (t *partRows) prompt(r *trace.Request, begin []uint64) {
	prefix := int32(len(begin) * t.g.s.Block)
	if t.own != nil {
		r.InputTokens = prefix + max(1, t.own.Draw())
	} else {
		r.InputTokens = max(prefix+1, t.input.Draw())
	}
	r.Blocks = t.g.fresh(begin, r.InputTokens)
}

// after plans what follows a row that has become row number n: the next turn
// of its session or the next calls of its turn, or the warm one of a pair; nil for nothing.
func (t *partRows) after(x *turn, n int64) []*turn {
	if t.Categories != nil {
		// Later rows may build on it, in place of the oldest.
		was := x.past
		was.Request = x.row
		if len(t.recent) < cmp.Or(t.Categories.Window, 1000) {
			t.recent = append(t.recent, &was)
		} else {
			t.recent[t.oldest] = &was
			t.oldest = (t.oldest + 1) % len(t.recent)
		}
		return nil
	}
	if t.warm != nil && x.later == nil {
		return []*turn{{at: x.at + t.warm.Draw(), part: t, left: 1, row: x.row, later: x}}
	}
	if x.join != nil || x.calls > 1 {
		return t.nextCalls(x, n)
	}
	grown := int64(x.row.InputTokens) + int64(x.row.OutputOr(0))
	if x.left <= 1 || grown > maxPrompt {
		return nil
	}
	think := t.think.Draw()
	next := &turn{at: x.at + t.answer.Draw() + think, part: t, left: x.left - 1, calls: t.agents.root.callsOf(),
		row: x.row, later: x, prefix: x.prefix}
	x.later = nil // or every turn would be kept until the last
	r := &next.row
	r.Turn, r.Parents, r.ThinkNS, r.ToolNS = trace.Ptr(*x.row.Turn+1), []int64{n}, trace.Ptr(int64(think)), nil
	added := t.added
	if added == nil {
		added = t.own
	}
	t.grow(x, r, added.Draw())
	r.OutputTokens = trace.Ptr(t.output.Draw())
	return []*turn{next}
}

// full are the full blocks of a prompt: what a longer one shares with it.
func (t *partRows) full(r *trace.Request) []uint64 {
	return r.Blocks[:int(r.InputTokens)/t.g.s.Block]
}

// groupRows are the prefixes of one group that are alive.
type groupRows struct {
	t        *partRows
	depth    arrival.Length
	turnover arrival.Dist // nil for never
	which    chooser
	alive    []livePrefix
}

type livePrefix struct {
	blocks []uint64
	until  time.Duration
}

// prefix draws one of the group's prefixes, the global one before it.
func (g *groupRows) prefix(at time.Duration) []uint64 {
	p := &g.alive[g.which.draw()]
	if p.blocks == nil || g.turnover != nil && at >= p.until {
		tokens := int32(len(g.t.global)*g.t.g.s.Block) + g.t.wholeBlocks(int(g.depth.Draw()))
		p.blocks = g.t.g.fresh(g.t.global, tokens)
		if g.turnover != nil {
			p.until = at + g.turnover.Draw()
		}
	}
	return p.blocks
}

// A turn is a row that is due at a time.
type turn struct {
	at    time.Duration
	seq   int64 // of turns at one time, the one planned first goes first
	part  *partRows
	row   trace.Request
	past  past  // what rows of a category must know of it, beside the row
	left  int32 // turns of the session from this one on
	calls int32 // of the turn from this one on

	prefix []uint64 // what the prompts of its agent begin with
	join   *join    // of a sub-agent, nil for the one that the session is of
	later  *turn    // the turn before it; nil for the first of a session
}

// A chooser draws an index by weight.
type chooser struct {
	upTo []uint64
	r    *rand.Rand
}

// newChooser rounds weights to a millionth of their sum, so that every machine
// chooses alike.
func newChooser(weights []float64, r *rand.Rand) chooser {
	sum, c := 0.0, chooser{r: r}
	for _, w := range weights {
		sum += w
	}
	at := uint64(0)
	for _, w := range weights {
		at += uint64(w/sum*1e6 + 0.5)
		c.upTo = append(c.upTo, at)
	}
	return c
}

func (c chooser) draw() int {
	last := len(c.upTo) - 1
	if last == 0 || c.upTo[last] == 0 {
		return 0
	}
	x := c.r.Uint64N(c.upTo[last])
	for i, upTo := range c.upTo {
		if x < upTo {
			return i
		}
	}
	return last
}
