package record

import (
	"encoding/json"
	"strings"
)

// wholeReply reads an answer that is no stream.
func wholeReply(is api, body []byte) reply {
	switch is {
	case messagesAPI:
		return wholeMessage(body)
	case responsesAPI:
		return wholeResponse(body)
	}
	var b struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Error   json.RawMessage `json:"error"`
		Data    json.RawMessage `json:"data"` // of embeddings
		Choices []struct {
			Text    string `json:"text"`
			Finish  string `json:"finish_reason"`
			Message struct {
				Content   json.RawMessage `json:"content"`
				Reasoning string          `json:"reasoning_content"`
				Thoughts  string          `json:"reasoning"`
				Calls     json.RawMessage `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
		Usage openAIUsage `json:"usage"`
	}
	if json.Unmarshal(body, &b) != nil {
		return reply{failed: true}
	}
	r := reply{id: b.ID, usage: b.Usage.usage(), failed: isSet(b.Error) || len(b.Choices) == 0 && is != embeddingsAPI}
	if is == embeddingsAPI {
		r.unknown = true
		return r
	}
	for i, c := range b.Choices {
		text := c.Text
		if t, ok := contentText(c.Message.Content); ok {
			text += t
		}
		if i == 0 {
			r.finish = c.Finish
			if isSet(c.Message.Calls) {
				r.calls = compact(c.Message.Calls)
			}
		}
		if c.Message.Reasoning+c.Message.Thoughts != "" {
			r.unknown = r.unknown || r.usage.reasoning == nil
		}
		r.text += text
	}
	r.unknown = r.unknown || len(b.Choices) > 1
	return r
}

// openAIUsage are the counts of a chat, of a completion and of the Responses API.
type openAIUsage struct {
	Prompt     *int32 `json:"prompt_tokens"`
	Input      *int32 `json:"input_tokens"`
	Completion *int32 `json:"completion_tokens"`
	Output     *int32 `json:"output_tokens"`
	PromptIs   struct {
		Cached *int32 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputIs struct {
		Cached *int32 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	CompletionIs struct {
		Reasoning *int32 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	OutputIs struct {
		Reasoning *int32 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *openAIUsage) usage() usage {
	either := func(a, b *int32) *int32 {
		if a == nil {
			return b
		}
		return a
	}
	return usage{input: either(u.Prompt, u.Input), output: either(u.Completion, u.Output),
		cached: either(u.PromptIs.Cached, u.InputIs.Cached), reasoning: either(u.CompletionIs.Reasoning, u.OutputIs.Reasoning)}
}

// wholeResponse reads an answer of the Responses API.
func wholeResponse(body []byte) reply {
	var b struct {
		ID         string          `json:"id"`
		Status     string          `json:"status"`
		Error      json.RawMessage `json:"error"`
		Output     json.RawMessage `json:"output"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage openAIUsage `json:"usage"`
	}
	if json.Unmarshal(body, &b) != nil {
		return reply{failed: true}
	}
	r := reply{id: b.ID, usage: b.Usage.usage(), failed: isSet(b.Error) || b.Status == "failed" || b.Status == "cancelled"}
	switch {
	case b.Status == "completed":
		r.finish = "stop"
	case strings.HasPrefix(b.Incomplete.Reason, "max"):
		r.finish = "length"
	case b.Incomplete.Reason != "":
		r.finish = "content_filter"
	}
	items, unknown, _ := inputItems(b.Output, new(int32))
	r.unknown = unknown && r.usage.reasoning == nil
	for _, m := range items {
		r.text += m.text
		if m.calls != "" {
			r.calls, r.finish = m.calls, "tool_calls"
		}
	}
	return r
}

// completed takes from the last event of a streamed response what the others say in
// pieces: calls of tools, and text without the reasoning.
func (r *reply) completed(event []byte) {
	var e struct {
		Response json.RawMessage `json:"response"`
	}
	if json.Unmarshal(event, &e) != nil {
		return
	}
	if all := wholeResponse(e.Response); len(all.text)+len(all.calls) > 0 {
		r.text, r.calls, r.finish, r.unknown = all.text, all.calls, all.finish, all.unknown
	}
}

func isSet(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "[]", "{}":
		return false
	}
	return true
}
