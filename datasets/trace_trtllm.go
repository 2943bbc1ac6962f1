package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// trtllmFormat reads the execution traces of TensorRT-LLM's scaffolding: an agent's task
// in a file, as events. The rules, which are those of its own replay:
//
//   - A message of the assistant is a call. It waits for the one before it on its branch,
//     and the tools that ran since then are its tool time.
//   - Branches begin with what the branch around them waited for. What follows their end
//     waits for the last call of each. Tools that ran beside calls of other branches
//     are taken to have ended with these.
//   - A prompt begins with the prompt before it in its conversation, up to a message
//     that was replaced. Two conversations that have the same system_prompt_id, also of
//     other traces, begin with the same system prompt: the blocks of these are shared, and
//     all others are their own.
//   - There are no times, but for the durations of tools and, in whole traces, of calls.
//     Their texts are not read, since all lengths are recorded.
func trtllmFormat() Format {
	f := Format{
		sized:  true,
		detect: isTRTLLM,
	}.described("trtllm-trace")
	return f.ofFiles(newTRTLLMDecoder)
}

// isTRTLLM tells by the keys before the events, which may be longer than the head, and by
// those of the first event.
func isTRTLLM(head *sniff.Sample) bool {
	first := bytes.TrimLeft(head.Bytes, " \t\r\n[")
	if !sniff.Any(record.Keys(first), "events") {
		return false
	}
	_, events, _ := bytes.Cut(first, []byte(`"events"`))
	event := record.Keys(bytes.TrimLeft(events, " \t\r\n:["))
	return sniff.Any(event, "event_type") && sniff.Any(event, "branch_path")
}

// A trtllmTrace is one record.
type trtllmTrace struct {
	ID     string        `json:"trace_id"`
	Events []trtllmEvent `json:"events"`
}

type trtllmEvent struct {
	Type         string        `json:"event_type"`
	Branch       []int         `json:"branch_path"`
	Conversation int           `json:"conversation_id"`
	Role         string        `json:"role"`
	Index        *int          `json:"message_index"`
	SystemPrompt string        `json:"system_prompt_id"`
	Tokens       *int32        `json:"tokens"`
	Counted      *int32        `json:"tokenize_count"` // of older traces
	Prompt       *int32        `json:"prompt_tokens"`
	Completion   *int32        `json:"completion_tokens"`
	Reasoning    *int32        `json:"reasoning_tokens"`
	Finish       string        `json:"finish_reason"`
	ToolMS       *json.Number  `json:"duration_ms"`
	CallMS       *json.Number  `json:"llm_duration_ms"`
	Children     []trtllmEvent `json:"children"` // of older traces
	Params       struct {
		Model string `json:"model"`
	} `json:"llm_request_params"`
}

// trtllmBlock is the number of tokens in a block of TensorRT-LLM, unless it is told.
const trtllmBlock = 32

const (
	maxTRTLLMBlocks = 1 << 24 // of the prompts of a trace
	maxTRTLLMDepth  = 1000    // of branches in branches
)

const (
	noteTRTLLMTwice = "traces that stand twice, such as compact and whole, were read once"
	noteTRTLLMNone  = "traces without an answer of a model"
	noteTRTLLMDrops = "events that dropped a part of the server's cache, which a replay does not send"
)

type trtllmDecoder struct {
	s       *Source
	in      record.Reader
	size    int
	entries int64
	ids     blockIDs            // so far
	systems map[string][]uint64 // full blocks of system prompts, by their ids
	seen    map[string]bool     // traces
}

func newTRTLLMDecoder(in record.Reader, o Options, s *Source) decoder {
	d := &trtllmDecoder{s: s, in: in, size: cmp.Or(o.BlockSize, trtllmBlock), systems: map[string][]uint64{},
		seen: map[string]bool{}}
	s.info.HasSessions, s.info.BlocksHashed, s.info.BlockSize = true, true, d.size
	return d
}

func (d *trtllmDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *trtllmDecoder) { d.in = n.in })
}

// decode appends the calls of a trace.
func (d *trtllmDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.in.Next()
	if err != nil {
		return dst, err
	}
	var t trtllmTrace
	if err := decodeRecord(d.in, raw, &t); err != nil {
		return dst, err
	}
	if t.ID != "" && d.seen[t.ID] {
		d.s.notes.Count(noteTRTLLMTwice)
		return dst, nil
	}
	p := trtllmPlan{d: d, ids: d.ids, session: trace.NewText(cmp.Or(t.ID, "trace "+strconv.Itoa(len(d.seen)))),
		conversations: map[int]*trtllmConversation{}, systems: map[string][]uint64{}}
	p.addEvents(t.Events, "events", nil)
	if p.why != "" {
		return dst, badIn(d.in, raw, p.path, p.why)
	}
	d.s.fields.Scan(raw)
	d.seen[cmp.Or(t.ID, strconv.Itoa(len(d.seen)))] = true
	d.entries, d.ids = d.entries+int64(len(p.calls)), p.ids
	maps.Copy(d.systems, p.systems)
	if len(p.calls) == 0 {
		d.s.notes.Count(noteTRTLLMNone)
	}
	for range p.drops {
		d.s.notes.Count(noteTRTLLMDrops)
	}
	return append(dst, p.calls...), nil
}

