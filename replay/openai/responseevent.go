package openai

// A ResponseEvent is one event of a streamed answer of the Responses API, as a server
// writes it: created, deltas, and the end. A server may write more kinds, which clients
// pass over.
type ResponseEvent struct {
	Type         string        `json:"type"` // such as [EventTextDelta]
	Sequence     int           `json:"sequence_number"`
	Response     *ResponseBody `json:"response,omitempty"` // of the first and the last event
	ItemID       string        `json:"item_id,omitempty"`
	OutputIndex  *int          `json:"output_index,omitempty"`
	ContentIndex *int          `json:"content_index,omitempty"`
	Delta        string        `json:"delta,omitempty"`
}

// Types of a [ResponseEvent], which are also the events' names.
const (
	EventCreated        = "response.created"
	EventTextDelta      = "response.output_text.delta"
	EventReasoningDelta = "response.reasoning_text.delta"
	EventCallDelta      = "response.function_call_arguments.delta"
	EventCompleted      = "response.completed"
	EventIncomplete     = "response.incomplete"
)

// Values of [ResponseBody.Status].
const (
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
	StatusIncomplete = "incomplete"
)

// A ResponseBody is the whole of an answer of the Responses API.
type ResponseBody struct {
	ID         string             `json:"id"`
	Object     string             `json:"object"` // response
	CreatedAt  int64              `json:"created_at"`
	Status     string             `json:"status"`
	Model      string             `json:"model"`
	Output     []ResponseItem     `json:"output"`
	Incomplete *IncompleteDetails `json:"incomplete_details"`
	Usage      *ResponseUsage     `json:"usage,omitempty"`
}

// IncompleteDetails say why a response ended before its end.
type IncompleteDetails struct {
	Reason string `json:"reason"` // max_output_tokens or content_filter
}

// A ResponseItem is a message in a response's output.
type ResponseItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"` // message
	Role    string         `json:"role"`
	Status  string         `json:"status"`
	Content []ResponsePart `json:"content"`
}

// A ResponsePart is a piece of text of a message.
type ResponsePart struct {
	Type string `json:"type"` // output_text
	Text string `json:"text"`
}

// ResponseUsage counts the tokens of a response.
type ResponseUsage struct {
	InputTokens        int                  `json:"input_tokens"`
	InputTokensDetails *PromptTokensDetails `json:"input_tokens_details,omitempty"`
	OutputTokens       int                  `json:"output_tokens"`
	TotalTokens        int                  `json:"total_tokens"`
}

// Responses returns the counts under the names of the Responses API.
func (u Usage) Responses() *ResponseUsage {
	return &ResponseUsage{u.PromptTokens, u.PromptTokensDetails, u.CompletionTokens, u.TotalTokens}
}

// An EmbeddingList is the answer to a request for embeddings.
type EmbeddingList struct {
	Object string          `json:"object"` // list
	Data   []EmbeddingRow  `json:"data"`
	Model  string          `json:"model"`
	Usage  *EmbeddingUsage `json:"usage,omitempty"`
}

// An EmbeddingRow is one embedding.
type EmbeddingRow struct {
	Object    string    `json:"object"` // embedding
	Index     int       `json:"index"`
	Embedding []float32 `json:"embedding"`
}

// EmbeddingUsage counts the tokens that were embedded.
type EmbeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}
