package openai

import (
	"bytes"
	"encoding/json"

	"reprise/trace/ending"
)

// MessageUsage is the counts of Anthropic's Messages API. Those of the cache stand beside
// input_tokens, not in them. A nil count was not sent.
type MessageUsage struct {
	Input   *int            `json:"input_tokens,omitempty"`
	Created *int            `json:"cache_creation_input_tokens,omitempty"` // written to the cache
	Read    *int            `json:"cache_read_input_tokens,omitempty"`     // found in it
	Output  *int            `json:"output_tokens,omitempty"`
	Details *MessageDetails `json:"output_tokens_details,omitempty"`
}

// MessageDetails tells how many of the output tokens were thoughts.
type MessageDetails struct {
	Thinking *int `json:"thinking_tokens,omitempty"`
}

// Messages returns the counts under the names of the Messages API, those of the cache
// beside the rest of the prompt.
func (u Usage) Messages() MessageUsage {
	input := u.PromptTokens
	out := MessageUsage{Input: &input, Output: &u.CompletionTokens}
	if d := u.PromptTokensDetails; d != nil {
		input -= d.CachedTokens
		out.Read, out.Created = &d.CachedTokens, new(int)
	}
	return out
}

// Types of the events of a streamed answer of the Messages API, which are also their
// names. An answer is one message of blocks, each begun, continued and ended.
const (
	EventMessageStart = "message_start"
	EventBlockStart   = "content_block_start"
	EventBlockDelta   = "content_block_delta"
	EventBlockStop    = "content_block_stop"
	EventMessageDelta = "message_delta" // why the answer stopped, and its counts
	EventMessageStop  = "message_stop"  // the end; there is no [DONE]
)

// A MessageBody is the whole of an answer of the Messages API, or what message_start
// says of it.
type MessageBody struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"` // message
	Role     string         `json:"role"`
	Content  []MessageBlock `json:"content"` // empty, never null
	Model    string         `json:"model"`
	Reason   *string        `json:"stop_reason"` // as [StopReason] has it
	Sequence *string        `json:"stop_sequence"`
	Usage    *MessageUsage  `json:"usage,omitempty"`
}

// A MessageBlock is a part of an answer: of type text, thinking or tool_use.
type MessageBlock struct {
	Type     string           `json:"type"`
	Text     *string          `json:"text,omitempty"`
	Thinking *string          `json:"thinking,omitempty"`
	ID       string           `json:"id,omitempty"`
	Name     string           `json:"name,omitempty"`
	Input    *json.RawMessage `json:"input,omitempty"`
}

// A MessageEvent is one event of a streamed answer, as a server writes it.
type MessageEvent struct {
	Type    string        `json:"type"`
	Message *MessageBody  `json:"message,omitempty"`
	Index   *int          `json:"index,omitempty"` // of the block
	Block   *MessageBlock `json:"content_block,omitempty"`
	Delta   *MessageDelta `json:"delta,omitempty"`
	Usage   *MessageUsage `json:"usage,omitempty"`
}

// A MessageDelta is what a block gains, or, of type "", why the answer stopped.
type MessageDelta struct {
	Type     string  `json:"type,omitempty"` // text_delta, thinking_delta or input_json_delta
	Text     *string `json:"text,omitempty"`
	Thinking *string `json:"thinking,omitempty"`
	Input    *string `json:"partial_json,omitempty"`
	Reason   *string `json:"stop_reason,omitempty"`
}

// StopReason is the Messages API's word for a finish reason of the other APIs; one that
// has none stays as it is.
func StopReason(finish string) string {
	switch finish {
	case ending.Stop:
		return "end_turn"
	case ending.Length:
		return "max_tokens"
	case ending.ToolCalls:
		return "tool_use"
	case ending.ContentFilter:
		return "refusal"
	}
	return finish
}

// AppendMessageError appends the JSON of an error as the Messages API has it.
func AppendMessageError(dst []byte, detail ErrorDetail) []byte {
	body := struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}{Type: "error"}
	body.Error.Type, body.Error.Message = detail.Type, detail.Message
	text, _ := json.Marshal(body) // strings alone always marshal
	return append(dst, text...)
}

var (
	messagePrefix = []byte("message_")
	blockPrefix   = []byte("content_block_")
)

// readMessageEvent turns an event of the Messages API into what a chunk would say.
func (v *chunkView) readMessageEvent() {
	e := &v.event
	c := cursor{b: e.delta}
	switch string(e.kind) {
	case EventMessageStart:
		v.readMessage(e.message)
	case EventMessageDelta:
		v.ofMessage, v.hasUsage = v.hasUsage, false
		v.choices = append(v.choices, choiceView{finish: (&cursor{b: c.member("stop_reason")}).something()})
	case EventMessageStop:
		e.ends = true
	case EventBlockStart:
		v.readBlock(&cursor{b: e.block})
	case EventBlockDelta:
		v.readBlock(&c)
	}
}

// readBlock reads a block, or what one gains.
func (v *chunkView) readBlock(c *cursor) {
	if !c.open('{') {
		return
	}
	piece := choiceView{}
	for first := true; c.more('}', first); first = false {
		switch string(c.key()) {
		case "type":
			s, _ := c.optionalString()
			calls := string(s.raw) == "tool_use" // whose name is generated, too
			piece.content, piece.opaque = piece.content || calls, calls
		case "text":
			piece.text, _ = c.optionalString()
			piece.content = piece.content || len(piece.text.raw) > 0
		case "thinking":
			piece.reasoning, _ = c.optionalString()
		case "partial_json":
			piece.arguments, _ = c.optionalString()
			piece.content = piece.content || len(piece.arguments.raw) > 0
		default:
			c.skip()
		}
	}
	if piece.content || len(piece.reasoning.raw) > 0 {
		v.choices, v.hasContent = append(v.choices, piece), true
	}
}

// readMessage reads a message, whole or as it begins.
func (v *chunkView) readMessage(message []byte) {
	c := &cursor{b: message}
	if !c.open('{') {
		return
	}
	last := choiceView{}
	for first := true; c.more('}', first); first = false {
		switch key := c.key(); string(key) {
		case "usage":
			v.readUsage(c)
			v.ofMessage, v.hasUsage = v.hasUsage, false
		case "stop_reason":
			last.finish = c.something()
		case "content":
			last.takeOpaque(c.value())
		default:
			v.readName(c, key)
		}
	}
	v.choices, v.hasContent = append(v.choices, last), v.hasContent || last.content
}

// isMessageKind tells the events of the Messages API, and its whole answers, from others.
func isMessageKind(kind []byte) bool {
	return string(kind) == "message" || bytes.HasPrefix(kind, messagePrefix) || bytes.HasPrefix(kind, blockPrefix)
}
