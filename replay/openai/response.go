package openai

import (
	"encoding/json"
	"strconv"
)

// The values of Chunk.Object.
const (
	ObjectChatChunk  = "chat.completion.chunk"
	ObjectChat       = "chat.completion"
	ObjectCompletion = "text_completion"
)

// A Chunk is one event of a streamed answer, or, with a Message in its choices, the
// whole answer to a request that did not ask for a stream.
type Chunk struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"` // seconds since 1970
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"` // empty, never null, in the chunk that carries only usage
	Usage   *Usage   `json:"usage,omitempty"`
}

// A Choice is what one of n parallel answers gained in this chunk. Delta belongs to
// streamed chats, Message to whole ones, Text to completions.
type Choice struct {
	Index        int     `json:"index"`
	Delta        *Delta  `json:"delta,omitempty"`
	Message      *Delta  `json:"message,omitempty"`
	Text         *string `json:"text,omitempty"`
	FinishReason *string `json:"finish_reason"` // null until the choice is finished
}

// A Delta is a piece of a chat message. The role comes first and alone, or with every
// piece, as servers like.
type Delta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent *string    `json:"reasoning_content,omitempty"`
	Reasoning        *string    `json:"reasoning,omitempty"` // what others call reasoning_content
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
}

// A ToolCall is a piece of a tool call: the name comes with the first piece, the
// arguments in further ones.
type ToolCall struct {
	Index    int      `json:"index"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function Function `json:"function"`
}

// A Function is the name of a called tool and a piece of its arguments, themselves JSON.
type Function struct {
	Name      *string `json:"name,omitempty"`
	Arguments string  `json:"arguments"`
}

// Usage counts the tokens of a request, as the server saw them.
type Usage struct {
	PromptTokens        int                  `json:"prompt_tokens"`
	CompletionTokens    int                  `json:"completion_tokens"`
	TotalTokens         int                  `json:"total_tokens"`
	PromptTokensDetails *PromptTokensDetails `json:"prompt_tokens_details,omitempty"` // nil when the server does not tell
}

// PromptTokensDetails tells how many of the prompt's tokens were found in the prefix cache.
type PromptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// An ErrorBody is the body of an answer that is not 200, or an event that ends a stream.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// An ErrorDetail describes an error. Code is a number, a string or nil: servers differ.
type ErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    any     `json:"code"`
}

// AppendChunk appends the JSON of a chunk, as encoding/json would make it but without
// reflection: a server with many streams writes a hundred thousand a second.
func AppendChunk(dst []byte, c *Chunk) []byte {
	dst = appendString(append(dst, `{"id":`...), c.ID)
	dst = appendString(append(dst, `,"object":`...), c.Object)
	dst = strconv.AppendInt(append(dst, `,"created":`...), c.Created, 10)
	dst = appendString(append(dst, `,"model":`...), c.Model)
	dst = append(dst, `,"choices":[`...)
	for i := range c.Choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChoice(dst, &c.Choices[i])
	}
	dst = append(dst, ']')
	if c.Usage != nil {
		dst = appendUsage(append(dst, `,"usage":`...), c.Usage)
	}
	return append(dst, '}')
}

func appendChoice(dst []byte, c *Choice) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(c.Index), 10)
	if c.Delta != nil {
		dst = appendDelta(append(dst, `,"delta":`...), c.Delta)
	}
	if c.Message != nil {
		dst = appendDelta(append(dst, `,"message":`...), c.Message)
	}
	if c.Text != nil {
		dst = appendString(append(dst, `,"text":`...), *c.Text)
	}
	dst = append(dst, `,"finish_reason":`...)
	if c.FinishReason == nil {
		return append(dst, "null}"...)
	}
	return append(appendString(dst, *c.FinishReason), '}')
}

func appendDelta(dst []byte, d *Delta) []byte {
	w := object{dst: append(dst, '{')}
	if d.Role != "" {
		w.field("role")
		w.dst = appendString(w.dst, d.Role)
	}
	if d.Content != nil {
		w.field("content")
		w.dst = appendString(w.dst, *d.Content)
	}
	if d.ReasoningContent != nil {
		w.field("reasoning_content")
		w.dst = appendString(w.dst, *d.ReasoningContent)
	}
	if d.Reasoning != nil {
		w.field("reasoning")
		w.dst = appendString(w.dst, *d.Reasoning)
	}
	if len(d.ToolCalls) > 0 {
		w.field("tool_calls")
		w.dst = append(w.dst, '[')
		for i := range d.ToolCalls {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = appendToolCall(w.dst, &d.ToolCalls[i])
		}
		w.dst = append(w.dst, ']')
	}
	return append(w.dst, '}')
}

func appendToolCall(dst []byte, t *ToolCall) []byte {
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(t.Index), 10)
	if t.ID != "" {
		dst = appendString(append(dst, `,"id":`...), t.ID)
	}
	if t.Type != "" {
		dst = appendString(append(dst, `,"type":`...), t.Type)
	}
	dst = append(dst, `,"function":{`...)
	if t.Function.Name != nil {
		dst = append(appendString(append(dst, `"name":`...), *t.Function.Name), ',')
	}
	return append(appendString(append(dst, `"arguments":`...), t.Function.Arguments), "}}"...)
}

func appendUsage(dst []byte, u *Usage) []byte {
	dst = strconv.AppendInt(append(dst, `{"prompt_tokens":`...), int64(u.PromptTokens), 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), int64(u.CompletionTokens), 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(u.TotalTokens), 10)
	if d := u.PromptTokensDetails; d != nil {
		dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), int64(d.CachedTokens), 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// AppendError appends the JSON of an error. A Code that JSON cannot hold becomes null.
func AppendError(dst []byte, detail ErrorDetail) []byte {
	text, err := json.Marshal(ErrorBody{detail})
	if err != nil {
		detail.Code = nil
		text, _ = json.Marshal(ErrorBody{detail}) // strings alone always marshal
	}
	return append(dst, text...)
}
