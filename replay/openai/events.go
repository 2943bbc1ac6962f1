package openai

import (
	"bytes"
	"time"
)

// An eventView is what tells an event of the Responses API, or the answer to a request
// for embeddings, from a chunk. Both are told by their members alone, so that a stream
// is read the same way whatever was asked.
//
// The Responses API sends typed events (platform.openai.com/docs/api-reference/
// responses-streaming; vLLM's vllm/entrypoints/openai/responses): deltas carry text,
// and response.completed, response.incomplete or response.failed ends the stream with
// the whole response and its usage. There is no [DONE].
type eventView struct {
	kind            []byte // the member type
	delta, response []byte // as JSON text
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

// ends reports whether an event of this name ends a stream of the Responses API.
func ends(name []byte) bool {
	switch string(name) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
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
	case !bytes.HasPrefix(e.kind, responsePrefix):
	case bytes.HasSuffix(e.kind, deltaSuffix):
		v.readPiece()
	case ends(e.kind):
		e.ends = true
		v.readResponse(e.response)
		if v.err == nil && (string(e.kind) == "response.failed" || string(e.kind) == "response.cancelled") {
			v.err = data
		}
	case e.response != nil:
		v.readNames(e.response)
	}
}

// readPiece takes a delta: text, a refusal, reasoning or its summary, or what a tool is
// called with.
func (v *chunkView) readPiece() {
	e := &v.event
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
}

func (v *chunkView) readNames(response []byte) {
	c := cursor{b: response}
	if !c.open('{') {
		return
	}
	for first := true; c.more('}', first); first = false {
		v.name(&c, c.key())
	}
}

// name reads a member of a response that names it, or passes over another.
func (v *chunkView) name(c *cursor, key []byte) {
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
			reason = readReason(&c)
		case "usage":
			v.readUsage(&c)
		case "error":
			if raw := c.value(); !isEmpty(raw) {
				v.err = raw
			}
		case "output":
			last.content = !isEmpty(c.value()) && v.event.whole
		default:
			v.name(&c, key)
		}
	}
	switch string(status.raw) {
	case "failed", "cancelled":
		if v.err == nil {
			v.err = response
		}
		return
	}
	last.finish = finishOf(string(v.event.kind), string(status.raw), string(reason.raw))
	v.choices, v.hasContent = append(v.choices, last), v.hasContent || last.content
}

func readReason(c *cursor) (reason jsonString) {
	if !c.open('{') {
		return reason
	}
	for first := true; c.more('}', first); first = false {
		if string(c.key()) == "reason" {
			reason, _ = c.optionalString()
		} else {
			c.skip()
		}
	}
	return reason
}

// finishOf puts the end of a response into the words of a chat: vLLM says incomplete in
// the status, whatever the event is called.
func finishOf(kind, status, reason string) []byte {
	switch {
	case reason == "max_output_tokens" || reason == "max_tokens":
		return []byte(`"length"`)
	case reason == "content_filter":
		return []byte(`"content_filter"`)
	case kind == "response.incomplete" || status == "incomplete" || reason != "":
		return []byte(`"incomplete"`)
	}
	return []byte(`"stop"`)
}

// settle notes what only events and embeddings say: the end of the stream without a
// mark, and that tools were called.
func (c *Collector) settle(v *chunkView, at time.Duration) {
	e := &v.event
	c.called = c.called || e.calls
	if e.ends {
		if c.out.Done == NoInstant {
			c.out.Done = at
		}
		if c.called && c.out.FinishReason == "stop" {
			c.out.FinishReason = "tool_calls"
		}
	}
	if e.embedded && c.out.Finished == NoInstant {
		c.out.Finished = at
	}
}

// Begun decodes what has come and reports whether a token was among it. It is for a
// caller that limits the time to the first token; others need not ask.
func (c *Collector) Begun() bool {
	if c.out.TokenEvents == 0 {
		c.decode()
	}
	return c.out.TokenEvents > 0
}
