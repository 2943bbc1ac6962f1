package talk

import (
	"bytes"
	"maps"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/trace"
)

// ChatOf makes messages in the form of OpenAI's API of those of other APIs and
// frameworks, or a prompt of a text. Both are empty for anything else.
func ChatOf(v any) (messages []any, prompt string) {
	switch v := v.(type) {
	case string:
		if start := bytes.TrimSpace([]byte(v)); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
			if inner, _, ok := row.DecodeJSON(start); ok {
				if messages, prompt = ChatOf(inner); messages != nil || prompt != "" {
					return messages, prompt
				}
			}
		}
		return nil, v
	case []any:
		if len(v) == 1 {
			if inner, ok := v[0].([]any); ok { // of a batch of one
				return ChatOf(inner)
			}
		}
		for _, m := range v {
			message := MessageOf(m)
			if message == nil {
				return nil, ""
			}
			messages = append(messages, message)
		}
		return messages, ""
	case map[string]any:
		return chatIn(v)
	}
	return nil, ""
}

// chatIn finds the conversation in the body of a request or of a response.
func chatIn(body map[string]any) (messages []any, prompt string) {
	for _, key := range []string{"messages", "contents", "input", "prompt", "choices", "candidates", "output",
		"generations"} {
		inner, ok := body[key]
		if !ok {
			continue
		}
		if messages, prompt = ChatOf(inner); prompt != "" && key != "output" {
			messages = []any{map[string]any{"role": "user", "content": prompt}}
		}
		if messages != nil || prompt != "" {
			break
		}
	}
	if messages == nil && prompt == "" {
		if message := MessageOf(body); message != nil {
			messages = []any{message}
		}
	}
	for _, key := range []string{"system", "systemInstruction", "system_instruction", "instructions"} {
		if system := body[key]; system != nil && messages != nil {
			if _, ok := (&Prompt{}).Text(partsOf(system)); ok {
				messages = append([]any{map[string]any{"role": "system", "content": partsOf(system)}}, messages...)
			}
		}
	}
	return messages, prompt
}

// MessageOf makes one message; nil where v is none.
func MessageOf(v any) any {
	fields, _ := v.(map[string]any)
	for _, inner := range []string{"message", "kwargs", "content"} { // a choice, LangChain's objects, a candidate
		if of, ok := fields[inner].(map[string]any); ok {
			if fields["id"] != nil && inner == "kwargs" {
				of = maps.Clone(of)
				of["type"] = fields["id"]
			}
			return MessageOf(of)
		}
	}
	role, _ := fields["role"].(string)
	kind := fields["type"]
	switch kind { // items of the Responses API
	case "function_call":
		call := map[string]any{"type": "function", "id": fields["call_id"],
			"function": map[string]any{"name": fields["name"], "arguments": fields["arguments"]}}
		return map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}
	case "function_call_output":
		return map[string]any{"role": "tool", "content": partsOf(fields["output"]), "tool_call_id": fields["call_id"]}
	case "reasoning":
		return map[string]any{"role": "assistant", "content": nil}
	}
	if path, ok := kind.([]any); ok && len(path) > 0 { // the class, such as HumanMessage
		kind = path[len(path)-1]
	}
	if name, ok := kind.(string); ok && role == "" {
		role = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, "Chunk"), "Message"))
	}
	if role == "ai" || role == "model" {
		role = "assistant"
	}
	if _, ok := trace.RoleOf(role); !ok {
		return nil
	}
	if fields["parts"] != nil && fields["content"] == nil {
		fields = maps.Clone(fields)
		fields["content"] = fields["parts"]
	}
	message := map[string]any{"role": role, "content": partsOf(fields["content"])}
	for _, key := range []string{"tool_calls", "function_call", "tool_call_id", "name"} {
		if value := fields[key]; value != nil {
			message[key] = value
		}
	}
	if _, ok := (&Prompt{}).Text(message); !ok {
		return nil
	}
	return JoinParts(message)
}

// partsOf is a content without what Gemini and Bedrock wrap its parts into.
func partsOf(content any) any {
	switch c := content.(type) {
	case map[string]any:
		if parts, ok := c["parts"]; ok {
			return partsOf(parts)
		}
	case []any:
		out := make([]any, len(c))
		for i, part := range c {
			out[i] = part
			fields, _ := part.(map[string]any)
			for _, key := range []string{"toolUse", "functionCall", "function_call"} {
				if call, ok := fields[key].(map[string]any); ok {
					out[i] = map[string]any{"type": "tool_use", "name": call["name"],
						"input": FirstOf(call["input"], call["args"]), "id": call["toolUseId"]}
				}
			}
			for _, key := range []string{"toolResult", "functionResponse", "function_response"} {
				if result, ok := fields[key].(map[string]any); ok {
					text, _ := Compact(FirstOf(result["content"], result["response"]))
					out[i] = text
				}
			}
		}
		return out
	}
	return content
}

// FirstOf is the first value, or the other one where there is none.
func FirstOf(a, b any) any {
	if a != nil {
		return a
	}
	return b
}

// JoinParts writes a message with parts, as the conventions have it, in the
// form of OpenAI's API. Calls of tools are tokens of the message, and so are
// their results.
func JoinParts(m any) any {
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
			result := "" // the first that is there, which may be any value
			for _, name := range []string{"response", "result", "content"} {
				if value := part[name]; value != nil {
					text, isText := value.(string)
					if !isText {
						text, _ = Compact(value)
					}
					result = text
					break
				}
			}
			content = append(content, result)
			answered = part["id"]
		case part["modality"] == "image":
			content = append(content, map[string]any{"type": "image"})
		default:
			content = append(content, p)
		}
	}
	return map[string]any{"role": fields["role"], "content": content, "tool_calls": calls, "tool_call_id": answered}
}
