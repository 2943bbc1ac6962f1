package datasets

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"path"
	"strings"

	"reprise/datasets/internal/record"
)

// A claudeDecoder keeps of each record its place in the tree of its session.
type claudeDecoder struct {
	*agentLog
	nodes   []claudeNode
	byUUID  map[string]int32
	late    map[int32]string // parents of nodes that come after them
	byID    map[string]int32 // calls by message.id
	extra   []claudeCall     // of each call
	tools   []claudeTool
	byTool  map[string]int32
	agents  []claudeAgent
	byAgent map[claudeAgentKey]int32
	prompts map[uint64][]int32 // tools that spawn agents, by the hash of the prompt
	runs    map[string]int32   // tools that started workflows, by the name of the run
	seed    maphash.Seed
}

// A claudeNode is a record in the tree of a session. None is -1.
type claudeNode struct {
	parent int32
	call   int32
	agent  int32 // of a sidechain
	at     int64
	kind   claudeKind
}

// A claudeKind says what a record is for the call after it.
type claudeKind uint8

const (
	otherNode claudeKind = iota
	textNode             // of the user
	resultNode
	summaryNode
)

// A claudeCall is what an [agentCall] has beside.
type claudeCall struct {
	first     int32 // record
	session   string
	request   string
	sidechain bool
	copied    bool
	bytes     int64   // of the answer
	tools     []int32 // that it uses
}

// A claudeTool is a use of a tool.
type claudeTool struct {
	call       int32
	result     int64 // when it came; 0 for none
	agent      string
	background bool
	agents     []int32 // that it spawned
}

// A claudeAgent is a sub-agent.
type claudeAgent struct {
	root   int32 // first record
	key    claudeAgentKey
	run    string // workflow that it is of
	prompt uint64 // hash
	calls  []int32
}

// A claudeAgentKey names a sub-agent: ids of agents are those of one session.
type claudeAgentKey struct{ session, agent string }

func newClaudeDecoder(in record.Reader, o Options, s *Source) decoder {
	d := &claudeDecoder{
		agentLog: newAgentLog(in, o, s),
		byUUID:   map[string]int32{}, late: map[int32]string{}, byID: map[string]int32{}, byTool: map[string]int32{},
		byAgent: map[claudeAgentKey]int32{}, prompts: map[uint64][]int32{}, runs: map[string]int32{},
		seed: maphash.MakeSeed(),
	}
	d.agentLog.gather, d.agentLog.link = d.gather, d.link
	s.notes.SayOnce(noteClaudeArrival)
	s.notes.SayOnce(noteClaudeLengths)
	return d
}

// addNode adds a record to the tree, unless it is there already.
func (d *claudeDecoder) addNode(r *claudeRecord, at int64) (n int32, known bool) {
	if n, known = d.byUUID[r.UUID]; known {
		return n, true
	}
	n = int32(len(d.nodes))
	node := claudeNode{parent: -1, call: -1, agent: -1, at: at}
	if parent := cmp.Or(r.Parent, r.LogicalParent); parent != "" {
		if p, ok := d.byUUID[parent]; ok {
			node.parent = p
		} else {
			d.late[n] = parent
		}
	}
	d.byUUID[r.UUID] = n
	prompt := uint64(0)
	if r.Type == "user" {
		node.kind = textNode
		for _, b := range r.Message.Content {
			if b.Type == "tool_result" {
				node.kind = resultNode
				d.addResult(r, b.Result, at)
			} else if prompt == 0 && b.Text != "" {
				prompt = maphash.String(d.seed, b.Text)
			}
		}
		if r.Summary {
			node.kind = summaryNode
		}
	}
	if r.Sidechain {
		node.agent = d.agentOf(r, n, node.parent, prompt)
	}
	d.nodes = append(d.nodes, node)
	return n, false
}

