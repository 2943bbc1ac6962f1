package datasets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/trace"
)

const wantMessages = "want a list of objects with role and content"

// setConversation takes the messages of a request, or the same as a JSON string. What a
// masking tool leaves in place of them, such as [], {} or "[REDACTED]", is the text of a
// message of the user: the length of such a prompt is that of its usage.
func setConversation(b *builder, v any) string {
	if s, ok := v.(string); ok {
		if inner, _, ok := row.DecodeJSON([]byte(s)); ok {
			v = inner
		}
	}
	if masked, ok := maskedText(v); ok {
		b.e.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(masked)}}
		return ""
	}
	if body, ok := v.(map[string]any); ok && body["role"] == nil {
		return setBody(b, body)
	}
	list, _ := v.([]any)
	return setMessages(b, list)
}

// setBody takes the whole prompt out of the body of a request, of any API: system prompt, messages
// or input, and tools.
func setBody(b *builder, body map[string]any) string {
	messages, prompt := chatIn(body)
	if messages == nil {
		if prompt == "" {
			return wantMessages
		}
		messages = []any{map[string]any{"role": "user", "content": prompt}}
	}
	for _, key := range []string{"tools", "functions"} {
		if tools := body[key]; tools != nil && b.e.Tools.Len() == 0 {
			b.source = nil
			if setTools(b, tools) != "" {
				return "tools: " + wantTools
			}
		}
	}
	return setMessages(b, messages)
}

func setMessages(b *builder, list []any) string {
	if len(list) == 0 {
		return wantMessages
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
			return wantMessages
		}
		if messages[i].Role, ok = trace.RoleOf(role); !ok {
			return "a role is not one of system, developer, user, assistant, tool and function"
		}
		text, ok := b.text(m)
		if !ok {
			return "a content is neither a text nor a list of parts"
		}
		messages[i].Content = trace.NewText(text)
		messages[i].Calls = callsOf(fields)
		messages[i].CallID, messages[i].Name = textAt(fields, "tool_call_id"), textAt(fields, "name")
	}
	b.e.Messages = messages
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
		s, _ = compactJSON(v)
	default:
		return "", false
	}
	text := trace.NewText(s)
	return s, text.Blank() || text.Redacted()
}

// setPrompt takes the prompt of a completion as one message of the user.
func setPrompt(b *builder, v any) string {
	if len(b.e.Messages) > 0 && !(len(b.e.Messages) == 1 && b.e.Messages[0].Content.Blank()) {
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
	if isList && b.e.Kind == "embedding" {
		if ok := b.setInputs(list); ok {
			return ""
		}
	}
	if isList { // of token ids, which has a length and blocks, and no text
		ids, ok := tokenIDs(list)
		if !ok {
			return "want a text or a list of token ids: several prompts are not one request"
		}
		if b.tokens = ids; b.e.InputTokens == nil {
			b.e.InputTokens = trace.Ptr(int32(len(list)))
		}
		b.e.Kind = cmp.Or(b.e.Kind, "completion")
		return ""
	}
	s, ok := v.(string)
	if !ok {
		return "want a text or a list of token ids"
	}
	b.e.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(s)}}
	b.e.Kind = cmp.Or(b.e.Kind, "completion")
	return ""
}

// setInputs takes the inputs of a request for several embeddings, texts or lists of token ids. Its
// length is that of all of them together; ok is false where they are none.
func (b *builder) setInputs(list []any) (ok bool) {
	var messages []trace.Message
	tokens := 0
	for _, input := range list {
		switch input := input.(type) {
		case string:
			messages = append(messages, trace.Message{Role: trace.User, Content: trace.NewText(input)})
		case []any:
			if _, ok := tokenIDs(input); !ok {
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
	case messages == nil && b.e.InputTokens == nil:
		b.e.InputTokens = trace.Ptr(int32(tokens))
	}
	b.e.Messages = messages
	return true
}

// tokenIDs are the ids of a prompt's tokens; ok is false where one is none.
func tokenIDs(list []any) (ids []uint64, ok bool) {
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

// idBlock is the size of the blocks that are made of token ids, in tokens.
const idBlock = 16

// blocksOfIDs are the prefix blocks of a prompt of token ids: two are equal where all tokens up to
// their ends are. They are numbers below [firstFresh].
func blocksOfIDs(ids []uint64, size int) []uint64 {
	blocks := make([]uint64, 0, blocksOf(int32(len(ids)), size))
	hash := uint64(14695981039346656037)
	for i, id := range ids {
		for range 8 {
			hash = (hash ^ id&0xff) * 1099511628211
			id >>= 8
		}
		if (i+1)%size == 0 || i+1 == len(ids) {
			block := hash
			if (i+1)%size != 0 { // a partial block is none of those that go on
				block ^= uint64(size-(i+1)%size) * 0x9e3779b97f4a7c15
			}
			blocks = append(blocks, block&(firstFresh-1))
		}
	}
	return blocks
}

func setOutput(b *builder, v any) string {
	if fields, ok := v.(map[string]any); ok && fields["content"] == nil && fields["tool_calls"] == nil && fields["function_call"] == nil && fields["text"] == nil {
		return "" // such as an error in place of a response
	}
	images := b.images
	text, ok := b.text(v)
	b.images = images // those of the input count
	if !ok {
		return "want a text or a message"
	}
	b.e.Reply = trace.Ptr(trace.NewText(text))
	if fields, ok := v.(map[string]any); ok {
		b.e.ReplyCalls = callsOf(fields)
	}
	return ""
}

// text returns the text of a content: a string; a list of parts, joined by line
// ends as vLLM joins them; a message or part. Images are counted.
func (b *builder) text(v any) (string, bool) {
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
			before := b.images
			text, ok := b.text(part)
			if !ok {
				return "", false
			}
			if b.images == before {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "\n"), true
	case map[string]any:
		if kind, ok := v["type"].(string); ok && strings.Contains(kind, "image") {
			b.images++
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
		return b.text(content)
	}
	return "", false
}

// callsOf returns the calls of tools that a message makes, as JSON in the shape
// of OpenAI's tool_calls: those of that field, of the function_call before it, or
// of parts in Anthropic's form.
func callsOf(fields map[string]any) trace.Text { return shapedCalls(callsIn(fields)) }

// callsIn are the calls of a message as they stand.
func callsIn(fields map[string]any) []any {
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

// shapedCalls writes calls in the shape of OpenAI's API; empty for none.
func shapedCalls(calls []any) trace.Text {
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
	text, ok := compactJSON(shaped)
	if !ok {
		return trace.Text{}
	}
	return trace.NewText(text)
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
		if v, _, ok = row.DecodeJSON([]byte(s)); !ok {
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
	b.e.Tools = trace.NewText(text.String())
	return ""
}

// areMessages reports whether v is a list of messages with known roles.
func areMessages(v any) bool {
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
