package openai

import (
	"bytes"
	"slices"

	"reprise/trace/ending"
	"reprise/trace/usage"
)

// A chunkView is what a Collector needs of one chunk, as slices of its text.
type chunkView struct {
	id, model  jsonString
	choices    []choiceView
	hasUsage   bool
	counts     usage.Counts // of the usage
	ofMessage  bool         // which is one of the Messages API
	err        []byte       // the value of error, or the whole chunk if it is an error; nil without one
	hasContent bool         // some choice generated something
	progress   bool         // it says how far the prompt has been read, as llama-server does
	times      serverTimes
	stray      bool // it is an object of no API, such as {"code":500,"message":…}
	event      eventView
}

// A choiceView is one element of choices.
type choiceView struct {
	index     int
	finish    []byte     // finish_reason as JSON text, nil when null or absent
	text      jsonString // content or completion text
	reasoning jsonString
	tools     []byte     // tool_calls as JSON text, nil when empty
	ids       []byte     // token_ids as JSON text, nil when empty
	arguments jsonString // a piece of a tool call's arguments, without the list around it
	content   bool       // something but reasoning was generated
	opaque    bool       // of which the text is not known
	whole     bool       // it is a message, which has all that came before again
	usage     []byte     // Moonshot's usage, as JSON text
	err       []byte     // the value of error, nil without one
}

// read fills v from the JSON of a chunk, and reports whether it was an object that
// could be read to its end.
func (v *chunkView) read(data []byte) bool {
	*v = chunkView{choices: v.choices[:0]}
	c := cursor{b: data}
	if c.peek() != '{' {
		return false
	}
	c.i++
	isError, known := false, false
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "id":
			v.id, _ = c.optionalString()
		case "model":
			v.model, _ = c.optionalString()
		case "object":
			s, _ := c.optionalString()
			isError = string(s.raw) == "error"
			v.event.whole = string(s.raw) == "response"
			v.event.list = string(s.raw) == "list"
		case "type":
			s, _ := c.optionalString()
			v.event.kind = s.raw
			isError = isError || string(s.raw) == "error"
		case "delta":
			v.event.delta = c.value()
		case "response":
			v.event.response = c.value()
		case "message":
			v.event.message = c.value()
		case "content_block":
			v.event.block = c.value()
		case "data":
			v.event.data = c.value()
		case "choices":
			if known = true; !c.open('[') {
				continue
			}
			for first := true; c.more(']', first); first = false {
				v.choices = append(v.choices, choiceView{})
				choice := &v.choices[len(v.choices)-1]
				choice.read(&c)
				v.hasContent = v.hasContent || choice.generated()
				if v.err == nil {
					v.err = choice.err
				}
				if choice.usage != nil {
					v.readUsage(&cursor{b: choice.usage})
				}
			}
		case "usage":
			v.readUsage(&c)
		case "x_groq": // with the usage, or an error
			raw := c.value()
			v.readUsage(&cursor{b: (&cursor{b: raw}).member("usage")})
			if fault := (&cursor{b: raw}).member("error"); !isEmpty(fault) {
				v.err = fault
			}
		case "metrics", "timings", "time_info", "nvext":
			v.times.read(&c)
		case "prompt_progress":
			v.progress = !isEmpty(c.value())
		case "error":
			if raw := c.value(); !isEmpty(raw) {
				v.err = raw
			}
		default:
			c.skip()
		}
	}
	if isError && v.err == nil {
		v.err = data
	}
	c.peek()
	if c.bad || c.i != len(data) {
		return false
	}
	v.readEvent(data)
	e := &v.event
	v.stray = !known && !v.hasUsage && !v.progress && !e.whole && !e.list && len(e.kind) == 0 && !isEmpty(data)
	return true
}

// useful reports whether a chunk says anything that a keep-alive does not: a chunk whose choices
// gained nothing and did not end is one.
func (v *chunkView) useful() bool {
	if v.hasContent || v.progress || v.err != nil || v.hasUsage || len(v.event.kind) > 0 || v.event.embedded {
		return true
	}
	return slices.ContainsFunc(v.choices, func(c choiceView) bool { return c.finish != nil })
}

// generated reports whether the choice gained something.
func (v *choiceView) generated() bool { return v.content || len(v.reasoning.raw) > 0 }

