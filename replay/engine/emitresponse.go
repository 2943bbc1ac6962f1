package engine

import (
	"encoding/json"
	"strings"
	"time"

	"reprise/replay/openai"
	"reprise/trace/ending"
)

// A responseDialect writes the events of the Responses API: deltas of text, reasoning or
// the arguments of a tool, and an end that holds the whole answer and its usage.
type responseDialect struct {
	*emitter
	sequence int
	answer   strings.Builder
}

func (d *responseDialect) event(e openai.ResponseEvent) {
	e.Sequence = d.sequence
	d.sequence++
	data, _ := json.Marshal(&e) // strings and numbers always marshal
	d.put(e.Type, data)
}

func (d *responseDialect) open() {
	d.event(openai.ResponseEvent{Type: openai.EventCreated, Response: d.body(openai.StatusInProgress, "")})
}

func (*responseDialect) progress() {}

func (d *responseDialect) piece(_ int, text string) {
	d.putOpening()
	zero, kind := 0, openai.EventTextDelta
	switch {
	case text != "" && d.behaviour.tools:
		kind = openai.EventCallDelta
	case text != "" && d.sentTokens <= d.behaviour.reasoning:
		kind = openai.EventReasoningDelta
	default:
		d.answer.WriteString(text)
	}
	d.event(openai.ResponseEvent{Type: kind, ItemID: "msg-" + d.j.id, OutputIndex: &zero,
		ContentIndex: &zero, Delta: text})
}

func (d *responseDialect) fault(detail openai.ErrorDetail) {
	data, _ := json.Marshal(map[string]any{"type": "error", "code": detail.Code,
		"message": detail.Message, "param": nil})
	d.put("error", data)
}

func (d *responseDialect) end() {
	kind, status := openai.EventCompleted, d.status()
	if status == openai.StatusIncomplete {
		kind = openai.EventIncomplete
	}
	for range d.behaviour.doneMarks {
		d.event(openai.ResponseEvent{Type: kind, Response: d.body(status, d.answer.String())})
	}
}

func (d *responseDialect) whole(text string) []byte {
	body, _ := json.Marshal(d.body(d.status(), text))
	return body
}

// status is how the answer ends.
func (d *responseDialect) status() string {
	switch ending.Finish(d.j.finish) {
	case ending.Stop, ending.ToolCalls, ending.FunctionCall:
		return openai.StatusCompleted
	}
	return openai.StatusIncomplete
}

// body is the body of a response so far.
func (d *responseDialect) body(status, text string) *openai.ResponseBody {
	j := d.j
	b := &openai.ResponseBody{ID: "resp-" + j.id, Object: "response", CreatedAt: time.Now().Unix(), Status: status,
		Model: d.s.c.Model, Output: []openai.ResponseItem{}}
	if status == openai.StatusInProgress {
		return b
	}
	b.Output = append(b.Output, openai.ResponseItem{ID: "msg-" + j.id, Type: "message",
		Role: "assistant", Status: status,
		Content: []openai.ResponsePart{{Type: "output_text", Text: text}}})
	if d.behaviour.usage != usageMissing {
		b.Usage = j.usage().Responses()
	}
	if status == openai.StatusIncomplete {
		b.Incomplete = &openai.IncompleteDetails{Reason: j.finish}
		if ending.Finish(j.finish) == ending.Length {
			b.Incomplete.Reason = "max_output_tokens"
		}
	}
	return b
}
