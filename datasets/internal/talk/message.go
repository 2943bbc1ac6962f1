// Package talk reads the words of a request and of the reply to it, in the forms of all APIs: messages,
// their parts, calls of tools, definitions of tools, prompts as text or as ids of tokens.
package talk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/trace"
)

// A Prompt gathers what a request says, and what is said in reply, in an entry.
type Prompt struct {
	Entry  trace.Entry
	Images int32
	Tokens []uint64      // ids of the prompt, where it is given as those
	Source func() []byte // of the value at hand as it is written, nil where that is not known
}

// WantMessages is what [SetConversation] wants.
const WantMessages = "want a list of objects with role and content"

// SetConversation takes the messages of a request, or the same as a JSON string. What a
// masking tool leaves in place of them, such as [], {} or "[REDACTED]", is the text of a
// message of the user: the length of such a prompt is that of its usage.
func SetConversation(b *Prompt, v any) string {
	if s, ok := v.(string); ok {
		if inner, _, ok := row.DecodeJSON([]byte(s)); ok {
			v = inner
		}
	}
	if masked, ok := maskedText(v); ok {
		b.Entry.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(masked)}}
		return ""
	}
	if body, ok := v.(map[string]any); ok && body["role"] == nil {
		return setBody(b, body)
	}
	list, _ := v.([]any)
	return SetMessages(b, list)
}

// setBody takes the whole prompt out of the body of a request, of any API: system prompt, messages
// or input, and tools.
func setBody(b *Prompt, body map[string]any) string {
	messages, prompt := chatIn(body)
	if messages == nil {
		if prompt == "" {
			return WantMessages
		}
		messages = []any{map[string]any{"role": "user", "content": prompt}}
	}
	for _, key := range []string{"tools", "functions"} {
		if tools := body[key]; tools != nil && b.Entry.Tools.Len() == 0 {
			b.Source = nil
			if SetTools(b, tools) != "" {
				return "tools: " + WantTools
			}
		}
	}
	return SetMessages(b, messages)
}

// SetMessages takes the messages of a request.
func SetMessages(b *Prompt, list []any) string {
	if len(list) == 0 {
		return WantMessages
	}
	messages := make([]trace.Message, len(list))
	for i, m := range list {
		if masked, ok := maskedText(m); ok {
			messages[i] = trace.Message{Role: trace.User, Content: trace.NewText(masked)}
			continue
		}
		fields, _ := m.(map[string]any)
		role, ok := fields["role"].(string)
		if !ok {
			return WantMessages
		}
		if messages[i].Role, ok = trace.RoleOf(role); !ok {
			return "a role is not one of system, developer, user, assistant, tool and function"
		}
		text, ok := b.Text(m)
		if !ok {
			return "a content is neither a text nor a list of parts"
		}
		messages[i].Content = trace.NewText(text)
		messages[i].Calls = callsOf(fields)
		messages[i].CallID, messages[i].Name = textAt(fields, "tool_call_id"), textAt(fields, "name")
	}
	b.Entry.Messages = messages
	return ""
}

// maskedText is what stands in place of messages: nothing, a redaction marker, or an object
// of a length and a hash.
func maskedText(v any) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		s = v
	case []any:
		return "", len(v) == 0
	case map[string]any:
		if len(v) == 0 {
			return "", true
		}
		if v["role"] != nil || v["content"] != nil || v["type"] != nil {
			return "", false
		}
		s, _ = Compact(v)
	default:
		return "", false
	}
	text := trace.NewText(s)
	return s, text.Blank() || text.Redacted()
}

// SetPrompt takes the prompt of a completion as one message of the user.
func SetPrompt(b *Prompt, v any) string {
	if len(b.Entry.Messages) > 0 && !(len(b.Entry.Messages) == 1 && b.Entry.Messages[0].Content.Blank()) {
		return ""
	}
	list, isList := v.([]any)
	if isList && len(list) == 1 {
		if inner, ok := list[0].([]any); ok {
			list = inner
		} else if s, ok := list[0].(string); ok {
			v, isList = s, false
		}
	}
	if isList && b.Entry.Kind == "embedding" {
		if ok := b.setInputs(list); ok {
			return ""
		}
	}
	if isList { // of token ids, which has a length and blocks, and no text
		ids, ok := TokenIDs(list)
		if !ok {
			return "want a text or a list of token ids: several prompts are not one request"
		}
		if b.Tokens = ids; b.Entry.InputTokens == nil {
			b.Entry.InputTokens = trace.Ptr(int32(len(list)))
		}
		b.Entry.Kind = cmp.Or(b.Entry.Kind, "completion")
		return ""
	}
	s, ok := v.(string)
	if !ok {
		return "want a text or a list of token ids"
	}
	b.Entry.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(s)}}
	b.Entry.Kind = cmp.Or(b.Entry.Kind, "completion")
	return ""
}

// setInputs takes the inputs of a request for several embeddings, texts or lists of token ids. Its
// length is that of all of them together; ok is false where they are none.
func (b *Prompt) setInputs(list []any) (ok bool) {
	var messages []trace.Message
	tokens := 0
	for _, input := range list {
		switch input := input.(type) {
		case string:
			messages = append(messages, trace.Message{Role: trace.User, Content: trace.NewText(input)})
		case []any:
			if _, ok := TokenIDs(input); !ok {
				return false
			}
			tokens += len(input)
		default:
			return false
		}
	}
	switch {
	case len(list) == 0 || messages != nil && tokens > 0:
		return false
	case messages == nil && b.Entry.InputTokens == nil:
		b.Entry.InputTokens = trace.Ptr(int32(tokens))
	}
	b.Entry.Messages = messages
	return true
}

