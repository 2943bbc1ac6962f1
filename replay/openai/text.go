package openai

import "math"

// Text is what the first choice (index 0) generated, in the order of arrival. It is
// needed to count tokens where usage is missing, and to put a server's own answer into
// the next turn.
type Text struct {
	Content   []byte // content or completion text
	Reasoning []byte
	Tools     []byte // names and arguments of tool calls, each piece as it came
	Truncated bool   // the limit was reached, and nothing was kept after it
	// IDs are the token ids that came with the pieces: vLLM sends them on request
	// (return_token_ids). Some of its versions leave some out, so that they are the whole
	// answer only where they are as many as its usage counts.
	IDs []uint32
}

func (t *Text) size() int { return len(t.Content) + len(t.Reasoning) + len(t.Tools) + 4*len(t.IDs) }

func (c *Collector) keepText(v *choiceView) {
	t := &c.out.Text
	t.Content = c.keep(t.Content, v.text)
	t.Reasoning = c.keep(t.Reasoning, v.reasoning)
	t.Tools = c.keep(t.Tools, v.arguments)
	if v.tools != nil {
		c.keepTools(v.tools)
	}
	if v.ids != nil {
		c.keepIDs(v.ids)
	}
}

// keepIDs keeps the token ids of a choice. Those after the limit, or after something
// that is no id, are left out, and missed by their number.
func (c *Collector) keepIDs(ids []byte) {
	t := &c.out.Text
	cur := cursor{b: ids}
	if !cur.open('[') {
		return
	}
	for first := true; cur.more(']', first); first = false {
		n, ok := cur.count()
		if !ok || n > math.MaxUint32 || t.size()+4 > c.maxText {
			return
		}
		t.IDs = append(t.IDs, uint32(n))
	}
}

// keep appends a piece of text, or its beginning where the limit cuts it.
func (c *Collector) keep(to []byte, s jsonString) []byte {
	if len(s.raw) == 0 {
		return to
	}
	t := &c.out.Text
	end := len(to) + c.maxText - t.size()
	if to = appendUnquoted(to, s); len(to) > end {
		to, t.Truncated = to[:end], true
	}
	return to
}

// keepTools keeps the pieces of a tool_calls delta.
func (c *Collector) keepTools(calls []byte) {
	cur := cursor{b: calls}
	if !cur.open('[') {
		return
	}
	for first := true; cur.more(']', first); first = false {
		if !cur.open('{') {
			continue
		}
		for first := true; cur.more('}', first); first = false {
			if string(cur.key()) == "function" {
				c.keepFunction(&cur)
			} else {
				cur.skip()
			}
		}
	}
}

func (c *Collector) keepFunction(cur *cursor) {
	if !cur.open('{') {
		return
	}
	for first := true; cur.more('}', first); first = false {
		switch string(cur.key()) {
		case "name", "arguments":
			s, _ := cur.optionalString()
			c.out.Text.Tools = c.keep(c.out.Text.Tools, s)
		default:
			cur.skip()
		}
	}
}
