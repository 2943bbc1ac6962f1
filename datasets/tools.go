package datasets

import (
	"bytes"
	"encoding/json"
	"strings"

	"reprise/trace"
)

// callsOf returns the calls of tools that a message makes, as JSON in the shape
// of OpenAI's tool_calls: those of that field, of the function_call before it, or
// of parts in Anthropic's form.
func callsOf(fields map[string]any) trace.Text {
	calls, _ := fields["tool_calls"].([]any)
	if call, ok := fields["function_call"].(map[string]any); ok && len(calls) == 0 {
		calls = []any{call}
	}
	parts, _ := fields["content"].([]any)
	for _, p := range parts {
		if part, ok := p.(map[string]any); ok && part["type"] == "tool_use" {
			calls = append(calls[:len(calls):len(calls)], part)
		}
	}
	if len(calls) == 0 {
		return trace.Text{}
	}
	shaped := make([]any, len(calls))
	for i, c := range calls {
		shaped[i] = shapedCall(c)
	}
	text, ok := compactJSON(shaped)
	if !ok {
		return trace.Text{}
	}
	return trace.NewText(text)
}

// shapedCall gives a call the shape of OpenAI's.
func shapedCall(v any) any {
	call, _ := v.(map[string]any)
	name, ok := call["name"]
	if !ok || call["function"] != nil {
		return v
	}
	function := map[string]any{"name": name}
	for _, key := range []string{"arguments", "input", "parameters"} {
		if arguments, ok := call[key]; ok {
			function["arguments"] = arguments
			break
		}
	}
	shaped := map[string]any{"type": "function", "function": function}
	if id, ok := call["id"]; ok {
		shaped["id"] = id
	}
	return shaped
}

// compactJSON writes a value as JSON without white space.
func compactJSON(v any) (string, bool) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", false
	}
	return strings.TrimSuffix(buf.String(), "\n"), true
}

func textAt(fields map[string]any, key string) trace.Text {
	s, _ := fields[key].(string)
	if s == "" {
		return trace.Text{}
	}
	return trace.NewText(s)
}

const wantTools = "want a list of definitions of tools"

// setTools takes the definitions of tools that a request offers, in the order of
// their keys as the source has it where the record is at hand: templates write
// them into the prompt as they are. Those of other shapes than OpenAI's are put
// into it.
func setTools(b *builder, v any) string {
	if s, ok := v.(string); ok {
		if s == "" {
			return ""
		}
		if v, _, ok = decodeJSON([]byte(s)); !ok {
			return wantTools
		}
		b.source = func() []byte { return []byte(s) }
	}
	list, ok := v.([]any)
	if none, isObject := v.(map[string]any); !ok && !(isObject && len(none) == 0) {
		return wantTools
	}
	if len(list) == 0 {
		return ""
	}
	var written []json.RawMessage
	if b.source == nil || json.Unmarshal(b.source(), &written) != nil || len(written) != len(list) {
		written = make([]json.RawMessage, len(list))
		for i := range list {
			text, _ := compactJSON(list[i])
			written[i] = json.RawMessage(text)
		}
	}
	var text bytes.Buffer
	separator := "["
	for i := range list {
		text.WriteString(separator)
		separator = ","
		writeTool(&text, list[i], written[i])
	}
	text.WriteByte(']')
	b.e.Tools = trace.NewText(text.String())
	return ""
}

// writeTool writes a definition: as it is, or a function that stands by itself,
// as in the older field functions, within one.
func writeTool(text *bytes.Buffer, v any, written json.RawMessage) {
	fields, _ := v.(map[string]any)
	bare := fields["name"] != nil && fields["function"] == nil
	if bare {
		text.WriteString(`{"type":"function","function":`)
	}
	if json.Compact(text, written) != nil {
		text.WriteString("null")
	}
	if bare {
		text.WriteByte('}')
	}
}
