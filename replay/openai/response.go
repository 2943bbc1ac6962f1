package openai

import (
	"bytes"
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
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	// nil when the server does not tell
	PromptTokensDetails *PromptTokensDetails `json:"prompt_tokens_details,omitempty"`

	// nil when the server tells of no reasoning
	CompletionTokensDetails *CompletionTokensDetails `json:"completion_tokens_details,omitempty"`
}

// CompletionTokensDetails tells how many of the output tokens were reasoning.
type CompletionTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// PromptTokensDetails tells how many of the prompt's tokens were found in the prefix cache.
type PromptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// An errorBody is the body of an answer that is not 200, or an event that ends a stream.
type errorBody struct {
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
		choice := &c.Choices[i]
		dst = strconv.AppendInt(append(dst, `{"index":`...), int64(choice.Index), 10)
		if choice.Delta != nil {
			dst = appendDelta(append(dst, `,"delta":`...), choice.Delta)
		}
		if choice.Message != nil {
			dst = appendDelta(append(dst, `,"message":`...), choice.Message)
		}
		if choice.Text != nil {
			dst = appendString(append(dst, `,"text":`...), *choice.Text)
		}
		dst = append(dst, `,"finish_reason":`...)
		if choice.FinishReason == nil {
			dst = append(dst, "null}"...)
		} else {
			dst = append(appendString(dst, *choice.FinishReason), '}')
		}
	}
	dst = append(dst, ']')
	if c.Usage != nil {
		dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), int64(c.Usage.PromptTokens), 10)
		dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), int64(c.Usage.CompletionTokens), 10)
		dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), int64(c.Usage.TotalTokens), 10)
		if d := c.Usage.PromptTokensDetails; d != nil {
			dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...),
				int64(d.CachedTokens), 10)
			dst = append(dst, '}')
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
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
			call := &d.ToolCalls[i]
			w.dst = strconv.AppendInt(append(w.dst, `{"index":`...), int64(call.Index), 10)
			if call.ID != "" {
				w.dst = appendString(append(w.dst, `,"id":`...), call.ID)
			}
			if call.Type != "" {
				w.dst = appendString(append(w.dst, `,"type":`...), call.Type)
			}
			w.dst = append(w.dst, `,"function":{`...)
			if call.Function.Name != nil {
				w.dst = append(appendString(append(w.dst, `"name":`...), *call.Function.Name), ',')
			}
			w.dst = append(appendString(append(w.dst, `"arguments":`...), call.Function.Arguments), "}}"...)
		}
		w.dst = append(w.dst, ']')
	}
	return append(w.dst, '}')
}

// AppendError appends the JSON of an error. A Code that JSON cannot hold becomes null.
func AppendError(dst []byte, detail ErrorDetail) []byte {
	text, err := json.Marshal(errorBody{detail})
	if err != nil {
		detail.Code = nil
		text, _ = json.Marshal(errorBody{detail}) // strings alone always marshal
	}
	return append(dst, text...)
}

// doneMark is the data of the event that ends a stream.
const doneMark = "[DONE]"

// A Framing is how a server writes events. The zero value is what nearly all do; the
// others exist in the wild, and a simulated server imitates them.
type Framing struct {
	EOL     string // line end: "\n" when empty, else "\r\n" or "\r"
	NoSpace bool   // "data:{…" instead of "data: {…"
}

// AppendChunk appends a chunk as one event.
func (f Framing) AppendChunk(dst []byte, c *Chunk) []byte {
	dst = append(dst, "data:"...)
	if !f.NoSpace {
		dst = append(dst, ' ')
	}
	return f.appendEOL(f.appendEOL(AppendChunk(dst, c)))
}

// AppendEvent appends one event. Data that holds line feeds takes a data line for each line.
func (f Framing) AppendEvent(dst, data []byte) []byte {
	for more := true; more; {
		var line []byte
		line, data, more = bytes.Cut(data, []byte{'\n'})
		dst = append(dst, "data:"...)
		if !f.NoSpace {
			dst = append(dst, ' ')
		}
		dst = append(dst, line...)
		dst = f.appendEOL(dst)
	}
	return f.appendEOL(dst)
}

// AppendNamed appends one event with its name, as the Responses API has them.
func (f Framing) AppendNamed(dst []byte, name string, data []byte) []byte {
	dst = append(dst, "event:"...)
	if !f.NoSpace {
		dst = append(dst, ' ')
	}
	return f.AppendEvent(f.appendEOL(append(dst, name...)), data)
}

// AppendComment appends a comment, which clients must ignore: a keep-alive. An empty
// text makes a bare colon.
func (f Framing) AppendComment(dst []byte, text string) []byte {
	dst = append(dst, ':')
	if text != "" && !f.NoSpace {
		dst = append(dst, ' ')
	}
	dst = append(dst, text...)
	return f.appendEOL(f.appendEOL(dst))
}

// AppendDone appends the mark that ends a stream.
func (f Framing) AppendDone(dst []byte) []byte {
	return f.AppendEvent(dst, []byte(doneMark))
}

func (f Framing) appendEOL(dst []byte) []byte {
	if f.EOL == "" {
		return append(dst, '\n')
	}
	return append(dst, f.EOL...)
}