func (v *choiceView) read(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "index":
			v.index, _ = c.count()
		case "delta":
			v.readDelta(c)
		case "message": // a whole answer, of a request without stream or at the end of one with it
			v.whole = c.peek() == '{'
			v.readDelta(c)
		case "usage":
			v.usage = c.value()
		case "text":
			v.readText(c, 0)
		case "token_ids":
			v.ids = c.something()
		case "finish_reason":
			v.finish = c.something()
		case "error": // OpenRouter's, beside finish_reason "error"
			v.err = c.something()
		default:
			c.skip()
		}
	}
	if v.ids != nil && v.finish == nil && !v.generated() { // of a server that does not make text of them
		v.content, v.opaque = true, true
	}
}

// readDelta reads what a message gained, under all the names that servers have for it.
func (v *choiceView) readDelta(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "content", "refusal":
			v.readText(c, 0)
		case "function_call": // of the API before tools
			v.readFunctionCall(c)
		case "audio", "images":
			v.takeOpaque(c.value())
		case "reasoning_details", "thinking_blocks": // beside the reasoning, or in its place
			v.readThoughts(c)
		case "reasoning_content", "reasoning", "thinking":
			// vLLM sends the first two during a renaming, with the same text
			if s, ok := c.optionalString(); ok && len(s.raw) > 0 {
				v.reasoning = s
			}
		case "tool_calls":
			v.tools = c.something()
			v.content = v.content || v.tools != nil
		default:
			c.skip()
		}
	}
}

// readThoughts takes reasoning from a list of blocks, such as those of OpenRouter and MiniMax. An
// encrypted block has none.
func (v *choiceView) readThoughts(c *cursor) {
	if !c.open('[') {
		return
	}
	for first := true; c.more(']', first); first = false {
		block := c.value()
		for _, name := range []string{"text", "thinking", "summary"} {
			text := cursor{b: (&cursor{b: block}).member(name)}
			if s, ok := text.optionalString(); ok && len(v.reasoning.raw) == 0 {
				v.reasoning = s
			}
		}
	}
}

// maxPartDepth is how deep parts of a text stand in one another.
const maxPartDepth = 2

// readText takes a text: a string, or a list of parts, as Mistral sends reasoning.
func (v *choiceView) readText(c *cursor, depth int) {
	switch first := c.peek(); {
	case first == '"':
		if s := c.str(); len(s.raw) > 0 {
			v.text, v.content = s, true
		}
	case first == '[' && depth < maxPartDepth:
		c.open('[')
		for first := true; c.more(']', first); first = false {
			v.readPart(c, depth+1)
		}
	default:
		v.takeOpaque(c.value())
	}
}

// takeOpaque takes what is generated and has no text.
func (v *choiceView) takeOpaque(raw []byte) {
	if !isEmpty(raw) {
		v.content, v.opaque = true, true
	}
}

// readPart takes one part of a text. What one of a type that nobody knows holds is content,
// without a text.
func (v *choiceView) readPart(c *cursor, depth int) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "type":
			c.skip()
		case "text", "refusal":
			v.readText(c, depth)
		case "thinking", "reasoning":
			thoughts := choiceView{}
			thoughts.readText(c, depth)
			if thoughts.content {
				v.reasoning, v.opaque = thoughts.text, v.opaque || thoughts.opaque
			}
		default:
			v.takeOpaque(c.value())
		}
	}
}

// readFunctionCall takes a piece of a call: its name, or some of its arguments.
func (v *choiceView) readFunctionCall(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		c.key()
		if s, ok := c.optionalString(); ok && len(s.raw) > 0 {
			v.arguments, v.content = s, true
		}
	}
}

// readUsage reads the counts of a usage object: which they are is [usage.Counts.Take]'s to know.
func (v *chunkView) readUsage(c *cursor) {
	if !c.open('{') {
		return
	}
	v.hasUsage = true
	for first := true; c.more('}', first); first = false {
		key := c.key()
		if v.times.take(c, key) {
			continue
		}
		if c.peek() != '{' {
			v.readCount(c, key)
			continue
		}
		var path [64]byte
		details := append(append(path[:0], key...), '.')
		c.open('{')
		for first := true; c.more('}', first); first = false {
			v.readCount(c, append(details, c.key()...))
		}
	}
}

