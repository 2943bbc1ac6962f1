package record

import (
	"bytes"
	"encoding/json"
	"strings"

	"reprise/trace"
)

// A message is one of a chat, in the words of no API.
type message struct {
	role         trace.Role
	text         string
	calls        string // of tools: a JSON list in the shape of OpenAI's API
	callID, name string // of the call that a tool's message answers
}

// chatMessages reads the messages of a chat in OpenAI's form.
func chatMessages(raw json.RawMessage, images *int32) ([]message, bool) {
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   json.RawMessage `json:"tool_calls"`
		Call    json.RawMessage `json:"function_call"`
		CallID  string          `json:"tool_call_id"`
		Name    string          `json:"name"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	out := make([]message, 0, len(list))
	for _, m := range list {
		role, ok := trace.RoleOf(m.Role)
		if !ok {
			return nil, false
		}
		text, ok := textOf(m.Content, images)
		if !ok {
			return nil, false
		}
		one := message{role: role, text: text, callID: m.CallID, name: m.Name}
		switch {
		case isSet(m.Calls):
			one.calls = compact(m.Calls)
		case isSet(m.Call):
			one.calls = compact(json.RawMessage("[" + string(m.Call) + "]"))
		}
		out = append(out, one)
	}
	return out, len(out) > 0
}

// A contentPart is a part of a content, of any API.
type contentPart struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Refusal string          `json:"refusal"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	UseID   string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
}

// textOf is the text of a content: a string, or parts of which the texts are joined by
// line ends, as vLLM joins them. Images are counted.
func textOf(raw json.RawMessage, images *int32) (string, bool) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", true
	case raw[0] == '"':
		var s string
		return s, json.Unmarshal(raw, &s) == nil
	}
	var parts []contentPart
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	var texts []string
	for _, p := range parts {
		switch {
		case strings.Contains(p.Type, "image"):
			*images++
		case p.Text+p.Refusal != "":
			texts = append(texts, p.Text+p.Refusal)
		}
	}
	return strings.Join(texts, "\n"), true
}

// contentText is textOf where images do not count.
func contentText(raw json.RawMessage) (string, bool) { return textOf(raw, new(int32)) }

// contentMessages reads the content of a message in Anthropic's form, in which results
// of tools are parts of what the user says, and calls are parts of an answer.
func contentMessages(role trace.Role, raw json.RawMessage, images *int32) ([]message, bool) {
	if len(raw) == 0 || raw[0] != '[' {
		text, ok := textOf(raw, images)
		return []message{{role: role, text: text}}, ok
	}
	var parts []contentPart
	if json.Unmarshal(raw, &parts) != nil {
		return nil, false
	}
	var out []message
	var texts []string
	var calls []toolCall
	for _, p := range parts {
		switch {
		case p.Type == "tool_result":
			text, ok := textOf(p.Content, images)
			if !ok {
				return nil, false
			}
			out = append(out, message{role: trace.Tool, text: text, callID: p.UseID})
		case p.Type == "tool_use":
			calls = append(calls, newToolCall(p.ID, p.Name, string(p.Input)))
		case p.Type == "image":
			*images++
		case p.Text != "":
			texts = append(texts, p.Text)
		}
	}
	if len(texts) > 0 || len(calls) > 0 || len(out) == 0 {
		out = append(out, message{role: role, text: strings.Join(texts, "\n"), calls: writeCalls(calls)})
	}
	return out, true
}

// anthropicMessages reads system and messages in Anthropic's form.
func anthropicMessages(system, raw json.RawMessage, images *int32) ([]message, bool) {
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, false
	}
	var out []message
	if text, ok := textOf(system, images); ok && text != "" {
		out = append(out, message{role: trace.System, text: text})
	}
	for _, m := range list {
		role, ok := trace.RoleOf(m.Role)
		if !ok {
			return nil, false
		}
		more, ok := contentMessages(role, m.Content, images)
		if !ok {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, true
}

// inputItems reads the input, or the output, of the Responses API: a text, or items.
// unknown says that some of it is not text, such as encrypted reasoning.
func inputItems(raw json.RawMessage, images *int32) (out []message, unknown, ok bool) {
	if len(raw) > 0 && raw[0] == '"' {
		text, ok := textOf(raw, images)
		return []message{{role: trace.User, text: text}}, false, ok
	}
	var list []struct {
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Input     json.RawMessage `json:"input"` // of a custom tool
		Output    json.RawMessage `json:"output"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, true, false
	}
	for _, item := range list {
		switch item.Type {
		case "", "message":
			role, known := trace.RoleOf(item.Role)
			text, read := textOf(item.Content, images)
			if !known || !read {
				return nil, true, false
			}
			out = append(out, message{role: role, text: text})
		case "function_call", "custom_tool_call":
			arguments, _ := contentText(append(item.Arguments, item.Input...))
			call := newToolCall(item.CallID, item.Name, arguments)
			if n := len(out); n > 0 && out[n-1].calls != "" { // calls at once are one message
				var calls []toolCall
				json.Unmarshal([]byte(out[n-1].calls), &calls)
				out[n-1].calls = writeCalls(append(calls, call))
			} else {
				out = append(out, message{role: trace.Assistant, calls: writeCalls([]toolCall{call})})
			}
		case "function_call_output", "custom_tool_call_output":
			text, read := textOf(item.Output, images)
			unknown = unknown || !read
			out = append(out, message{role: trace.Tool, text: text, callID: item.CallID})
		default:
			unknown = true
		}
	}
	return out, unknown, true
}

// A toolCall is a call of a tool in the shape of OpenAI's API.
type toolCall struct {
	Type     string `json:"type"`
	ID       string `json:"id,omitempty"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// newToolCall makes a call. Arguments that are no JSON stay as text.
func newToolCall(id, name, arguments string) toolCall {
	c := toolCall{Type: "function", ID: id}
	c.Function.Name = name
	if c.Function.Arguments = json.RawMessage(arguments); !json.Valid(c.Function.Arguments) {
		c.Function.Arguments, _ = json.Marshal(arguments)
	}
	return c
}

// writeCalls is a list of calls as JSON, or "" for none.
func writeCalls(calls []toolCall) string {
	if len(calls) == 0 {
		return ""
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(calls) != nil {
		return ""
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// compact is JSON without white space.
func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return ""
	}
	return out.String()
}