// TokenIDs are the ids of a prompt's tokens; ok is false where one is none.
func TokenIDs(list []any) (ids []uint64, ok bool) {
	ids = make([]uint64, len(list))
	for i, id := range list {
		n, isNumber := id.(row.Number)
		var err error
		if ids[i], err = strconv.ParseUint(string(n), 10, 64); err != nil || !isNumber {
			return nil, false
		}
	}
	return ids, true
}

// SetOutput takes the reply, as text or as a message.
func SetOutput(b *Prompt, v any) string {
	if fields, ok := v.(map[string]any); ok && fields["content"] == nil && fields["tool_calls"] == nil &&
		fields["function_call"] == nil && fields["text"] == nil {
		return "" // such as an error in place of a response
	}
	images := b.Images
	text, ok := b.Text(v)
	b.Images = images // those of the input count
	if !ok {
		return "want a text or a message"
	}
	b.Entry.Reply = trace.Ptr(trace.NewText(text))
	if fields, ok := v.(map[string]any); ok {
		b.Entry.ReplyCalls = callsOf(fields)
	}
	return ""
}

// Text returns the text of a content: a string; a list of parts, joined by line
// ends as vLLM joins them; a message or part. Images are counted.
func (b *Prompt) Text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case []any:
		var parts []string
		for _, part := range v {
			if fields, ok := part.(map[string]any); ok && fields["type"] == "tool_use" {
				continue // see callsOf
			}
			before := b.Images
			text, ok := b.Text(part)
			if !ok {
				return "", false
			}
			if b.Images == before {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "\n"), true
	case map[string]any:
		if kind, ok := v["type"].(string); ok && strings.Contains(kind, "image") {
			b.Images++
			return "", true
		}
		content := v["content"]
		if s, ok := v["text"].(string); ok {
			content = s
		}
		if content == nil && len(v) > 0 {
			if masked, ok := maskedText(v); ok { // {"length":9}
				return masked, true
			}
		}
		return b.Text(content)
	}
	return "", false
}

// callsOf returns the calls of tools that a message makes, as JSON in the shape
// of OpenAI's tool_calls: those of that field, of the function_call before it, or
// of parts in Anthropic's form.
func callsOf(fields map[string]any) trace.Text { return ShapedCalls(CallsIn(fields)) }

// CallsIn are the calls of a message as they stand.
func CallsIn(fields map[string]any) []any {
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
	return calls
}

// ShapedCalls writes calls in the shape of OpenAI's API; empty for none.
func ShapedCalls(calls []any) trace.Text {
	if len(calls) == 0 {
		return trace.Text{}
	}
	shaped := make([]any, len(calls))
	for i := range calls {
		shaped[i] = calls[i]
		call, _ := calls[i].(map[string]any)
		name, ok := call["name"]
		if !ok || call["function"] != nil {
			continue
		}
		function := map[string]any{"name": name}
		for _, key := range []string{"arguments", "input", "parameters"} {
			if arguments, ok := call[key]; ok {
				function["arguments"] = arguments
				break
			}
		}
		inShape := map[string]any{"type": "function", "function": function}
		if id, ok := call["id"]; ok {
			inShape["id"] = id
		}
		shaped[i] = inShape
	}
	text, ok := Compact(shaped)
	if !ok {
		return trace.Text{}
	}
	return trace.NewText(text)
}

// Compact writes a value as JSON without white space.
func Compact(v any) (string, bool) {
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

// WantTools is what [SetTools] wants.
const WantTools = "want a list of definitions of tools"

// SetTools takes the definitions of tools that a request offers, in the order of
// their keys as the source has it where the record is at hand: templates write
// them into the prompt as they are. Those of other shapes than OpenAI's are put
// into it.
func SetTools(b *Prompt, v any) string {
	if s, ok := v.(string); ok {
		if s == "" {
			return ""
		}
		if v, _, ok = row.DecodeJSON([]byte(s)); !ok {
			return WantTools
		}
		b.Source = func() []byte { return []byte(s) }
	}
	list, ok := v.([]any)
	if none, isObject := v.(map[string]any); !ok && !(isObject && len(none) == 0) {
		return WantTools
	}
	if len(list) == 0 {
		return ""
	}
	var written []json.RawMessage
	if b.Source == nil || json.Unmarshal(b.Source(), &written) != nil || len(written) != len(list) {
		written = make([]json.RawMessage, len(list))
		for i := range list {
			text, _ := Compact(list[i])
			written[i] = json.RawMessage(text)
		}
	}
	var text bytes.Buffer
	separator := "["
	for i := range list {
		text.WriteString(separator)
		separator = ","
		// A function that stands by itself, as in the older field functions, is put
		// into a definition.
		fields, _ := list[i].(map[string]any)
		bare := fields["name"] != nil && fields["function"] == nil
		if bare {
			text.WriteString(`{"type":"function","function":`)
		}
		if json.Compact(&text, written[i]) != nil {
			text.WriteString("null")
		}
		if bare {
			text.WriteByte('}')
		}
	}
	text.WriteByte(']')
	b.Entry.Tools = trace.NewText(text.String())
	return ""
}

// AreMessages reports whether v is a list of messages with known roles.
func AreMessages(v any) bool {
	list, _ := v.([]any)
	for _, m := range list {
		fields, _ := m.(map[string]any)
		name, _ := fields["role"].(string)
		if _, ok := trace.RoleOf(name); !ok {
			return false
		}
	}
	return len(list) > 0
}