// A trtllmPlan gathers the calls of a trace. What it takes of the decoder's ids is the
// decoder's when all events were right.
type trtllmPlan struct {
	d             *trtllmDecoder
	session       trace.Text
	root          trtllmBranch
	conversations map[int]*trtllmConversation
	systems       map[string][]uint64 // that grew
	ids           blockIDs
	blocks        int // of all prompts
	drops         int
	calls         []trace.Entry
	path, why     string // of what is wrong
}

// A trtllmBranch is a sequence of events.
type trtllmBranch struct {
	last   []int64       // calls that the next one waits for
	tool   time.Duration // that tools ran since then
	called bool
	open   map[int]*trtllmBranch // that run in it
}

// join makes a branch go on after those in it.
func (b *trtllmBranch) join() {
	if b.open == nil {
		return
	}
	var last []int64
	var beside, alone time.Duration // tools after the calls of a branch, and in branches without any
	for _, i := range slices.Sorted(maps.Keys(b.open)) {
		in := b.open[i]
		if in.join(); in.called {
			last, beside = append(last, in.last...), max(beside, in.tool)
		} else {
			alone = max(alone, in.tool)
		}
	}
	b.open = nil
	if last != nil {
		b.last, b.tool, b.called = last, beside, true
	} else {
		b.tool = max(b.tool, alone)
	}
}

// branch is the one at a path, with all that is above it.
func (p *trtllmPlan) branch(path []int) *trtllmBranch {
	b := &p.root
	for _, i := range path {
		in := b.open[i]
		if in == nil {
			in = &trtllmBranch{last: b.last, tool: b.tool}
			if b.open == nil {
				b.open = map[int]*trtllmBranch{}
			}
			b.open[i] = in
		}
		b = in
	}
	return b
}

// addEvents takes events in their order. Those of tasks that ran at once within an event
// have paths below its own.
func (p *trtllmPlan) addEvents(events []trtllmEvent, path string, within []int) {
	for i := range events {
		e, at := &events[i], path+"."+strconv.Itoa(i)
		if within != nil {
			e.Branch = append(slices.Clip(within), i)
		}
		if len(e.Branch) > maxTRTLLMDepth {
			p.fail(at+".branch_path", fmt.Sprintf("branch_path: want at most %d numbers", maxTRTLLMDepth))
		}
		if p.why != "" {
			return
		}
		switch {
		case e.Type == "message" && e.Role == "assistant":
			p.call(e, at)
		case e.Type == "message":
			p.message(e, at)
		case e.Type == "tool_call":
			b := p.branch(e.Branch)
			b.join()
			b.tool += p.milliseconds(e.ToolMS, at+".duration_ms")
		case e.Type == "parallel_start":
			b := p.branch(e.Branch)
			b.join()
			if e.Children != nil {
				p.addEvents(e.Children, at+".children", append([]int{}, e.Branch...))
				b.join()
			}
		case e.Type == "parallel_end":
			p.branch(e.Branch).join()
		case e.Type == "drop_kv_cache":
			p.drops++
		default:
			p.fail(at+".event_type",
				"event_type: want message, tool_call, parallel_start, parallel_end or drop_kv_cache")
		}
	}
}