// agentOf finds the sub-agent that a record of a sidechain is of, by its id or, in
// older logs, by the record before it.
func (d *claudeDecoder) agentOf(r *claudeRecord, n, parent int32, prompt uint64) int32 {
	key := claudeAgentKey{r.Session, r.Agent}
	if i, ok := d.byAgent[key]; ok && r.Agent != "" {
		return i
	}
	if r.Agent == "" && parent >= 0 && d.nodes[parent].agent >= 0 {
		return d.nodes[parent].agent
	}
	i := int32(len(d.agents))
	if r.Agent != "" {
		d.byAgent[key] = i
	}
	a := claudeAgent{root: n, key: key, prompt: prompt}
	if folder := path.Dir(strings.ReplaceAll(d.s.file, `\`, "/")); path.Base(path.Dir(folder)) == "workflows" {
		a.run = path.Base(folder)
	}
	d.agents = append(d.agents, a)
	return i
}

func (d *claudeDecoder) tool(id string) *claudeTool {
	i, ok := d.byTool[id]
	if !ok {
		i = int32(len(d.tools))
		d.byTool[id] = i
		d.tools = append(d.tools, claudeTool{call: -1})
	}
	return &d.tools[i]
}

// addToolUse adds a tool that a call uses. One that takes a prompt spawns an agent.
func (d *claudeDecoder) addToolUse(call int32, b *claudeBlock) {
	t := d.tool(b.ID)
	if t.call >= 0 {
		return
	}
	t.call = call
	i := d.byTool[b.ID]
	d.extra[call].tools = append(d.extra[call].tools, i)
	if b.Name == "Task" || b.Name == "Agent" {
		var input struct{ Prompt string }
		if json.Unmarshal(b.Input, &input) == nil && input.Prompt != "" {
			hash := maphash.String(d.seed, input.Prompt)
			d.prompts[hash] = append(d.prompts[hash], i)
		}
	}
}

// addResult adds the result of a tool.
func (d *claudeDecoder) addResult(r *claudeRecord, id string, at int64) {
	t := d.tool(id)
	if t.result == 0 {
		t.result = at
	}
	t.agent = cmp.Or(t.agent, r.Result.Agent)
	t.background = t.background || strings.HasPrefix(r.Result.Status, "async")
	if r.Result.Run != "" {
		d.runs[r.Result.Run] = d.byTool[id]
	}
}

// link sets the arrivals of all calls and what they waited for.
func (d *claudeDecoder) link() {
	for n, parent := range d.late {
		if p, ok := d.byUUID[parent]; ok {
			d.nodes[n].parent = p
		}
	}
	for i := range d.calls {
		if agent := d.nodes[d.extra[i].first].agent; agent >= 0 {
			d.agents[agent].calls = append(d.agents[agent].calls, int32(i))
		}
	}
	// The tool that spawned an agent: its result names the agent or the workflow, or it
	// has the prompt that the agent begins with.
	named := map[claudeAgentKey]int32{}
	for i, t := range d.tools {
		if t.call >= 0 && t.agent != "" {
			named[claudeAgentKey{d.extra[t.call].session, t.agent}] = int32(i)
		}
	}
	for i := range d.agents {
		a := &d.agents[i]
		tool, ok := named[a.key]
		if !ok && a.run != "" {
			tool, ok = d.runs[a.run]
		}
		for waiting := d.prompts[a.prompt]; !ok && len(waiting) > 0; {
			tool, ok = waiting[0], true
			waiting = waiting[1:]
			d.prompts[a.prompt] = waiting
		}
		if ok {
			d.tools[tool].agents = append(d.tools[tool].agents, int32(i))
			a.root = -1 - tool
		} else if len(a.calls) > 0 && d.nodes[a.root].parent < 0 {
			d.s.notes.Count(noteClaudeAlone)
		}
	}
	for i := range d.calls {
		d.linkCall(int32(i))
	}
}

// maxClaudeSteps bounds the records between two calls: a broken log may go in circles.
const maxClaudeSteps = 1 << 14

// linkCall walks from the first record of a call to the call before it, over what it
// waited for.
func (d *claudeDecoder) linkCall(i int32) {
	c, x := &d.calls[i], &d.extra[i]
	begun := d.nodes[x.first].at
	before, kind := int32(-1), otherNode
	wait := func(at int64, k claudeKind) {
		if at <= begun && (at > c.arrival || c.arrival == at && kind == otherNode) {
			c.arrival, kind = at, k
		}
	}
	n := d.nodes[x.first].parent
	for steps := 0; n >= 0 && steps < maxClaudeSteps; steps++ {
		node := &d.nodes[n]
		if before = node.call; before >= 0 && before != i {
			break
		}
		before = -1
		if node.kind != otherNode {
			wait(node.at, node.kind)
		}
		n = node.parent
	}
	if agent := d.nodes[x.first].agent; before < 0 && agent >= 0 && d.agents[agent].root < 0 {
		before = d.tools[-1-d.agents[agent].root].call
		if kind == textNode {
			kind = resultNode // the prompt is from a tool
		}
	}
	if before >= 0 {
		d.waitFor(i, before, wait)
	}
	switch kind {
	case otherNode:
		c.arrival = begun
	case textNode:
		c.gap = thinkGap
	case resultNode:
		c.gap = toolGap
	case summaryNode:
		d.s.notes.Count(noteClaudeCompact)
	}
	if c.finish == "" && int64(c.output)*8 < x.bytes {
		d.s.notes.Count(noteClaudeOutput)
		c.output = int32(min(x.bytes/3, 1<<30))
	}
}

// waitFor has a call wait for the one before it, for the tools of that and for the
// agents that those called.
func (d *claudeDecoder) waitFor(i, before int32, wait func(int64, claudeKind)) {
	c := &d.calls[i]
	first := d.nodes[d.extra[i].first]
	spawned := first.agent != d.nodes[d.extra[before].first].agent
	if !spawned && d.calls[before].end > first.at {
		d.s.notes.Count(noteClaudeOverlap)
		return
	}
	c.parents = append(c.parents, before)
	if spawned {
		return // whose caller waits for other tools too
	}
	for _, t := range d.extra[before].tools {
		tool := &d.tools[t]
		if tool.result == 0 || tool.result > first.at {
			continue
		}
		wait(tool.result, resultNode)
		for _, a := range tool.agents {
			last := int32(-1)
			for _, call := range d.agents[a].calls {
				if end := d.calls[call].end; end <= tool.result+int64(joinSlack) &&
					(last < 0 || end >= d.calls[last].end) {
					last = call
				}
			}
			if last >= 0 && !tool.background {
				c.parents = append(c.parents, last)
			}
		}
	}
}
