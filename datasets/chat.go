package datasets

import (
	"strings"

	"reprise/trace"
)

// roleOf maps the spellings of roles: OpenAI's and those of ShareGPT.
func roleOf(s string) (role trace.Role, ok bool) {
	switch strings.ToLower(s) {
	case "system", "developer":
		return trace.System, true
	case "user", "human":
		return trace.User, true
	case "assistant", "gpt", "chatgpt", "bing", "bard":
		return trace.Assistant, true
	case "tool", "function":
		return trace.Tool, true
	}
	return 0, false
}

const wantMessages = "want a list of objects with role and content"

func setMessages(b *builder, v any) string {
	if s, ok := v.(string); ok {
		if v, _, ok = decodeJSON([]byte(s)); !ok {
			return wantMessages
		}
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return wantMessages
	}
	messages := make([]trace.Message, len(list))
	for i, m := range list {
		fields, _ := m.(map[string]any)
		role, ok := fields["role"].(string)
		if !ok {
			return wantMessages
		}
		if messages[i].Role, ok = roleOf(role); !ok {
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

// setPrompt takes the prompt of a completion as one message of the user.
func setPrompt(b *builder, v any) string {
	if b.e.Messages != nil {
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
	if isList {
		return b.tokenIDs(list)
	}
	s, ok := v.(string)
	if !ok {
		return "want a text or a list of token ids"
	}
	b.e.Messages = []trace.Message{{Role: trace.User, Content: trace.NewText(s)}}
	if b.e.Kind == "" {
		b.e.Kind = "completion"
	}
	return ""
}

// tokenIDs takes a prompt of token ids, which has a length and no text here.
func (b *builder) tokenIDs(list []any) string {
	for _, id := range list {
		if _, ok := id.(number); !ok {
			return "want a text or a list of token ids: several prompts are not one request"
		}
	}
	if b.e.InputTokens == nil {
		b.e.InputTokens = trace.Ptr(int32(len(list)))
	}
	if b.e.Kind == "" {
		b.e.Kind = "completion"
	}
	return ""
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
		return b.fieldsText(v)
	}
	return "", false
}

func (b *builder) fieldsText(fields map[string]any) (string, bool) {
	if kind, ok := fields["type"].(string); ok && strings.Contains(kind, "image") {
		b.images++
		return "", true
	}
	content := fields["content"]
	if s, ok := fields["text"].(string); ok {
		content = s
	}
	return b.text(content)
}

// finish checks the entry as a whole.
func (b *builder) finish(blockSize int) string {
	e := &b.e
	if e.Messages == nil && e.InputTokens == nil {
		return "it has neither a prompt nor the length of one"
	}
	if b.lengthUnknown() {
		return unknownLength
	}
	if e.Messages != nil && e.Kind == "" {
		e.Kind = "chat"
	}
	if b.images > 0 {
		e.Images = trace.Ptr(b.images)
	}
	if e.SourceBlocks != nil && (e.InputTokens == nil || len(e.SourceBlocks) != blocksOf(*e.InputTokens, blockSize)) {
		return wrongBlocks
	}
	return ""
}

const unknownLength = "its prompt is empty or redacted, and no token count stands beside it, so its length is not known: " +
	"log the usage of each request, or where it has another name, say which (--map input_tokens=)"

const noteFailedUnknown = "calls that failed, with an empty or redacted prompt and no token count, were left out"

// lengthUnknown reports whether nothing tells the length of the prompt: there is
// no count, and all that stands in the messages are redaction markers, if
// anything. Images and calls of tools are content.
func (b *builder) lengthUnknown() bool {
	if b.e.InputTokens != nil || b.e.Messages == nil || b.images > 0 {
		return false
	}
	for i := range b.e.Messages {
		if m := &b.e.Messages[i]; m.Calls.Len() > 0 || !m.Content.Blank() && !m.Redacted() {
			return false
		}
	}
	return true
}

// failedUnknown reports the same of a call that failed, which has no usage: no
// record of it could be better.
func (b *builder) failedUnknown() bool {
	return b.e.Status == trace.StatusFailed && b.lengthUnknown()
}

const wrongBlocks = "its block ids are not one for each full block of the input length and one for the rest (--source-block-size tells another size, where a format leaves it open)"

// blocksOf is how many blocks hold n tokens, the last of them perhaps in part.
func blocksOf(n int32, size int) int { return (int(n) + size - 1) / size }
