package openai

import "bytes"

// A chunkView is what a Collector needs of one chunk, as slices of its text.
type chunkView struct {
	id, model  jsonString
	choices    []choiceView
	hasUsage   bool
	usage      Usage
	hasCached  bool
	cached     int
	err        []byte // the value of error, or the whole chunk if it is an error; nil without one
	hasContent bool   // some choice generated something
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
}

func (c *choiceView) generated() bool { return c.content || len(c.reasoning.raw) > 0 }

// read fills v from the JSON of a chunk, and reports whether it was an object that
// could be read to its end.
func (v *chunkView) read(data []byte) bool {
	*v = chunkView{choices: v.choices[:0]}
	c := cursor{b: data}
	if c.peek() != '{' {
		return false
	}
	c.i++
	isError := false
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
		case "data":
			v.event.data = c.value()
		case "choices":
			v.readChoices(&c)
		case "usage":
			v.readUsage(&c)
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
	return true
}

func (v *chunkView) readChoices(c *cursor) {
	if !c.open('[') {
		return
	}
	for first := true; c.more(']', first); first = false {
		v.choices = append(v.choices, choiceView{})
		choice := &v.choices[len(v.choices)-1]
		choice.read(c)
		v.hasContent = v.hasContent || choice.generated()
	}
}

func (v *choiceView) read(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "index":
			v.index, _ = c.count()
		case "delta", "message": // message: a whole answer, from a request without stream
			v.readDelta(c)
		case "text":
			v.readText(c)
		case "token_ids":
			if raw := c.value(); !isEmpty(raw) {
				v.ids = raw
			}
		case "finish_reason":
			if raw := c.value(); !isEmpty(raw) {
				v.finish = raw
			}
		default:
			c.skip()
		}
	}
}

func (v *choiceView) readDelta(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "content":
			v.readText(c)
		case "reasoning_content", "reasoning": // vLLM sends both during a renaming, with the same text
			if s, ok := c.optionalString(); ok && len(s.raw) > 0 {
				v.reasoning = s
			}
		case "tool_calls":
			if raw := c.value(); !isEmpty(raw) {
				v.tools, v.content = raw, true
			}
		default:
			c.skip()
		}
	}
}

// readText takes content as a string; as a list of parts, which some servers send, it
// is content without a text.
func (v *choiceView) readText(c *cursor) {
	if c.peek() != '"' {
		if raw := c.value(); !isEmpty(raw) && raw[0] == '[' {
			v.content = true
		}
		return
	}
	v.text = c.str()
	v.content = v.content || len(v.text.raw) > 0
}

func (v *chunkView) readUsage(c *cursor) {
	if !c.open('{') {
		return
	}
	v.hasUsage = true
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "prompt_tokens", "input_tokens":
			v.usage.PromptTokens, _ = c.count()
		case "completion_tokens", "output_tokens":
			v.usage.CompletionTokens, _ = c.count()
		case "total_tokens":
			v.usage.TotalTokens, _ = c.count()
		case "prompt_tokens_details", "input_tokens_details":
			v.readDetails(c)
		default:
			c.skip()
		}
	}
}

func (v *chunkView) readDetails(c *cursor) {
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		if string(c.key()) == "cached_tokens" {
			v.cached, v.hasCached = c.count()
		} else {
			c.skip()
		}
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
