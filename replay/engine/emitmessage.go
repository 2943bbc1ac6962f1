package engine

import (
	"encoding/json"

	"reprise/replay/openai"
)

// A messageDialect writes the events of Anthropic's Messages API: a message of blocks,
// and counts in which those of the cache stand beside the rest of the prompt.
type messageDialect struct {
	*emitter
	block string // type of the block that is open, "" for none
	index int
}

func (d *messageDialect) event(e openai.MessageEvent) {
	data, _ := json.Marshal(&e) // strings and numbers always marshal
	d.put(e.Type, data)
}

func (d *messageDialect) open() {
	message := d.message()
	if d.behaviour.usage != usageMissing { // before the answer, all of the prompt counts as not cached
		prompt, none := len(d.j.prompt), 0
		message.Usage = &openai.MessageUsage{Input: &prompt, Output: &none}
	}
	d.event(openai.MessageEvent{Type: openai.EventMessageStart, Message: message})
}

func (*messageDialect) progress() {}

func (d *messageDialect) piece(_ int, text string) {
	d.putOpening()
	kind, delta := "text", &openai.MessageDelta{Type: "text_delta", Text: &text}
	switch {
	case d.behaviour.tools:
		kind, delta = "tool_use", &openai.MessageDelta{Type: "input_json_delta", Input: &text}
	case text != "" && d.sentTokens <= d.behaviour.reasoning:
		kind, delta = "thinking", &openai.MessageDelta{Type: "thinking_delta", Thinking: &text}
	}
	if kind != d.block {
		d.endBlock()
		d.block = kind
		d.event(openai.MessageEvent{Type: openai.EventBlockStart, Index: &d.index, Block: d.emptyBlock()})
	}
	d.event(openai.MessageEvent{Type: openai.EventBlockDelta, Index: &d.index, Delta: delta})
}

// emptyBlock is the block as it begins.
func (d *messageDialect) emptyBlock() *openai.MessageBlock {
	empty, b := "", &openai.MessageBlock{Type: d.block}
	switch d.block {
	case "text":
		b.Text = &empty
	case "thinking":
		b.Thinking = &empty
	default:
		input := json.RawMessage("{}")
		b.ID, b.Name, b.Input = d.j.id+"-tool", "look_up", &input
	}
	return b
}

func (d *messageDialect) endBlock() {
	if d.block != "" {
		d.event(openai.MessageEvent{Type: openai.EventBlockStop, Index: &d.index})
		d.index++
	}
	d.block = ""
}

func (d *messageDialect) fault(detail openai.ErrorDetail) {
	d.put("error", openai.AppendMessageError(nil, detail))
}

func (d *messageDialect) end() {
	d.endBlock()
	e := openai.MessageEvent{Type: openai.EventMessageDelta, Delta: &openai.MessageDelta{}, Usage: d.counts()}
	if reason := openai.StopReason(d.j.finish); !d.behaviour.noFinish {
		e.Delta.Reason = &reason
	}
	d.event(e)
	for range d.behaviour.doneMarks {
		d.event(openai.MessageEvent{Type: openai.EventMessageStop})
	}
}

func (d *messageDialect) whole(text string) []byte {
	m, reason := d.message(), openai.StopReason(d.j.finish)
	m.Content, m.Reason, m.Usage = append(m.Content, openai.MessageBlock{Type: "text", Text: &text}),
		&reason, d.counts()
	body, _ := json.Marshal(m)
	return body
}

func (d *messageDialect) message() *openai.MessageBody {
	return &openai.MessageBody{ID: d.j.id, Type: "message", Role: "assistant", Content: []openai.MessageBlock{},
		Model: d.s.c.Model}
}

// counts are the usage of the whole answer.
func (d *messageDialect) counts() *openai.MessageUsage {
	if d.behaviour.usage == usageMissing {
		return nil
	}
	return new(d.j.usage().Messages())
}