// readCount takes a count. A number that is none, such as one below 0, is noted as that.
func (v *chunkView) readCount(c *cursor, path []byte) {
	isNumber := c.peek() == '-' || c.peek() >= '0' && c.peek() <= '9'
	if n, ok := c.count(); ok {
		v.counts.Take(path, int64(n))
	} else if isNumber {
		v.counts.Take(path, -1)
	}
}

// isEmpty reports whether a JSON value is null, false, or holds nothing.
func isEmpty(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	return (raw[0] == '[' || raw[0] == '{') && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// An eventView is what tells an event of the Responses or the Messages API, or embeddings, from a
// chunk: its members alone, whatever was asked for. The last event of the Responses API has the whole
// response and its usage; there is no [DONE].
type eventView struct {
	kind            []byte // the member type
	delta, response []byte // as JSON text
	message, block  []byte // of the Messages API
	data            []byte // the list of embeddings
	whole           bool   // the body is a response, not an event
	list            bool   // the body is a list, of embeddings or of something else
	ends            bool   // nothing follows
	calls           bool   // a piece of a tool call
	embedded        bool   // embeddings came
}

var (
	responsePrefix  = []byte("response.")
	reasoningPrefix = []byte("response.reasoning")
	deltaSuffix     = []byte(".delta")
)

// ends reports whether an event of this name ends a stream of the Responses or of the
// Messages API.
func ends(name []byte) bool {
	switch string(name) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", EventMessageStop:
		return true
	}
	return false
}

// readEvent turns what is particular to the other APIs into what a chunk would say.
func (v *chunkView) readEvent(data []byte) {
	e := &v.event
	switch {
	case e.whole && len(v.choices) == 0:
		e.ends = true
		v.readResponse(data)
	case e.list && !isEmpty(e.data):
		e.embedded = true
	case string(e.kind) == "message": // a whole one
		e.ends = true
		v.readMessage(data)
	case isMessageKind(e.kind):
		v.readMessageEvent()
	case !bytes.HasPrefix(e.kind, responsePrefix):
	case bytes.HasSuffix(e.kind, deltaSuffix): // text, a refusal, reasoning or its summary, or the arguments of a tool
		c := cursor{b: e.delta}
		s, ok := c.optionalString()
		if !ok || len(s.raw) == 0 {
			return
		}
		piece := choiceView{}
		switch {
		case bytes.HasPrefix(e.kind, reasoningPrefix):
			piece.reasoning = s
		case string(e.kind) == "response.output_text.delta", string(e.kind) == "response.refusal.delta":
			piece.text, piece.content = s, true
		default:
			piece.arguments, piece.content, e.calls = s, true, true
		}
		v.choices, v.hasContent = append(v.choices, piece), true
	case ends(e.kind), e.response != nil:
		e.ends = ends(e.kind)
		v.readResponse(e.response)
		if v.err == nil && (string(e.kind) == "response.failed" || string(e.kind) == "response.cancelled") {
			v.err = data
		}
	}
}

// readName reads a member of a response that names it, or passes over another.
func (v *chunkView) readName(c *cursor, key []byte) {
	switch string(key) {
	case "id":
		v.id, _ = c.optionalString()
	case "model":
		v.model, _ = c.optionalString()
	default:
		c.skip()
	}
}

// readResponse takes the end of a response: how it ended, and its usage. Its output is
// taken as one piece where no delta can have come before.
func (v *chunkView) readResponse(response []byte) {
	c := cursor{b: response}
	if !c.open('{') {
		return
	}
	var status, reason jsonString
	last := choiceView{}
	for first := true; c.more('}', first); first = false {
		switch key := c.key(); string(key) {
		case "status":
			status, _ = c.optionalString()
		case "incomplete_details":
			reason, _ = (&cursor{b: c.member("reason")}).optionalString()
		case "usage":
			v.readUsage(&c)
		case "error":
			v.err = c.something()
		case "output":
			if raw := c.value(); v.event.whole {
				last.takeOpaque(raw)
			}
		default:
			v.readName(&c, key)
		}
	}
	how := string(status.raw)
	if string(v.event.kind) == "response.incomplete" {
		how = "incomplete"
	}
	finish := ending.Response(how, string(reason.raw))
	if ending.OfFinish(finish) != ending.OK && finish != "" {
		if v.err == nil {
			v.err = response
		}
		return
	}
	if finish != "" {
		last.finish = []byte(`"` + finish + `"`) // in the words of a chat
	}
	v.choices, v.hasContent = append(v.choices, last), v.hasContent || last.content
}