// call adds a call, which a message of the assistant is.
func (p *trtllmPlan) call(e *trtllmEvent, at string) {
	c := p.conversation(e.Conversation)
	input := c.length()
	if e.Prompt != nil {
		input = int(*e.Prompt)
	}
	switch {
	case input < 1 || input > maxContext:
		p.fail(at+".prompt_tokens",
			fmt.Sprintf("prompt_tokens: want a whole number from 1 to %d, or the tokens of each message", maxContext))
		return
	case e.Completion == nil || *e.Completion < 0 || e.Reasoning != nil && *e.Reasoning < 0:
		p.fail(at+".completion_tokens",
			"completion_tokens and reasoning_tokens: want whole numbers from 0 to 2147483647")
		return
	}
	b := p.branch(e.Branch)
	b.join()
	call := trace.Entry{Session: p.session, Turn: trace.Ptr(int32(len(p.calls))), Kind: "chat",
		InputTokens: trace.Ptr(int32(input)), OutputTokens: e.Completion,
		Reasoning: e.Reasoning, FinishReason: trace.ClosedFinish(e.Finish),
		Parents: slices.Compact(slices.Sorted(slices.Values(b.last)))}
	if e.Params.Model != "" {
		call.Model = trace.NewText(e.Params.Model)
	}
	if e.CallMS != nil {
		call.E2E = trace.Ptr(p.milliseconds(e.CallMS, at+".llm_duration_ms"))
	}
	if len(call.Parents) > 0 {
		call.Tool, call.Think = trace.Ptr(b.tool), trace.Ptr(time.Duration(0))
	}
	if p.blocks += blocksOf(int32(input), p.d.size); p.blocks > maxTRTLLMBlocks {
		p.fail(at, fmt.Sprintf("the prompts of its trace have more than %d blocks: say a larger size with "+
			"--source-block-size", maxTRTLLMBlocks))
		return
	}
	call.SourceBlocks = p.blocksFor(c, input)
	b.last, b.tool, b.called = []int64{p.d.entries + int64(len(p.calls))}, 0, true
	p.calls = append(p.calls, call)
	content := *e.Completion
	if e.Reasoning != nil {
		content = max(0, content-*e.Reasoning) // it is not in later prompts
	}
	c.put(e.Index, content)
}

// message adds a message to the conversation that a call has.
func (p *trtllmPlan) message(e *trtllmEvent, at string) {
	tokens := cmp.Or(e.Tokens, e.Counted)
	if tokens == nil {
		tokens = new(int32)
	}
	if *tokens < 0 || *tokens > maxContext {
		p.fail(at+".tokens", fmt.Sprintf("tokens: want a whole number from 0 to %d", maxContext))
		return
	}
	c := p.conversation(e.Conversation)
	if e.Role == "system" && (len(c.ends) == 0 || e.Index != nil && *e.Index == 0) {
		c.system, c.systemTokens = e.SystemPrompt, int(*tokens)
	}
	c.put(e.Index, *tokens)
}

func (p *trtllmPlan) milliseconds(n *json.Number, path string) (d time.Duration) {
	if n == nil {
		return 0
	}
	d, ok := lengthOf(string(*n), time.Millisecond, 1e12)
	if !ok {
		p.fail(path, "want milliseconds that are not negative")
	}
	return d
}

func (p *trtllmPlan) fail(path, why string) {
	if p.why == "" {
		p.path, p.why = path, why
	}
}

// A trtllmConversation is what the next call of it sends.
type trtllmConversation struct {
	ends         []int // of its messages, in tokens
	system       string
	systemTokens int
	kept         int      // tokens of the prompt before that the next one begins with
	ids          []uint64 // full blocks of the prompt before
}

func (p *trtllmPlan) conversation(id int) *trtllmConversation {
	c := p.conversations[id]
	if c == nil {
		c = &trtllmConversation{}
		p.conversations[id] = c
	}
	return c
}

func (c *trtllmConversation) length() int {
	if len(c.ends) == 0 {
		return 0
	}
	return c.ends[len(c.ends)-1]
}

// put adds a message, or replaces one and all that follow it. The same message again
// changes nothing.
func (c *trtllmConversation) put(index *int, tokens int32) {
	if i := len(c.ends); index != nil && *index >= 0 && *index < i {
		begin := 0
		if *index > 0 {
			begin = c.ends[*index-1]
		}
		if c.ends[*index]-begin == int(tokens) {
			return
		}
		c.ends, c.kept = c.ends[:*index], min(c.kept, begin)
	}
	c.ends = append(c.ends, c.length()+int(tokens))
}

// blocksFor makes the blocks of a prompt.
func (p *trtllmPlan) blocksFor(c *trtllmConversation, input int) []uint64 {
	full := input / p.d.size
	ids := slices.Clip(c.ids[:min(len(c.ids), min(c.kept, input)/p.d.size)])
	if c.system != "" {
		shared := min(c.systemTokens, input) / p.d.size
		system, grown := p.systems[c.system]
		if !grown {
			system = p.d.systems[c.system]
		}
		if len(system) < shared {
			system = p.ids.fill(slices.Clip(system), shared)
			p.systems[c.system] = system
		}
		if len(ids) < shared {
			ids = append(ids, system[len(ids):shared]...)
		}
	}
	ids = p.ids.fill(ids, full)
	c.ids, c.kept = ids, input
	if input%p.d.size > 0 {
		ids = append(slices.Clip(ids), p.ids.next())
	}
	return ids
}
