package datasets

import (
	"bytes"
	"encoding/json"
	"strings"
)

// spanMessages makes "messages" and "output" of what a span recorded of them.
func (v viewRow) spanMessages(tell *notes) {
	const input, output, system = "attributes.gen_ai.input.messages", "attributes.gen_ai.output.messages", "attributes.gen_ai.system_instructions"
	messages, whole := v.list(input)
	if !whole {
		tell.count(noteCutAttribute)
	}
	for i := range messages {
		messages[i] = plainMessage(messages[i])
	}
	instructions, whole := v.list(system)
	switch {
	case !whole:
		messages = nil
		tell.count(noteCutAttribute)
	case len(instructions) > 0 && len(messages) > 0:
		head := plainMessage(map[string]any{"role": "system", "parts": instructions})
		messages = append([]any{head}, messages...)
	}
	switch {
	case areMessages(messages):
		v.put("messages", messages, "attributes")
	case len(messages) > 0:
		tell.count(noteNoMessages)
	}
	if replies, _ := v.list(output); areMessages(replies) {
		v.put("output", plainMessage(replies[0]), "attributes")
	}
}

// list returns a list that an attribute holds, as JSON or as it is; whole is
// false when it holds something else.
func (v viewRow) list(path string) (list []any, whole bool) {
	found, ok := v.value(path)
	if s, isText := found.(string); isText {
		found, _, _ = decodeJSON([]byte(s))
	}
	list, isList := found.([]any)
	return list, isList || !ok
}

// plainMessage writes a message with parts, as the conventions have it, in the
// form of OpenAI's API. Calls of tools are tokens of the message, and so are
// their results.
func plainMessage(m any) any {
	fields, _ := m.(map[string]any)
	parts, ok := fields["parts"].([]any)
	if !ok {
		return m
	}
	var content, calls []any
	var answered any
	for _, p := range parts {
		part, _ := p.(map[string]any)
		kind, _ := part["type"].(string)
		switch {
		case kind == "tool_call" || kind == "tool_use":
			calls = append(calls, part)
		case kind == "tool_call_response" || kind == "tool_result":
			content = append(content, toolResult(part))
			answered = part["id"]
		case part["modality"] == "image":
			content = append(content, map[string]any{"type": "image"})
		default:
			content = append(content, p)
		}
	}
	return map[string]any{"role": fields["role"], "content": content, "tool_calls": calls, "tool_call_id": answered}
}

// toolResult returns the text of a tool's result, which may be any value.
func toolResult(part map[string]any) string {
	for _, name := range []string{"response", "result", "content"} {
		switch value := part[name].(type) {
		case nil:
		case string:
			return value
		default:
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			if enc.Encode(value) == nil {
				return strings.TrimSuffix(buf.String(), "\n")
			}
		}
	}
	return ""
}

// finishReason makes "finish_reason" of the first of the reasons, one for each
// choice.
func (v viewRow) finishReason() {
	const reasons, messages = "attributes.gen_ai.response.finish_reasons", "attributes.gen_ai.output.messages"
	found, _ := v.value(reasons)
	list, _ := v.list(reasons)
	if len(list) > 0 {
		found = list[0]
	}
	if replies, _ := v.list(messages); found == nil && len(replies) > 0 {
		found, _ = lookup(replies[0], "finish_reason")
	}
	switch reason := plain(found); reason {
	case "":
	case "tool_call": // as the conventions spell it
		v.put("finish_reason", "tool_calls", "attributes")
	default:
		v.put("finish_reason", reason, "attributes")
	}
}
